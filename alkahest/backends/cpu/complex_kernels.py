"""Complex arithmetic of C99 Annex G.

NumPy's products and quotients give nan where an operand is infinite; Annex G recovers the
infinity. Functions of one argument come from the C library through NumPy and follow Annex G,
signed zeros at branch cuts included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Complex = NDArray[np.complexfloating[Any, Any]]


def multiply(z: Complex, w: Complex, out: Complex) -> None:
    """``z*w``; part by part, so that no processor fuses one product and not the other."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    re, im = a * c - b * d, a * d + b * c
    lost = np.isnan(re) & np.isnan(im)
    if lost.any():
        re[lost], im[lost] = _recovered_product(a[lost], b[lost], c[lost], d[lost])
    out.real, out.imag = re, im


def _recovered_product(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    """Products that came out as nan + i nan although an infinity takes part (Annex G.5.1)."""
    left, right = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    overflow = np.isinf(a * c) | np.isinf(b * d) | np.isinf(a * d) | np.isinf(b * c)
    recovers = left | right | overflow
    a1, b1 = _boxed(a, left), _boxed(b, left)
    c1, d1 = _boxed(c, right), _boxed(d, right)
    a1, b1 = _zero_for_nan(a1, recovers & ~left), _zero_for_nan(b1, recovers & ~left)
    c1, d1 = _zero_for_nan(c1, recovers & ~right), _zero_for_nan(d1, recovers & ~right)
    re = np.where(recovers, np.inf * (a1 * c1 - b1 * d1), np.nan)
    im = np.where(recovers, np.inf * (a1 * d1 + b1 * c1), np.nan)
    return re, im


def divide(z: Complex, w: Complex, out: Complex) -> None:
    """``z/w``, both scaled by powers of two so that nothing overflows on the way."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    above, below = _exponent(a, b), _exponent(c, d)
    sa, sb = np.ldexp(a, -above), np.ldexp(b, -above)
    sc, sd = np.ldexp(c, -below), np.ldexp(d, -below)
    size = sc * sc + sd * sd
    re = np.ldexp((sa * sc + sb * sd) / size, above - below)
    im = np.ldexp((sb * sc - sa * sd) / size, above - below)
    lost = np.isnan(re) & np.isnan(im)
    if lost.any():
        re[lost], im[lost] = _recovered_quotient(
            a[lost], b[lost], c[lost], d[lost], re[lost], im[lost]
        )
    out.real, out.imag = re, im


def _recovered_quotient(
    a: Array, b: Array, c: Array, d: Array, re: Array, im: Array
) -> tuple[Array, Array]:
    """Quotients that came out as nan + i nan: by zero, of or by an infinity (Annex G.5.1)."""
    by_zero = (c == 0) & (d == 0) & ~(np.isnan(a) & np.isnan(b))
    of_infinity = (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d) & ~by_zero
    by_infinity = (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    a1, b1 = _boxed(a, of_infinity), _boxed(b, of_infinity)
    c1, d1 = _boxed(c, by_infinity), _boxed(d, by_infinity)
    factor = np.where(of_infinity, np.inf, 0.0)
    recovers = of_infinity | by_infinity
    re = np.where(recovers, factor * (a1 * c1 + b1 * d1), re)
    im = np.where(recovers, factor * (b1 * c1 - a1 * d1), im)
    infinity = np.copysign(np.inf, c)
    return np.where(by_zero, infinity * a, re), np.where(by_zero, infinity * b, im)


def _boxed(part: Array, where: Array) -> Array:
    """One part of an infinite number, as a corner or side of the unit box."""
    return np.where(where, np.copysign(np.where(np.isinf(part), 1.0, 0.0), part), part)


def _zero_for_nan(part: Array, where: Array) -> Array:
    return np.where(where & np.isnan(part), np.copysign(0.0, part), part)


def _exponent(re: Array, im: Array) -> Array:
    _, exponent = np.frexp(np.fmax(np.absolute(re), np.absolute(im)))
    return exponent


def absolute(z: Complex, out: Array) -> None:
    """``|z|`` without overflow on the way; infinite if a part is."""
    np.hypot(z.real, z.imag, out)


def angle(z: Complex, out: Array) -> None:
    """Angle in [-pi, pi]; the sign of a zero imaginary part chooses the side of the cut."""
    np.arctan2(z.imag, z.real, out)


def build(re: Array, im: Array, out: Complex) -> None:
    """``re + i im`` with both parts as they are."""
    out.real, out.imag = re, im


def real_part(z: Complex, out: Array) -> None:
    """The real part."""
    out[...] = z.real


def imaginary_part(z: Complex, out: Array) -> None:
    """The imaginary part."""
    out[...] = z.imag
