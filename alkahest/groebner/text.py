"""Polynomials as text."""

from __future__ import annotations

from collections.abc import Sequence

from alkahest.expr.tokens import integer_text
from alkahest.groebner.fields import Coefficient


def number_text(number: Coefficient) -> str:
    """A number as text, whatever Python's limit on digits."""
    above = integer_text(number.numerator)
    return above if number.denominator == 1 else f"{above}/{integer_text(number.denominator)}"


def text_of(
    terms: Sequence[tuple[Sequence[int], Coefficient]], names: Sequence[str], *, power: str = "**"
) -> str:
    """Terms as text, in the order given, for instance ``3/2*x**2*y - 1``."""
    pieces = []
    for exponents, coefficient in terms:
        factors = [
            name if e == 1 else f"{name}{power}{e}"
            for name, e in zip(names, exponents, strict=True)
            if e
        ]
        size = -coefficient if coefficient < 0 else coefficient
        if size != 1 or not factors:
            factors.insert(0, number_text(size))
        pieces.append(("-" if coefficient < 0 else "+", "*".join(factors)))
    if not pieces:
        return "0"
    (sign, first), *rest = pieces
    head = f"-{first}" if sign == "-" else first
    return " ".join([head, *(f"{sign} {body}" for sign, body in rest)])
