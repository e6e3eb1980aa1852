"""Inverse circular functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import Lanes, Value

_HALF_PI = table.HALF_PI[:2]
_PI = table.PI[:2]


Curve = Callable[[Lanes, Value, Value], Value]
"""``atan(q + low) - q``."""


def atan(b: Lanes, x: Value) -> Value:
    """``atan(q)`` or, where ``|x| > 1``, ``pi/2 - atan(q)`` with ``q = 1/|x|``."""
    return _atan(b, x, _curve)


def atan_precise(b: Lanes, x: Value) -> Value:
    """As atan, with :func:`_precise_curve`."""
    return _atan(b, x, _precise_curve)


def _atan(b: Lanes, x: Value, curve: Curve) -> Value:
    a, zero = b.abs(x), b.constant(0.0)
    is_steep = b.compare("ogt", a, b.constant(1.0))
    inverse = b.div(b.constant(1.0), a)
    rest = b.mul(b.fma(b.neg(inverse), a, b.constant(1.0)), inverse)
    q = b.select(is_steep, inverse, a)
    is_finite = b.compare("olt", a, b.constant(math.inf))
    low = b.select(b.logic("and", is_steep, is_finite), rest, zero)
    start = b.select(is_steep, b.constant(_HALF_PI[0]), zero)
    start_low = b.select(is_steep, b.constant(_HALF_PI[1]), zero)
    return b.copysign(_turned(b, start, start_low, is_steep, q, curve(b, q, low)), x)


def _curve(b: Lanes, q: Value, low: Value) -> Value:
    """``atan(q + low) - q``."""
    z = b.mul(q, q)
    return b.fma(b.mul(z, q), b.polynomial(z, table.ATAN), _bent(b, z, low))


def _bent(b: Lanes, z: Value, low: Value) -> Value:
    """``low/(1 + z)``, the slope of atan, up to a twentieth of low, z being from 0 to 1."""
    return b.mul(low, b.fma(z, b.constant(-0.5), b.constant(0.957)))


def _precise_curve(b: Lanes, q: Value, low: Value) -> Value:
    """As :func:`_curve`, where ``q**3`` and the polynomial's last sum are sums of two."""
    z = b.mul(q, q)
    z_low = b.fma(q, q, b.neg(z))
    cube = b.mul(z, q)
    cube_low = b.fma(z_low, q, b.fma(z, q, b.neg(cube)))
    first = b.constant(table.ATAN_LONG[0])
    rest = b.mul(z, b.polynomial(z, table.ATAN_LONG[1:]))
    slope = b.add(first, rest)
    slope_low = b.sub(rest, b.sub(slope, first))
    small = b.fma(cube, slope_low, b.fma(cube_low, slope, _bent(b, z, low)))
    return b.fma(cube, slope, small)


def _turned(
    b: Lanes, start: Value, start_low: Value, is_minus: Value, q: Value, curve: Value
) -> Value:
    """``start + start_low + (q + curve)``, or minus that; start is 0 or larger."""
    q = b.select(is_minus, b.neg(q), q)
    curve = b.select(is_minus, b.neg(curve), curve)
    total = b.add(start, q)
    error = b.sub(q, b.sub(total, start))
    return b.add(total, b.add(b.add(error, start_low), curve))


def atan2(b: Lanes, y: Value, x: Value) -> Value:
    """``atan(q)`` of ``q = min/max`` of the magnitudes, turned into the right eighth of a circle.

    The eighths begin at 0, pi/2 (twice) and pi; in every second one the angle is counted backwards.
    """
    return _near_or_far(b, y, x, _curve, ATAN2_FAR)


def atan2_precise(b: Lanes, y: Value, x: Value) -> Value:
    """As atan2, with :func:`_precise_curve`."""
    return _near_or_far(b, y, x, _precise_curve, ATAN2_PRECISE_FAR)


def _near_or_far(b: Lanes, y: Value, x: Value, curve: Curve, far: Function) -> Value:
    value = _atan2(b, y, x, curve)
    size_y, size_x = b.abs(y), b.abs(x)
    larger = b.select(b.compare("ogt", size_y, size_x), size_y, size_x)
    smaller = b.select(b.compare("ogt", size_y, size_x), size_x, size_y)
    inside = b.logic(
        "and",
        b.compare("olt", larger, b.constant(2.0**500)),
        b.compare("ogt", smaller, b.constant(2.0**-500)),
    )
    return rarely(b, b.inverted(inside), far, (y, x), value)[0]


def _atan2(b: Lanes, y: Value, x: Value, curve: Curve) -> Value:
    size_y, size_x = b.abs(y), b.abs(x)
    is_steep = b.compare("ogt", size_y, size_x)
    top = b.select(is_steep, size_x, size_y)
    bottom = b.select(is_steep, size_y, size_x)
    inverse = b.div(b.constant(1.0), bottom)
    q = b.mul(top, inverse)
    low = b.mul(b.fma(b.neg(q), bottom, top), inverse)
    is_left = b.icompare("slt", b.to_bits(x), b.integer(0))
    is_minus = b.logic("xor", is_steep, is_left)
    zero = b.constant(0.0)
    sides = b.select(is_left, b.constant(_PI[0]), zero)
    start = b.select(is_steep, b.constant(_HALF_PI[0]), sides)
    sides = b.select(is_left, b.constant(_PI[1]), zero)
    start_low = b.select(is_steep, b.constant(_HALF_PI[1]), sides)
    return b.copysign(_turned(b, start, start_low, is_minus, q, curve(b, q, low)), y)


def _atan2_far(b: Lanes, y: Value, x: Value, curve: Curve = _curve) -> Value:
    """Numbers of any size, scaled into range; infinities count as 1 beside 0, zeros beside 1.

    A quotient far below 1 that stands alone is the result: it is divided as it is, so that it is
    rounded once where it is subnormal.
    """
    size_y, size_x = b.abs(y), b.abs(x)
    is_steep = b.compare("ogt", size_y, size_x)
    larger = b.select(is_steep, size_y, size_x)
    is_large = b.compare("ogt", larger, b.constant(1.0))
    scale = b.select(is_large, b.constant(2.0**-600), b.constant(2.0**600))
    scaled_y, scaled_x = b.mul(y, scale), b.mul(x, scale)
    infinite = b.constant(math.inf)
    y_infinite, x_infinite = b.compare("oeq", size_y, infinite), b.compare("oeq", size_x, infinite)
    any_infinite = b.logic("or", y_infinite, x_infinite)
    units = []
    for scaled, value, is_infinite in ((scaled_y, y, y_infinite), (scaled_x, x, x_infinite)):
        size = b.select(is_infinite, b.constant(1.0), b.constant(0.0))
        units.append(b.select(any_infinite, b.copysign(size, value), scaled))
    turned = b.select(b.compare("oeq", larger, b.constant(0.0)), b.constant(1.0), b.constant(0.0))
    units[1] = b.select(b.compare("ogt", turned, b.constant(0.0)), b.copysign(turned, x), units[1])
    value = _atan2(b, units[0], units[1], curve)
    quotient = b.copysign(b.div(size_y, size_x), y)
    is_right = b.icompare("sge", b.to_bits(x), b.integer(0))
    is_tiny = b.compare("olt", b.abs(quotient), b.constant(2.0**-500))
    is_plain = b.logic("and", b.logic("and", is_right, is_tiny), b.inverted(any_infinite))
    value = b.select(is_plain, quotient, value)
    is_nan = b.compare("uno", y, x)
    return b.select(is_nan, b.constant(math.nan), value)


def _atan2_precise_far(b: Lanes, y: Value, x: Value) -> Value:
    return _atan2_far(b, y, x, _precise_curve)


ATAN2_PRECISE_FAR = Function("atan2.precise.far", _atan2_precise_far, arity=2, is_rare=True)
ATAN2_FAR = Function("atan2.far", _atan2_far, arity=2, is_rare=True)


# asin and acos


def _arc(b: Lanes, a: Value) -> tuple[Value, Value, Value, Value]:
    """Whether ``a > 1/2``, and t, its low part and ``asin(t) - t``: t is a or sqrt((1 - a)/2)."""
    is_steep = b.compare("ogt", a, b.constant(0.5))
    half = b.mul(b.sub(b.constant(1.0), a), b.constant(0.5))
    root = b.sqrt(half)
    rest = b.fma(b.neg(root), root, half)
    low = b.div(rest, b.add(root, root))
    low = b.select(b.compare("ogt", root, b.constant(0.0)), low, b.constant(0.0))
    t = b.select(is_steep, root, a)
    z = b.select(is_steep, half, b.mul(a, a))
    low = b.select(is_steep, low, b.constant(0.0))
    return is_steep, t, low, b.mul(b.mul(z, t), b.polynomial(z, table.ASIN))


def asin(b: Lanes, x: Value) -> Value:
    """``asin(a)``, or ``pi/2 - 2*asin(sqrt((1 - a)/2))`` where ``a = |x| > 1/2``; nan beyond 1."""
    is_steep, t, low, curve = _arc(b, b.abs(x))
    straight = b.add(t, curve)
    double = b.add(t, t)
    start = b.constant(_HALF_PI[0])
    total = b.sub(start, double)
    error = b.sub(b.sub(start, total), double)
    rest = b.sub(b.constant(_HALF_PI[1]), b.mul(b.constant(2.0), b.add(low, curve)))
    steep = b.add(total, b.add(error, rest))
    return b.copysign(b.select(is_steep, steep, straight), x)


def acos(b: Lanes, x: Value) -> Value:
    """``pi/2 - asin(x)``, or ``2*asin(sqrt((1 - a)/2))`` and pi minus that where ``a > 1/2``."""
    a = b.abs(x)
    is_steep, t, low, curve = _arc(b, a)
    signed = b.copysign(t, x)
    rest = b.sub(b.constant(_HALF_PI[1]), b.copysign(curve, x))
    flat = _difference(b, b.constant(_HALF_PI[0]), signed, rest)
    double = b.add(t, t)
    tail = b.mul(b.constant(2.0), b.add(low, curve))
    right = b.add(double, tail)
    left = _difference(b, b.constant(_PI[0]), double, b.sub(b.constant(_PI[1]), tail))
    is_left = b.compare("olt", x, b.constant(0.0))
    return b.select(is_steep, b.select(is_left, left, right), flat)


def _difference(b: Lanes, start: Value, taken: Value, rest: Value) -> Value:
    """``start - taken + rest``; start is larger."""
    total = b.sub(start, taken)
    error = b.sub(b.sub(start, total), taken)
    return b.add(total, b.add(error, rest))
