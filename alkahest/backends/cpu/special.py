"""Special functions: SciPy's, where they are accurate enough, with the conventions of the op table.

SciPy is imported on first use. Its relative errors grow in some places, which are computed here
instead: erfc beyond a half (the square of the argument is rounded), gamma below -170 (0 near its
poles), lgamma of tiny negative numbers (infinite), digamma near negative poles, and Bessel functions
of large arguments (``x - pi/4`` is rounded).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.backends.cpu.doubled import two_prod

Array = NDArray[Any]

_GAMMA_OVERFLOWS = -170.0

_ASYMPTOTIC_FROM = 25.0
_ASYMPTOTIC_TERMS = 28
"""At 25 the terms beyond are below 2**-60, and the series has not begun to diverge."""


@cache
def _scipy() -> Any:
    import scipy.special

    return scipy.special


def erf(a: Array, out: Array) -> None:
    """Error function."""
    _scipy().erf(a, out)


def erfc(a: Array, out: Array) -> None:
    """``1 - erf(a)``; beyond 1/2 ``erfcx(a)*exp(-a*a)`` with the square's rounding error put back."""
    large = a > 0.5
    x = np.minimum(a[large], 30.0)  # erfc(30) underflows
    square, error = two_prod(x, x)
    tail = _scipy().erfcx(x) * np.exp(-square) * (1.0 - error)
    _scipy().erfc(a, out)
    out[large] = tail


def erfinv(a: Array, out: Array) -> None:
    """Inverse of erf, odd; infinite at -1 and 1, nan outside."""
    out[...] = np.copysign(_scipy().erfinv(a), a)


def gamma(a: Array, out: Array) -> None:
    """Gamma; nan at negative integers and -inf, signed infinity at the zeros.

    Below -170, with w = -a: ``-pi/(w*sin(pi*w)*gamma(w))``, where ``gamma(w)`` would overflow, so that
    the quotient is divided by it in parts. w less a whole number is exact.
    """
    pole = (a < 0) & (a == np.floor(a))
    zero = a == 0
    infinity = np.copysign(np.inf, a[zero])
    far = (a < _GAMMA_OVERFLOWS) & (a > -200.0) & ~pole
    w = -a[far]
    distance = w - np.rint(w)
    sign = np.where(np.rint(w) % 2 == 0, -1.0, 1.0)
    reflected = sign * np.pi / np.sin(np.pi * distance) / w / _scipy().gamma(w - 40.0)
    for k in range(1, 41):
        reflected /= w - k
    _scipy().gamma(a, out)
    out[pole] = np.nan
    out[zero] = infinity
    out[far] = reflected


def lgamma(a: Array, out: Array) -> None:
    """``log|gamma(a)|``; inf at the poles and at both infinities."""
    infinite = np.isinf(a) | ((a <= 0) & (a == np.floor(a)))
    tiny = np.absolute(a) < 1e-100
    near_pole = -np.log(np.absolute(a[tiny]))
    _scipy().gammaln(a, out)
    out[tiny] = near_pole
    out[infinite] = np.inf


def digamma(a: Array, out: Array) -> None:
    """``lgamma'``; nan at negative integers, -inf at 0 and inf at -0.

    Below 0 by reflection, with the distance to the nearest integer taken exactly.
    """
    negative = a < 0
    x = a[negative]
    distance = x - np.rint(x)
    reflected = _scipy().psi(1.0 - x) - np.pi / np.tan(np.pi * distance)
    reflected[(distance == 0) | np.isinf(x)] = np.nan
    zero = a == 0
    infinity = np.copysign(np.inf, -a[zero])
    _scipy().psi(a, out)
    out[negative] = reflected
    out[zero] = infinity


def j0(a: Array, out: Array) -> None:
    """Bessel J of order 0; 0 at both infinities."""
    size = np.absolute(a)
    _bessel(_scipy().j0, 0, size, out, second_kind=False)


def j1(a: Array, out: Array) -> None:
    """Bessel J of order 1, odd; 0 at both infinities."""
    result = np.empty_like(a)
    _bessel(_scipy().j1, 1, np.absolute(a), result, second_kind=False)
    out[...] = np.copysign(1.0, a) * result


def y0(a: Array, out: Array) -> None:
    """Bessel Y of order 0; -inf at 0, nan below, 0 at inf."""
    _bessel(_scipy().y0, 0, a.copy(), out, second_kind=True)


def y1(a: Array, out: Array) -> None:
    """Bessel Y of order 1; -inf at 0, nan below, 0 at inf."""
    x = a.copy()
    _bessel(_scipy().y1, 1, x, out, second_kind=True)
    tiny = (x > 0) & (x < 1e-100)
    out[tiny] = -(2.0 / np.pi) / x[tiny]  # SciPy's 1/x overflows first


def _bessel(near: Any, order: int, x: Array, out: Array, *, second_kind: bool) -> None:
    near(x, out)
    far = x >= _ASYMPTOTIC_FROM
    if far.any():
        out[far] = _hankel(order, x[far], second_kind)


def _hankel(order: int, x: Array, second_kind: bool) -> Array:
    """Hankel's expansion (DLMF 10.17): a phase with exactly reduced sine and cosine."""
    even, odd = _hankel_coefficients(order)
    inverse = 1.0 / x
    square = inverse * inverse
    p = np.polynomial.polynomial.polyval(square, even)
    q = np.polynomial.polynomial.polyval(square, odd) * inverse
    sin, cos = np.sin(x), np.cos(x)
    # sqrt(2) times cosine and sine of the phase x - (2*order + 1)*pi/4
    phase_cos, phase_sin = (cos + sin, sin - cos) if order == 0 else (sin - cos, -sin - cos)
    wave = p * phase_sin + q * phase_cos if second_kind else p * phase_cos - q * phase_sin
    result: Array = wave / (np.sqrt(np.pi) * np.sqrt(x))
    result[np.isinf(x)] = 0.0
    return result


@cache
def _hankel_coefficients(order: int) -> tuple[Array, Array]:
    """Signed coefficients of the even and the odd terms, in powers of ``1/x**2``."""
    term, terms = Fraction(1), []
    for k in range(_ASYMPTOTIC_TERMS):
        terms.append(term * (-1) ** (k // 2))
        term *= Fraction(4 * order * order - (2 * k + 1) ** 2, 8 * (k + 1))
    return np.array(terms[0::2], dtype=float), np.array(terms[1::2], dtype=float)
