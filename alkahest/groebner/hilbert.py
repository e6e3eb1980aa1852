"""Hilbert series, dimension and degree, read off the leading monomials.

The leading monomials of a Gröbner basis under an order that respects the total degree have the
(affine) Hilbert function of the ideal; :mod:`~alkahest.groebner.engine.numerator` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

import attrs

from alkahest.groebner.engine.numerator import numerator
from alkahest.groebner.text import text_of


@attrs.frozen(repr=False)
class HilbertSeries:
    """The series of the numbers of independent residues of each degree.

    For an ideal that is not homogeneous, those of degree k are counted that are not residues of
    smaller degree, so that the first k + 1 coefficients add up to the affine Hilbert function.

    Attributes:
        numerator: coefficients of N(t), from the constant one on; does not vanish at 1, unless it
            is zero.
        dimension: the power d in N(t) / (1 - t)**d: the dimension of the zero set over the
            algebraic closure; 0 for the unit ideal as well, whose series is 0.
    """

    numerator: tuple[int, ...]
    dimension: int

    @property
    def degree(self) -> int:
        """N(1): number of solutions with multiplicity, or the degree of the zero set; 0 if none."""
        return sum(self.numerator)

    def coefficient(self, k: int) -> int:
        """The coefficient of t**k."""
        if self.dimension == 0:
            return self.numerator[k] if 0 <= k < len(self.numerator) else 0
        d = self.dimension - 1
        return sum(c * comb(k - i + d, d) for i, c in enumerate(self.numerator) if i <= k)

    def __str__(self) -> str:
        terms = [((power,), c) for power, c in enumerate(self.numerator) if c]
        above = text_of(terms, ["t"])
        if self.dimension == 0:
            return above
        below = "(1 - t)" if self.dimension == 1 else f"(1 - t)**{self.dimension}"
        return f"({above})/{below}"

    __repr__ = __str__


def hilbert_series(leading: Iterable[Sequence[int]], n: int) -> HilbertSeries:
    """The series of the monomial ideal that ``leading`` generates in ``n`` variables."""
    above, dimension = numerator(leading), n
    while any(above) and dimension and sum(above) == 0:
        above, dimension = _divided(above), dimension - 1
    if not any(above):
        return HilbertSeries((), 0)
    return HilbertSeries(tuple(_trimmed(above)), dimension)


def dimension(leading: Iterable[Sequence[int]], n: int) -> int:
    """Dimension of the zero set of the monomial ideal in ``n`` variables; -1 when it is empty.

    The most variables of which no monomial consists alone: n minus the fewest that meet them all.
    Valid for the leading monomials under any order (Kredel and Weispfenning 1988).
    """
    supports = {frozenset(i for i, e in enumerate(m) if e) for m in leading}
    if frozenset() in supports:
        return -1
    # A variable that occurs alone has to be in every set that meets all supports.
    alone = frozenset[int]().union(*(s for s in supports if len(s) == 1))
    rest = [s for s in supports if not s & alone]
    minimal = [s for s in rest if not any(o < s for o in rest)]
    return n - len(alone) - _cover(sorted(minimal, key=len), n - len(alone))


def _cover(supports: list[frozenset[int]], bound: int) -> int:
    """Size of the smallest set that meets every support, if below ``bound``, else ``bound``."""
    if not supports:
        return 0
    if bound <= 1:
        return bound
    best = bound
    for variable in supports[0]:
        rest = [s for s in supports if variable not in s]
        best = min(best, 1 + _cover(rest, best - 1))
    return best


def _divided(poly: list[int]) -> list[int]:
    """``poly`` / (1 - t), where 1 is a root: the running sums."""
    sums, total = [], 0
    for c in poly[:-1]:
        total += c
        sums.append(total)
    return sums


def _trimmed(poly: list[int]) -> list[int]:
    while poly and not poly[-1]:
        poly = poly[:-1]
    return poly


__all__ = ["HilbertSeries", "dimension", "hilbert_series"]
