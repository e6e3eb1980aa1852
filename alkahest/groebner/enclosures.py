"""Numbers known exactly or enclosed between rationals.

Enclosures come from FLINT's ball arithmetic (Johansson, "Arb", 2017), and its isolation of the
roots of a polynomial with integer coefficients is certified: real roots are told from others.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import isqrt
from typing import Any

import attrs

from alkahest.expr import Expr, ExprPool, default_pool

MOST_BITS = 1 << 20
"""Working precision at which a search for disjoint enclosures is given up."""


class ImpreciseError(ArithmeticError):
    """A ball without bounds: the working precision was too small."""


@attrs.frozen
class Interval:
    """All numbers from ``lower`` to ``upper``, which are exact."""

    lower: Fraction
    upper: Fraction

    @property
    def width(self) -> Fraction:
        """Distance of the ends; 0 for a number that is known exactly."""
        return self.upper - self.lower

    @property
    def middle(self) -> Fraction:
        """The number half way."""
        return (self.lower + self.upper) / 2

    def is_narrow(self, digits: int) -> bool:
        """Whether it is narrower than 10**-digits, relative to 1 or to the number's size."""
        size = abs(self.middle)
        return bool(self.width * 10**digits <= (size if size > 1 else 1))

    def __contains__(self, number: Any) -> bool:
        return bool(self.lower <= number <= self.upper)

    def __float__(self) -> float:
        return nearest_float(self.middle)

    @classmethod
    def of_ball(cls, ball: Any) -> Interval:
        """The interval of a ``flint.arb``; ImpreciseError for one without bounds."""
        if not ball.is_finite():
            raise ImpreciseError
        middle, radius = _exact(ball.mid()), _exact(ball.rad())
        return cls(middle - radius, middle + radius)

    @classmethod
    def point(cls, number: Fraction | int) -> Interval:
        """The interval of one number."""
        return cls(Fraction(number), Fraction(number))


@attrs.frozen(kw_only=True)
class Coordinate:
    """One coordinate of a solution: a certified box, and an exact form where there is one.

    Attributes:
        real: encloses the real part.
        imaginary: encloses the imaginary part; the point 0 for what is known to be real.
        surd: (a, b, n) with the number equal to a + b * sqrt(n), or None; b is 0 for a rational.
    """

    real: Interval
    imaginary: Interval
    surd: tuple[Fraction, Fraction, int] | None = None

    @property
    def rational(self) -> Fraction | None:
        """The number, if it is known to be rational."""
        return self.surd[0] if self.surd is not None and not self.surd[1] else None

    @property
    def is_real(self) -> bool:
        """Whether the number is known to be real."""
        return self.imaginary == Interval.point(0)

    def exact(self, pool: ExprPool | None = None) -> Expr | None:
        """The number as an expression, rational or with one square root, where it has that form."""
        if self.surd is None:
            return None
        pool = pool or default_pool()
        a, b, n = self.surd
        if not b:
            return pool.constant(a)
        factors = [pool.constant(b)]
        if abs(n) != 1:
            factors.append(pool.func("sqrt", [pool.integer(abs(n))]))
        if n < 0:
            factors.append(pool.imaginary_unit())
        return pool.add([a, pool.mul(factors)])

    def __float__(self) -> float:
        if not self.is_real:
            raise TypeError(f"{self} is not known to be real; use complex()")
        return float(self.real)

    def __complex__(self) -> complex:
        return complex(float(self.real), float(self.imaginary))

    def __str__(self) -> str:
        exact = self.exact()
        if exact is not None:
            return str(exact)
        if not cmath.isfinite(number := complex(self)):
            above = _digits(self.real)
            return above if self.is_real else f"{above} + {_digits(self.imaginary)}j"
        return f"{number.real!r}" if self.is_real else f"{number!r}".strip("()")

    @classmethod
    def of_ball(cls, ball: Any, *, real: bool, surd: Any = None) -> Coordinate:
        """From a ``flint.acb``; of what is ``real`` only the real part counts."""
        imaginary = Interval.point(0) if real else Interval.of_ball(ball.imag)
        return cls(real=Interval.of_ball(ball.real), imaginary=imaginary, surd=surd)

    @classmethod
    def of_rational(cls, number: Fraction) -> Coordinate:
        """A number that is known exactly."""
        return cls(
            real=Interval.point(number),
            imaginary=Interval.point(0),
            surd=(Fraction(number), Fraction(0), 1),
        )


def nearest_float(number: Fraction) -> float:
    """The float nearest to a number; an infinity for one beyond the largest float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _digits(interval: Interval) -> str:
    """The middle with 17 digits, however large it is."""
    import flint

    middle = flint.fmpq(interval.middle.numerator, interval.middle.denominator)
    with precision(80):
        return str(flint.arb(middle).str(17, radius=False))


def _exact(ball: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in ball.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute balls with ``bits`` bits."""
    import flint

    with flint.ctx.workprec(bits):
        yield


def roots(polynomial: Any, bits: int, *, real: bool) -> list[Any]:
    """Balls around the roots of a square-free ``flint.fmpz_poly``, computed with ``bits`` bits.

    Real roots have the imaginary part 0 exactly; they come first and ascend. Balls are disjoint.
    """
    with precision(bits):
        found = [root for root, _ in polynomial.complex_roots()]
    on_axis = sorted((r for r in found if r.imag.is_zero()), key=lambda r: _exact(r.real.mid()))
    return on_axis if real else on_axis + [r for r in found if not r.imag.is_zero()]


def square_free_root(n: int) -> tuple[int, int]:
    """(k, m) with n = k**2 * m, where m has no square factor of a prime below 1000."""
    k, m, sign = 1, abs(n), -1 if n < 0 else 1
    root = isqrt(m)
    if root * root == m:
        return root, sign
    for p in range(2, 1000):
        while m % (p * p) == 0:
            m //= p * p
            k *= p
    root = isqrt(m)
    return (k * root, sign) if root * root == m else (k, sign * m)


__all__ = ["Coordinate", "Interval", "nearest_float", "precision", "roots", "square_free_root"]
