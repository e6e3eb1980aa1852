"""Changing the order of a zero-dimensional basis by linear algebra.

Monomials are taken in ascending new order. The residue of each is a combination of those of smaller
ones, which gives an element of the new basis, or it is a new standard monomial (Faugère, Gianni,
Lazard and Mora 1993). Over the rationals the steps are learned modulo one prime and followed modulo
others, and the coefficients are lifted until one more prime agrees. For a certified result the
residues of the new standard monomials are lifted too, and every step is repeated with them: the
product of a variable and one residue is reduced, exactly, to the next, or to the combination that
was found. So the elements lie in the ideal; they are its basis, having as many standard monomials.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner import computing
from alkahest.groebner.basis import GroebnerBasis
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.records import LARGEST_PRIME, RunReport
from alkahest.groebner.fields import GF, MAX_PRIME_BITS
from alkahest.groebner.flintpoly import Exponents, Terms, plain
from alkahest.groebner.following import Following
from alkahest.groebner.lifting import lift
from alkahest.groebner.orders import Order
from alkahest.groebner.quotient import Border
from alkahest.groebner.residues import Echelon, follow, times_variable
from alkahest.groebner.ring import Ring
from alkahest.groebner.settings import Settings

LARGEST_DEGREE = 20_000
"""Beyond this number of solutions the matrices of residues would not fit into memory."""


def lexicographic(ring: Ring, generators: tuple[Terms, ...], settings: Settings) -> GroebnerBasis:
    """The lex basis of an ideal: through grevlex and :func:`convert` where that is possible."""
    graded = GroebnerBasis.of_ideal(ring.ordered("grevlex"), generators, settings)
    if not is_convertible(graded):
        return graded.converted_by_degrees(ring, generators)
    converted = convert(graded, ring.order)
    return GroebnerBasis(ring, converted.engine_basis, generators, settings, converted.report)


def is_convertible(basis: GroebnerBasis) -> bool:
    """Whether :func:`convert` takes the basis: finitely many solutions, and not too many."""
    if computing.is_large(basis.field) or not basis.is_zero_dimensional:
        return False
    return basis.degree() <= LARGEST_DEGREE


def convert(basis: GroebnerBasis, order: Order) -> GroebnerBasis:
    """The basis of the same ideal under ``order``.

    Raises:
        SolverError: E-SOLVE-004 when there are infinitely many solutions, E-SOLVE-007 over primes
            of more than 31 bits.
    """
    if computing.is_large(basis.field):
        raise SolverError(
            "E-SOLVE-007",
            f"bases over {basis.field} are not converted: the prime has more than "
            f"{MAX_PRIME_BITS} bits",
            remediation="Compute the basis under the other order: reordered(order).",
        )
    if basis.is_unit() or order == basis.ring.order:
        ring = basis.ring.ordered(order)
        return GroebnerBasis(
            ring, basis.engine_basis, basis.generator_terms, basis.settings, basis.report
        )
    ring = basis.ring.ordered(order)
    return _converted(basis, ring, range(ring.n), basis.generator_terms)


def eliminate_by_residues(basis: GroebnerBasis, kept: Sequence[int]) -> GroebnerBasis:
    """The basis, under grevlex, of what a convertible ideal says about the variables ``kept``."""
    ring = basis.ring.only(kept)
    if basis.is_unit():
        return GroebnerBasis.of_ideal(ring, [{(0,) * ring.n: 1}], basis.settings)
    found = _converted(basis, ring, kept, ())
    generators = tuple(dict(element.terms()) for element in found)
    return GroebnerBasis(ring, found.engine_basis, generators, basis.settings, found.report)


def _converted(
    basis: GroebnerBasis, ring: Ring, kept: Sequence[int], generators: tuple[Terms, ...]
) -> GroebnerBasis:
    """The basis in ``ring``, whose variables are those of ``basis`` with the indices ``kept``."""
    started = time.perf_counter()
    border, order = Border.of(basis), ring.order
    if isinstance(ring.field, GF):
        new = Conversion.modulo(basis, border, order, ring.field.prime, kept)
        assert new is not None  # monic elements have an image modulo their own prime
        elements = [element.terms(new.standard, row.tolist()) for element, row in new.elements()]
        run = basis.report.run
    else:
        elements, run = _rational(basis, border, order, kept)
    learned = basis.settings.device not in (None, "cpu")
    before = sum(basis.report.seconds.get(phase, 0.0) for phase in ("fglm", "follow"))
    spent = before + time.perf_counter() - started - run.seconds.get("follow", 0.0)
    run = attrs.evolve(
        run,
        planned_on_cpu=run.planned_on_cpu + learned,
        seconds={**run.seconds, "fglm": spent},
    )
    report = attrs.evolve(basis.report, run=run)
    return GroebnerBasis(
        ring, computing.engine_basis(elements, ring), generators, basis.settings, report
    )


@attrs.frozen(eq=False)
class Element:
    """One element of the new basis: its leading monomial, and how many smaller ones there were."""

    leading: Exponents
    smaller: int

    def terms(self, standard: Sequence[Exponents], tail: Sequence[Any]) -> dict[Exponents, Any]:
        """Terms, from the residue of the leading monomial in terms of standard ones."""
        rest = {standard[k]: -c for k, c in enumerate(tail[: self.smaller]) if c}
        return {self.leading: 1, **rest}


@attrs.frozen(eq=False)
class Conversion:
    """A new basis modulo one prime, and how it was found.

    Attributes:
        standard: standard monomials of the new order, ascending.
        leads: its elements, ascending.
        source: int64, for each step the standard monomial whose residue is multiplied; -1 for 1.
        variable: int64, the variable of the old basis that it is multiplied by.
        is_new: uint8, whether the step found a standard monomial, not an element.
        pivots: int64, as many columns in which ``vectors`` are independent.
        vectors: residues of the standard monomials, uint64, shape ``(D, D)``.
        tails: residues of the leading monomials in terms of ``standard``, shape ``(elements, D)``.
    """

    standard: tuple[Exponents, ...]
    leads: tuple[Element, ...]
    source: NDArray[np.int64]
    variable: NDArray[np.int64]
    is_new: NDArray[np.uint8]
    pivots: NDArray[np.int64]
    vectors: NDArray[np.uint64]
    tails: NDArray[np.uint64]

    def elements(self) -> list[tuple[Element, NDArray[np.uint64]]]:
        """Elements with their tails."""
        return list(zip(self.leads, self.tails, strict=True))

    @classmethod
    def modulo(
        cls,
        basis: GroebnerBasis,
        border: Border,
        order: Order,
        prime: int,
        kept: Sequence[int],
    ) -> Conversion | None:
        """Convert modulo ``prime``; None where it divides a leading coefficient.

        Only monomials in the variables ``kept`` are looked at, to which ``order`` belongs: the
        result is the basis of what the ideal says about these alone.
        """
        residues = border.residues(basis.engine_basis, prime)
        if residues is None:
            return None
        n, degree = len(kept), border.degree
        weights = order.engine.weights
        echelon = Echelon(degree, degree, prime)
        one: Exponents = (0,) * n
        candidates: list[tuple[tuple[int, ...], Exponents, int, int]] = [((), one, -1, 0)]
        standard: list[Exponents] = []
        vectors: list[NDArray[np.uint64]] = []
        elements: list[Element] = []
        tails: list[NDArray[np.uint64]] = []
        steps: list[tuple[int, int, bool]] = []
        seen: set[Exponents] = {one}
        while candidates:
            _, monomial, source, variable = heapq.heappop(candidates)
            if any(_divides(element.leading, monomial) for element in elements):
                continue
            vector = np.zeros(degree, np.uint64)
            if source < 0:
                vector[0] = 1  # the smallest standard monomial of any order is 1
            else:
                lines = border.products[kept[variable]]
                times_variable(vectors[source], lines, residues, vector, prime)
            relation = echelon.insert(vector)
            steps.append((source, kept[variable], relation is None))
            if relation is not None:
                elements.append(Element(monomial, len(standard)))
                tails.append(np.pad(relation, (0, degree - len(relation))))
                continue
            standard.append(monomial)
            vectors.append(vector)
            for i in range(n):
                product = (*monomial[:i], monomial[i] + 1, *monomial[i + 1 :])
                if product not in seen:
                    seen.add(product)
                    key = tuple((weights @ np.array(product)).tolist())
                    heapq.heappush(candidates, (key, product, len(standard) - 1, i))
        sources, variables, new = zip(*steps, strict=True)
        return cls(
            tuple(standard),
            tuple(elements),
            np.array(sources, np.int64),
            np.array(variables, np.int64),
            np.array(new, np.uint8),
            echelon.pivots,
            np.array(vectors).reshape(-1, degree),
            np.array(tails).reshape(-1, degree),
        )

    def needed(self, border: Border) -> NDArray[np.bool_]:
        """Which border monomials the steps need."""
        return border.needed(self.source, self.variable, self.is_new)

    def followed(
        self, basis: GroebnerBasis, border: Border, needed: NDArray[np.bool_], prime: int
    ) -> Conversion | None:
        """The same steps modulo another prime; None where it divides a leading coefficient.

        None as well where the standard monomials differ. ``needed`` is what :meth:`needed` says.
        """
        residues = border.residues(basis.engine_basis, prime, needed)
        if residues is None:
            return None
        vectors, tails = np.zeros_like(self.vectors), np.zeros_like(self.tails)
        steps = (self.source, self.variable, self.is_new)
        if not follow(border.products, residues, *steps, vectors, tails, prime):
            return None
        return attrs.evolve(self, vectors=vectors, tails=tails)


def _divides(a: Exponents, b: Exponents) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def _rational(
    basis: GroebnerBasis, border: Border, order: Order, kept: Sequence[int]
) -> tuple[list[dict[Exponents, Any]], RunReport]:
    """The new basis over the rationals; where the first prime was unlucky, once more from the next.

    Raises:
        SolverError: E-SOLVE-010 when a device failed, E-SOLVE-011 when no primes are left.
    """
    start, certify = LARGEST_PRIME, basis.settings.certify
    limits = Limits(deadline=basis.settings.until, memory=basis.settings.memory)
    limits.foresee(8 * border.degree * (len(border.parent) + 4 * border.degree))
    following = Following(basis, border, basis.settings.reducer(), limits)
    for _ in range(8):
        while (learned := Conversion.modulo(basis, border, order, start, kept)) is None:
            start = _next_prime(start)
        steps = learned
        following.start(steps)
        rows = len(steps.leads) + (len(steps.standard) if certify else 0)
        start = _next_prime(start)
        try:
            with computing.device_errors(basis.settings):
                numbers, primes = lift(following.image, [border.degree] * rows, start, limits)
        except SolverError as error:
            if error.code != "E-SOLVE-011":
                raise
            continue
        table = np.array(numbers, dtype=object).reshape(rows, border.degree)
        tails, vectors = table[: len(steps.leads)], table[len(steps.leads) :]
        if not certify or _is_proved(steps, tails, vectors, basis, border):
            elements = [
                element.terms(steps.standard, row)
                for element, row in zip(steps.leads, tails.tolist(), strict=True)
            ]
            run = following.added_to(basis.report.run)
            return elements, attrs.evolve(run, primes=run.primes or primes)
    raise SolverError("E-SOLVE-011", f"the basis could not be converted to the order {order}")


def _is_proved(
    steps: Conversion,
    tails: NDArray[Any],
    vectors: NDArray[Any],
    basis: GroebnerBasis,
    border: Border,
) -> bool:
    """Whether every step gives, over the rationals, the residue that was lifted for it."""
    monomials = [tuple(row) for row in border.monomials.tolist()]
    combined = _product(tails[:, : len(vectors)], vectors)
    residues = iter(vectors), iter(combined)
    products: list[Terms] = []
    expected: list[Terms] = []
    for source, variable, is_new in zip(steps.source, steps.variable, steps.is_new, strict=True):
        found = next(residues[0 if is_new else 1])
        expected.append({m: c for m, c in zip(monomials, found, strict=True) if c})
        if source < 0:
            products.append({monomials[0]: 1})
        else:
            products.append(
                {
                    (*m[:variable], m[variable] + 1, *m[variable + 1 :]): c
                    for m, c in zip(monomials, vectors[source], strict=True)
                    if c
                }
            )
    until = basis.settings.until
    rests = computing.normal_forms(products, basis.engine_basis, basis.ring, deadline=until)
    return [dict(rest.terms()) for rest in rests] == expected


def _product(left: NDArray[Any], right: NDArray[Any]) -> list[list[Fraction]]:
    """The product of matrices of fractions."""
    from flint import fmpq, fmpq_mat

    a, b = (
        fmpq_mat([[fmpq(c.numerator, c.denominator) for c in row] for row in m.tolist()])
        for m in (left, right)
    )
    return [[Fraction(plain(c)) for c in row] for row in (a * b).tolist()]


def _next_prime(prime: int) -> int:
    return next(primes_below(prime - 2))
