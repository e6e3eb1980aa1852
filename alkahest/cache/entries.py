"""Loading, storing, listing and removing entries."""

from __future__ import annotations

import errno
import math
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from alkahest.cache import keys, record, settings
from alkahest.cache.private_folder import File, PrivateFolder

_NAME = re.compile(rf"({keys.PATTERN.pattern})\.code")

_LOTS = 32
"""How often, on average, the folder is looked through while as much is stored as it may hold."""

_KEPT = 3 / 4
"""What looking through leaves of the limit, so that it is seldom exceeded before the next time."""

_LARGEST = 1 / 2
"""An entry above this share of the limit is not stored: it would push out nearly all others."""

_ABANDONED = 3600.0
"""Age in seconds of a temporary file whose writer must have died."""

_NO_FAULT_OF_THE_ENTRY = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}


class Status(NamedTuple):
    """What the cache is.

    Attributes:
        path: the folder, or None where there is no cache.
        limit: largest size in bytes.
        reason: why there is no cache, or why nothing can be stored in it; "" where all is well.
        wanted: False where the user switched it off.
        entries: how many entries it has.
        size: bytes of all of them.
    """

    path: Path | None
    limit: int
    reason: str = ""
    wanted: bool = True
    entries: int = 0
    size: int = 0


class Entry(NamedTuple):
    """One entry.

    Attributes:
        key: what it is stored under.
        size: bytes of its file.
        used: when it was stored or last loaded, in seconds since the epoch.
        label: what its owner says about it.
    """

    key: str
    size: int
    used: float
    label: str


def load(key: str) -> bytes | None:
    """What was stored under ``key``, or None.

    An entry that is damaged, cut, of another format or cannot be read is removed.

    Raises:
        ValueError: ``key`` is none that :func:`alkahest.cache.key` returns.
    """
    keys.check(key)
    path = settings.current().path
    if path is None:
        return None
    try:
        with PrivateFolder(path) as folder:
            found = _read(folder, key)
            if found is None:
                return None
            folder.touch(_name(key))
            return found[0]
    except OSError:
        return None


def store(key: str, data: bytes, *, label: str = "") -> None:
    """Keep ``data`` under ``key``, if that is possible; the oldest used entries make room.

    Args:
        key: from :func:`alkahest.cache.key`.
        data: the code. More than half of what the cache may hold is not kept.
        label: what it is, for ``alkahest cache --list``; cut to 200 bytes.

    Raises:
        ValueError: ``key`` is none that :func:`alkahest.cache.key` returns.
    """
    keys.check(key)
    wish = settings.current()
    if wish.path is None:
        return
    parts = record.pack(key, data, label)
    size = sum(map(len, parts))
    if size > wish.limit * _LARGEST:
        return
    try:
        with PrivateFolder.create(wish.path) as folder:
            folder.write_file(_name(key), parts)
            # Looking through ten thousand files takes longer than writing one. Keys are spread
            # evenly, so they are drawn lots with, and no process has to know of the others.
            if int(key[:8], 16) * wish.limit < (size * _LOTS) << 32:
                _trim(folder, wish.limit)
    except OSError:
        return


def directory() -> Path | None:
    """The folder, which the first :func:`store` creates; None where there is no cache."""
    path = settings.current().path
    if path is None:
        return None
    try:
        with PrivateFolder(path):
            return path
    except FileNotFoundError:
        return path
    except OSError:
        return None


def status() -> Status:
    """Where the cache is and what it holds, or why there is none."""
    wish = settings.current()
    if wish.path is None:
        return Status(None, wish.limit, wish.reason, wish.wanted)
    found: list[File] = []
    try:
        with PrivateFolder(wish.path) as folder:
            found = _entry_files(folder.files())
    except FileNotFoundError:
        pass  # nothing was stored yet
    except OSError as error:
        reason = f"{wish.path}: {error.strerror}" if error.strerror else str(error)
        return Status(None, wish.limit, reason)
    place = next(p for p in (wish.path, *wish.path.parents) if os.path.exists(p))
    reason = "" if os.access(place, os.W_OK) else f"{place} cannot be written to"
    size = sum(file.size for file in found)
    return Status(wish.path, wish.limit, reason, entries=len(found), size=size)


def entries() -> list[Entry]:
    """Every entry, the last used first; damaged ones are removed on the way."""
    path = settings.current().path
    if path is None:
        return []
    found = []
    try:
        with PrivateFolder(path) as folder:
            for file in sorted(_entry_files(folder.files()), key=lambda file: -file.used):
                key = file.name.partition(".")[0]
                if contents := _read(folder, key):
                    found.append(Entry(key, file.size, file.used, label=contents[1]))
    except OSError:
        pass  # the folder went away
    return found


def clear() -> tuple[int, int]:
    """Remove every entry, and nothing else that the folder may hold.

    Returns:
        How many entries are gone, and how many could not be removed.
    """
    path = settings.current().path
    if path is None:
        return 0, 0
    try:
        with PrivateFolder(path) as folder:
            files = list(folder.files())
            _remove_temporaries(folder, files, before=math.inf)
            gone = [folder.remove(file.name) for file in _entry_files(files)]
    except OSError:
        return 0, 0
    return gone.count(True), gone.count(False)


def _read(folder: PrivateFolder, key: str) -> tuple[bytes, str] | None:
    """Data and label, or None, and then there is no such entry any more."""
    name = _name(key)
    try:
        with folder.open_file(name) as file:
            return record.read(file, key)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) not in _NO_FAULT_OF_THE_ENTRY:
            folder.remove(name)
        return None


def _trim(folder: PrivateFolder, limit: int) -> None:
    """Remove the oldest used entries beyond what is kept, and what dead writers left."""
    files = list(folder.files())
    _remove_temporaries(folder, files, before=time.time() - _ABANDONED)
    found = _entry_files(files)
    excess = sum(file.size for file in found) - limit * _KEPT
    for file in sorted(found, key=lambda file: file.used):
        if excess <= 0:
            break
        if folder.remove(file.name):
            excess -= file.size


def _remove_temporaries(folder: PrivateFolder, files: Iterable[File], before: float) -> None:
    for file in files:
        if file.is_temporary and file.used < before:
            folder.remove(file.name)


def _entry_files(files: Iterable[File]) -> list[File]:
    return [file for file in files if _NAME.fullmatch(file.name)]


def _name(key: str) -> str:
    return f"{key}.code"
