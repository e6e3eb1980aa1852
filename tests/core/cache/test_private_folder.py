"""Folders and files that others could have tampered with are not used."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from alkahest import cache
from alkahest.cache import private_folder
from alkahest.cache.private_folder import PrivateFolder

KEY = cache.key({})


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A user whose new files everybody may write to."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_whatever_the_umask_folders_and_files_are_the_users_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "above" / "it"
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(inner))
    cache.store(KEY, b"code")
    (entry,) = inner.iterdir()
    assert [mode(path) for path in (folder, inner.parent, inner)] == [0o700] * 3
    assert mode(entry) == 0o600
    assert cache.load(KEY) == b"code"


@pytest.mark.parametrize("others", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(folder: Path, others: int) -> None:
    cache.store(KEY, b"code")
    folder.chmod(others)
    cache.store(cache.key({"a": ""}), b"more")
    assert (cache.load(KEY), cache.directory(), cache.entries()) == (None, None, [])
    assert cache.clear() == (0, 0)
    assert len(list(folder.iterdir())) == 1
    assert cache.status().path is None
    assert cache.status().reason == (
        f"{folder} can be written by others (mode {others:04o}); chmod go-w it"
    )
    folder.chmod(0o755)
    assert cache.load(KEY) == b"code"


def test_a_symbolic_link_is_refused_even_to_a_good_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(KEY, b"code")
    link = tmp_path / "link"
    link.symlink_to(folder)
    for text in (f"{link}", f"{link}/", f"{link}/."):
        monkeypatch.setenv("ALKAHEST_CACHE_DIR", text)
        assert cache.load(KEY) is None
        assert cache.status().reason.startswith(f"{link} is a symbolic link")
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path / "dangling"))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    cache.store(KEY, b"code")
    assert cache.directory() is None
    assert not (tmp_path / "nowhere").exists()


def test_a_link_above_the_folder_is_the_users_own_business(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("disk").mkdir()
    tmp_path.joinpath("link").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path / "link" / "cache"))
    cache.store(KEY, b"code")
    assert cache.load(KEY) == b"code"


def test_a_folder_or_entry_of_another_user_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(KEY, b"code")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert (cache.load(KEY), cache.directory()) == (None, None)
    assert cache.status().reason == f"{folder} belongs to user {me}, not to {me + 1}"


def test_a_folder_that_is_a_file_is_refused(folder: Path) -> None:
    folder.write_text("mine")
    cache.store(KEY, b"code")
    assert (cache.load(KEY), cache.directory()) == (None, None)
    assert cache.status().reason == f"{folder}: Not a directory"
    assert folder.read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "pipe", "open to others"])
def test_an_entry_that_is_no_private_regular_file_is_removed_unread(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    cache.store(KEY, b"code")
    (entry,) = folder.iterdir()
    if kind == "link":
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        entry.unlink()
        os.mkfifo(entry, 0o600)
    else:
        entry.chmod(0o622)
    assert cache.load(KEY) is None
    assert list(folder.iterdir()) == []
    assert (tmp_path / "elsewhere").exists() == (kind == "link")
    cache.store(KEY, b"code")
    assert cache.load(KEY) == b"code"


def test_what_was_checked_is_what_is_used_when_the_folder_is_exchanged(
    folder: Path, tmp_path: Path
) -> None:
    folder.mkdir(mode=0o700)
    with PrivateFolder(folder) as opened:
        folder.rename(tmp_path / "moved")
        folder.mkdir(mode=0o777)
        opened.write_file("a", [b"1", b"23"])
        assert [file.name for file in opened.files()] == ["a"]
        with opened.open_file("a") as file:
            assert file.read() == b"123"
    assert (tmp_path / "moved" / "a").read_bytes() == b"123"
    assert list(folder.iterdir()) == []


def test_a_system_without_descriptors_of_folders_has_the_same_cache(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_folder, "_BY_DESCRIPTOR", False)
    monkeypatch.delattr(os, "geteuid")
    cache.store(KEY, b"code", label="a")
    assert cache.load(KEY) == b"code"
    assert [(entry.key, entry.label) for entry in cache.entries()] == [(KEY, "a")]
    tmp_path.joinpath("link").symlink_to(folder)
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path / "link"))
    assert cache.load(KEY) is None
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(next(folder.iterdir())))
    assert cache.status().reason.endswith("is not a folder")
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(folder))
    assert cache.clear() == (1, 0)


def test_no_descriptor_is_left_open(folder: Path) -> None:
    def descriptors() -> int:
        return sum(1 for number in range(256) if _is_open(number))

    before = descriptors()
    cache.store(KEY, b"code")
    cache.load(KEY)
    cache.status()
    next(folder.iterdir()).write_bytes(b"")
    cache.load(KEY)
    folder.chmod(0o777)
    cache.load(KEY)
    cache.entries()
    assert descriptors() == before


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
