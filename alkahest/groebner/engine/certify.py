"""Proof that a lifted basis is the reduced Gröbner basis of what was given.

Three facts are established over the rationals, each by divisions that are proved:

1. every generator has remainder 0 modulo the basis: the ideal lies in that of the basis;
2. so has every S-polynomial that the criteria leave: the basis is a Gröbner basis;
3. the basis lies in the ideal. The record of the run is followed: the elements of each round,
   lifted, are such that the rows of the round are combinations of known multiples of the elements
   before and of the new ones. The coefficients of the new ones form a square matrix, invertible
   modulo the primes of the replay and so over the rationals; hence the new elements are combinations
   of rows, which are in the ideal by induction.

Where the run started from a basis under a graded order, which is proved by itself, the third fact is
enough: the elements of the rounds have leading monomials with the Hilbert series of the ideal, so
they are a Gröbner basis of what they lie in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.division import Division, Images
from alkahest.groebner.engine.lift import Lift
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.normal_form import reduce_rational
from alkahest.groebner.engine.packing import WIDTHS, ExponentOverflowError, layout
from alkahest.groebner.engine.pairs import PairQueue
from alkahest.groebner.engine.prepare import Generators
from alkahest.groebner.engine.records import (
    EngineBasis,
    MonomialOrder,
    PolynomialSystem,
    Progress,
)
from alkahest.groebner.engine.replay import replay_all
from alkahest.groebner.engine.trace import Trace, TraceRound


def certify(
    system: PolynomialSystem,
    basis: EngineBasis,
    order: MonomialOrder,
    trace: Trace,
    given: Generators,
    primes: Iterator[int],
    limits: Limits,
    *,
    from_graded: bool = False,
) -> None:
    """Prove that ``basis`` is the reduced Gröbner basis of ``system``.

    Args:
        system: generators with integer coefficients.
        basis: what was lifted from the last round of ``trace``.
        order: order of the monomials.
        trace: the record that was replayed.
        given: ``system`` as the record has it.
        primes: primes to compute with.
        limits: asked between rows.
        from_graded: whether the record is of a run from a proved basis under a graded order.

    Raises:
        SolverError: E-SOLVE-014 when one of the facts does not hold, E-SOLVE-012 at a limit.
    """
    if not from_graded:
        limits.tell(Progress(phase="certify", step=0, basis=len(basis)))
        _reduces_to_zero(system, basis, order, limits, "a generator")
        limits.tell(Progress(phase="certify", step=1, basis=len(basis)))
        _reduces_to_zero(_s_polynomials(basis, order), basis, order, limits, "an S-polynomial")
    limits.tell(Progress(phase="certify", step=2, basis=len(basis)))
    _Membership(trace, given, primes, limits).prove(basis)


def _reduces_to_zero(
    system: PolynomialSystem,
    basis: EngineBasis,
    order: MonomialOrder,
    limits: Limits,
    what: str,
) -> None:
    if len(basis) and len(
        reduce_rational(system, basis, order, deadline=limits.deadline).exponents
    ):
        raise SolverError("E-SOLVE-014", f"{what} does not reduce to zero modulo the lifted basis")


def _s_polynomials(basis: EngineBasis, order: MonomialOrder) -> PolynomialSystem:
    """Integer multiples of the S-polynomials of the pairs that the criteria leave."""
    leads, pairs = _critical_pairs(basis, order)
    exponents: list[NDArray[np.uint32]] = [np.zeros((0, basis.nvars), np.uint32)]
    coefficients: list[int] = []
    sizes = [0]
    for i, j in pairs:
        lcm = np.maximum(leads[i], leads[j])
        ours, theirs = basis.integers(i), basis.integers(j)
        for index, numbers, factor in ((i, ours, theirs[0]), (j, theirs, -ours[0])):
            part = slice(int(basis.offsets[index]), int(basis.offsets[index + 1]))
            exponents.append(basis.exponents[part] + (lcm - leads[index]))
            coefficients.extend(factor * c for c in numbers)
        sizes.append(len(ours) + len(theirs))
    return PolynomialSystem(
        exponents=np.concatenate(exponents),
        coefficients=coefficients,
        offsets=np.cumsum(sizes, dtype=np.int64),
    )


def _critical_pairs(
    basis: EngineBasis, order: MonomialOrder
) -> tuple[NDArray[np.uint32], list[tuple[int, int]]]:
    leads = basis.leading_exponents()
    for bits in WIDTHS:
        try:
            packing = layout(order, bits)
            store = Basis.empty(packing)
            ones = np.ones(len(leads), np.uint32)
            # The least leading monomial first, as when the basis was computed.
            words = packing.pack(leads[::-1])
            store.append(words, ones, np.ones(len(leads), np.int64))
            queue = PairQueue.empty(packing)
            queue.update(store, 0)
        except ExponentOverflowError:
            continue
        last = len(leads) - 1
        return leads, [(last - int(i), last - int(j)) for i, j in queue.of[: queue.count]]
    raise SolverError("E-SOLVE-013", "an exponent of an S-polynomial does not fit into 63 bits")


@attrs.define(eq=False)
class _Membership:
    """The third fact."""

    trace: Trace
    given: Generators
    primes: Iterator[int]
    limits: Limits
    images: Images = attrs.field(init=False)
    denominators: list[int] = attrs.field(init=False)
    bits: int = attrs.field(init=False, default=0)

    def prove(self, basis: EngineBasis) -> None:
        """Follow the record to ``basis``, or raise E-SOLVE-014."""
        self.images = Images(self._replay, self.primes)
        self._lift()
        for one in self.trace.rounds[:-1]:
            division = self._divide(_with_results(one))
            if (division.column >= one.pivots + len(one.leads)).any():
                raise _outside()
        last = self.trace.rounds[-1]
        division = self._divide(last)
        remainder = division.column >= last.pivots
        numerators = iter(division.lift.integers(remainder))
        for index, denominator in enumerate(division.lift.denominators):
            lead, *rest = basis.integers(index)
            if any(c * denominator != next(numerators, 0) * lead for c in rest):
                raise _outside()
        if next(numerators, None) is not None:
            raise _outside()

    def _replay(self, primes: Sequence[int]) -> NDArray[np.uint32] | None:
        inputs = self.given.images(primes)
        coefficients, bad = replay_all(self.trace, inputs, primes, self.limits.checkpoint)
        return None if bad.any() else coefficients

    def _lift(self) -> None:
        """Lift the elements of all rounds, for their denominators and sizes."""
        counts = [np.bincount(one.out_row, minlength=one.results) for one in self.trace.rounds[:-1]]
        offsets = np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64)
        terms = slice(self.trace.input_terms, self.trace.rounds[-1].first_term)
        lift = Lift(offsets)
        used: list[int] = []
        parts: list[NDArray[np.uint32]] = []
        while not lift.settled or not used:
            primes, coefficients = self.images.batch(len(parts))
            used += primes
            parts.append(coefficients[terms])
            residues = np.concatenate(parts, axis=1)
            lift.settle(residues, tuple(used))
            if lift.settled:
                lift.recheck(residues, tuple(used))
        # Inputs are made integral by their leading coefficients.
        self.denominators = [abs(c) for c in self.given.leading()] + lift.denominators
        inputs = max((c.bit_length() for c in self.given.coefficients), default=0)
        self.bits = max(inputs, lift.bits(), max(d.bit_length() for d in [1, *self.denominators]))

    def _divide(self, program: TraceRound) -> Division:
        division = Division(
            program=program,
            images=self.images,
            scales=[self.denominators[g] for g in program.row_of[program.pivot_row]],
            given_bits=self.bits,
            divisor_bits=self.bits,
            row_bits=self.bits,
            limits=self.limits,
        )
        division.run()
        return division


def _outside() -> SolverError:
    return SolverError(
        "E-SOLVE-014", "an element of the lifted basis could not be traced back to the generators"
    )


def _with_results(one: TraceRound) -> TraceRound:
    """The round with its results as further pivot rows, so that its rows leave no remainder."""
    new = len(one.leads)
    number = np.empty(one.columns - one.pivots, np.int32)
    number[one.leads] = np.arange(new)
    rest = np.ones(len(number), np.bool_)
    rest[one.leads] = False
    number[rest] = np.arange(new, len(number))
    entries = one.entries.copy()
    beyond = entries >= one.pivots
    entries[beyond] = one.pivots + number[entries[beyond] - one.pivots]
    sizes = np.bincount(one.out_row, minlength=new).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    first = int(one.first_term)
    rows = np.arange(new) + len(one.row_of)
    return attrs.evolve(
        one,
        pivots=one.pivots + new,
        row_of=np.concatenate([one.row_of, one.first_result + np.arange(new, dtype=np.int32)]),
        row_start=np.concatenate([one.row_start, len(entries) + starts]),
        row_length=np.concatenate([one.row_length, sizes]),
        row_term=np.concatenate([one.row_term, first + starts]),
        entries=np.concatenate([entries, one.pivots + number[one.out_column]]).astype(np.int32),
        pivot_row=np.concatenate([one.pivot_row, rows]).astype(np.int32),
    )
