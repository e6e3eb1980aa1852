"""Checking a basis: Buchberger's criterion, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from alkahest.errors import SolverError
from alkahest.groebner import computing
from alkahest.groebner.flintpoly import Exponents, Terms

if TYPE_CHECKING:
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.polynomial import GbPoly

BATCH = 256
"""S-polynomials that are reduced together."""


def verify(basis: GroebnerBasis, generators: Sequence[Terms]) -> None:
    """Check that ``basis`` is reduced, a Gröbner basis, and divides every generator.

    Raises:
        SolverError: E-SOLVE-014 naming what fails.
    """
    _check_reduced(basis)
    for place, rest in enumerate(_rests(basis, generators), 1):
        if not rest.is_zero:
            raise _failed(f"generator {place} is not in the ideal of the basis")
    pairs = list(critical_pairs(basis.leading_monomials))
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        rests = _rests(basis, [s_polynomial(basis, i, j) for i, j in batch])
        for (i, j), rest in zip(batch, rests, strict=True):
            if not rest.is_zero:
                raise _failed(f"the S-polynomial of elements {i} and {j} does not reduce to zero")


def critical_pairs(leading: Sequence[Exponents]) -> Iterator[tuple[int, int]]:
    """The pairs whose S-polynomials have to be reduced.

    Left out are pairs of coprime leading monomials (Buchberger's first criterion), and pairs whose
    least common multiple a third leading monomial divides in such a way that both pairs with the
    third have smaller ones (the second).
    """
    table = np.array(leading, dtype=np.int64)
    for j in range(len(table)):
        for i in range(j):
            lcm = np.maximum(table[i], table[j])
            if not (table[i] * table[j]).any():
                continue
            divides = (table <= lcm).all(axis=1)
            with_i = (np.maximum(table, table[i]) != lcm).any(axis=1)
            with_j = (np.maximum(table, table[j]) != lcm).any(axis=1)
            if not (divides & with_i & with_j).any():
                yield i, j


def s_polynomial(basis: GroebnerBasis, i: int, j: int) -> Terms:
    """The S-polynomial of two monic elements."""
    first, second = basis[i], basis[j]
    lcm = tuple(map(max, first.leading_monomial, second.leading_monomial))
    total: dict[Exponents, object] = {}
    for element, sign in ((first, 1), (second, -1)):
        shift = tuple(a - b for a, b in zip(lcm, element.leading_monomial, strict=True))
        for exponents, c in element.terms():
            at = tuple(a + b for a, b in zip(exponents, shift, strict=True))
            total[at] = total.get(at, 0) + sign * c  # type: ignore[operator]
    coerced = {e: basis.field.coerce(c) for e, c in total.items()}  # type: ignore[arg-type]
    return {e: c for e, c in coerced.items() if c}


def _check_reduced(basis: GroebnerBasis) -> None:
    exponents = basis.engine_basis.exponents
    leading = basis.engine_basis.leading_exponents()
    for place, monomial in enumerate(leading):
        divisible = np.flatnonzero((exponents >= monomial).all(axis=1))
        if len(divisible) != 1:  # its own leading term
            raise _failed(f"the leading monomial of element {place} divides another term")


def _rests(basis: GroebnerBasis, polynomials: Sequence[Terms]) -> Sequence[GbPoly]:
    return computing.normal_forms(polynomials, basis.engine_basis, basis.ring)


def _failed(reason: str) -> SolverError:
    return SolverError("E-SOLVE-014", reason)


__all__ = ["critical_pairs", "s_polynomial", "verify"]
