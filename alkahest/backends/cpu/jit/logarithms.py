"""Logarithms and the inverse hyperbolic functions.

``x = m * 2**e`` with m from 63/64 on; a table has, for every sixteenth of the range of m, a short
number c near 1/m and its logarithm. Then ``log(x) = e*log(2) - log(c) + log(1 + r)`` where
``r = m*c - 1`` is exact (nearly, far from 1) and below 39/1024. Where m is near 1, c is 1, so that
nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import MAGIC, Lanes, Value, bits

_ONE = bits(1.0)
_HUGE = 2.0**500

_FIRST = _ONE - (1 << 47)
"""Representation of 63/64."""


class Digits(NamedTuple):
    """What is left to compute of a logarithm.

    ``exponent`` is e, ``sixteenth`` has the number of the sixteenth in its lowest bits, ``unit`` are
    the bits of ``2**-e``.
    """

    exponent: Value
    sixteenth: Value
    scale: Value
    r: Value
    unit: Value


def digits(b: Lanes, x: Value) -> Digits:
    """Of a positive and normal x."""
    word = b.to_bits(x)
    above = b.iop("sub", word, b.integer(_FIRST))
    raised = b.iop("and", above, b.integer(-(1 << 52)))
    m = b.from_bits(b.iop("sub", word, raised))
    index = b.iop("lshr", above, b.integer(48))
    scale = b.lookup("ak.log.scale", table.LOG_SCALE, index)
    r = b.fma(m, scale, b.constant(-1.0))
    whole = b.iop("ashr", above, b.integer(52))
    shifted = b.from_bits(b.iop("add", whole, b.integer(bits(MAGIC))))
    exponent = b.sub(shifted, b.constant(MAGIC))
    unit = b.iop("sub", b.integer(_ONE), raised)
    return Digits(exponent, index, scale, r, unit)


def _natural(b: Lanes, found: Digits, r: Value) -> Value:
    """``e*log(2) - log(c)``, whose first part is exact, then r, then the rest."""
    high = b.lookup("ak.log.high", table.LOG_HIGH, found.sixteenth)
    low = b.lookup("ak.log.low", table.LOG_LOW, found.sixteenth)
    start = b.fma(found.exponent, b.constant(table.LN2_SHORT[0]), high)
    small = b.fma(found.exponent, b.constant(table.LN2_SHORT[1]), low)
    total = b.add(start, r)
    error = b.sub(r, b.sub(total, start))
    rest = b.fma(b.mul(r, r), b.polynomial(r, table.LOG1P), small)
    return b.add(total, b.add(error, rest))


def log(b: Lanes, x: Value) -> Value:
    """See the module."""
    found = digits(b, x)
    near = _natural(b, found, found.r)
    return rarely(b, _is_unusual(b, x), LOG_FAR, (x,), near)[0]


def _is_unusual(b: Lanes, x: Value) -> Value:
    """x is subnormal, zero, negative, an infinity or nan: one unsigned comparison."""
    least = bits(2.0**-1022)
    above = b.iop("sub", b.to_bits(x), b.integer(least))
    return b.icompare("uge", above, b.integer(bits(math.inf) - least))


def _far(near: Callable[[Lanes, Value], Value], per_octave: float) -> Callable[..., Value]:
    """Any x: subnormal ones are multiplied by 2**54, others have a limit or nan for logarithm."""

    def build(b: Lanes, x: Value) -> Value:
        is_small = b.compare("olt", x, b.constant(2.0**-1022))
        scaled = b.select(is_small, b.mul(x, b.constant(2.0**54)), x)
        value = near(b, scaled)
        value = b.select(is_small, b.sub(value, b.constant(54 * per_octave)), value)
        value = b.select(b.compare("oeq", x, b.constant(math.inf)), x, value)
        value = b.select(b.compare("ult", x, b.constant(0.0)), b.constant(math.nan), value)
        is_zero = b.compare("oeq", x, b.constant(0.0))
        return b.select(is_zero, b.constant(-math.inf), value)

    return build


def _near_log(b: Lanes, x: Value) -> Value:
    found = digits(b, x)
    return _natural(b, found, found.r)


LOG_FAR = Function("log.far", _far(_near_log, math.log(2)), is_rare=True)


# Other bases


class _Base(NamedTuple):
    """``1/log(base)`` and ``log2`` in that base as sums, and the table."""

    name: str
    inverse: tuple[float, float]
    octave: tuple[float, float]
    high: tuple[float, ...]
    low: tuple[float, ...]


_TWO = _Base("log2", table.LOG2_E_PARTS, (1.0, 0.0), table.LOG2_HIGH, table.LOG2_LOW)
_TEN = _Base("log10", table.LOG10_E_PARTS, table.LOG10_2_SHORT, table.LOG10_HIGH, table.LOG10_LOW)


def _near_in(base: _Base) -> Callable[[Lanes, Value], Value]:
    def build(b: Lanes, x: Value) -> Value:
        found = digits(b, x)
        r = found.r
        high = b.lookup(f"ak.{base.name}.high", base.high, found.sixteenth)
        low = b.lookup(f"ak.{base.name}.low", base.low, found.sixteenth)
        start = b.fma(found.exponent, b.constant(base.octave[0]), high)
        small = b.fma(found.exponent, b.constant(base.octave[1]), low)
        first = b.mul(r, b.constant(base.inverse[0]))
        lost = b.fma(r, b.constant(base.inverse[0]), b.neg(first))
        lost = b.fma(r, b.constant(base.inverse[1]), lost)
        total = b.add(start, first)
        error = b.add(b.sub(first, b.sub(total, start)), lost)
        curve = b.mul(b.mul(r, r), b.polynomial(r, table.LOG1P))
        rest = b.fma(curve, b.constant(base.inverse[0]), small)
        return b.add(total, b.add(error, rest))

    return build


LOG2_FAR = Function("log2.far", _far(_near_in(_TWO), 1.0), is_rare=True)
LOG10_FAR = Function("log10.far", _far(_near_in(_TEN), math.log10(2)), is_rare=True)


def log2(b: Lanes, x: Value) -> Value:
    """As log, with the table of the base; r is multiplied by ``1/log(2)`` in two parts."""
    return rarely(b, _is_unusual(b, x), LOG2_FAR, (x,), _near_in(_TWO)(b, x))[0]


def log10(b: Lanes, x: Value) -> Value:
    """As :func:`log2`."""
    return rarely(b, _is_unusual(b, x), LOG10_FAR, (x,), _near_in(_TEN)(b, x))[0]


# log1p and what is made of it


def _log_of_sum(b: Lanes, high: Value, low: Value) -> Value:
    """``log(1 + high + low)`` for ``1 + high`` positive and normal, low tiny beside high."""
    one = b.constant(1.0)
    u = b.add(one, high)
    part = b.sub(u, one)
    lost = b.add(b.sub(one, b.sub(u, part)), b.sub(high, part))
    lost = b.add(lost, low)
    found = digits(b, u)
    small = b.mul(b.mul(lost, b.from_bits(found.unit)), found.scale)
    r = b.add(found.r, small)
    # Where r is rounded, what is lost is put back: it matters near 1, where r is the result.
    back = b.sub(small, b.sub(r, found.r))
    high_part = b.lookup("ak.log.high", table.LOG_HIGH, found.sixteenth)
    low_part = b.lookup("ak.log.low", table.LOG_LOW, found.sixteenth)
    start = b.fma(found.exponent, b.constant(table.LN2_SHORT[0]), high_part)
    rest = b.fma(found.exponent, b.constant(table.LN2_SHORT[1]), low_part)
    total = b.add(start, r)
    error = b.add(b.sub(r, b.sub(total, start)), back)
    rest = b.fma(b.mul(r, r), b.polynomial(r, table.LOG1P), rest)
    return b.add(total, b.add(error, rest))


def _log1p_near(b: Lanes, x: Value) -> Value:
    return _log_of_sum(b, x, b.constant(0.0))


def _log1p_far(b: Lanes, x: Value) -> Value:
    """``log(x)`` of huge x; -inf at -1, nan below, inf at inf."""
    is_huge = b.compare("ogt", x, b.constant(_HUGE))
    value = b.select(is_huge, _near_log(b, x), _log1p_near(b, x))
    value = b.select(b.compare("oeq", x, b.constant(math.inf)), x, value)
    value = b.select(b.compare("ult", x, b.constant(-1.0)), b.constant(math.nan), value)
    return b.select(b.compare("oeq", x, b.constant(-1.0)), b.constant(-math.inf), value)


LOG1P_FAR = Function("log1p.far", _log1p_far, is_rare=True)


def log1p(b: Lanes, x: Value) -> Value:
    """``log(u) + lost/u``, u being ``1 + x`` rounded and lost its rounding error."""
    near = b.copysign(_log1p_near(b, x), x)
    inside = b.logic(
        "and",
        b.compare("ogt", x, b.constant(-1.0)),
        b.compare("olt", x, b.constant(_HUGE)),
    )
    return rarely(b, b.inverted(inside), LOG1P_FAR, (x,), near)[0]


def asinh(b: Lanes, x: Value) -> Value:
    """``log1p(a + a**2/(1 + sqrt(1 + a**2)))``, ``a = |x|``; the sign is that of x."""
    a = b.abs(x)
    one = b.constant(1.0)
    square = b.mul(a, a)
    bent = b.div(square, b.add(one, b.sqrt(b.fma(a, a, one))))
    high = b.add(a, bent)
    low = b.sub(bent, b.sub(high, a))
    near = b.copysign(_log_of_sum(b, high, low), x)
    inside = b.compare("olt", a, b.constant(_HUGE))
    return rarely(b, b.inverted(inside), ASINH_FAR, (x,), near)[0]


def _asinh_far(b: Lanes, x: Value) -> Value:
    """``log(2*|x|)``."""
    return b.copysign(_doubled_log(b, b.abs(x)), x)


def _doubled_log(b: Lanes, a: Value) -> Value:
    """``log(2*a)`` for large a."""
    found = digits(b, a)
    found = found._replace(exponent=b.add(found.exponent, b.constant(1.0)))
    value = _natural(b, found, found.r)
    inside = b.compare("olt", a, b.constant(math.inf))
    return b.select(inside, value, a)


ASINH_FAR = Function("asinh.far", _asinh_far, is_rare=True)


def acosh(b: Lanes, x: Value) -> Value:
    """``log1p(t + sqrt(t*(t + 2)))``, ``t = x - 1``, with a corrected root."""
    t = b.sub(x, b.constant(1.0))
    double = b.add(t, t)
    square = b.fma(t, t, double)
    # The sum t*t + 2*t once more, for what its rounding lost.
    product = b.mul(t, t)
    lost = b.fma(t, t, b.neg(product))
    part = b.sub(square, double)
    lost = b.add(lost, b.add(b.sub(double, b.sub(square, part)), b.sub(product, part)))
    root = b.sqrt(square)
    rest = b.add(b.fma(b.neg(root), root, square), lost)
    rest = b.div(rest, b.add(root, root))
    is_one = b.compare("oeq", root, b.constant(0.0))
    rest = b.select(is_one, b.constant(0.0), rest)
    high = b.add(t, root)
    smaller = b.select(b.compare("olt", t, root), t, root)
    larger = b.select(b.compare("olt", t, root), root, t)
    low = b.add(b.sub(smaller, b.sub(high, larger)), rest)
    near = _log_of_sum(b, high, low)
    inside = b.logic(
        "and",
        b.compare("oge", x, b.constant(1.0)),
        b.compare("olt", x, b.constant(_HUGE)),
    )
    return rarely(b, b.inverted(inside), ACOSH_FAR, (x,), near)[0]


def _acosh_far(b: Lanes, x: Value) -> Value:
    """``log(2*x)``; nan below 1."""
    value = _doubled_log(b, x)
    return b.select(b.compare("oge", x, b.constant(1.0)), value, b.constant(math.nan))


ACOSH_FAR = Function("acosh.far", _acosh_far, is_rare=True)


def atanh(b: Lanes, x: Value) -> Value:
    """``log1p(2*a/(1 - a))/2``, ``a = |x|``, with a corrected quotient; the sign is that of x."""
    a = b.abs(x)
    one = b.constant(1.0)
    below = b.sub(one, a)
    below_low = b.sub(b.sub(one, below), a)
    inverse = b.div(one, below)
    twice = b.add(a, a)
    high = b.mul(twice, inverse)
    rest = b.fma(b.neg(high), below, twice)
    rest = b.fma(b.neg(high), below_low, rest)
    low = b.mul(rest, inverse)
    value = b.mul(_log_of_sum(b, high, low), b.constant(0.5))
    near = b.copysign(value, x)
    inside = b.logic(
        "and",
        b.compare("olt", a, one),
        b.compare("ogt", a, b.constant(2.0**-60)),
    )
    return rarely(b, b.inverted(inside), ATANH_FAR, (x,), near)[0]


def _atanh_far(b: Lanes, x: Value) -> Value:
    """x below 2**-60; infinite at 1, nan beyond."""
    a = b.abs(x)
    limit = b.select(
        b.compare("oeq", a, b.constant(1.0)), b.constant(math.inf), b.constant(math.nan)
    )
    return b.select(b.compare("olt", a, b.constant(0.5)), x, b.copysign(limit, x))


ATANH_FAR = Function("atanh.far", _atanh_far, is_rare=True)
