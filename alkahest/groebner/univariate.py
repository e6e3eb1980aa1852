"""Roots of polynomials in one variable."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import attrs

from alkahest.errors import InputError, SolverError
from alkahest.expr import Expr, ExprPool
from alkahest.groebner.enclosures import MOST_BITS, Interval, nearest_float, roots
from alkahest.groebner.fields import QQ
from alkahest.groebner.polynomial import GbPoly
from alkahest.groebner.reading import common_field


@attrs.frozen(kw_only=True)
class RootInterval:
    """One real root: the only one of its polynomial from ``lower`` to ``upper``.

    Attributes:
        lower: exact lower end.
        upper: exact upper end; equals ``lower`` for a rational root.
        multiplicity: of the root.
    """

    lower: Fraction
    upper: Fraction
    multiplicity: int = 1

    @property
    def rational(self) -> Fraction | None:
        """The root, if it is rational."""
        return self.lower if self.lower == self.upper else None

    def exact(self, pool: ExprPool) -> Expr | None:
        """The root as an expression, if it is rational."""
        return None if self.rational is None else pool.constant(self.rational)

    def __float__(self) -> float:
        return nearest_float((self.lower + self.upper) / 2)


def real_roots(poly: object, var: object, *, digits: int = 15) -> list[RootInterval]:
    """The real roots of a polynomial in one variable over the rationals, ascending.

    Args:
        poly: anything that :class:`GbPoly` reads.
        var: the variable.
        digits: decimal digits, relative to 1 or the root's size, that every interval is narrower
            than.

    Returns:
        Disjoint intervals with exact ends, each around one root; none for a constant.

    Raises:
        SolverError: E-ROOT-001 for what is no polynomial in ``var`` with rational coefficients,
            E-ROOT-002 for the zero polynomial.
        InputError: E-INPUT-011 for no positive number of digits.
    """
    if isinstance(digits, bool) or not isinstance(digits, int) or digits < 1:
        raise InputError("E-INPUT-011", f"digits must be a positive integer, not {digits!r}")
    polynomial = _read(poly, var)
    if polynomial.is_zero:
        raise SolverError("E-ROOT-002", f"{poly} is zero, and every number is a root of it")
    factors = _factors(polynomial)
    bits = max(64, int(digits * 3.33) + 32)
    while bits <= MOST_BITS:
        found = sorted(
            (root for factor, k in factors for root in _of_factor(factor, k, bits)),
            key=lambda root: root.lower,
        )
        apart = all(a.upper < b.lower for a, b in pairwise(found))
        if apart and all(_is_narrow(root, digits) for root in found):
            return found
        bits *= 2
    raise SolverError("E-SOLVE-014", f"the roots were not told apart with {MOST_BITS} bits")


def _read(poly: object, var: object) -> GbPoly:
    try:
        if common_field([poly], None) != QQ:
            raise SolverError("E-SOLVE-007", "its coefficients are in a finite field")
        return GbPoly(poly, [var], QQ)
    except SolverError as error:
        raise SolverError(
            "E-ROOT-001",
            f"{poly} is no polynomial in {var} over the rationals: {error.message}",
            remediation=error.remediation,
        ) from error


def _factors(polynomial: GbPoly) -> list[tuple[Any, int]]:
    """Irreducible factors, primitive ``flint.fmpz_poly``, with multiplicities."""
    import flint

    coefficients: list[Any] = [0] * (polynomial.degree() + 1)
    for (exponent,), c in polynomial.terms():
        coefficients[exponent] = flint.fmpq(c.numerator, c.denominator)
    return [(f, int(k)) for f, k in flint.fmpq_poly(coefficients).numer().factor()[1]]


def _of_factor(factor: Any, multiplicity: int, bits: int) -> list[RootInterval]:
    if factor.degree() == 1:
        root = Fraction(-int(factor[0]), int(factor[1]))
        return [RootInterval(lower=root, upper=root, multiplicity=multiplicity)]
    intervals = [Interval.of_ball(root.real) for root in roots(factor, bits, real=True)]
    return [
        RootInterval(lower=i.lower, upper=i.upper, multiplicity=multiplicity) for i in intervals
    ]


def _is_narrow(root: RootInterval, digits: int) -> bool:
    interval = Interval(root.lower, root.upper)
    return interval.is_narrow(digits)


__all__ = ["RootInterval", "real_roots"]
