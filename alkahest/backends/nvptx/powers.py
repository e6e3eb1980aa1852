"""Integer powers by multiplications; every docstring states what is computed.

Each function writes into a :class:`~alkahest.backends.nvptx.block.Block` and returns the result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from alkahest.backends.nvptx import expansions

if TYPE_CHECKING:
    from alkahest.backends.nvptx.block import Block

LARGEST_COMPENSATED = 64
LARGEST_PLAIN = 1024

_RANGE = {"float64": 536, "float32": 74}
"""Largest exponent of a factor whose square, times the rounding error's 2**-52 (2**-23), is finite;
the square of a larger one overflows."""

_LARGE = {"float64": 2.0**1000, "float32": 2.0**100}
"""Where reciprocals are not subnormal yet, and their fifth powers are 0."""


class _Sum(NamedTuple):
    """``high + low``, of which high is the nearest number; a low of "" is 0."""

    high: str
    low: str


def compensated(b: Block, x: str, n: int) -> str:
    """``x**n`` as a product of two correctly rounded factors, for ``4 < |n| <= 64``.

    For even n both are ``x**(n/2)``, for odd n they are ``x**(n - 1)`` and x: the result is off by
    less than 2 ulps. The factors come from powers in twice the precision, where ``fma`` gives the
    rounding error of every product. Those powers would overflow, and their errors become nan, only
    from a limit on from which ``x**n`` overflows, so that it is ``x * inf`` there.

    A negative n takes the reciprocal of x, in twice the precision, first; from another limit on
    that would be too small for its error, and the result is 0 with the right sign.
    """
    if not 4 < abs(n) <= LARGEST_COMPENSATED:
        return expansions.powi(b, x, n)
    base = _Sum(x, "")
    if n < 0:
        y = b.op("fdiv", b.constant(1.0), x)
        rest = _fma(b, b.op("fneg", x), y, b.constant(1.0))
        base = _Sum(y, b.op("fmul", rest, y))
    size = abs(n)
    factor = size // 2 if size % 2 == 0 else size - 1
    largest = factor // 2 if factor % 2 == 0 else factor - 1
    rounded = _rounded(b, base, factor)
    power = b.op("fmul", rounded, rounded if size % 2 == 0 else base.high)
    signed = base.high if size % 2 else b.intrinsic("llvm.fabs", base.high)
    limit = 2.0 ** (_RANGE[b.dtype] / largest)
    infinite = b.op("fmul", signed, b.constant(math.inf))
    power = b.select(_is_beyond(b, base.high, limit), infinite, power)
    if n < 0:
        nothing = b.op("fmul", signed, b.constant(0.0))
        power = b.select(_is_beyond(b, x, _LARGE[b.dtype]), nothing, power)
    return power


def _is_beyond(b: Block, x: str, limit: float) -> str:
    return b.compare("oge", b.intrinsic("llvm.fabs", x), b.constant(limit))


def _rounded(b: Block, x: _Sum, n: int) -> str:
    """``x**n`` for n > 2, rounded once; what is lost besides is below a thousandth of an ulp."""
    if n % 2 == 0:
        high, low = _power(b, x, n // 2)
        if not low:
            return b.op("fmul", high, high)
        return _fma(b, high, high, b.op("fmul", b.op("fadd", high, high), low))
    high, low = _power(b, x, n - 1)
    rest = b.op("fmul", low, x.high)
    if x.low:
        rest = _fma(b, high, x.low, rest)
    return _fma(b, high, x.high, rest)


def _power(b: Block, x: _Sum, n: int) -> _Sum:
    """``x**n`` in about twice the precision."""
    if n == 1:
        return x
    if n % 2 == 0:
        high, low = _power(b, x, n // 2)
        product = b.op("fmul", high, high)
        rest = _fma(b, high, high, b.op("fneg", product))
        return _Sum(product, _fma(b, b.op("fadd", high, high), low, rest) if low else rest)
    high, low = _power(b, x, n - 1)
    product = b.op("fmul", high, x.high)
    rest = _fma(b, high, x.high, b.op("fneg", product))
    rest = _fma(b, low, x.high, rest)
    return _Sum(product, _fma(b, high, x.low, rest) if x.low else rest)


def _fma(b: Block, x: str, y: str, z: str) -> str:
    return b.intrinsic("llvm.fma", x, y, z)


def plain(b: Block, x: str, n: int) -> str:
    """``x**n`` by repeated squaring, for ``|n| <= 1024``.

    Every product is rounded, which adds up to ``|n|`` ulps. For a negative n, 1 is divided by half
    of the power and then by the other half: where one of them leaves the range, ``x**n`` is 0 or
    infinite, and where ``x**-n`` does, it may be a number.
    """
    if abs(n) > LARGEST_PLAIN:
        return expansions.powi(b, x, n)
    if n == 0:
        return b.constant(1.0)
    if n > 0:
        return _products(b, x, n)
    result = b.constant(1.0)
    for part in (-n - -n // 2, -n // 2):
        if part:
            result = expansions.quotient(b, result, _products(b, x, part))
    return result


def _products(b: Block, x: str, n: int) -> str:
    """``x**n`` for n > 0."""
    result, square = "", x
    for bit in reversed(bin(n)[2:]):
        if bit == "1":
            result = b.op("fmul", result, square) if result else square
        n >>= 1
        if n:
            square = b.op("fmul", square, square)
    return result
