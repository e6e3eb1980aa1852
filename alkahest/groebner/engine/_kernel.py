"""How every compiled function of the engine is compiled: eagerly for one signature, and cached."""

from __future__ import annotations

from collections.abc import Callable
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
