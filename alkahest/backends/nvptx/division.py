"""Division by a constant as two multiplications; a division takes a dozen instructions."""

from __future__ import annotations

import math
from fractions import Fraction

SIGNIFICANT = 40
"""Bits, at most, of a divisor's significand without its trailing zeros."""


def reciprocal(divisor: float) -> tuple[float, float] | None:
    """Doubles (high, low) with ``fma(x, high, x * low)`` the correctly rounded ``x / divisor``.

    ``high + low`` is the reciprocal up to 2**-105 of it, low having the sign of high, so that an
    infinite x gives no nan. With ``divisor = D * 2**j`` for an odd integer D, no quotient lies
    closer to the middle of two neighbouring doubles than ``1 / (2*D)`` of their distance; what is
    rounded at the end is off by 2**-50 of it at most, and D is less than ``2**SIGNIFICANT``.

    This fails where ``x * low`` is subnormal and the result below 2**-966: there the neighbour of
    the correctly rounded double may come out.

    Args:
        divisor: finite, of magnitude 2**-500 to 2**500.

    Returns:
        None where the quotient might be rounded wrongly: too many significant bits, too large or
        too small. A power of two gives a low of 0; multiplying by high alone is right then.
    """
    if not 2.0**-500 <= abs(divisor) <= 2.0**500:
        return None
    numerator, _ = divisor.as_integer_ratio()
    odd = abs(numerator) // (numerator & -numerator)
    if odd.bit_length() > SIGNIFICANT:
        return None
    exact = 1 / Fraction(divisor)
    high = float(exact)
    if abs(Fraction(high)) > abs(exact):
        high = math.nextafter(high, 0.0)
    return high, float(exact - Fraction(high))
