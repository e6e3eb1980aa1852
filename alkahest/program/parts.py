"""Real formulae under construction, written as formulae: ``(x*x + y*y).sqrt()``.

A :class:`Node` is a value of a real program that is being built; its operators append
instructions, equal ones once. :class:`Parts` is a complex number as two nodes.

A fix-up that is hardly ever needed is written with :func:`rarely`. Its condition is a nan test,
by which a backend knows that the instructions behind it may wait in a branch of their own.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import attrs

from alkahest.program.builder import Builder, Value


@attrs.frozen
class Range:
    """Magnitudes of a floating-point format, for formulae that must not overflow on the way.

    Attributes:
        tiny, huge: between them squares and sums of two products of two such numbers are precise.
        scale: power of two, with a whole square root of a whole square root, that brings any
            finite number beyond them in between (multiplied or divided by it).
        exp: magnitude up to which ``exp`` and ``1/exp`` are normal numbers.
        flat: from here on ``tanh`` is 1.
        far: from here on ``1/x**2`` is nothing beside 1.
    """

    tiny: float
    huge: float
    scale: float
    exp: float
    flat: float
    far: float


RANGES = {
    "float64": Range(2.0**-400, 2.0**500, 2.0**600, 700.0, 20.0, 2.0**60),
    "float32": Range(2.0**-40, 2.0**60, 2.0**100, 80.0, 10.0, 2.0**30),
}


@attrs.frozen(eq=False)
class Node:
    """A real number, or a truth value, of a program under construction.

    Comparisons are methods or operators that give truth values; ``&``, ``|`` and ``~`` join them.
    """

    builder: Builder
    value: Value

    def apply(self, op: str, *others: Node | float, parameter: int | None = None) -> Node:
        """An operation of the op table, this node first."""
        args = [self.of(other).value for other in others]
        return Node(self.builder, self.builder.apply(op, self.value, *args, parameter=parameter))

    def of(self, number: Node | float) -> Node:
        """A constant of the same program, rounded to its dtype; a node as it is."""
        if isinstance(number, Node):
            return number
        return Node(self.builder, self.builder.floating(number))

    @property
    def range(self) -> Range:
        """Of the program's dtype."""
        return RANGES[self.builder.real_dtype]

    def __add__(self, other: Node | float) -> Node:
        return self.apply("add", other)

    def __sub__(self, other: Node | float) -> Node:
        return self.apply("sub", other)

    def __rsub__(self, other: float) -> Node:
        return self.of(other).apply("sub", self)

    def __mul__(self, other: Node | float) -> Node:
        return self.apply("mul", other)

    def __rmul__(self, other: float) -> Node:
        return self.of(other).apply("mul", self)

    def __truediv__(self, other: Node | float) -> Node:
        return self.apply("div", other)

    def __rtruediv__(self, other: float) -> Node:
        return self.of(other).apply("div", self)

    def __neg__(self) -> Node:
        return self.apply("neg")

    def __abs__(self) -> Node:
        return self.apply("abs")

    def sqrt(self) -> Node:
        """Square root."""
        return self.apply("sqrt")

    def times_plus(self, factor: Node, addend: Node) -> Node:
        """``self*factor + addend`` with one rounding."""
        return self.apply("fma", factor, addend)

    def __lt__(self, other: Node | float) -> Node:
        return self.apply("lt", other)

    def __le__(self, other: Node | float) -> Node:
        return self.apply("le", other)

    def __gt__(self, other: Node | float) -> Node:
        return self.apply("gt", other)

    def __ge__(self, other: Node | float) -> Node:
        return self.apply("ge", other)

    def equals(self, other: Node | float) -> Node:
        """Whether the numbers are equal; zeros are, nan is not."""
        return self.apply("eq", other)

    def is_nan(self) -> Node:
        """Whether it is no number."""
        return self.apply("ne", self)

    def is_infinite(self) -> Node:
        """Whether it is an infinity."""
        return abs(self).equals(inf)

    def is_finite(self) -> Node:
        """Whether it is neither infinite nor nan."""
        return abs(self) < inf

    def is_within(self, low: float, high: float) -> Node:
        """Whether ``low <= self <= high``."""
        return (self >= low) & (self <= high)

    def is_negative(self) -> Node:
        """Whether the sign is minus, that of a zero included; false for nan."""
        return where(self.equals(0.0), 1.0 / self, self) < 0.0

    def with_sign_of(self, other: Node) -> Node:
        """A number that is not negative, with the sign of ``other``."""
        return where(other.is_negative(), -self, self)

    def __and__(self, other: Node) -> Node:
        return self.apply("and", other)

    def __or__(self, other: Node) -> Node:
        return self.apply("or", other)

    def __invert__(self) -> Node:
        return self.apply("not")


class Parts(NamedTuple):
    """A complex number."""

    re: Node
    im: Node

    def turned(self) -> Parts:
        """Times ``i``."""
        return Parts(-self.im, self.re)

    def turned_back(self) -> Parts:
        """Times ``-i``."""
        return Parts(self.im, -self.re)

    def __neg__(self) -> Parts:
        return Parts(-self.re, -self.im)

    def scaled(self, factor: Node | float) -> Parts:
        """Both parts times a real number."""
        return Parts(self.re * factor, self.im * factor)

    def size(self) -> Node:
        """``|re| + |im|``: the magnitude within a factor of 1.5; infinite or nan if a part is."""
        return abs(self.re) + abs(self.im)

    def is_infinite(self) -> Node:
        """Whether a part is infinite, whatever the other is."""
        return self.re.is_infinite() | self.im.is_infinite()


def where(condition: Node, chosen: Node | float, other: Node | float) -> Node:
    """``chosen`` where ``condition`` holds, else ``other``."""
    return condition.apply("select", condition.of(chosen), condition.of(other))


def choose(condition: Node, chosen: Parts, other: Parts) -> Parts:
    """:func:`where` for complex numbers."""
    return Parts(
        where(condition, chosen.re, other.re),
        where(condition, chosen.im, other.im),
    )


def rarely(unusual: Node, fixed: Parts, usual: Parts) -> Parts:
    """``fixed`` where ``unusual`` holds, which hardly any point of a batch needs, else ``usual``."""
    return choose(where(unusual, nan, 0.0).is_nan(), fixed, usual)


def rescaling(size: Node) -> tuple[Node, Node]:
    """A power of two ``s`` such that ``size*s`` is in range, and the square root of ``1/s``."""
    limits = size.range
    is_huge, is_tiny = size >= limits.huge, size < limits.tiny
    scale, root = limits.scale, limits.scale**0.5
    return (
        where(is_huge, 1 / scale, where(is_tiny, scale, 1.0)),
        where(is_huge, root, where(is_tiny, 1 / root, 1.0)),
    )


def two_sum(a: Node, b: Node) -> tuple[Node, Node]:
    """``(s, e)`` with ``s = fl(a + b)`` and ``s + e = a + b`` exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Node, b: Node) -> tuple[Node, Node]:
    """``(p, e)`` with ``p = fl(a * b)`` and ``p + e = a * b`` exactly."""
    p = a * b
    return p, a.times_plus(b, -p)
