"""Elimination, intersection and saturation, through elimination orders.

What finitely many solutions leave of an ideal is found from its residues instead.

See Cox, Little and O'Shea, "Ideals, Varieties, and Algorithms", chapters 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from alkahest.groebner.basis import GroebnerBasis
from alkahest.groebner.fglm import eliminate_by_residues, is_convertible
from alkahest.groebner.fields import Coefficient
from alkahest.groebner.flintpoly import Exponents, Terms
from alkahest.groebner.orders import elimination
from alkahest.groebner.ring import Ring
from alkahest.groebner.settings import Settings


def eliminate(basis: GroebnerBasis, gone: Sequence[int], kept: Sequence[int]) -> GroebnerBasis:
    """The ideal of ``basis`` in the variables with indices ``kept`` alone, under grevlex."""
    ring = basis.ring
    if is_convertible(basis):
        return eliminate_by_residues(basis, kept)
    places = [*gone, *kept]
    if list(gone) != list(range(len(gone))) or not ring.order.eliminates(len(gone)):
        first = attrs.evolve(ring.only(places), order=elimination(len(gone), ring.n))
        moved = [_permuted(dict(element.terms()), places) for element in basis]
        basis = GroebnerBasis.of_ideal(first, moved, basis.settings)
    return _without_first(basis, len(gone))


def intersect(left: GroebnerBasis, right: GroebnerBasis) -> GroebnerBasis:
    """I ∩ J: the part without t of t I + (1 - t) J."""
    ring = left.ring
    mixed: list[Terms] = [{(1, *e): c for e, c in element.terms()} for element in left]
    for element in right:
        terms = {(0, *e): c for e, c in element.terms()}
        terms |= {(1, *e): ring.field.coerce(-c) for e, c in element.terms()}
        mixed.append(terms)
    return _eliminate_t(mixed, ring, left.settings)


def saturate(basis: GroebnerBasis, terms: Terms) -> GroebnerBasis:
    """I : f**oo: the part without t of I + (1 - t f)."""
    ring = basis.ring
    inverse: dict[Exponents, Coefficient] = {
        (1, *e): ring.field.coerce(-c) for e, c in terms.items()
    }
    inverse[(0,) * (ring.n + 1)] = 1
    generators = [{(0, *e): c for e, c in element.terms()} for element in basis]
    return _eliminate_t([*generators, inverse], ring, basis.settings)


def _eliminate_t(generators: Sequence[Terms], ring: Ring, settings: Settings) -> GroebnerBasis:
    extended = ring.with_first(elimination(1, ring.n + 1))
    result = _without_first(GroebnerBasis.of_ideal(extended, generators, settings), 1)
    return result.reordered(ring.order)


def _without_first(basis: GroebnerBasis, k: int) -> GroebnerBasis:
    """The elements free of the first ``k`` variables; the basis has to eliminate these."""
    ring = basis.ring
    rest = ring.only(range(k, ring.n))
    free = [
        {e[k:]: c for e, c in element.terms()}
        for element in basis
        if not any(element.leading_monomial[:k])
    ]
    return GroebnerBasis.of_ideal(rest, free or [{}], basis.settings)


def _permuted(terms: Terms, places: Sequence[int]) -> Terms:
    return {tuple(e[i] for i in places): c for e, c in terms.items()}
