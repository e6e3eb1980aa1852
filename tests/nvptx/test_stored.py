"""PTX that is kept on disk: found again, told apart, and never trusted to be there."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from alkahest import ExprPool, cache, parse
from alkahest.backends.nvptx import libdevice, module, probe, stored, toolchain
from alkahest.backends.nvptx.access import CONTIGUOUS, STRIDED, VALUE, Access
from alkahest.cache.private_folder import PrivateFolder
from alkahest.errors import CudaError, InputError
from alkahest.plugin import Artifact
from alkahest.program import Program, lower

TARGET = "sm_80"


def program(text: str = "x*y + 1", names: str = "x y", dtype: str = "float64") -> Program:
    pool = ExprPool()
    return lower([parse(text, pool)], [pool.symbol(n) for n in names.split()], dtype)


PLAIN = Access.plain(program())
OTHERS = {
    "a dtype": attrs.evolve(PLAIN, columns=(("float32", CONTIGUOUS), ("float64", CONTIGUOUS))),
    "a view": attrs.evolve(PLAIN, columns=(("float64", STRIDED), ("float64", CONTIGUOUS))),
    "a value": attrs.evolve(PLAIN, columns=(("float64", VALUE), ("float64", CONTIGUOUS))),
    "an output": attrs.evolve(PLAIN, outputs=(STRIDED,)),
    "a source": attrs.evolve(PLAIN, outputs=(CONTIGUOUS,) * 2, sources=(0, 0)),
    "a rank": attrs.evolve(PLAIN, outputs=(STRIDED,), rank=2),
    "points": attrs.evolve(PLAIN, points=1),
    "a shared place": attrs.evolve(PLAIN, in_place=True),
    "every default": PLAIN,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the cache of this test."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(path))
    return path


@pytest.fixture
def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that were compiled and not found."""
    found: list[Program] = []
    generate = module.generate

    def noted(program: Program, *rest: Any) -> Artifact:
        found.append(program)
        return generate(program, *rest)

    monkeypatch.setattr(module, "generate", noted)
    return found


def generate(text: str = "x*y + 1", names: str = "x y", **options: Any) -> Artifact:
    return stored.generate(program(text, names), TARGET, options)


# Hits


def test_the_second_time_nothing_is_compiled_and_everything_is_the_same(
    compiled: list[Program],
) -> None:
    first = generate("erf(x)*y")
    again = generate("erf(x)*y")
    assert len(compiled) == 1
    assert again == first
    assert first == module.generate(program("erf(x)*y"), TARGET, {})
    (entry,) = cache.entries()
    assert entry.label == "PTX for sm_80, float64"


def test_names_of_inputs_and_spelt_out_defaults_make_no_difference(
    compiled: list[Program],
) -> None:
    first = generate()
    renamed = generate("a*b + 1", "a b")
    assert generate(accuracy="default").code == renamed.code == first.code
    assert renamed.program.inputs == ("a", "b")
    assert len(compiled) == 1


def test_the_probe_is_answered_from_disk_as_it_was_the_first_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = probe.probe()
    assert first.ok
    monkeypatch.setattr(libdevice, "load", lambda: pytest.fail("libdevice was read"))
    assert probe.probe() == first


# Keys


def key(
    changed: Program | None = None,
    target: str = TARGET,
    access: Access | None = None,
    **options: Any,
) -> str | None:
    return stored.key_of(changed or program(), target, options, access)


def test_everything_that_changes_code_changes_the_key() -> None:
    keys = {
        "nothing": key(),
        "an operation": key(program("x*y - 1")),
        "a constant": key(program("x*y + 2")),
        "the order of the inputs": key(program(names="y x")),
        "the dtype": key(program(dtype="float32")),
        "the target": key(target="sm_90"),
        "strict": key(accuracy="strict"),
        "fast": key(accuracy="fast"),
        **{name: key(access=access) for name, access in OTHERS.items()},
    }
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys)


@pytest.mark.parametrize("part", ["sources", "llvm", "libdevice"])
def test_another_compiler_is_another_key(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    before, compilers = key(), dict(toolchain.compilers() or {})
    monkeypatch.setattr(toolchain, "compilers", lambda: {**compilers, part: "changed"})
    assert key() != before


def test_an_unknown_option_is_refused_before_anything_is_looked_up(folder: Path) -> None:
    with pytest.raises(InputError, match="no option 'fastmath'"):
        generate(fastmath=True)


def test_another_libdevice_is_another_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = toolchain.compilers()
    copy = tmp_path / "libdevice.10.bc"
    copy.write_bytes(libdevice.find().read_bytes())
    monkeypatch.setenv(libdevice.VARIABLE, str(copy))
    here = toolchain.compilers()
    os.utime(copy, ns=(0, 1))
    later = toolchain.compilers()
    assert before is not None
    assert here is not None
    assert later is not None
    assert len({c["libdevice"] for c in (before, here, later)}) == 3
    assert before["llvm"] == later["llvm"]


def test_without_libdevice_code_that_needs_none_is_kept_and_other_code_is_refused(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    generate("erf(x)", "x")
    monkeypatch.setenv(libdevice.VARIABLE, "/nowhere")
    assert generate().code == generate().code
    assert len(compiled) == 2
    with pytest.raises(CudaError) as caught:
        generate("erf(x)", "x")
    assert caught.value.code == "E-CUDA-005"


@pytest.mark.parametrize("missing", ["the package", "its library"])
def test_nothing_is_kept_where_llvm_cannot_be_told(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    (tmp_path / "binding").mkdir()
    spec = None if missing == "the package" else Origin(str(tmp_path / "__init__.py"))
    monkeypatch.setattr(toolchain, "find_spec", lambda name: spec)
    assert generate() == generate()
    assert len(compiled) == 2
    assert cache.entries() == []


@attrs.frozen
class Origin:
    """What is asked of a module's specification."""

    origin: str


# Entries that are no use


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _of_another_key(path: Path) -> None:
    other = stored.key_of(program("x - y"), TARGET, {}, None)
    assert other is not None
    generate("x - y")
    path.write_bytes(path.with_name(f"{other}.code").read_bytes())


def _holding(data: bytes) -> Callable[[Path], None]:
    return lambda path: cache.store(path.stem, data)


def _facts(**facts: Any) -> Callable[[Path], None]:
    return _holding(json.dumps(facts).encode())


@pytest.mark.parametrize(
    "spoil",
    {
        "cut": _cut,
        "damaged": _damage,
        "of another key": _of_another_key,
        "empty": _holding(b""),
        "no JSON": _holding(b"\x7fELF"),
        "a list": _holding(b"[]"),
        "without code": _facts(entry="alkahest_eval", metadata={"ptx_version": "7.0"}),
        "with code that is no text": _facts(entry="f", code=1, metadata={"ptx_version": "7.0"}),
        "without facts": _facts(entry="alkahest_eval", code="", metadata=[]),
    }.values(),
    ids=lambda spoil: spoil.__name__.strip("_"),
)
def test_an_entry_that_is_no_use_is_made_again(
    compiled: list[Program], folder: Path, spoil: Callable[[Path], None]
) -> None:
    first = generate()
    (path,) = folder.iterdir()
    spoil(path)
    compiled.clear()
    assert generate() == first
    assert len(compiled) == 1
    assert generate() == first
    assert len(compiled) == 1


@pytest.mark.parametrize("switch", [("ALKAHEST_CACHE_DIR", "off"), ("ALKAHEST_CACHE_SIZE", "0")])
def test_without_a_cache_everything_works_and_nothing_is_kept(
    compiled: list[Program], folder: Path, monkeypatch: pytest.MonkeyPatch, switch: tuple[str, str]
) -> None:
    monkeypatch.setenv(*switch)
    assert generate() == generate()
    assert len(compiled) == 2
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_to_is_only_read(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = generate()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(PrivateFolder, "write_file", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert generate() == first
    other = generate("x - y")
    assert generate("x - y") == other
    assert len(compiled) == 3


def test_a_folder_that_is_a_file_is_no_cache(compiled: list[Program], folder: Path) -> None:
    folder.write_text("not a folder")
    assert generate() == generate()
    assert len(compiled) == 2
    assert folder.read_text() == "not a folder"
