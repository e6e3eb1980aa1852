"""A file that appears complete or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from alkahest.errors import IoError


class PendingFile:
    """Context manager: a temporary file beside ``target`` that replaces it when the block succeeds.

    Whatever ends the block early, Ctrl-C included, the temporary file goes and ``target`` is as it
    was. A symbolic link is followed; an existing file's permissions are kept.

    Attributes:
        path: where to write inside the block.
    """

    def __init__(self, target: str) -> None:
        self._target = check_target(target)
        name = f".{self._target.name}.{secrets.token_hex(4)}.tmp"
        self.path = str(self._target.with_name(name))

    def __enter__(self) -> PendingFile:
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            with suppress(FileNotFoundError):
                os.chmod(self.path, stat.S_IMODE(self._target.stat().st_mode))
        except OSError as error:
            raise unwritable(str(self._target), error) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                # The data reaches the disk before the name does: after a power cut the name
                # stands for the old file or for the whole new one.
                with open(self.path, "rb+") as finished:
                    os.fsync(finished.fileno())
                os.replace(self.path, self._target)
        except OSError as failure:
            raise unwritable(str(self._target), failure) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self.path)


def check_target(target: str) -> Path:
    """The file that ``target`` stands for, links followed.

    Raises:
        IoError: E-IO-002 when its folder is missing or not writeable, or when it is no file.
    """
    path = Path(os.path.realpath(target))
    if not path.parent.is_dir():
        raise IoError(
            "E-IO-002",
            f"{target!r} cannot be written: there is no folder {str(path.parent)!r}",
            remediation="Create the folder first.",
        )
    if not os.access(path.parent, os.W_OK):
        raise IoError(
            "E-IO-002",
            f"{target!r} cannot be written: the folder {str(path.parent)!r} is not writeable",
            remediation="Choose another folder.",
        )
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise IoError(
            "E-IO-002",
            f"{target!r} cannot be written: it is {kind}",
            remediation="Name a file; -o - writes CSV to standard output.",
        )
    return path


def unwritable(path: str, error: OSError) -> IoError:
    """The error of a file that the system will not let us write."""
    return IoError(
        "E-IO-002",
        f"{path!r} cannot be written: {error.strerror or error}",
        remediation="Check the free space and the permissions; nothing was changed.",
    )
