"""Keys, and the digest of sources that belongs into them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import alkahest
from alkahest import cache
from alkahest.cache import keys


def test_a_key_is_64_hexadecimal_digits_and_the_same_in_every_process() -> None:
    canonical = b'{"program": "abc", "target": "sm_90"}'
    made = cache.key({"target": "sm_90", "program": "abc"})
    assert made == hashlib.sha256(canonical).hexdigest()
    assert len(made) == 64


def test_the_order_of_the_parts_does_not_matter_and_everything_else_does() -> None:
    one = cache.key({"a": "1", "b": "2"})
    assert cache.key({"b": "2", "a": "1"}) == one
    others = [{"a": "1"}, {"a": "2", "b": "1"}, {"a": "1", "b": "2", "c": ""}, {'a": "1", "b': "2"}]
    assert len({one, *map(cache.key, others)}) == 5


def test_any_text_can_be_a_part() -> None:
    assert cache.key({"path": "\udcff", "größe": '"\0'}) != cache.key({"path": "", "größe": '"\0'})


@pytest.mark.parametrize("parts", [{"a": 1}, {1: "a"}, {"a": None}, {"a": b"x"}])
def test_a_part_that_is_no_text_is_refused(parts: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="the parts of a key are texts, got"):
        cache.key(parts)


@pytest.mark.parametrize("text", ["", "a", "../" * 21 + "a", "A" * 64, "a" * 65, "a" * 63 + "\n"])
def test_only_keys_are_looked_up_or_stored(folder: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a key made by alkahest\.cache\.key"):
        cache.load(text)
    with pytest.raises(ValueError, match=r"is not a key made by alkahest\.cache\.key"):
        cache.store(text, b"")
    assert not folder.exists()


def test_the_digest_of_sources_changes_with_any_python_file_below(tmp_path: Path) -> None:
    def digest() -> str:
        keys.sources.cache_clear()
        return cache.sources(tmp_path)

    module = tmp_path / "inner" / "module.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    os.utime(module, ns=(0, 1_000_000_000))
    first = digest()
    (tmp_path / "notes.txt").write_text("anything")
    assert digest() == first
    os.utime(module, ns=(0, 1_000_000_001))
    second = digest()
    module.write_text("x = 10\n")
    os.utime(module, ns=(0, 1_000_000_001))
    third = digest()
    (tmp_path / "other.py").write_text("")
    assert len({first, second, third, digest()}) == 4


def test_files_and_several_places_count_in_their_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "__pycache__").mkdir(parents=True)
        (folder / "module.py").write_text("x = 1\n")
        os.utime(folder / "module.py", ns=(0, 1))
    both = cache.sources(first, second)
    alone = cache.sources(first)
    file = cache.sources(first / "module.py")
    assert len({both, alone, file}) == 3
    assert cache.sources(second) == alone
    assert cache.sources(second / "module.py") == file
    os.utime(second / "module.py", ns=(0, 2))
    keys.sources.cache_clear()
    assert cache.sources(first) == alone
    assert len({cache.sources(first, second), cache.sources(second, first), both}) == 3


def test_what_cannot_be_examined_is_an_error_and_not_an_empty_digest(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cache.sources(tmp_path / "absent")


def test_importing_the_cache_loads_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(alkahest.__file__).parents[1])!r})\n"
        "import alkahest.cache\n"
        "print({'numpy', 'attr', 'pluggy', 'pickle', 'tempfile', 'secrets'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
