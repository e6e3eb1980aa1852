"""Powers: ``exp(y*log(x))`` in about twice the precision, and products for integer exponents."""

from __future__ import annotations

import math
from typing import NamedTuple

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.exponentials import exponential_of_sum
from alkahest.backends.cpu.jit.functions import Function, only, rarely
from alkahest.backends.cpu.jit.lanes import Lanes, Value, bits
from alkahest.backends.cpu.jit.logarithms import digits

LARGEST_COMPENSATED = 64
LARGEST_PLAIN = 1024


def pow(b: Lanes, x: Value, y: Value) -> Value:
    """``x**y`` for positive normal x and y below 2**500; others are the C library's."""
    least = bits(2.0**-1022)
    above = b.iop("sub", b.to_bits(x), b.integer(least))
    inside = b.logic(
        "and",
        b.icompare("ult", above, b.integer(bits(math.inf) - least)),
        b.compare("olt", b.abs(y), b.constant(2.0**500)),
    )
    return rarely(b, b.inverted(inside), POW_FAR, (x, y), _pow(b, x, y))[0]


def _pow(b: Lanes, x: Value, y: Value) -> Value:
    """The logarithm as a sum of two, times y as another, and its exponential."""
    high, low = log_parts(b, x)
    product = b.mul(y, high)
    rest = b.fma(y, low, b.fma(y, high, b.neg(product)))
    return exponential_of_sum(b, product, rest)


def log_parts(b: Lanes, x: Value) -> tuple[Value, Value]:
    """``log(x)`` with about 65 bits: see :mod:`alkahest.backends.cpu.jit.logarithms`.

    Here ``r = m*c - 1`` is kept as a sum of two, and so is ``r - r**2/2``.
    """
    found = digits(b, x)
    m = b.from_bits(b.iop("add", b.to_bits(x), b.iop("sub", found.unit, b.integer(bits(1.0)))))
    product = b.mul(m, found.scale)
    r_low = b.fma(m, found.scale, b.neg(product))
    r = b.sub(product, b.constant(1.0))
    high = b.lookup("ak.log.high", table.LOG_HIGH, found.sixteenth)
    low = b.lookup("ak.log.low", table.LOG_LOW, found.sixteenth)
    start = b.fma(found.exponent, b.constant(table.LN2_SHORT[0]), high)
    small = b.fma(found.exponent, b.constant(table.LN2_SHORT[1]), low)
    square = b.mul(r, r)
    square_low = b.fma(r, r, b.neg(square))
    first = b.add(start, r)
    first_error = b.sub(r, b.sub(first, start))
    half = b.mul(square, b.constant(-0.5))
    second = b.add(first, half)
    second_error = b.sub(half, b.sub(second, first))
    cube = b.mul(b.mul(square, r), b.polynomial(r, table.LOG_CUBE))
    slope = b.fma(b.neg(r), b.fma(b.neg(r), r, r), r)  # 1/(1 + r) is 1 minus that
    rest = b.fma(b.neg(slope), r_low, r_low)
    rest = b.fma(square_low, b.constant(-0.5), rest)
    rest = b.add(b.add(rest, small), b.add(first_error, second_error))
    rest = b.add(rest, cube)
    total = b.add(second, rest)
    return total, b.add(b.sub(second, total), rest)


def _pow_far(b: Lanes, x: Value, y: Value) -> Value:
    return b.library("pow", x, y)


POW_FAR = Function("pow.far", _pow_far, arity=2, is_rare=True)
POW = Function("pow", pow, arity=2)


# Integer exponents


def powi(b: Lanes, x: Value, n: int) -> Value:
    """``x**n`` by multiplications (or divisions) for ``|n| <= 4``, else ``sign * pow(|x|, n)``.

    ``pow`` sees the exponent rounded to a double, which loses the parity of large odd integers;
    the sign of the result therefore comes from the exact integer.
    """
    if n == 0:
        return b.constant(1.0)
    if n == 4:
        square = b.mul(x, x)
        return b.mul(square, square)
    if abs(n) <= 4:
        result = x if n > 0 else b.div(b.constant(1.0), x)
        for _ in range(abs(n) - 1):
            result = b.mul(result, x) if n > 0 else b.div(result, x)
        return result
    power = _power_of_size(b, x, _as_double(n))
    return power if n % 2 == 0 else b.copysign(power, x)


def powi_by_library(b: Lanes, x: Value, n: int) -> Value:
    """As :func:`powi`, with the C library's pow."""
    if abs(n) <= 4:
        return powi(b, x, n)
    power = b.library("pow", b.abs(x), b.constant(_as_double(n)))
    return power if n % 2 == 0 else b.copysign(power, x)


def _as_double(n: int) -> float:
    try:
        return float(n)
    except OverflowError:
        return math.inf if n > 0 else -math.inf


def _power_of_size(b: Lanes, x: Value, exponent: float) -> Value:
    """``|x|**exponent``; the exponent is a double in single precision, too."""
    if b.scalar == "double":
        return only(b, POW, b.abs(x), b.constant(exponent))
    wide, (size,) = b.widened((b.abs(x),))
    return b.narrowed(only(wide, POW, size, wide.constant(exponent)))


class _Sum(NamedTuple):
    """``high + low``, of which high is the nearest number; a low of None is 0."""

    high: Value
    low: Value | None


_RANGE = 536
"""Largest exponent of a factor whose square, times the rounding error's 2**-52, is finite; the square
of a larger one overflows."""

_LARGE = 2.0**1000
"""Where reciprocals are not subnormal yet, and their fifth powers are 0."""


def precise(b: Lanes, x: Value, n: int) -> Value:
    """``x**n`` in twice the precision, rounded once, for ``4 < |n| <= 64``; else :func:`powi`.

    Where it is so large or small that its rounding errors may leave the range, it is
    :func:`powi`'s. In single precision a product in double precision is as good.
    """
    if not 4 < abs(n) <= LARGEST_COMPENSATED:
        return powi(b, x, n)
    if b.scalar == "float":
        wide, (number,) = b.widened((x,))
        power = _products(wide, number, abs(n))
        return b.narrowed(power if n > 0 else wide.div(wide.constant(1.0), power))
    near = _rounded(b, _reciprocal(b, x) if n < 0 else _Sum(x, None), abs(n))
    size = b.abs(near)
    inside = b.logic(
        "and",
        b.compare("ogt", size, b.constant(2.0**-900)),
        b.compare("olt", size, b.constant(2.0**960)),
    )
    return rarely(b, b.inverted(inside), _far_power(n), (x,), near)[0]


def _far_power(n: int) -> Function:
    """``x**n`` as a power of ``|x|``, for results near the ends of the range."""

    def written_out(b: Lanes, x: Value) -> Value:
        power = pow(b, b.abs(x), b.constant(float(n)))
        return power if n % 2 == 0 else b.copysign(power, x)

    return Function(f"powi.{n}.far".replace("-", "minus."), written_out, is_rare=True)


def _reciprocal(b: Lanes, x: Value) -> _Sum:
    """``1/x`` in twice the precision."""
    y = b.div(b.constant(1.0), x)
    rest = b.fma(b.neg(x), y, b.constant(1.0))
    return _Sum(y, b.mul(rest, y))


def compensated(b: Lanes, x: Value, n: int) -> Value:
    """``x**n`` as a product of two correctly rounded factors, for ``4 < |n| <= 64``.

    For even n both are ``x**(n/2)``, for odd n they are ``x**(n - 1)`` and x: the result is off by
    less than 2 ulps. The factors come from powers in twice the precision, where ``fma`` gives the
    rounding error of every product. Those powers would overflow, and their errors become nan, only
    from a limit on from which ``x**n`` overflows, so that it is ``x * inf`` there.

    A negative n takes the reciprocal of x, in twice the precision, first; from another limit on
    that would be too small for its error, and the result is 0 with the right sign.
    """
    if not 4 < abs(n) <= LARGEST_COMPENSATED:
        return powi(b, x, n)
    if b.scalar == "float":
        return precise(b, x, n)
    base = _reciprocal(b, x) if n < 0 else _Sum(x, None)
    size = abs(n)
    factor = size // 2 if size % 2 == 0 else size - 1
    largest = factor // 2 if factor % 2 == 0 else factor - 1
    rounded = _rounded(b, base, factor)
    power = b.mul(rounded, rounded if size % 2 == 0 else base.high)
    signed = base.high if size % 2 else b.abs(base.high)
    limit = 2.0 ** (_RANGE / largest)
    infinite = b.mul(signed, b.constant(math.inf))
    power = b.select(_is_beyond(b, base.high, limit), infinite, power)
    if n < 0:
        nothing = b.mul(signed, b.constant(0.0))
        power = b.select(_is_beyond(b, x, _LARGE), nothing, power)
    return power


def _is_beyond(b: Lanes, x: Value, limit: float) -> Value:
    return b.compare("oge", b.abs(x), b.constant(limit))


def _rounded(b: Lanes, x: _Sum, n: int) -> Value:
    """``x**n`` for n > 1, rounded once; what is lost besides is below a thousandth of an ulp."""
    if n % 2 == 0:
        high, low = _power(b, x, n // 2)
        if low is None:
            return b.mul(high, high)
        return b.fma(high, high, b.mul(b.add(high, high), low))
    high, low = _power(b, x, n - 1)
    assert low is not None  # n - 1 is at least 2
    rest = b.mul(low, x.high)
    if x.low is not None:
        rest = b.fma(high, x.low, rest)
    return b.fma(high, x.high, rest)


def _power(b: Lanes, x: _Sum, n: int) -> _Sum:
    """``x**n`` in about twice the precision."""
    if n == 1:
        return x
    if n % 2 == 0:
        high, low = _power(b, x, n // 2)
        product = b.mul(high, high)
        rest = b.fma(high, high, b.neg(product))
        return _Sum(product, rest if low is None else b.fma(b.add(high, high), low, rest))
    high, low = _power(b, x, n - 1)
    assert low is not None  # n - 1 is at least 2
    product = b.mul(high, x.high)
    rest = b.fma(high, x.high, b.neg(product))
    rest = b.fma(low, x.high, rest)
    return _Sum(product, rest if x.low is None else b.fma(high, x.low, rest))


_ORDINARY = {"double": 2.0**1022, "float": 2.0**126}
"""From the reciprocal of which to which reciprocals are normal numbers."""


def plain(b: Lanes, x: Value, n: int) -> Value:
    """``x**n`` by repeated squaring, for ``|n| <= 1024``; 1 is divided by it for a negative n.

    Every product is rounded, which adds up to ``|n|`` ulps. A positive power that overflows or is
    subnormal may have a reciprocal that is a number: see :func:`_far_power`.
    """
    if abs(n) > LARGEST_PLAIN:
        return powi(b, x, n)
    if n == 0:
        return b.constant(1.0)
    if n < 0:
        power = _products(b, x, -n)
        near = b.div(b.constant(1.0), power)
        if n == -1:
            return near
        size, limit = b.abs(power), _ORDINARY[b.scalar]
        inside = b.logic(
            "and",
            b.compare("ogt", size, b.constant(1 / limit)),
            b.compare("olt", size, b.constant(limit)),
        )
        return rarely(b, b.inverted(inside), _far_power(n), (x,), near)[0]
    return _products(b, x, n)


def _products(b: Lanes, x: Value, n: int) -> Value:
    """``x**n`` for n > 0."""
    result: Value | None = None
    square = x
    for bit in reversed(bin(n)[2:]):
        if bit == "1":
            result = square if result is None else b.mul(result, square)
        n >>= 1
        if n:
            square = b.mul(square, square)
    assert result is not None  # n has a bit that is set
    return result
