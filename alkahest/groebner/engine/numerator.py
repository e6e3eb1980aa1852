"""Counting the monomials outside a monomial ideal: the numerator of its Hilbert series.

It is found by splitting the ideal at a variable v: of ``I``, the monomials free of it and those that
are not,

    H(I) = H(I, v) + t H(I : v),

as in Bayer and Stillman, "Computation of Hilbert functions" (1992).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

Monomial = tuple[int, ...]


def numerator(monomials: Iterable[Sequence[int]]) -> list[int]:
    """N(t) in the series N(t) / (1 - t)**n of the ideal that ``monomials`` generate.

    Coefficients from the constant one on; there may be zeros at the end.
    """
    return _split(_minimal([tuple(map(int, m)) for m in monomials]))


def _split(monomials: list[Monomial]) -> list[int]:
    """The numerator for minimal generators."""
    if not monomials:
        return [1]
    if not any(monomials[0]) or len(monomials) == 1:
        return _minus_power([1], sum(monomials[0]))
    shared = _most_shared(monomials)
    if shared is None:  # powers of different variables, and products of such: a regular sequence
        return reduce(lambda poly, m: _minus_power(poly, sum(m)), monomials, [1])
    unit = tuple(int(i == shared) for i in range(len(monomials[0])))
    with_variable = _minimal([*(m for m in monomials if not m[shared]), unit])
    quotient = _minimal(
        [tuple(e - min(e, u) for e, u in zip(m, unit, strict=True)) for m in monomials]
    )
    return _sum(_split(with_variable), [0, *_split(quotient)])


def _most_shared(monomials: list[Monomial]) -> int | None:
    counts = [sum(1 for m in monomials if m[i]) for i in range(len(monomials[0]))]
    most = max(counts)
    return counts.index(most) if most > 1 else None


def _minimal(monomials: list[Monomial]) -> list[Monomial]:
    kept: list[Monomial] = []
    for m in sorted(set(monomials), key=sum):
        if not any(all(a <= b for a, b in zip(k, m, strict=True)) for k in kept):
            kept.append(m)
    return kept


def _minus_power(poly: list[int], power: int) -> list[int]:
    """``poly`` times (1 - t**power)."""
    return _sum(poly, [0] * power + [-c for c in poly])


def _sum(a: list[int], b: list[int]) -> list[int]:
    if len(a) < len(b):
        a, b = b, a
    return [x + y for x, y in zip(a, b + [0] * (len(a) - len(b)), strict=True)]
