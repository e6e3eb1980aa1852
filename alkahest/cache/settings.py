"""Where the user wants the cache, and how large it may become."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

DIRECTORY_VARIABLE = "ALKAHEST_CACHE_DIR"
SIZE_VARIABLE = "ALKAHEST_CACHE_SIZE"
OFF = "off"
DEFAULT_LIMIT = 256 << 20

_FOLDER = "alkahest"
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:I?B)?")
_BITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

# Platform -> variable that names the folder of all caches, and where it is otherwise.
_CACHES = {
    "darwin": ("", "~/Library/Caches"),
    "win32": ("LOCALAPPDATA", "~/AppData/Local"),
}
_XDG = ("XDG_CACHE_HOME", "~/.cache")


class Settings(NamedTuple):
    """What the environment asks for.

    Attributes:
        path: the folder, absolute; None for no cache.
        limit: largest size in bytes.
        reason: why there is no cache, or "".
        wanted: False where the user switched it off, rather than making a mistake.
    """

    path: Path | None
    limit: int
    reason: str = ""
    wanted: bool = True


def current() -> Settings:
    """The settings as they are now; a mistake in them switches the cache off."""
    text = os.environ.get(SIZE_VARIABLE, "").strip()
    limit = parse_size(text) if text else DEFAULT_LIMIT
    if limit is None:
        return Settings(None, 0, f"{SIZE_VARIABLE}={text} is no size; write it like 500M or 2G")
    chosen = os.environ.get(DIRECTORY_VARIABLE, "")
    if chosen.strip().lower() == OFF or limit == 0:
        variable = DIRECTORY_VARIABLE if limit else SIZE_VARIABLE
        return Settings(None, limit, f"{variable}={os.environ[variable]}", wanted=False)
    try:
        path = Path(chosen).expanduser() if chosen else _user_folder()
        return Settings(path.absolute(), limit)
    except (OSError, RuntimeError) as error:  # no home, no such user, no working folder
        return Settings(None, limit, f"{error}; set {DIRECTORY_VARIABLE}")


def parse_size(text: str) -> int | None:
    """Bytes of a text like ``"1048576"``, ``"100M"``, ``"1.5 GiB"``; None for any other text."""
    match = _SIZE.fullmatch(text.upper())
    return None if match is None else int(float(match[1]) * 2 ** _BITS[match[2]])


def _user_folder() -> Path:
    variable, otherwise = _CACHES.get(sys.platform, _XDG)
    caches = Path(os.environ.get(variable, ""))
    # A relative folder in these variables counts as none, by the specification of XDG.
    return (caches if caches.is_absolute() else Path(otherwise).expanduser()) / _FOLDER
