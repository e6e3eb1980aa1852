"""Special functions that the math module lacks, to a few ulp, on Python floats."""

from __future__ import annotations

import math
from math import inf, nan, pi

EULER_GAMMA = 0.5772156649015329


def erfinv(y: float) -> float:
    """The inverse of erf; infinite at -1 and 1, nan beyond.

    Newton's method on erf for small ``y``, on erfc for the rest, where erf has lost its digits.
    """
    size = abs(y)
    if not size < 1.0:
        return math.copysign(inf, y) if size == 1.0 else nan
    if size < 1e-8:  # the next term of the series is of order size**3
        return y * (math.sqrt(pi) / 2)
    # Winitzki's approximation, good to 0.2 %, then corrections of third order.
    log = math.log((1.0 - size) * (1.0 + size))
    a = 0.147
    half = 2 / (pi * a) + log / 2
    x = math.sqrt(math.sqrt(half * half - log / a) - half)
    for _ in range(3):
        error = math.erf(x) - size if size < 0.5 else (1.0 - size) - math.erfc(x)
        newton = error * (math.sqrt(pi) / 2) * math.exp(x * x)
        x -= newton / (1 + x * newton)
    return math.copysign(x, y)


# Bernoulli numbers B(2k)/(2k) for the asymptotic series of digamma
_DIGAMMA_SERIES = (
    1 / 12,
    -1 / 120,
    1 / 252,
    -1 / 240,
    1 / 132,
    -691 / 32760,
    1 / 12,
)


def digamma(x: float) -> float:
    """The derivative of lgamma; nan at negative integers, an infinity at zero."""
    if x == 0.0:
        return math.copysign(inf, -x)
    if x == -inf or x != x:
        return nan
    if x < 0.5:
        fraction = x - round(x)
        if not fraction:
            return nan
        # Reflection; the tangent has period pi, and the difference to an integer is exact.
        return digamma(1.0 - x) - pi / math.tan(pi * fraction)
    below = 0.0
    while x < 10.0:
        below += 1 / x
        x += 1.0
    square = 1 / (x * x)
    series = 0.0
    for coefficient in reversed(_DIGAMMA_SERIES):
        series = (series + coefficient) * square
    return math.log(x) - 0.5 / x - series - below


def j0(x: float) -> float:
    """The Bessel function of the first kind, order 0."""
    return _bessel(abs(x))[0]


def j1(x: float) -> float:
    """The Bessel function of the first kind, order 1."""
    return math.copysign(1.0, x) * _bessel(abs(x))[1]


def y0(x: float) -> float:
    """The Bessel function of the second kind, order 0; -inf at zero, nan below."""
    return _bessel(x)[2] if x > 0 else -inf if x == 0 else nan


def y1(x: float) -> float:
    """The Bessel function of the second kind, order 1; -inf at zero, nan below."""
    return _bessel(x)[3] if x > 0 else -inf if x == 0 else nan


def _bessel(x: float) -> tuple[float, float, float, float]:
    """J0, J1, Y0, Y1 at ``x >= 0`` (infinite Y at 0 is the callers' business)."""
    if x != x:
        return nan, nan, nan, nan
    if x < 1.0:
        return _bessel_series(x)
    if x < 25.0:
        return _bessel_recurrence(x)
    return _bessel_asymptotic(x) if x < inf else (0.0, 0.0, 0.0, 0.0)


def _bessel_series(x: float) -> tuple[float, float, float, float]:
    """Ascending series for small ``x``."""
    square = -(x / 2) * (x / 2)
    term0, term1 = 1.0, x / 2
    j0 = j1 = y0 = y1 = 0.0
    harmonic = 0.0
    for k in range(1, 14):
        j0 += term0
        j1 += term1
        y0 -= harmonic * term0
        y1 -= (2 * harmonic + 1 / k) * term1
        harmonic += 1 / k
        term0 *= square / (k * k)
        term1 *= square / (k * (k + 1))
    if not x:
        return j0, j1, -inf, -inf
    log = math.log(x) - math.log(2.0) + EULER_GAMMA  # x / 2 may be 0
    y0 = 2 / pi * (log * j0 + y0)
    y1 = 2 / pi * (log * j1 - 1 / x) + y1 / pi
    return j0, j1, y0, y1


def _bessel_recurrence(x: float) -> tuple[float, float, float, float]:
    """Miller's backward recurrence, normalised; Y by Neumann's expansion in J(2k).

    J(n-1) = 2n/x J(n) - J(n+1) is stable downwards, from where J(n) is negligible;
    J0 + 2 J2 + 2 J4 + ... = 1 fixes the factor, and
    Y0 = 2/pi ((log(x/2) + gamma) J0 - 2 sum (-1)^k J(2k)/k), whose derivative is -Y1.
    """
    start = 2 * int(x / 2 + 6 * x ** (1 / 3) + 10)
    above, here = 0.0, 1e-290  # J(n+1) and J(n) for n = start, up to a factor
    total = even = odd = 0.0
    for n in range(start, 0, -1):
        below = 2 * n / x * here - above
        if n % 2 == 0:
            k = n // 2
            total += 2 * here
            even += (-here if k % 2 else here) / k
            odd += (above - below if k % 2 else below - above) / k
        above, here = here, below
    total += here
    j0, j1, even, odd = here / total, above / total, even / total, odd / total
    log = math.log(x / 2) + EULER_GAMMA
    return j0, j1, 2 / pi * (log * j0 - 2 * even), 2 / pi * (log * j1 - j0 / x + odd)


def _bessel_asymptotic(x: float) -> tuple[float, float, float, float]:
    """Hankel's expansion for large ``x``, with the phases reduced by the addition theorem."""
    p0, q0 = _hankel(0.0, x)
    p1, q1 = _hankel(4.0, x)
    plus, minus = math.sin(x) + math.cos(x), math.sin(x) - math.cos(x)
    amplitude = 1 / math.sqrt(pi * x)
    return (
        amplitude * (p0 * plus - q0 * minus),
        amplitude * (p1 * minus + q1 * plus),
        amplitude * (p0 * minus + q0 * plus),
        amplitude * (q1 * minus - p1 * plus),
    )


def _hankel(mu: float, x: float) -> tuple[float, float]:
    """P and Q of Hankel's expansion for 4 nu**2 = ``mu``; the terms shrink fast for x >= 25."""
    sums = [1.0, 0.0]
    term = 1.0
    for k in range(1, 30):
        term *= (mu - (2 * k - 1) ** 2) / (8 * k * x)
        sums[k % 2] += term if k % 4 < 2 else -term
        if abs(term) < 1e-18:
            break
    return sums[0], sums[1]
