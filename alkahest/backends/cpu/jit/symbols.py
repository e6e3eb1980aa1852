"""Functions of the system's libraries, found by name when they are needed.

They are scalar functions of the C library, such as ``fmod``. Libraries differ in what they have, so every
name is looked up and nothing is assumed. Vector functions of a system are not used.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterable

_LIBRARIES: dict[str, tuple[str | None, ...]] = {
    "linux": (None, "libm.so.6", "libpthread.so.0"),
    "darwin": (None,),
    "win32": ("ucrtbase.dll", "vcruntime140.dll", "msvcrt.dll"),
}
"""Where functions are looked for on a platform; None is the process itself."""


def address(name: str) -> int | None:
    """The address of a function, or None where no library of this system has it."""
    for library in _libraries():
        try:
            found = getattr(library, name)
        except AttributeError:
            continue
        return ctypes.cast(found, ctypes.c_void_p).value
    return None


def missing(names: Iterable[str]) -> tuple[str, ...]:
    """Those of ``names`` that this system does not have."""
    return tuple(name for name in names if address(name) is None)


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    opened = []
    for name in _LIBRARIES.get(sys.platform, (None,)):
        try:
            opened.append(ctypes.CDLL(name))
        except OSError:
            continue
    return tuple(opened)


__all__ = ["address", "missing"]
