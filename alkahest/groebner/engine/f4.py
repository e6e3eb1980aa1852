"""F4 over a prime field: the loop.

Source: J.-C. Faugère, "A new efficient algorithm for computing Gröbner bases (F4)", Journal of
Pure and Applied Algebra 139 (1999).
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.errors import SolverError
from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.earlier import EarlierRows
from alkahest.groebner.engine.homogeneous import Target, homogenised
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.linear_algebra import LinearAlgebra
from alkahest.groebner.engine.packing import WIDTHS, ExponentOverflowError, Layout, layout
from alkahest.groebner.engine.pairs import PairQueue
from alkahest.groebner.engine.prepare import Generators, generators
from alkahest.groebner.engine.records import (
    EngineBasis,
    MonomialOrder,
    PolynomialSystem,
    Progress,
    ProgressCallback,
    RoundReport,
    RunReport,
)
from alkahest.groebner.engine.reducers import Reducer, host_reducer
from alkahest.groebner.engine.reduction import DenseTerms
from alkahest.groebner.engine.seeds import TAIL, Seeds, pair_seeds, rows_as_they_are
from alkahest.groebner.engine.symbolic import SymbolicMatrix, build_matrix
from alkahest.groebner.engine.trace import TRACE_VERSION, Trace, TraceRound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.reduction import ReducedRows


def groebner_modp(
    system: PolynomialSystem,
    prime: int,
    order: MonomialOrder,
    *,
    seed: int | None = None,
    progress: ProgressCallback | None = None,
    deadline: float | None = None,
    memory: int | None = None,
    reducer: Reducer | None = None,
    record: bool = False,
    graded: EngineBasis | None = None,
) -> tuple[EngineBasis, RunReport, Trace | None]:
    """The reduced Gröbner basis over GF(``prime``), for any prime below 2**31.

    For an order that is not graded a basis for grevlex is computed first, which
    :mod:`~alkahest.groebner.engine.homogeneous` starts from: going there directly can take any amount
    of time.

    Args:
        system: generators.
        prime: characteristic; that it is prime is the caller's to check.
        order: order of the monomials, in as many variables as ``system`` has.
        seed: of the hash function and the random combinations; None is 0. The result does not
            depend on it.
        progress: called between rounds; what it raises ends the run.
        deadline: reading of :func:`time.monotonic` at which to give up, or None.
        memory: bytes that the process may grow by, or None.
        reducer: what does the linear algebra; None is the processor.
        record: whether to record the run, which then goes to ``order`` directly; needs a prime
            of at least 20 bits.
        graded: the basis under grevlex, where it is known.

    Returns:
        The basis, what was done, and the record of it or None.

    Raises:
        SolverError: E-SOLVE-012 when a limit is reached, E-SOLVE-013 for exponents beyond 63 bits.
    """
    limits = Limits(deadline=deadline, memory=memory, progress=progress)
    run = partial(_modp, prime=prime, seed=seed or 0, limits=limits, reducer=reducer, record=record)
    if order.is_graded or record or leads_are_coprime(system, order, prime):
        return run(system, order)
    before: list[RunReport] = []
    if graded is None:
        graded, report, _ = run(system, MonomialOrder.grevlex(order.nvars))
        before.append(report)
    target = Target.of(graded, order)
    basis, last, trace = run(homogenised(graded), target.run_order, target=target)
    return basis, last.after(before), trace


def leads_are_coprime(system: PolynomialSystem, order: MonomialOrder, prime: int) -> bool:
    """Whether no two leading monomials share a variable, so that ``system`` is a basis already."""
    for bits in WIDTHS:
        try:
            packing = layout(order, bits)
            given = generators(system, packing, prime)
        except ExponentOverflowError:
            continue
        leads = packing.unpack(given.words[np.cumsum(given.sizes) - given.sizes])
        return bool(((leads > 0).sum(axis=0) <= 1).all())
    raise _too_large()


def _too_large() -> SolverError:
    return SolverError("E-SOLVE-013", "an exponent of the computation does not fit into 63 bits")


def _modp(
    system: PolynomialSystem,
    order: MonomialOrder,
    *,
    prime: int,
    seed: int,
    limits: Limits,
    reducer: Reducer | None,
    record: bool,
    target: Target | None = None,
) -> tuple[EngineBasis, RunReport, Trace | None]:
    """One run, repeated with wider fields while they overflow."""
    for bits in WIDTHS:
        try:
            packing = layout(order, bits, seed)
            algebra = LinearAlgebra(reducer or host_reducer())
            run = Run(packing, prime, order, seed, limits, algebra, target, record=record)
            return run.compute(generators(system, packing, prime))
        except ExponentOverflowError:
            continue
    raise _too_large()


@attrs.define(eq=False)
class Run:
    """One run of the algorithm modulo one prime; made for one call of :meth:`compute`.

    Attributes:
        layout: how monomials are packed.
        prime: the characteristic.
        order: the order that ``layout`` packs.
        seed: of the random combinations.
        limits: asked between rounds and batches of rows.
        algebra: what reduces the matrices.
        target: where a run with homogeneous generators is to end; None for other runs.
        record: whether to fill ``rounds``.
        reports: one for each matrix so far.
        rounds: the record of each matrix that gave something.
        random: whether rows were combined at random.
    """

    layout: Layout
    prime: int
    order: MonomialOrder
    seed: int
    limits: Limits
    algebra: LinearAlgebra
    target: Target | None = None
    record: bool = attrs.field(kw_only=True)
    reports: list[RoundReport] = attrs.field(init=False, factory=list)
    rounds: list[TraceRound] = attrs.field(init=False, factory=list)
    random: bool = attrs.field(init=False, default=False)

    def compute(self, given: Generators) -> tuple[EngineBasis, RunReport, Trace | None]:
        """The reduced basis of the generators.

        Raises:
            ExponentOverflowError: the layout's fields are too narrow.
            SolverError: E-SOLVE-012 at a limit, E-SOLVE-014 where a target is not reached.
        """
        basis = Basis.empty(self.layout)
        pairs = PairQueue.empty(self.layout)
        coefficients = given.images([self.prime])[:, 0]
        pairs.update(basis, basis.append(given.words, coefficients, given.sizes))
        lacking = self._lacking(basis)
        earlier = EarlierRows.none(self.layout)
        is_graded = self.order.is_graded
        while pairs.count and lacking >= 0 and not basis.has_unit:
            degree, lcms, of = pairs.take_lowest()
            if degree < lacking:
                continue
            self.limits.tell(
                Progress(
                    phase="learn",
                    step=len(self.reports),
                    degree=degree,
                    basis=basis.count,
                    pairs=pairs.count + len(of),
                )
            )
            started = perf_counter()
            matrix = self._matrix(basis, pair_seeds(basis, lcms, of), earlier)
            del earlier  # much memory, while reducing needs much itself
            built = perf_counter()
            reduced, lower = self._echelon(matrix, basis)
            self._note(degree, len(of), matrix, reduced, started, built)
            terms = DenseTerms.of(reduced.rows)
            if self.record and len(reduced.leads):
                self._record(matrix, basis, lower, reduced.leads, terms)
            sugar = 0 if is_graded else degree
            monomials = matrix.columns[matrix.pivots :]
            first = basis.append_rows(monomials, terms, sugar, self.algebra.threads)
            pairs.update(basis, first)
            earlier = EarlierRows.of_round(self.layout, matrix, first, terms.sizes, terms.columns)
            if len(terms.sizes):
                lacking = self._lacking(basis)
        if self.target is not None:
            if lacking >= 0:
                raise SolverError(
                    "E-SOLVE-014", f"the run ended without all elements of degree {lacking}"
                )
            basis = self.target.dehomogenised(basis)
            earlier = EarlierRows.none(self.layout)
        return self._finish(basis, len(given.words), earlier)

    def _lacking(self, basis: Basis) -> int:
        """The least degree in which there may be new elements; -1 for none."""
        return 0 if self.target is None else self.target.lacking(basis)

    def _matrix(self, basis: Basis, seeds: Seeds, earlier: EarlierRows) -> SymbolicMatrix:
        return build_matrix(basis, seeds, self.limits, self.algebra.threads, earlier)

    def _echelon(
        self, matrix: SymbolicMatrix, basis: Basis
    ) -> tuple[ReducedRows, NDArray[np.int64]]:
        """The new rows, and where the run is recorded the lower rows that they come from."""
        self.limits.foresee(64 * len(matrix.columns))
        seed = self.seed + len(self.reports)
        given = (matrix, basis.coefficients, self.prime, seed, self.limits.checkpoint)
        if self.record:
            return self.algebra.echelon_with_rows(*given)
        return self.algebra.echelon(*given), matrix.lower

    def _record(
        self,
        matrix: SymbolicMatrix,
        basis: Basis,
        lower: NDArray[np.int64],
        leads: NDArray[np.int32],
        terms: DenseTerms,
    ) -> None:
        # Imported here because compiling takes time that a run without record need not spend.
        from alkahest.groebner.engine.recording import trace_round

        self.rounds.append(
            trace_round(matrix, lower, leads, terms.rows, terms.columns, basis.terms, basis.count)
        )

    def _note(
        self,
        degree: int,
        pairs: int,
        matrix: SymbolicMatrix,
        reduced: ReducedRows,
        started: float,
        built: float,
    ) -> None:
        self.random |= reduced.random
        report = RoundReport(
            degree=degree,
            pairs=pairs,
            rows=len(matrix.row_of),
            reduced=reduced.reduced,
            columns=len(matrix.columns),
            nonzeros=len(matrix.entries),
            new=len(reduced.leads),
            symbolic_seconds=built - started,
            reduction_seconds=perf_counter() - built,
        )
        self.reports.append(report)

    def _finish(
        self, basis: Basis, input_terms: int, earlier: EarlierRows
    ) -> tuple[EngineBasis, RunReport, Trace | None]:
        """Interreduce the minimal basis: leads stay, tails become normal forms."""
        packing = basis.layout
        active = basis.active[packing.descending(basis.active_leads)]
        started = perf_counter()
        matrix = self._matrix(basis, rows_as_they_are(basis, active, TAIL), earlier)
        built = perf_counter()
        tails = self.algebra.normal_forms(
            matrix, basis.coefficients, self.prime, self.limits.checkpoint, learning=self.record
        )
        self._note(-1, 0, matrix, tails, started, built)
        terms = DenseTerms.of(tails.rows)
        threads = self.algebra.threads
        monomials = matrix.columns[matrix.pivots :]
        offsets, words, values = basis.with_tails(active, monomials, terms, threads)
        result = EngineBasis(
            exponents=packing.unpack(words, threads),
            offsets=offsets,
            characteristic=self.prime,
            residues=values,
        )
        trace = None
        if self.record:
            self._record(matrix, basis, matrix.lower, tails.leads, terms)
            trace = Trace(
                version=TRACE_VERSION,
                prime=self.prime,
                layout=packing,
                input_terms=input_terms,
                rounds=tuple(self.rounds),
                offsets=offsets,
                words=words,
            )
        return result, self._report(), trace

    def _report(self) -> RunReport:
        return RunReport(
            certainty="probabilistic" if self.random else "exact",
            rounds=tuple(self.reports),
            primes=(self.prime,),
            seconds={
                "symbolic": sum(r.symbolic_seconds for r in self.reports),
                "reduction": sum(r.reduction_seconds for r in self.reports),
            },
            reducer=self.algebra.reducer.name,
            **self.algebra.where(),
        )
