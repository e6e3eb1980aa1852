"""Division by a constant as two multiplications; a division takes a dozen instructions."""

from __future__ import annotations

import math
from fractions import Fraction


def reciprocal(divisor: float) -> tuple[float, float] | None:
    """Doubles (high, low) with ``fma(x, high, x * low)`` the rounded ``x / divisor``.

    ``high + low`` is the reciprocal up to 2**-105 of it, low having the sign of high, so that an
    infinite x gives no nan. What is rounded at the end is off by 2**-50 of the distance of two
    neighbouring doubles at most. With ``divisor = D * 2**j`` for an odd integer D, no quotient lies
    closer to the middle of two than ``1 / (2*D)`` of that: up to ``D = 2**48`` quotients are
    correctly rounded.

    This fails where ``x * low`` is subnormal and the result below 2**-966: there the neighbour of
    the correctly rounded double may come out.

    Args:
        divisor: finite, of magnitude 2**-500 to 2**500.

    Returns:
        None for a divisor that is too large or too small. A power of two gives a low of 0;
        multiplying by high alone is right then.
    """
    if not 2.0**-500 <= abs(divisor) <= 2.0**500:
        return None
    exact = 1 / Fraction(divisor)
    high = float(exact)
    if abs(Fraction(high)) > abs(exact):
        high = math.nextafter(high, 0.0)
    return high, float(exact - Fraction(high))
