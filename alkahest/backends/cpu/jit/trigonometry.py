"""sin, cos and tan.

Up to ``2**30`` arguments are reduced by three parts of pi or pi/2: with the first, a double, the
difference is exact (a multiple of 2**-52, or of the argument's last place, below 2); the others
leave an error below an ulp of the reduced argument, which is at least 2**-61 for every double of
that size. Larger arguments are the matter of :mod:`alkahest.backends.cpu.jit.reduction`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import MAGIC, Lanes, Value
from alkahest.backends.cpu.jit.reduction import reduced_far

LARGEST = 2.0**30


def _is_large(b: Lanes, x: Value) -> Value:
    return b.compare("ogt", b.abs(x), b.constant(LARGEST))


def flipped(b: Lanes, x: Value, turns: Value, bit: int) -> Value:
    """-x where that bit of the integers ``turns`` is set."""
    lifted = b.iop("shl", turns, b.integer(63 - bit))
    sign = b.iop("and", lifted, b.integer(-(1 << 63))) if bit else lifted
    return b.from_bits(b.iop("xor", b.to_bits(x), sign))


# One of the two functions


def sin(b: Lanes, x: Value) -> Value:
    """``(-1)**n * sin(r)``, ``x = n*pi + r``; one polynomial up to pi/2."""
    shifted = b.fma(x, b.constant(table.INVERSE_PI), b.constant(MAGIC))
    n = b.sub(shifted, b.constant(MAGIC))
    value = flipped(b, _sine(b, _less(b, x, n, table.PI)), b.to_bits(shifted), 0)
    value = b.select(b.compare("oeq", x, b.constant(0.0)), x, value)  # keeps the sign of zero
    return rarely(b, _is_large(b, x), SIN_FAR, (x,), value)[0]


def cos(b: Lanes, x: Value) -> Value:
    """``(-1)**(n + 1) * sin(r)``, ``x = (n + 1/2)*pi + r``."""
    turns = b.fma(x, b.constant(table.INVERSE_PI), b.constant(-0.5))
    shifted = b.add(turns, b.constant(MAGIC))
    n = b.add(b.sub(shifted, b.constant(MAGIC)), b.constant(0.5))
    sine = b.neg(_sine(b, _less(b, x, n, table.PI)))
    value = flipped(b, sine, b.to_bits(shifted), 0)
    is_flat = b.compare("olt", b.abs(x), b.constant(2.0**-27))
    value = b.select(is_flat, b.constant(1.0), value)
    return rarely(b, _is_large(b, x), COS_FAR, (x,), value)[0]


def _less(b: Lanes, x: Value, n: Value, parts: tuple[float, ...]) -> Value:
    for part in parts:
        x = b.fma(n, b.constant(-part), x)
    return x


def _sine(b: Lanes, r: Value) -> Value:
    z = b.mul(r, r)
    return b.fma(b.mul(z, r), b.polynomial(z, table.SINE), r)


# Both of them


class Octant(NamedTuple):
    """``x = quadrant*pi/2 + high + low``, ``|high| <= pi/4``; low bits of the integers count."""

    quadrant: Value
    high: Value
    low: Value


def octant(b: Lanes, x: Value) -> Octant:
    """Of an x that is not large."""
    shifted = b.fma(x, b.constant(table.TWO_OVER_PI), b.constant(MAGIC))
    n = b.sub(shifted, b.constant(MAGIC))
    first = b.fma(n, b.constant(-table.HALF_PI[0]), x)
    # The product with the second part in two pieces, then the third part.
    product = b.mul(n, b.constant(table.HALF_PI[1]))
    second = b.sub(first, product)
    error = b.sub(b.sub(first, second), product)
    rest = b.fma(n, b.constant(-table.HALF_PI[1]), product)
    low = b.fma(n, b.constant(-table.HALF_PI[2]), b.add(error, rest))
    high = b.add(second, low)
    low = b.add(b.sub(second, high), low)
    return Octant(b.to_bits(shifted), high, low)


def _parts(b: Lanes, found: Octant) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """sin and cos of ``high + low``, each as a sum of a large and a small number."""
    r, low = found.high, found.low
    z = b.mul(r, r)
    half = b.mul(z, b.constant(0.5))
    near_one = b.sub(b.constant(1.0), half)
    # The largest coefficient last, with one rounding: around pi/4 this is a tenth of the result.
    slope = b.fma(z, b.polynomial(z, table.SIN[1:]), b.constant(table.SIN[0]))
    sine = b.fma(b.mul(z, r), slope, b.mul(low, near_one))
    lost = b.sub(b.sub(b.constant(1.0), near_one), half)
    curve = b.fma(b.mul(z, z), b.polynomial(z, table.COS), b.mul(b.neg(r), low))
    return (r, sine), (near_one, b.add(lost, curve))


def _both(b: Lanes, found: Octant) -> tuple[Value, Value]:
    """sin and cos from the octant; bit 0 of the quadrant swaps them."""
    (r, sine_rest), (near_one, cosine_rest) = _parts(b, found)
    sine, cosine = b.add(r, sine_rest), b.add(near_one, cosine_rest)
    is_odd = _is_odd(b, found.quadrant)
    first = b.select(is_odd, cosine, sine)
    second = b.select(is_odd, sine, cosine)
    after = b.iop("add", found.quadrant, b.integer(1))
    return flipped(b, first, found.quadrant, 1), flipped(b, second, after, 1)


def _is_odd(b: Lanes, quadrant: Value) -> Value:
    bit = b.iop("and", quadrant, b.integer(1))
    return b.icompare("ne", bit, b.integer(0))


def sincos(b: Lanes, x: Value) -> tuple[Value, Value]:
    """sin and cos of one argument, both within an ulp."""
    sine, cosine = _both(b, octant(b, x))
    sine = b.select(b.compare("oeq", x, b.constant(0.0)), x, sine)
    found = rarely(b, _is_large(b, x), SINCOS_FAR, (x,), sine, cosine)
    return found[0], found[1]


def sin_precise(b: Lanes, x: Value) -> Value:
    """The sine of :func:`sincos`."""
    sine = b.select(b.compare("oeq", x, b.constant(0.0)), x, _both(b, octant(b, x))[0])
    return rarely(b, _is_large(b, x), SIN_FAR, (x,), sine)[0]


def cos_precise(b: Lanes, x: Value) -> Value:
    """The cosine of :func:`sincos`."""
    return rarely(b, _is_large(b, x), COS_FAR, (x,), _both(b, octant(b, x))[1])[0]


def tan(b: Lanes, x: Value) -> Value:
    """``sin/cos`` with a corrected quotient."""
    return rarely(b, _is_large(b, x), TAN_FAR, (x,), _tan(b, x, octant(b, x)))[0]


def _tan(b: Lanes, x: Value, found: Octant) -> Value:
    """Of an odd quadrant, ``-cos/sin``."""
    sine, (near_one, cosine_rest) = _parts(b, found)
    z = b.mul(found.high, found.high)
    z_low = b.fma(found.high, found.high, b.neg(z))
    cosine = near_one, b.fma(z_low, b.constant(-0.5), cosine_rest)
    is_odd = _is_odd(b, found.quadrant)
    # Normalised first: the quotient of the rounded sums is corrected by what they lack.
    sine, cosine = _normal(b, *sine), _normal(b, *cosine)
    top, top_low = (b.select(is_odd, c, s) for s, c in zip(sine, cosine, strict=True))
    bottom, bottom_low = (b.select(is_odd, s, c) for s, c in zip(sine, cosine, strict=True))
    inverse = b.div(b.constant(1.0), bottom)
    quotient = b.mul(top, inverse)
    rest = b.fma(b.neg(quotient), bottom, top)
    rest = b.add(rest, b.fma(b.neg(quotient), bottom_low, top_low))
    value = flipped(b, b.fma(rest, inverse, quotient), found.quadrant, 0)
    return b.select(b.compare("olt", b.abs(x), b.constant(2.0**-30)), x, value)


def _normal(b: Lanes, high: Value, low: Value) -> tuple[Value, Value]:
    total = b.add(high, low)
    return total, b.add(b.sub(high, total), low)


# Large arguments


def _sincos_far(b: Lanes, x: Value) -> tuple[Value, Value]:
    return _both(b, Octant(*reduced_far(b, x)))


def _component(index: int) -> Callable[[Lanes, Value], Value]:
    return lambda b, x: _sincos_far(b, x)[index]


def _tan_far(b: Lanes, x: Value) -> Value:
    return _tan(b, x, Octant(*reduced_far(b, x)))


SINCOS_FAR = Function("sincos.far", _sincos_far, results=2, is_rare=True)
SIN_FAR = Function("sin.far", _component(0), is_rare=True)
COS_FAR = Function("cos.far", _component(1), is_rare=True)
TAN_FAR = Function("tan.far", _tan_far, is_rare=True)
