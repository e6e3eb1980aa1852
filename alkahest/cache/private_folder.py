"""A folder that nobody else can put files into, for files that will be executed.

The folder and every file in it must belong to this user and be writable by nobody else. Both are
checked on open descriptors, and each later step is relative to the folder's descriptor: whatever
others do to the folders above it, what was checked is what is used.

Windows has no such descriptors and modes; a user's profile is private there by its access lists,
and only links are refused.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
# Without O_NONBLOCK, a named pipe in the place of a file would be waited for.
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_TEMPORARY = re.compile(r"\.new-[0-9a-f]{16}")


class File(NamedTuple):
    """A regular file of the folder.

    Attributes:
        name: its name.
        size: bytes.
        used: when it was written or last touched, in seconds since the epoch.
    """

    name: str
    size: int
    used: float

    @property
    def is_temporary(self) -> bool:
        """Whether it is a file that is being written, or whose writer died."""
        return _TEMPORARY.fullmatch(self.name) is not None


class PrivateFolder:
    """An open folder; a context manager that closes it.

    Attributes:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path``.

        Raises:
            FileNotFoundError: there is no such folder.
            PermissionError: it belongs to somebody else, others may write to it, or it is a link;
                the message says so, and what to do.
            OSError: it cannot be read, or is no folder.
        """
        self.path = path
        self._descriptor: int | None = None
        if path.is_symlink():
            raise PermissionError(f"{path} is a symbolic link; name the folder that it leads to")
        if not _BY_DESCRIPTOR:
            if not stat.S_ISDIR(path.stat().st_mode):
                raise NotADirectoryError(f"{path} is not a folder")
            return
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _check_private(os.fstat(self._descriptor), str(path))
        except BaseException:
            self._close()
            raise

    @classmethod
    def create(cls, path: Path) -> PrivateFolder:
        """Open ``path``, and create it and the folders above it, for this user alone, if need be.

        Raises:
            OSError: as when it is opened, or it cannot be created.
        """
        with contextlib.suppress(FileNotFoundError):
            return cls(path)
        for folder in (*reversed(path.parents), path):
            if not os.path.exists(folder):
                with contextlib.suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
        return cls(path)

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def open_file(self, name: str) -> BinaryIO:
        """Open the file ``name`` for reading.

        Raises:
            FileNotFoundError: there is no such file.
            PermissionError: it is no regular file of this user's that only this user can write.
            OSError: it cannot be read.
        """
        descriptor = os.open(self._at(name), _READ, dir_fd=self._descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise PermissionError(f"{name} is not a regular file")
            _check_private(status, name)
            return open(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def write_file(self, name: str, parts: Iterable[bytes]) -> None:
        """Put a file in place of ``name``; whoever reads sees the old one or all of the new one.

        Raises:
            OSError: it cannot be written; nothing is left behind.
        """
        temporary = f".new-{os.urandom(8).hex()}"
        descriptor = os.open(self._at(temporary), _CREATE, 0o600, dir_fd=self._descriptor)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(parts)
            os.replace(
                self._at(temporary),
                self._at(name),
                src_dir_fd=self._descriptor,
                dst_dir_fd=self._descriptor,
            )
        except BaseException:
            self.remove(temporary)
            raise

    def touch(self, name: str) -> None:
        """Make now the time when ``name`` was last used, where that can be recorded."""
        with contextlib.suppress(OSError):
            os.utime(self._at(name), dir_fd=self._descriptor)

    def remove(self, name: str) -> bool:
        """Remove the file ``name``; whether it is gone."""
        try:
            os.unlink(self._at(name), dir_fd=self._descriptor)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def files(self) -> Iterator[File]:
        """The regular files of the folder, in no order."""
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as found:
            for entry in found:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another process removed it just now
                if stat.S_ISREG(status.st_mode):
                    yield File(entry.name, status.st_size, status.st_mtime)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self.path, name)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _check_private(status: os.stat_result, what: str) -> None:
    """Refuse what belongs to another user, or what others may write to."""
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{what} belongs to user {status.st_uid}, not to {os.geteuid()}")
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{what} can be written by others (mode {mode:04o}); chmod go-w it")
