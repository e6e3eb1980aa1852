"""What is stored is loaded, whole or not at all, and never costs more than the compilation."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from alkahest import cache
from alkahest.cache import settings
from alkahest.cache.private_folder import PrivateFolder


def key(number: int) -> str:
    return cache.key({"number": str(number)})


def file_of(folder: Path, number: int) -> Path:
    return folder / f"{key(number)}.code"


def test_what_is_stored_is_loaded_by_its_key_alone(folder: Path) -> None:
    assert cache.load(key(0)) is None
    assert not folder.exists(), "loading creates nothing"
    data = bytes(range(256)) * 1000
    cache.store(key(0), data)
    cache.store(key(1), b"")
    assert (cache.load(key(0)), cache.load(key(1)), cache.load(key(2))) == (data, b"", None)
    cache.store(key(0), b"newer")
    assert cache.load(key(0)) == b"newer"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"{key(0)}.code", f"{key(1)}.code"]
    )


def test_the_status_counts_what_there_is(folder: Path) -> None:
    assert cache.status() == (folder, settings.DEFAULT_LIMIT, "", True, 0, 0)
    assert cache.directory() == folder
    cache.store(key(0), b"x" * 100, label="a")
    cache.store(key(1), b"x" * 100, label="b")
    (folder / "notes.txt").write_text("not ours")
    size = sum(file_of(folder, number).stat().st_size for number in (0, 1))
    assert cache.status()[4:] == (2, size)
    assert cache.directory() == folder


def test_entries_are_listed_with_their_labels_last_used_first(folder: Path) -> None:
    labels = ["nvptx sm_90", "", "é" * 150]
    for number, label in enumerate(labels):
        cache.store(key(number), b"code", label=label)
        os.utime(file_of(folder, number), (0, 1000 + number))
    shown = [(entry.key, entry.used, entry.label) for entry in cache.entries()]
    assert shown == [(key(2), 1002, "é" * 100), (key(1), 1001, ""), (key(0), 1000, labels[0])]
    before = time.time() - 5
    cache.load(key(0))
    first = cache.entries()[0]
    assert first.key == key(0)
    assert first.used > before


def test_every_damaged_byte_and_every_cut_is_noticed_and_the_entry_removed(folder: Path) -> None:
    cache.store(key(0), b"code", label="l")
    path = file_of(folder, 0)
    whole = path.read_bytes()
    damaged = [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in range(len(whole))]
    cut = [whole[:length] for length in range(len(whole))]
    for content in (*damaged, *cut, whole + b"\0", b"\0" * 500, b"\x80\x04N."):
        path.write_bytes(content)
        assert cache.load(key(0)) is None
        assert not path.exists()
    cache.store(key(0), b"code", label="l")
    assert path.read_bytes() == whole


def test_the_entry_of_another_key_is_not_believed(folder: Path) -> None:
    cache.store(key(0), b"code")
    file_of(folder, 0).rename(file_of(folder, 1))
    assert cache.load(key(1)) is None
    assert list(folder.iterdir()) == []


def test_a_damaged_entry_is_not_listed(folder: Path) -> None:
    cache.store(key(0), b"code")
    cache.store(key(1), b"code")
    file_of(folder, 0).write_bytes(b"junk")
    assert [entry.key for entry in cache.entries()] == [key(1)]
    assert cache.status().entries == 1


def test_a_process_out_of_descriptors_loses_no_entry(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(0), b"code")

    def fail(folder: PrivateFolder, name: str) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(PrivateFolder, "open_file", fail)
        assert cache.load(key(0)) is None
    assert cache.load(key(0)) == b"code"


@pytest.mark.parametrize("function", ["replace", "open", "mkdir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES])
def test_a_full_or_read_only_disk_is_silent_and_nothing_is_left_behind(
    folder: Path, function: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, function)

    def fail(*arguments: Any, **options: Any) -> Any:
        if function == "open" and not arguments[1] & os.O_CREAT:
            return real(*arguments, **options)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        cache.store(key(0), b"code")
        assert cache.load(key(0)) is None
    assert not folder.exists() or list(folder.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(0), b"code")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
    assert cache.status().path == folder
    assert cache.status().reason == f"{folder} cannot be written to"
    assert cache.load(key(0)) == b"code"


def test_the_entries_not_used_for_the_longest_time_make_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.SIZE_VARIABLE, "45000")
    for number in range(3):
        cache.store(key(number), b"x" * 10_000)
        os.utime(file_of(folder, number), (0, 1000 + number))
    assert cache.load(key(0)) is not None
    cache.store(key(3), b"x" * 10_000)
    assert [cache.load(key(number)) is not None for number in range(4)] == [True, False, True, True]


def test_the_size_stays_bounded_however_much_is_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 100_000
    monkeypatch.setenv(settings.SIZE_VARIABLE, str(limit))
    largest = 0
    for number in range(500):
        cache.store(key(number), b"x" * 900)
        largest = max(largest, cache.status().size)
    assert limit / 2 < largest <= limit


def test_an_entry_that_would_push_out_all_others_is_not_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.SIZE_VARIABLE, "10K")
    cache.store(key(0), b"x" * 5100)
    assert cache.load(key(0)) is None
    cache.store(key(0), b"x" * 5000)
    assert cache.load(key(0)) is not None


def test_the_folder_is_looked_through_seldom(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.SIZE_VARIABLE, "10M")
    looks = []
    real = PrivateFolder.files
    monkeypatch.setattr(PrivateFolder, "files", lambda self: looks.append(self) or real(self))
    for number in range(1000):
        cache.store(key(number), b"x" * 924)  # with the header about a kilobyte, so 3 looks
    assert 0 <= len(looks) <= 10


def test_what_dead_writers_left_is_removed_in_time_and_foreign_files_never(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.SIZE_VARIABLE, "10K")
    folder.mkdir(mode=0o700)
    old, young = folder / f".new-{'0' * 16}", folder / f".new-{'1' * 16}"
    foreign = [folder / name for name in ("notes.txt", "a.code", ".new-x", f"{key(0)}.code~")]
    for path in (old, young, *foreign):
        path.write_bytes(b"x" * 20_000)
    for path in (old, *foreign):
        os.utime(path, (0, 0))
    cache.store(key(0), b"x" * 1000)
    assert cache.load(key(0)) is not None
    assert not old.exists()
    assert young.exists()
    assert cache.clear() == (1, 0)
    assert sorted(folder.iterdir()) == sorted(foreign)


def test_clearing_counts_what_cannot_be_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(0), b"code")
    cache.store(key(1), b"code")
    real = os.unlink

    def unlink(path: str, **options: Any) -> None:
        if path == file_of(folder, 1).name:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        real(path, **options)

    monkeypatch.setattr(os, "unlink", unlink)
    assert cache.clear() == (1, 1)
