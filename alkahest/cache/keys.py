"""What an entry is stored under."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

PATTERN = re.compile(r"[0-9a-f]{64}")


def key(parts: Mapping[str, str]) -> str:
    """The key of code that depends on ``parts`` and on nothing else.

    Args:
        parts: name -> text, in any order: digest of the program, target, accuracy, options, host
            features, versions of the plugin and of every compiler and library, and
            :func:`sources`. A part that is forgotten makes wrong code be loaded.

    Returns:
        64 hexadecimal digits.

    Raises:
        TypeError: a name or a value is not text.
    """
    for name, text in parts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"the parts of a key are texts, got {name!r}: {text!r}")
    return hashlib.sha256(json.dumps(dict(parts), sort_keys=True).encode()).hexdigest()


def check(key: str) -> None:
    """Refuse, with ValueError, what :func:`key` does not return; keys become names of files."""
    if PATTERN.fullmatch(key) is None:
        raise ValueError(f"{key!r} is not a key made by alkahest.cache.key()")


@functools.cache
def sources(folder: Path) -> str:
    """A digest that changes whenever a Python file in ``folder`` or below it does.

    As a part of the key, it keeps a checkout that is being edited from running yesterday's code.
    Sizes and times are compared, as Python does for its own compiled files. A process looks once.

    Raises:
        OSError: a file cannot be examined.
    """
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        status = path.stat()
        name = path.relative_to(folder).as_posix()
        found.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return found.hexdigest()
