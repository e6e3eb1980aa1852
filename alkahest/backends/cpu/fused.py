"""Fused multiply-add: ``a*b + c`` rounded once, exactly, without relying on the processor.

Float32 products are exact in float64; the sum is rounded to odd there, after which the rounding
to float32 is innocuous. Float64 follows Boldo and Melquiond, "Emulation of FMA and correctly
rounded sums: proved algorithms using rounding to odd" (2008), where no term can overflow or lose
bits below the subnormals; the few other points are computed with exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.backends.cpu.doubled import two_prod, two_sum

Array = NDArray[Any]

_LARGE = 2.0**990
_SMALL_PRODUCT = 2.0**-960
"""Above it the error of a product is a multiple of the smallest subnormal, hence exact."""


def fma(a: Array, b: Array, c: Array, out: Array) -> None:
    """``a*b + c`` for float64 or float32 operands, correctly rounded for every input."""
    out[...] = _single(a, b, c) if out.dtype == np.float32 else _double(a, b, c)


def _single(a: Array, b: Array, c: Array) -> Array:
    product = a.astype(np.float64) * b
    total, error = two_sum(product, c.astype(np.float64))
    special = ~np.isfinite(total)
    return np.where(special, product + c, _to_odd(total, error)).astype(np.float32)


def _double(a: Array, b: Array, c: Array) -> Array:
    product = a * b
    size = np.absolute(product)
    plain = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) | (a == 0) | (b == 0)
    result = np.asarray(product + c)
    result[plain] = _plain(a[plain], b[plain], c[plain])
    splits = (np.absolute(a) < _LARGE) & (np.absolute(b) < _LARGE) & (np.absolute(c) < _LARGE)
    quick = splits & (size < _LARGE) & (size > _SMALL_PRODUCT) & ~plain
    result[quick] = _boldo_melquiond(a[quick], b[quick], c[quick])
    for i in np.flatnonzero(~quick & ~plain):
        result[i] = _exact(float(a[i]), float(b[i]), float(c[i]))
    return result


def _plain(a: Array, b: Array, c: Array) -> Array:
    """Points where a product is zero, infinite or nan without rounding, or ``c`` decides."""
    return np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, a * b + c)


def _boldo_melquiond(a: Array, b: Array, c: Array) -> Array:
    product_high, product_low = two_prod(a, b)
    low_high, low_low = two_sum(c, product_low)
    sum_high, sum_low = two_sum(product_high, low_high)
    return sum_high + _to_odd(*two_sum(low_low, sum_low))


def _to_odd(total: Array, error: Array) -> Array:
    """``total + error`` rounded to odd: an inexact sum gets an odd last bit.

    Neighbouring doubles are neighbouring integers; the step is away from zero when ``error`` has
    the sign of ``total``, else towards it.
    """
    bits = np.atleast_1d(total).copy().view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    move = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    bits[move] += step[move]
    return bits.view(np.float64)


def _exact(a: float, b: float, c: float) -> float:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        return 0.0
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
