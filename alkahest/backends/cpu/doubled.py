"""Double-double arithmetic: unevaluated sums of two doubles, about 106 bits.

Valid while nothing overflows and no error term underflows; callers scale their operands.
References: Dekker 1971; Knuth, TAOCP 2, 4.2.2; Joldes, Muller and Popescu 2017.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SPLITTER = 134217729.0  # 2**27 + 1: halves a 53-bit significand


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``(s, e)`` with ``s = fl(a + b)`` and ``s + e = a + b`` exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_prod(a: Array, b: Array) -> tuple[Array, Array]:
    """``(p, e)`` with ``p = fl(a * b)`` and ``p + e = a * b`` exactly."""
    p = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    e = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return p, e


def _split(a: Array) -> tuple[Array, Array]:
    t = _SPLITTER * a
    high = t - (t - a)
    return high, a - high


class Doubled(NamedTuple):
    """``high + low``, with ``|low|`` at most half a unit in the last place of ``high``."""

    high: Array
    low: Array

    @classmethod
    def of(cls, a: Array) -> Doubled:
        """A double as it is."""
        return cls(a, np.zeros_like(a))

    def scaled(self, exponent: Array) -> Doubled:
        """Times ``2**exponent``, exactly."""
        return Doubled(np.ldexp(self.high, exponent), np.ldexp(self.low, exponent))


def add(a: Doubled, b: Doubled) -> Doubled:
    """Sum with relative error of a few 2**-106, also under cancellation."""
    s, e = two_sum(a.high, b.high)
    t, f = two_sum(a.low, b.low)
    s, e = _quick_two_sum(s, e + t)
    return Doubled(*_quick_two_sum(s, e + f))


def subtract(a: Doubled, b: Doubled) -> Doubled:
    """Difference, as :func:`add`."""
    return add(a, Doubled(-b.high, -b.low))


def times(a: Doubled, b: Doubled) -> Doubled:
    """Product with relative error of a few 2**-106."""
    p, e = two_prod(a.high, b.high)
    return Doubled(*_quick_two_sum(p, e + (a.high * b.low + a.low * b.high)))


def _quick_two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    s = a + b
    return s, b - (s - a)
