"""The first of two references: every real operation in extended precision, over arrays.

NumPy's ``longdouble`` has 64 bits where the C library has x87's format: eleven more than a double.
Functions that NumPy lacks come from ``extended.c``, which is compiled when it is first needed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

EXTENDED = np.longdouble
SOURCE = Path(__file__).with_name("extended.c")


def values(op: str, columns: Sequence[Any], parameter: int | None = None) -> Any:
    """``op`` of columns of ``longdouble``, as ``longdouble`` or bool.

    Operands of truth values are columns of bool.
    """
    with np.errstate(all="ignore"):
        if op in _COMPILED:
            return _compiled(op, *columns)
        if op == "powi":
            return _power(columns[0], parameter or 0)
        return _NUMPY[op](*columns)


def check() -> None:
    """Raise RuntimeError where this machine cannot compute the reference."""
    if np.finfo(EXTENDED).nmant < 63:
        raise RuntimeError("longdouble has no more digits than a double on this machine")
    _library()


_COMPILED = frozenset("erf erfc erfinv gamma lgamma digamma j0 j1 y0 y1 fma".split())


def _compiled(op: str, *columns: Any) -> Any:
    arrays = [np.ascontiguousarray(column, EXTENDED) for column in columns]
    out = np.empty_like(arrays[0])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
    getattr(_library(), f"{op}_all")(ctypes.c_long(len(out)), *pointers)
    return out


@cache
def _library() -> ctypes.CDLL:
    """``extended.c``, compiled for this machine."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("no C compiler to build the reference with: set CC")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "extended.so")
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(target), str(SOURCE), "-lm"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(target))


def _power(base: Any, exponent: int) -> Any:
    """By squaring while that is as exact as ``powl``; the parity of any exponent is kept."""
    if abs(exponent) <= 4:
        power = np.ones_like(base)
        for _ in range(abs(exponent)):
            power = power * base
        return 1 / power if exponent < 0 else power
    size = np.power(np.abs(base), EXTENDED(exponent))
    return np.copysign(size, base) if exponent % 2 else size


def _modulo(a: Any, b: Any) -> Any:
    rest = np.fmod(a, b)
    return np.where((rest != 0) & (np.signbit(rest) != np.signbit(b)), rest + b, rest)


_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "pow": np.power,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "abs": np.abs,
    "sign": np.sign,
    "min": np.minimum,
    "max": np.maximum,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "mod": _modulo,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "cbrt": np.cbrt,
    "hypot": np.hypot,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "re": np.positive,
    "im": np.zeros_like,
    "conjugate": np.positive,
    "arg": lambda a: np.arctan2(EXTENDED(0), a),
}
