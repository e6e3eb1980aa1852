"""Cube roots, reciprocal square roots and lengths."""

from __future__ import annotations

import math

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import MAGIC, Lanes, Value, bits

_ONE = bits(1.0)


def rsqrt(b: Lanes, x: Value) -> Value:
    """``1/sqrt(x)``: two roundings."""
    return b.div(b.constant(1.0), b.sqrt(x))


def rsqrt_precise(b: Lanes, x: Value) -> Value:
    """``y = 1/s``, ``s = sqrt(x)``, with what both roundings lost: ``y + y*(1 - s*y) - ...``.

    Where x is small it is multiplied by a power of two, so that ``x - s**2`` is exact.
    """
    one = b.constant(1.0)
    is_small = b.compare("olt", x, b.constant(2.0**-900))
    scaled = b.mul(x, b.select(is_small, b.constant(2.0**108), one))
    s = b.sqrt(scaled)
    y = b.div(one, s)
    lost = b.fma(b.neg(s), y, one)
    missing = b.mul(b.mul(b.fma(b.neg(s), s, scaled), b.mul(y, y)), b.constant(-0.5))
    corrected = b.fma(y, b.add(lost, missing), y)
    is_number = b.logic(
        "and",
        b.compare("ogt", x, b.constant(0.0)),
        b.compare("olt", x, b.constant(math.inf)),
    )
    value = b.select(is_number, corrected, y)
    return b.mul(value, b.select(is_small, b.constant(2.0**54), one))


def cbrt(b: Lanes, x: Value) -> Value:
    """Of ``|x| = m * 2**(3*q + s)``, m from 1 to 2; see :func:`_cbrt`."""
    a = b.abs(x)
    least = bits(2.0**-1022)
    above = b.iop("sub", b.to_bits(a), b.integer(least))
    unusual = b.icompare("uge", above, b.integer(bits(math.inf) - least))
    near = b.copysign(_cbrt(b, a), x)
    return rarely(b, unusual, CBRT_FAR, (x,), near)[0]


def _cbrt(b: Lanes, a: Value) -> Value:
    """y near ``m**(-1/3)`` from a polynomial, one step of fourth order, and ``m*y**2`` corrected.

    With ``h = 1 - m*y**3`` the step is ``y*(1 + h/3 + 2*h**2/9 + 14*h**3/81)``.
    """
    word = b.to_bits(a)
    whole = b.iop("lshr", word, b.integer(52))
    shifted = b.from_bits(b.iop("or", whole, b.integer(bits(2.0**52))))
    e = b.sub(shifted, b.constant(2.0**52 + 1023))
    third = b.add(b.mul(b.sub(e, b.constant(1.0)), b.constant(1 / 3)), b.constant(MAGIC))
    q = b.sub(third, b.constant(MAGIC))
    s = b.fma(q, b.constant(-3.0), e)
    fraction = b.iop("and", word, b.integer((1 << 52) - 1))
    m = b.from_bits(b.iop("or", fraction, b.integer(_ONE)))
    y = b.horner(m, table.CBRT)
    is_one, is_two = b.compare("oeq", s, b.constant(1.0)), b.compare("oeq", s, b.constant(2.0))
    one = b.constant(1.0)
    factor = b.select(is_one, b.constant(2.0), b.select(is_two, b.constant(4.0), one))
    inverse = b.select(is_two, b.constant(2 ** (-2 / 3)), one)
    inverse = b.select(is_one, b.constant(2 ** (-1 / 3)), inverse)
    m, y = b.mul(m, factor), b.mul(y, inverse)
    h = b.fma(b.neg(b.mul(m, y)), b.mul(y, y), one)
    step = b.mul(h, b.horner(h, (1 / 3, 2 / 9, 14 / 81)))
    y = b.fma(y, step, y)
    square = b.mul(y, y)
    c = b.mul(m, square)
    c2 = b.mul(c, c)
    c2_low = b.fma(c, c, b.neg(c2))
    c3 = b.mul(c2, c)
    c3_low = b.fma(c2, c, b.neg(c3))
    rest = b.sub(b.sub(b.sub(m, c3), c3_low), b.mul(c2_low, c))
    root = b.fma(b.mul(rest, square), b.constant(1 / 3), c)
    raised = b.iop("shl", b.to_bits(third), b.integer(52))
    return b.from_bits(b.iop("add", b.to_bits(root), raised))


def _cbrt_far(b: Lanes, x: Value) -> Value:
    """Subnormal numbers times 2**54; zeros, infinities and nan are their own roots."""
    scaled = b.mul(b.abs(x), b.constant(2.0**54))
    root = b.copysign(b.mul(_cbrt(b, scaled), b.constant(2.0**-18)), x)
    a = b.abs(x)
    is_number = b.logic(
        "and",
        b.compare("ogt", a, b.constant(0.0)),
        b.compare("olt", a, b.constant(math.inf)),
    )
    return b.select(is_number, root, x)


CBRT_FAR = Function("cbrt.far", _cbrt_far, is_rare=True)


def hypot(b: Lanes, x: Value, y: Value) -> Value:
    """``sqrt(a**2 + c**2)``, a the larger magnitude; see :func:`_length`."""
    a, c = _ordered(b, x, y)
    inside = b.logic(
        "and",
        b.compare("olt", a, b.constant(2.0**500)),
        b.compare("ogt", c, b.constant(2.0**-450)),
    )
    return rarely(b, b.inverted(inside), HYPOT_FAR, (x, y), _length(b, a, c))[0]


def _ordered(b: Lanes, x: Value, y: Value) -> tuple[Value, Value]:
    size_x, size_y = b.abs(x), b.abs(y)
    swap = b.compare("olt", size_x, size_y)
    return b.select(swap, size_y, size_x), b.select(swap, size_x, size_y)


def _length(b: Lanes, a: Value, c: Value) -> Value:
    """The root, corrected by ``(a**2 + c**2 - root**2)/(2*root)``."""
    c2 = b.mul(c, c)
    root = b.sqrt(b.fma(a, a, c2))
    a2, root2 = b.mul(a, a), b.mul(root, root)
    lost = b.sub(b.fma(a, a, b.neg(a2)), b.fma(root, root, b.neg(root2)))
    lost = b.add(lost, b.fma(c, c, b.neg(c2)))
    rest = b.add(b.add(b.sub(a2, root2), c2), lost)
    return b.add(root, b.div(rest, b.add(root, root)))


def _hypot_far(b: Lanes, x: Value, y: Value) -> Value:
    """Scaled by a power of two; an infinity wins over nan."""
    a, c = _ordered(b, x, y)
    is_large = b.compare("ogt", a, b.constant(2.0**490))
    is_small = b.compare("olt", a, b.constant(2.0**-400))
    up, down, one = b.constant(2.0**540), b.constant(2.0**-540), b.constant(1.0)
    scale = b.select(is_large, down, b.select(is_small, up, one))
    back = b.select(is_large, up, b.select(is_small, down, one))
    scaled_a, scaled_c = b.mul(a, scale), b.mul(c, scale)
    value = b.mul(_length(b, scaled_a, scaled_c), back)
    is_zero = b.compare("oeq", c, b.constant(0.0))
    value = b.select(is_zero, a, value)
    value = b.select(b.compare("uno", x, y), b.constant(math.nan), value)
    infinite = b.constant(math.inf)
    any_infinite = b.logic(
        "or", b.compare("oeq", b.abs(x), infinite), b.compare("oeq", b.abs(y), infinite)
    )
    return b.select(any_infinite, infinite, value)


HYPOT_FAR = Function("hypot.far", _hypot_far, arity=2, is_rare=True)
