"""From a basis under a graded order to one under any other, degree by degree.

Under an order that is not graded, rows of one matrix have no degree in common, and reducing them can
lead to monomials without bound. So the elements of a basis for grevlex are made homogeneous by a
further, smallest variable t; they are a basis of the homogeneous ideal, whose Hilbert series they
tell. The run for the other order compares total degrees first and meets finitely many monomials in
each. The series says how many elements each degree still lacks, so that pairs of a degree that
lacks none are dropped, and the run ends when the leading monomials have the series. With t = 1 its
elements are a Gröbner basis for the order that was asked for.

This holds modulo every prime for which the graded basis keeps its leading monomials and the run
finds the same ones, which a replay checks.

Source: C. Traverso, "Hilbert functions and the Buchberger algorithm", Journal of Symbolic
Computation 22 (1996).
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.numerator import numerator
from alkahest.groebner.engine.packing import layout
from alkahest.groebner.engine.records import EngineBasis, MonomialOrder, PolynomialSystem

if TYPE_CHECKING:
    from numpy.typing import NDArray


@attrs.frozen(eq=False)
class Target:
    """What a homogeneous run is to end with.

    Attributes:
        order: the order that is asked for, without t.
        numerator: of the Hilbert series, with t.
        graded_leads: leading coefficients of the graded basis.
    """

    order: MonomialOrder
    numerator: tuple[int, ...]
    graded_leads: tuple[int, ...]

    @classmethod
    def of(cls, graded: EngineBasis, order: MonomialOrder) -> Target:
        """The target of a run that starts from a basis under grevlex."""
        leads = (graded.integers(index)[0] for index in range(len(graded)))
        series = numerator(graded.leading_exponents().tolist())
        return cls(order, tuple(series), tuple(leads))

    @property
    def run_order(self) -> MonomialOrder:
        """The order of the run: by total degree, t included, then as asked for."""
        wide = np.pad(self.order.weights, ((1, 0), (0, 1)))
        wide[0] = 1
        return MonomialOrder(name=self.order.name, weights=wide)

    def lacking(self, basis: Basis) -> int:
        """The least degree whose leading monomials ``basis`` lacks; -1 for none."""
        found = numerator(basis.layout.unpack(basis.active_leads).tolist())
        both = zip_longest(found, self.numerator, fillvalue=0)
        return next((degree for degree, (have, want) in enumerate(both) if have != want), -1)

    def dehomogenised(self, basis: Basis) -> Basis:
        """The polynomials with t = 1, of which those with minimal leading monomials are active.

        Raises:
            ExponentOverflowError: a monomial does not fit fields of the width that ``basis`` has.
        """
        packing = layout(self.order, basis.layout.bits)
        words = packing.pack(basis.layout.unpack(basis.words[: basis.terms])[:, :-1])
        result = Basis.empty(packing)
        result.append(words, basis.coefficients[: basis.terms], basis.lengths())
        result.activate(_minimal(packing.unpack(result.leads[: result.count])))
        return result


def homogenised(graded: EngineBasis) -> PolynomialSystem:
    """The elements with a further variable that brings all their terms to one degree."""
    system = graded.as_system()
    degrees = system.exponents.sum(axis=1, dtype=np.int64)
    largest = np.repeat(degrees[graded.offsets[:-1]], np.diff(graded.offsets))
    last = (largest - degrees).astype(np.uint32)
    return attrs.evolve(system, exponents=np.column_stack([system.exponents, last]))


def _minimal(leads: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Indices of monomials that no other one divides; one of several equal ones."""
    kept: list[int] = []
    smallest_first = np.argsort(leads.sum(axis=1, dtype=np.int64), kind="stable")
    for index in smallest_first.tolist():
        if not (leads[kept] <= leads[index]).all(axis=1).any():
            kept.append(index)
    return np.array(sorted(kept), dtype=np.intp)
