"""Gröbner bases over the rationals: learn modulo one prime, replay for many, lift, check.

The replay confirms the learned run prime by prime: a prime where a recorded pivot vanishes, or a
term appears that was not recorded, is dropped; when most primes are, the learning prime was the
unlucky one, and another is taken. So it is when the result is no Gröbner basis of the generators
modulo a second prime (:mod:`~alkahest.groebner.engine.confirm`). Primes are added until the lifted
coefficients agree with the residues modulo one prime that was not used to lift them.

Source: C. Traverso, "Gröbner trace algorithms" (ISSAC 1988); the plan of the lifting follows
J. Berthomieu, C. Eder, M. Safey El Din, "msolve" (ISSAC 2021).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Any

import attrs
import numpy as np

from alkahest.errors import AlkahestError, SolverError
from alkahest.groebner.engine.columns import Columns
from alkahest.groebner.engine.confirm import is_confirmed
from alkahest.groebner.engine.f4 import Run, leads_are_coprime
from alkahest.groebner.engine.homogeneous import Target, homogenised
from alkahest.groebner.engine.lanes import LANES
from alkahest.groebner.engine.lift import Lift
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.linear_algebra import LinearAlgebra
from alkahest.groebner.engine.packing import WIDTHS, ExponentOverflowError, Layout, layout
from alkahest.groebner.engine.prepare import Generators, generators
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.records import (
    LARGEST_PRIME,
    EngineBasis,
    MonomialOrder,
    PolynomialSystem,
    Progress,
    ProgressCallback,
    RunReport,
)
from alkahest.groebner.engine.reducers import Reducer, host_reducer, lifting, replaying
from alkahest.groebner.engine.trace import Images, KeptImages, Trace

_ATTEMPTS = 16
"""Learning primes tried before giving up."""


def groebner_rational(
    system: PolynomialSystem,
    order: MonomialOrder,
    *,
    seed: int | None = None,
    certify: bool = False,
    executor: Executor | None = None,
    progress: ProgressCallback | None = None,
    deadline: float | None = None,
    memory: int | None = None,
    reducer: Reducer | None = None,
    graded: EngineBasis | None = None,
) -> tuple[EngineBasis, RunReport]:
    """The reduced Gröbner basis over the rationals of polynomials with integer coefficients.

    Args:
        system: generators; coefficients are integers.
        order: order of the monomials.
        seed: chooses the primes; None is 0. The result does not depend on it.
        certify: prove the result; without it, it has been checked modulo a fresh prime.
        executor: where to replay; None is here, one batch of primes after another.
        progress: called between rounds and batches; what it raises ends the run.
        deadline: reading of :func:`time.monotonic` at which to give up, or None.
        memory: bytes that the process may grow by, or None.
        reducer: what replays, and learns if it is a
            :class:`~alkahest.groebner.engine.reducers.Learner`; None is the processor.
        graded: the basis under grevlex, where it is known; proved, for a certified result.

    Raises:
        SolverError: E-SOLVE-011 when no prime works, E-SOLVE-012 when a limit is reached,
            E-SOLVE-013 for exponents beyond 63 bits.
    """
    limits = Limits(deadline=deadline, memory=memory, progress=progress)
    run = partial(
        _rational,
        seed=seed or 0,
        limits=limits,
        reducer=reducer or host_reducer(),
        executor=executor,
        certify=certify,
    )
    if order.is_graded or leads_are_coprime(system, order, 0):
        return run(system, order)
    before: list[RunReport] = []
    if graded is None:
        graded, report = run(system, MonomialOrder.grevlex(order.nvars))
        before.append(report)
    target = Target.of(graded, order)
    basis, last = run(homogenised(graded), target.run_order, target=target)
    return basis, last.after(before)


def _rational(
    system: PolynomialSystem,
    order: MonomialOrder,
    *,
    seed: int,
    limits: Limits,
    reducer: Reducer,
    executor: Executor | None,
    certify: bool,
    target: Target | None = None,
) -> tuple[EngineBasis, RunReport]:
    """One lifting, repeated with wider fields while they overflow."""
    for bits in WIDTHS:
        try:
            packing = layout(order, bits, seed)
            given = generators(system, packing)
            # With an executor everything is the processor's.
            algebra = LinearAlgebra(reducer if executor is None else host_reducer())
            run = _Lifting(given, order, seed, limits, algebra, executor, target)
            basis, report = run.compute(packing)
            if not certify:
                return basis, report
            return basis, run.certified(system, basis, report)
        except ExponentOverflowError:
            continue
    raise SolverError("E-SOLVE-013", "an exponent of the computation does not fit into 63 bits")


def replay_primes(
    trace: Trace,
    given: Generators,
    primes: Sequence[int],
    reducer: Reducer,
    limits: Limits,
) -> Images | KeptImages:
    """The images of the basis modulo as many primes as the reducer takes at once."""
    limits.foresee(4 * trace.terms * len(primes))
    inputs = given.images(primes)
    there = lifting(reducer)
    replay = reducer.replay if there is None else there.replay_kept
    return replay(trace, inputs, primes, limits.checkpoint)


def _replay_elsewhere(
    learned: tuple[Trace, Generators],
    primes: Sequence[int],
    seconds: float | None,
    memory: int | None,
) -> list[Images | KeptImages]:
    """What a worker of an executor does: its share of the primes, on its own processor."""
    deadline = None if seconds is None else time.monotonic() + seconds
    limits, reducer = Limits(deadline=deadline, memory=memory), host_reducer()
    return [
        replay_primes(*learned, primes[at : at + LANES], reducer, limits)
        for at in range(0, len(primes), LANES)
    ]


def _workers(executor: Executor) -> int:
    """How many tasks the executor runs at a time, as far as it tells."""
    if count := getattr(executor, "_max_workers", None):
        return int(count)
    client = getattr(executor, "_client", None)  # of Dask
    return 4 if client is None else max(1, sum(client.nthreads().values()))


def _shared(executor: Executor, learned: tuple[Trace, Generators]) -> Any:
    """What all tasks need, as an argument: on a Dask cluster something that its workers hold."""
    client = getattr(executor, "_client", None)
    return learned if client is None else client.scatter([learned], broadcast=True, hash=False)[0]


@attrs.define(eq=False)
class _Lifting:
    """One computation over the rationals with exponents packed in one way.

    Attributes:
        trace: the record in use.
        shared: what the tasks of the executor are given of it.
        dropped: learning primes that were replaced, and unlucky primes of the record in use.
        seconds: by phase.
        algebra: what learns, replays and confirms.
        target: where runs with homogeneous generators are to end; None for other runs.
    """

    given: Generators
    order: MonomialOrder
    seed: int
    limits: Limits
    algebra: LinearAlgebra
    executor: Executor | None
    target: Target | None
    dropped: list[int] = attrs.field(init=False, factory=list)
    seconds: dict[str, float] = attrs.field(init=False, factory=dict)
    trace: Trace = attrs.field(init=False)
    shared: Any = attrs.field(init=False, default=None)

    def compute(self, packing: Layout) -> tuple[EngineBasis, RunReport]:
        """Learn and lift, with another learning prime when the first is unlucky."""
        start = LARGEST_PRIME - 2 * random.Random(self.seed).randrange(2**24)
        primes = self._primes(start)
        for _ in range(_ATTEMPTS):
            learned = self._learn(packing, primes)
            result = self._lift(*learned, primes)
            if result is not None:
                return result
        raise SolverError(
            "E-SOLVE-011",
            f"{_ATTEMPTS} learning primes disagreed with most of the primes after them",
            remediation="Compute it again with another seed=, and report the system.",
        )

    def certified(
        self, system: PolynomialSystem, basis: EngineBasis, report: RunReport
    ) -> RunReport:
        """Prove the result; the report that says so."""
        from alkahest.groebner.engine.certify import certify

        started = perf_counter()
        certify(
            system,
            basis,
            self.order,
            self.trace,
            self.given,
            self._primes(LARGEST_PRIME),
            self.limits,
            from_graded=self.target is not None,
        )
        seconds = {**report.seconds, "certify": perf_counter() - started}
        return attrs.evolve(report, certainty="certified", seconds=seconds)

    def _primes(self, start: int) -> Iterator[int]:
        """Primes that keep the leading monomials of what is given."""
        graded = self.target.graded_leads if self.target else ()
        return primes_below(start, [*self.given.leading(), *graded])

    def _learn(self, packing: Layout, primes: Iterator[int]) -> tuple[RunReport, Trace]:
        started = perf_counter()
        # A term that vanishes modulo the learning prime would be missing from the record.
        prime = next(p for p in primes if all(c % p for c in self.given.coefficients))
        run = Run(
            packing,
            prime,
            self.order,
            self.seed,
            self.limits,
            self.algebra,
            self.target,
            record=True,
        )
        _, report, trace = run.compute(self.given)
        assert trace is not None
        self.trace = trace
        self._spent("learn", started)
        return report, trace

    def _lift(
        self, report: RunReport, trace: Trace, primes: Iterator[int]
    ) -> tuple[EngineBasis, RunReport] | None:
        """Add primes until every coefficient is settled; None if the trace is unlucky."""
        with closing(Columns()) as columns:
            return self._lift_from(columns, report, trace, primes)

    def _lift_from(
        self, columns: Columns, report: RunReport, trace: Trace, primes: Iterator[int]
    ) -> tuple[EngineBasis, RunReport] | None:
        threads = self.algebra.threads
        lift = Lift(trace.offsets - np.arange(len(trace.offsets)), threads, leads=1)
        used, dropped = columns.primes, columns.dropped
        lifted, next_try = 0, 2
        # A replay from a graded basis keeps the Hilbert series, which is proof enough.
        confirmed = self.target is not None
        while not lift.settled or not used:
            self._replay(columns, trace, primes)
            if len(dropped) > len(used):
                # The others agree with one another, so it is the learning prime that does not.
                self.dropped.append(trace.prime)
                return None
            if not confirmed and used:
                started = perf_counter()
                tails = columns.first()
                if not is_confirmed(trace, tails, self.given, used[0], self.limits, self.algebra):
                    self.dropped.append(trace.prime)
                    return None
                confirmed = True
                self._spent("confirm", started)
            started = perf_counter()
            # A device brings more primes at once than may be needed. The more there are, the dearer
            # an attempt is and the less one more tells.
            while lifted < len(used) and not lift.settled:
                lifted = min(lifted + LANES, len(used))
                if lifted >= next_try:
                    next_try = lifted + 1 + lifted // 8
                    columns.settle(lift, lifted, self.limits.checkpoint)
            self._spent("lift", started)
        if columns.lifted_by is not None:
            self.algebra.done(columns.lifted_by.on_gpu)
        self.dropped += dropped
        columns.close()
        return _rational_basis(trace, lift), self._report(report, used[:lifted] or used)

    def _replay(self, columns: Columns, trace: Trace, primes: Iterator[int]) -> None:
        """Add the next images: one batch here, or a share of them for each worker."""
        done = len(columns.primes)
        self.limits.tell(Progress(phase="replay", step=done, basis=len(trace.offsets) - 1))
        started = perf_counter()
        if self.executor is None:
            reducer = replaying(self.algebra.reducer, trace, done)
            batch = [next(primes) for _ in range(reducer.lanes)]
            images = [replay_primes(trace, self.given, batch, reducer, self.limits)]
        else:
            reducer = host_reducer()
            images = self._elsewhere(self.executor, trace, primes, done)
        for one in images:
            columns.add(one, reducer)
            self.algebra.done(one.on_gpu)
        self._spent("replay", started)

    def _elsewhere(
        self, executor: Executor, trace: Trace, primes: Iterator[int], done: int
    ) -> list[Images | KeptImages]:
        workers = _workers(executor)
        share = LANES * max(1, done // (LANES * workers))
        shares = [[next(primes) for _ in range(share)] for _ in range(workers)]
        seconds, memory = self.limits.seconds_left, self.limits.memory
        futures: list[Future[list[Images | KeptImages]]] = []
        try:
            if not done:
                self.shared = _shared(executor, (trace, self.given))
            for own in shares:
                futures.append(
                    executor.submit(_replay_elsewhere, self.shared, own, seconds, memory)
                )
            return [
                images
                for future in futures
                for images in future.result(timeout=self.limits.seconds_left)
            ]
        except AlkahestError:
            raise
        except Exception as error:
            self.limits.checkpoint()
            raise SolverError("E-SOLVE-016", f"executor {executor!r} failed: {error!r}") from error
        finally:
            for future in futures:
                future.cancel()

    def _spent(self, phase: str, started: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + perf_counter() - started

    def _report(self, learned: RunReport, used: list[int]) -> RunReport:
        return RunReport(
            certainty="probabilistic",
            rounds=learned.rounds,
            primes=tuple(used),
            dropped=tuple(self.dropped),
            seconds=dict(self.seconds),
            reducer=self.algebra.reducer.name,
            **self.algebra.where(),
        )


def _rational_basis(trace: Trace, lift: Lift) -> EngineBasis:
    """Primitive integer polynomials: denominators become leading coefficients."""
    longest = max((d.bit_length() for d in lift.denominators), default=0)
    lift.widen(-(-longest // 32))
    width = lift.limbs.shape[1]
    leads = b"".join(d.to_bytes(4 * width, "little") for d in lift.denominators)
    lift.limbs[trace.offsets[:-1]] = np.frombuffer(leads, np.uint32).reshape(-1, width)
    used = max(1, lift.words())
    return EngineBasis(
        exponents=trace.layout.unpack(trace.words, lift.threads),
        offsets=trace.offsets,
        characteristic=0,
        limbs=np.ascontiguousarray(lift.limbs[:, :used]),
        negative=lift.negative.view(np.bool_),
    )
