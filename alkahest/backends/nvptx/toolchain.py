"""What generated code depends on besides the program: the compilers, recognised without them.

Reading a version may mean importing a package or asking a library, which takes longer than loading
code that another process has left. So files are recognised by size and time, as Python does it for
its own compiled files; each of them carries its versions with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import alkahest.ops
import alkahest.program
from alkahest import cache
from alkahest.backends.nvptx import libdevice
from alkahest.errors import CudaError

_LIBRARIES = (".so", ".dylib", ".dll")
_SOURCES = (
    Path(__file__).parent,
    Path(alkahest.program.__file__).parent,
    Path(alkahest.ops.__file__),
)

NO_LIBDEVICE = "none"
"""In place of libdevice where it is not found: programs that call nothing of it need none."""


def compilers() -> Mapping[str, str] | None:
    """What PTX depends on, as parts of a key of :mod:`alkahest.cache`.

    Returns:
        ``sources`` (ours, and the core's that programs go through), ``llvm`` (of llvmlite, whose
        library LLVM is part of) and ``libdevice``; None where these cannot be told, as without
        llvmlite.
    """
    try:
        found = {"sources": cache.sources(*_SOURCES), "llvm": _llvmlite()}
    except (OSError, ValueError):
        return None
    if not found["llvm"]:
        return None
    try:
        path = libdevice.find()
        return {**found, "libdevice": f"{path} {stamp(path)}"}
    except (CudaError, OSError):
        return {**found, "libdevice": NO_LIBDEVICE}


def _llvmlite() -> str:
    """llvmlite's Python files that state its version, and its libraries; "" without it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    folder = Path(spec.origin).parent
    with os.scandir(folder / "binding") as entries:
        files = sorted(e.path for e in entries if e.name.endswith(_LIBRARIES))
    return " ".join(map(stamp, [str(folder / "_version.py"), *files])) if files else ""


def stamp(path: str | Path) -> str:
    """Size and time of a file.

    Raises:
        OSError: it cannot be examined.
    """
    status = os.stat(path)
    return f"{status.st_size}:{status.st_mtime_ns}"
