"""Exact constants: rationals, pi and e, and sums, products and integer powers of them.

A constant subexpression is computed here before anything is rounded, so ``pi**2`` becomes the
floating-point number nearest to the real number, as ``1/3`` does. Irrational values are enclosed
in an interval of :data:`BITS` significant bits; rationals are exact.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import inf, isqrt, log2

import attrs

BITS = 320
"""Significant bits of an enclosure: a double has 53, and the rest pays for cancellation."""


@attrs.frozen
class FloatFormat:
    """A binary floating-point format.

    Attributes:
        precision: bits of the significand, the leading one included.
        least_exponent: exponent of the smallest positive number, a power of two.
        overflow: smallest magnitude that rounds to infinity.
    """

    precision: int
    least_exponent: int
    overflow: Fraction


def _format(precision: int, least_exponent: int, greatest_exponent: int) -> FloatFormat:
    top = Fraction(2) ** greatest_exponent
    return FloatFormat(precision, least_exponent, 2 * top - top / 2**precision)


FORMATS = {"float64": _format(53, -1074, 1023), "float32": _format(24, -149, 127)}


def _exponent(value: Fraction) -> int:
    """Exponent of the leading bit of ``value > 0``: ``2**e <= value < 2**(e+1)``."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if value >= _scale(e) else e - 1


def _scale(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def nearest(value: Fraction, format: FloatFormat) -> float:
    """The number of ``format`` nearest to ``value``, ties to even; an infinity when too large."""
    if value.denominator == 1 and value.numerator.bit_length() <= format.precision:
        return float(value.numerator)
    magnitude = abs(value)
    if magnitude >= format.overflow:
        return inf if value > 0 else -inf
    unit = max(_exponent(magnitude) - format.precision + 1, format.least_exponent)
    rounded = round(magnitude / _scale(unit)) * _scale(unit)  # Fraction.__round__ ties to even
    return float(rounded if value > 0 else -rounded)


@attrs.frozen
class Exact:
    """A real number known exactly (``low == high``) or enclosed to :data:`BITS` bits."""

    low: Fraction
    high: Fraction

    @classmethod
    def rational(cls, value: int | Fraction) -> Exact:
        """The rational ``value``."""
        value = Fraction(value)
        return cls(value, value)

    @property
    def fraction(self) -> Fraction | None:
        """The value where it is rational, else None."""
        return self.low if self.low == self.high else None

    @property
    def is_zero(self) -> bool:
        """Whether the value is exactly zero."""
        return self.low == 0 == self.high

    @property
    def is_negative(self) -> bool:
        """Whether the value is surely below zero."""
        return self.high < 0

    def __neg__(self) -> Exact:
        return Exact(-self.high, -self.low)

    def __add__(self, other: Exact) -> Exact:
        return _enclose(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Exact) -> Exact:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return _enclose(min(ends), max(ends))

    def power(self, n: int) -> Exact:
        """The integer power ``n``; ``n < 0`` needs a value that is surely not zero.

        Raises:
            OverflowError: the magnitude leaves every floating-point format, at either end.
        """
        if n < 0:
            return Exact(1 / self.high, 1 / self.low).power(-n)
        most = max(abs(self.low), abs(self.high))
        if not most or abs(self.low) == abs(self.high) == 1:
            return Exact.rational(self.low if n % 2 else self.low**2) if n else Exact.rational(1)
        size = n * (log2(most.numerator) - log2(most.denominator))
        if abs(size) > 4096:
            raise OverflowError
        bits = most.numerator.bit_length() + most.denominator.bit_length()
        result, square = Exact.rational(1), self if n * bits < 2**16 else self._widened()
        while n:
            if n & 1:
                result = result * square
            n >>= 1
            square = square * square if n else square
        return result

    def _widened(self) -> Exact:
        """An inexact enclosure, whose powers stay short; errors grow with n from 2**-BITS."""
        slack = max(abs(self.low), abs(self.high)) * _scale(-BITS)
        return _enclose(self.low - slack, self.high + slack)

    def nearest(self, dtype: str) -> float:
        """The number of real ``dtype`` nearest to the value; an infinity when too large."""
        if self.low is self.high:  # rational, the usual case
            return nearest(self.low, FORMATS[dtype])
        low, high = (nearest(end, FORMATS[dtype]) for end in (self.low, self.high))
        if low == high:
            return low
        return nearest((self.low + self.high) / 2, FORMATS[dtype])


def _enclose(low: Fraction, high: Fraction) -> Exact:
    """Round the ends of an inexact interval outwards, to keep its fractions short."""
    if low == high:
        return Exact(low, high)
    magnitude = max(abs(low), abs(high))
    unit = _scale(_exponent(magnitude) - BITS)
    return Exact((low // unit) * unit, -(-high // unit) * unit)


@cache
def named(name: str) -> Exact:
    """The constant ``"pi"`` or ``"E"``, enclosed to :data:`BITS` bits."""
    bits = BITS + 32
    scaled = _pi(bits) if name == "pi" else _e(bits)
    # The series below err by less than 2**8 units of the last of `bits` places.
    return _enclose(Fraction(scaled - 256, 1 << bits), Fraction(scaled + 256, 1 << bits))


def _pi(bits: int) -> int:
    """pi * 2**bits by the Gauss-Legendre iteration in fixed point (Brent, Salamin 1976)."""
    extra = bits + 16
    one = 1 << extra
    a, b, t, p = one, isqrt(1 << (2 * extra - 1)), one >> 2, 1
    while abs(a - b) > 1:
        mean = (a + b) >> 1
        b = isqrt(a * b)
        t -= p * ((a - mean) ** 2 >> extra)
        a, p = mean, 2 * p
    return ((a + b) ** 2 // (4 * t)) >> 16


def _e(bits: int) -> int:
    """e * 2**bits by its series."""
    total, term, k = 0, 1 << (bits + 16), 1
    while term:
        total += term
        term //= k
        k += 1
    return total >> 16
