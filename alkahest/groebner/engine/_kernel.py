"""How every compiled function of the engine is compiled: eagerly for one signature, and cached."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numba
import numba.extending

_F = TypeVar("_F", bound=Callable[..., Any])

_njit: Any = numba.njit

_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
}


def kernel(signature: str) -> Callable[[_F], _F]:
    """Compile for exactly ``signature``, from numba's cache where it has been compiled before.

    One signature each keeps the first compilation short, and makes an argument of the wrong dtype
    an error instead of a second compilation.
    """

    def decorate(function: _F) -> _F:
        # Numba looks at the function's own file alone; the name is that of the file in its cache.
        function.__qualname__ += f"_{_digest_of_parts(function)}"
        compile_: Any = _njit(signature, **_OPTIONS)
        try:
            return cast(_F, compile_(function))
        except RuntimeError:
            # No place to write a cache to; each process then compiles for itself.
            return cast(_F, _njit(signature, **{**_OPTIONS, "cache": False})(function))

    return decorate


def inlined(function: _F) -> _F:
    """Compile as a part of each kernel that calls it."""
    decorate: Any = _njit(**{**_OPTIONS, "cache": False})
    return cast(_F, decorate(function))


intrinsic: Any = numba.extending.intrinsic
"""Numba's decorator of functions that write their own code: types and LLVM instructions."""


def _digest_of_parts(function: Any) -> str:
    """Of the functions that become part of a kernel, and of the constants that it and they use."""
    digest = hashlib.sha256()
    waiting = [function]
    for one in waiting:  # which grows
        for name in sorted(set(_names(one.__code__))):
            value = one.__globals__.get(name)
            # What numba makes of a function, or of one that writes code, knows that function.
            value = getattr(value, "py_func", getattr(value, "_defn", value))
            if isinstance(value, FunctionType) and value not in waiting:
                waiting.append(value)
                # Version 2 of the format depends on the code alone.
                digest.update(marshal.dumps(value.__code__, 2))
            elif isinstance(value, int | float | str):
                digest.update(f"{name}={value!r};".encode())
    return digest.hexdigest()[:8]


def _names(code: CodeType) -> Iterator[str]:
    """Global names of a function and of those defined in it; names of attributes, too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
