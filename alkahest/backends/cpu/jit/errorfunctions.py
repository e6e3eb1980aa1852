"""erf, erfc and erfinv."""

from __future__ import annotations

import math

from alkahest.backends.cpu.jit import errortables as table
from alkahest.backends.cpu.jit.exponentials import exponential_times
from alkahest.backends.cpu.jit.functions import Function, only
from alkahest.backends.cpu.jit.lanes import MAGIC, Lanes, Value
from alkahest.backends.cpu.jit.logarithms import log


def erf(b: Lanes, x: Value) -> Value:
    """Sixteen polynomials on ``|x| < 5.93``, from where on it is 1; the sign is that of x."""
    value = piecewise(b, "ak.erf", table.ERF, table.ERF_STEP, _erf_argument(b, x))
    return b.copysign(value, x)


def erf_precise(b: Lanes, x: Value) -> Value:
    """As erf; the first two coefficients are sums of two, and what they contribute is, too."""
    return b.copysign(b.add(*_erf_parts(b, x)), x)


def _erf_parts(b: Lanes, x: Value) -> tuple[Value, Value]:
    """``erf(|x|)`` as a sum of a large and a small number."""
    t, index = _nearest(b, table.ERF_STEP, _erf_argument(b, x))
    c = [b.lookup(f"ak.erf.{k}", row, index) for k, row in enumerate(table.ERF)]
    low = [b.lookup(f"ak.erf.low.{k}", row, index) for k, row in enumerate(table.ERF_LOW)]
    product = b.mul(t, c[1])
    total = b.add(c[0], product)
    error = b.add(b.sub(product, b.sub(total, c[0])), b.fma(t, c[1], b.neg(product)))
    error = b.add(error, b.fma(t, low[1], low[0]))
    return total, b.fma(b.mul(t, t), b.joined(t, c[2:]), error)


def _erf_argument(b: Lanes, x: Value) -> Value:
    a = b.abs(x)
    limit = b.constant(table.ERF_END)
    return b.select(b.compare("olt", limit, a), limit, a)


def _nearest(b: Lanes, step: float, x: Value) -> tuple[Value, Value]:
    """The difference of x and the nearest multiple of the step, and which one that is."""
    shifted = b.fma(x, b.constant(1 / step), b.constant(MAGIC))
    t = b.fma(b.sub(shifted, b.constant(MAGIC)), b.constant(-step), x)
    return t, b.to_bits(shifted)


def piecewise(
    b: Lanes, name: str, rows: tuple[tuple[float, ...], ...], step: float, x: Value
) -> Value:
    """``sum(rows[k][i] * t**k)``, ``x = i*step + t``, i nearest."""
    t, index = _nearest(b, step, x)
    coefficients = [b.lookup(f"{name}.{k}", row, index) for k, row in enumerate(rows)]
    # The constant terms last: where they are 0, the result is as precise as the rest.
    return b.fma(t, b.joined(t, coefficients[1:]), coefficients[0])


def erfc(b: Lanes, x: Value) -> Value:
    """``exp(-a**2) * P(t)/(1 + 2*a)``, ``t = (a - 4)/(a + 4)``, ``a = |x|``; 2 minus it below 0.

    P is a polynomial (Shepherd and Laframboise 1981). Both quotients come from one division and
    are corrected; everything that is large is a sum of two.
    """
    one, a = b.constant(1.0), b.abs(x)
    limit = b.constant(28.0)
    a = b.select(b.compare("olt", limit, a), limit, a)
    plus, double = b.add(a, b.constant(4.0)), b.add(a, a)
    growth = b.add(double, one)
    growth_low = _lost(b, double, one, growth)
    inverse = b.div(one, b.mul(plus, growth))
    turn = b.mul(growth, inverse)
    turn = b.fma(turn, b.fma(b.neg(turn), plus, one), turn)
    four = b.constant(4.0)
    less = b.sub(a, four)
    t = b.mul(less, turn)
    # What a - 4, a + 4 and the quotient are off by.
    less_low = _lost(b, a, b.constant(-4.0), less)
    plus_low = _lost(b, a, four, plus)
    t_low = b.fma(b.neg(t), plus, less)
    t_low = b.mul(b.add(t_low, b.fma(b.neg(t), plus_low, less_low)), turn)
    shrink = b.mul(plus, inverse)
    rest = b.fma(b.neg(shrink), growth_low, b.fma(b.neg(shrink), growth, one))
    shrink_low = b.mul(shrink, rest)
    curve, start = b.polynomial(t, table.ERFC[1:]), b.constant(table.ERFC[0])
    product = b.mul(t, curve)
    p = b.add(start, product)
    p_low = b.add(b.sub(product, b.sub(p, start)), b.fma(t, curve, b.neg(product)))
    p_low = b.fma(t_low, b.horner(t, table.ERFC_SLOPE), b.add(p_low, b.constant(table.ERFC_LOW)))
    factor = b.mul(p, shrink)
    factor_low = b.fma(p, shrink, b.neg(factor))
    factor_low = b.fma(p_low, shrink, b.fma(p, shrink_low, factor_low))
    square = b.mul(a, a)
    square_low = b.fma(a, a, b.neg(square))
    value = exponential_times(b, b.neg(square), b.neg(square_low), factor, factor_low)
    return b.select(b.compare("olt", x, b.constant(0.0)), b.sub(b.constant(2.0), value), value)


def erfc_precise(b: Lanes, x: Value) -> Value:
    """As erfc; near 0, ``1 - erf(x)``."""
    one = b.constant(1.0)
    total, rest = _erf_parts(b, x)
    total, rest = b.copysign(total, x), b.select(_is_below(b, x, 0.0), b.neg(rest), rest)
    start = b.sub(one, total)
    error = b.sub(b.sub(one, start), total)
    near = b.add(start, b.sub(error, rest))
    return b.select(_is_below(b, b.abs(x), 0.9), near, erfc(b, x))


def _is_below(b: Lanes, x: Value, limit: float) -> Value:
    return b.compare("olt", x, b.constant(limit))


def _lost(b: Lanes, x: Value, y: Value, total: Value) -> Value:
    """``x + y - total``, total being the rounded sum (Knuth)."""
    part = b.sub(total, x)
    return b.add(b.sub(x, b.sub(total, part)), b.sub(y, part))


_LOG = Function("log", log)


def erfinv(b: Lanes, x: Value) -> Value:
    """``x * P(u)``, ``u = sqrt(-log(1 - x**2))``, P being sixteen polynomials.

    ``1 - x**2`` is a product of differences that are exact where it is small. At 1 and -1 u is
    infinite, and so is the result; beyond it is nan.
    """
    a = b.abs(x)
    one = b.constant(1.0)
    w = b.neg(only(b, _LOG, b.mul(b.sub(one, a), b.add(one, a))))
    u = b.sqrt(b.select(b.compare("olt", w, b.constant(0.0)), b.constant(0.0), w))
    limit = b.constant(table.ERFINV_END)
    clipped = b.select(b.compare("olt", limit, u), limit, u)
    value = b.mul(x, piecewise(b, "ak.erfinv", table.ERFINV, table.ERFINV_STEP, clipped))
    is_one = b.compare("oeq", a, one)
    return b.select(is_one, b.copysign(b.constant(math.inf), x), value)
