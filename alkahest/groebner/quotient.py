"""The residues of a zero-dimensional ideal: a vector space of finite dimension, with its products.

The basis are the standard monomials b_1 < ... < b_D, those that no leading monomial divides. A
product x_i b_j is a standard monomial again or lies on the *border*. Border monomials are leading
monomials, whose residue is the rest of their basis element with the sign turned, or x_k times a
smaller border monomial; so their residues follow in ascending order (Faugère, Gianni, Lazard and
Mora, "Efficient computation of zero-dimensional Gröbner bases by change of ordering", 1993).

What depends on no prime is in :class:`Border`, made once; the residues modulo a prime are rows of
numbers below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner.fields import MAX_PRIME_BITS
from alkahest.groebner.hilbert import dimension

if TYPE_CHECKING:
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.engine.records import EngineBasis

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


def standard_monomials(basis: GroebnerBasis) -> NDArray[np.uint32]:
    """Exponents of the standard monomials, the smallest first: uint32, shape ``(D, n)``.

    Raises:
        SolverError: E-SOLVE-004 when there are infinitely many.
    """
    ring, leading = basis.ring, basis.engine_basis.leading_exponents()
    free = dimension(leading.tolist(), ring.n)
    if free > 0:
        raise SolverError(
            "E-SOLVE-004",
            f"the system in {', '.join(ring.variables)} has infinitely many solutions: "
            f"their set has dimension {free}",
        )
    if free < 0:
        return np.zeros((0, ring.n), np.uint32)
    level = np.zeros((1, ring.n), np.uint32)
    last = np.zeros(1, np.int64)
    found = [level]
    # Each monomial is reached once: from the one without its last variable.
    while len(level):
        steps = [(level[last <= i] + _unit(ring.n, i), i) for i in range(ring.n)]
        level = np.concatenate([rows for rows, _ in steps])
        last = np.concatenate([np.full(len(rows), i) for rows, i in steps])
        kept = ~_divisible(level, leading)
        level, last = level[kept], last[kept]
        found.append(level)
    everything = np.concatenate(found)
    return everything[ring.order.descending(everything)[::-1]]


def _unit(n: int, i: int) -> NDArray[np.uint32]:
    unit = np.zeros(n, np.uint32)
    unit[i] = 1
    return unit


def _divisible(rows: NDArray[np.uint32], leading: NDArray[np.uint32]) -> NDArray[np.bool_]:
    divisible = np.zeros(len(rows), np.bool_)
    for monomial in leading:
        divisible |= (rows >= monomial).all(axis=1)
    return divisible


@attrs.frozen(kw_only=True, eq=False)
class Border:
    """Products of variables and standard monomials, as indices.

    Attributes:
        monomials: the standard monomials, the smallest first, uint32, shape ``(D, n)``.
        products: int64, shape ``(n, D)``: for x_i b_j the index of the standard monomial that it
            is, or -1 - (its place on the border).
        parent: int64, one per border monomial, ascending: the place of the smaller border monomial
            that it is a multiple of, or -1 for a leading monomial.
        by: int64: the variable that it is multiplied by, or the index of the basis element.
        smaller: int64, one per border monomial: how many standard monomials are smaller, beyond
            which its residue is zero.
        terms_at: int64, shape ``(terms,)``: for each term of the basis the index of its standard
            monomial; -1 for leading terms.
    """

    monomials: NDArray[np.uint32]
    products: Ints
    parent: Ints
    by: Ints
    smaller: Ints
    terms_at: Ints

    @property
    def degree(self) -> int:
        """D: number of solutions with multiplicity."""
        return len(self.monomials)

    @classmethod
    def of(cls, basis: GroebnerBasis) -> Border:
        """The border of a zero-dimensional basis; E-SOLVE-004 for another."""
        monomials, n = standard_monomials(basis), basis.ring.n
        index = {tuple(row): j for j, row in enumerate(monomials.tolist())}
        leading = {lead: g for g, lead in enumerate(basis.leading_monomials)}
        products = np.empty((n, len(monomials)), np.int64)
        border: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for monomial, j in index.items():
            for i in range(n):
                product = (*monomial[:i], monomial[i] + 1, *monomial[i + 1 :])
                if product in index:
                    products[i, j] = index[product]
                else:
                    border.setdefault(product, []).append((i, j))
        listed = np.array(list(border), dtype=np.uint32).reshape(len(border), n)
        everything = np.concatenate([monomials, listed])
        sorted_places = basis.ring.order.descending(everything)[::-1]
        is_standard = sorted_places < len(monomials)
        ascending = [tuple(row) for row in everything[sorted_places[~is_standard]].tolist()]
        place = {monomial: at for at, monomial in enumerate(ascending)}
        parent, by = np.full(len(ascending), -1), np.zeros(len(ascending), np.int64)
        for monomial, at in place.items():
            for i, j in border[monomial]:
                products[i, j] = -1 - at
            if monomial in leading:
                by[at] = leading[monomial]
            else:
                parent[at], by[at] = _smaller(monomial, place)
        terms = map(tuple, basis.engine_basis.exponents.tolist())
        return cls(
            monomials=monomials,
            products=products,
            parent=parent.astype(np.int64),
            by=by,
            smaller=np.cumsum(is_standard, dtype=np.int64)[~is_standard],
            terms_at=np.array([index.get(term, -1) for term in terms], np.int64),
        )

    def needed(self, source: Ints, variable: Ints, is_new: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which border monomials the steps of a :class:`~alkahest.groebner.fglm.Conversion` need.

        They need those that a residue may meet when it is multiplied by their variable, and what
        these are made of. A new standard monomial that is an old one is its own residue.
        """
        needed = np.zeros(len(self.parent), np.bool_)
        meeting = np.zeros(len(self.products), np.bool_)
        own = [0]  # the index of each new standard monomial among the old ones, or -1
        steps = zip(source.tolist(), variable.tolist(), is_new.tolist(), strict=True)
        for k, i, new in steps:
            if k < 0:
                continue
            product = -1
            if own[k] < 0:
                meeting[i] = True
            elif (product := int(self.products[i, own[k]])) < 0:
                needed[-1 - product] = True
            if new:
                own.append(max(product, -1))
        for line in self.products[meeting]:
            needed[-1 - line[line < 0]] = True
        for at in range(len(needed) - 1, -1, -1):
            parent = self.parent[at]
            if needed[at] and parent >= 0:
                needed[parent] = True
                line = self.products[self.by[at], : self.smaller[parent]]
                needed[-1 - line[line < 0]] = True
        return needed

    def residues(
        self, basis: EngineBasis, prime: int, needed: NDArray[np.bool_] | None = None
    ) -> Words | None:
        """Residues of the border monomials modulo ``prime``, uint64, shape ``(border, D)``.

        Only those ``needed`` are computed where that is given; the others stay zero. None where the
        prime divides a leading coefficient.
        """
        from alkahest.groebner.residues import fill_border

        coefficients = coefficients_modulo(basis, prime)
        starts = basis.offsets[:-1]
        rows = np.zeros((len(self.parent), self.degree), np.uint64)
        if not coefficients[starts].all():
            return None
        wanted = np.ones(len(rows), np.bool_) if needed is None else needed
        for at in np.flatnonzero(wanted & (self.parent < 0)):
            element = int(self.by[at])
            part = slice(int(basis.offsets[element]) + 1, int(basis.offsets[element + 1]))
            factor = prime - pow(int(coefficients[part.start - 1]), -1, prime)
            rows[at, self.terms_at[part]] = (
                coefficients[part] * np.uint64(factor) % np.uint64(prime)
            )
        parent = np.where(wanted, self.parent, -1)
        fill_border(rows, self.products, parent, self.by, prime)
        return rows


def _smaller(monomial: tuple[int, ...], place: dict[tuple[int, ...], int]) -> tuple[int, int]:
    """A border monomial that ``monomial`` is x_k times, and k; one exists by the theory."""
    for k, exponent in enumerate(monomial):
        if exponent:
            smaller = (*monomial[:k], exponent - 1, *monomial[k + 1 :])
            if smaller in place:
                return place[smaller], k
    raise AssertionError(f"{monomial} is no multiple of a border monomial")


def coefficients_modulo(basis: EngineBasis, prime: int) -> Words:
    """Every coefficient of ``basis`` modulo a prime of at most 31 bits, uint64."""
    assert prime.bit_length() <= MAX_PRIME_BITS
    if basis.characteristic:
        return basis.residues.astype(np.uint64)
    p = np.uint64(prime)
    total = np.zeros(len(basis.limbs), np.uint64)
    for limb in basis.limbs.T[::-1]:
        total = ((total << np.uint64(32)) + limb) % p
    return np.where(basis.negative & (total > 0), p - total, total)


__all__ = ["Border", "coefficients_modulo", "standard_monomials"]
