"""Ways to draw operands of one operation at random, and the formats that they are of."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import attrs
import numpy as np

from accuracy_measure import reference

Draw: TypeAlias = Callable[[np.random.Generator, int], Any]
"""``draw(generator, n)`` gives ``n`` numbers in float64 or longdouble."""


@attrs.frozen
class Format:
    """A floating-point format: ``digits`` bits, magnitudes from ``2**least`` to ``2**largest``."""

    dtype: str
    digits: int
    largest: int
    least: int

    @property
    def top(self) -> float:
        """``exp`` overflows above it."""
        return self.largest * math.log(2)

    @property
    def bottom(self) -> float:
        """``exp`` vanishes below it."""
        return (self.least - 1) * math.log(2)


FORMATS = {
    "float64": Format("float64", 53, 1024, -1074),
    "float32": Format("float32", 24, 128, -149),
}


def uniform(low: float, high: float) -> Draw:
    """Between two numbers."""
    return lambda generator, n: generator.uniform(low, high, n)


def logarithmic(low: float, high: float, *, signed: bool = True) -> Draw:
    """Magnitudes from ``2**low`` to ``2**high``, every power of two alike."""

    def draw(generator: np.random.Generator, n: int) -> Any:
        size = np.exp2(generator.uniform(low, high, n).astype(reference.EXTENDED))
        return np.where(generator.random(n) < 0.5, -size, size) if signed else size

    return draw


def bits(form: Format, *, signed: bool = True) -> Draw:
    """Any finite number of the format, by its bits."""
    kind = {"float64": np.uint64, "float32": np.uint32}[form.dtype]
    infinity = np.array(np.inf, form.dtype).view(kind)

    def draw(generator: np.random.Generator, n: int) -> Any:
        size = generator.integers(0, infinity, n, kind).view(form.dtype)
        return np.where(generator.random(n) < 0.5, -size, size) if signed else size

    return draw


def near(places: Any, digits: int) -> Draw:
    """Around places: relative distances from one unit in the last place to a few hundredths."""
    chosen = np.atleast_1d(np.asarray(places, reference.EXTENDED))

    def draw(generator: np.random.Generator, n: int) -> Any:
        place = chosen[generator.integers(0, len(chosen), n)]
        off = np.exp2(generator.uniform(-digits - 1, -5, n).astype(reference.EXTENDED))
        return place * (1 + np.where(generator.random(n) < 0.5, -off, off))

    return draw


def multiples(step: Any, limit: float, digits: int) -> Draw:
    """Around the multiples of ``step`` up to ``limit`` steps, small ones as often as large ones."""

    def draw(generator: np.random.Generator, n: int) -> Any:
        count = np.rint(np.exp2(generator.uniform(0, math.log2(limit), n)))
        place = count.astype(reference.EXTENDED) * step
        off = np.exp2(generator.uniform(-digits - 1, -digits + 12, n))
        place = place * (1 + np.where(generator.random(n) < 0.5, -off, off))
        return np.where(generator.random(n) < 0.5, -place, place)

    return draw


@cache
def zeros(op: str, low: float, high: float) -> Any:
    """Where a function of one operand changes its sign on an interval: zeros and poles."""
    grid = np.linspace(low, high, 20_011).astype(reference.EXTENDED)
    signs = np.sign(reference.values(op, [grid]))
    (at,) = np.nonzero(signs[1:] * signs[:-1] < 0)
    left, right = grid[at], grid[at + 1]
    for _ in range(70):
        middle = (left + right) / 2
        same = np.sign(reference.values(op, [middle])) == signs[at]
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return left
