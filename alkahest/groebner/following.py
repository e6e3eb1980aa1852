"""The recorded steps of a change of order, as a device follows them modulo many primes at once.

Everything is a row of residues, one number for each standard monomial of the old order: rows of the
border that are taken from the basis, others that are products of smaller ones, the residues of the
new standard monomials and those of the new leading monomials. Which row is which multiple of which
depends on no prime. With V the rows of the new standard monomials and W those of the leading ones,
the new basis is T with W = T V: no row is reduced before all are known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.reducers import where_done
from alkahest.groebner.engine.work import Work
from alkahest.groebner.lifting import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.engine.limits import Limits
    from alkahest.groebner.engine.records import EngineBasis, RunReport
    from alkahest.groebner.fglm import Conversion
    from alkahest.groebner.quotient import Border

    Ints = NDArray[np.int64]

STEPS_OF_A_WAVE = 8
"""Dependent steps of a replay that take about as long as starting one wave of products."""


@attrs.frozen(kw_only=True, eq=False)
class Walk:
    """Which rows to compute, numbered from 0: the basis's, the border's, V and W.

    Attributes:
        limbs: uint32, shape ``(terms, n)``: magnitudes of the coefficients of the old basis, the
            least significant limb first.
        negative: bool, shape ``(terms,)``: their signs.
        offsets: int64: element i of the old basis has the terms ``offsets[i]:offsets[i + 1]``, the
            leading one first.
        terms_at: int64, shape ``(terms,)``: the column of each term, -1 for a leading one.
        elements: int64: row k < len(elements) is the residue of the leading monomial of this
            element, its tail divided by minus the leading coefficient.
        jobs: int64, shape ``(jobs, 3)``: a row, a variable and the row that is their product.
        waves: int64: the jobs ``waves[k]:waves[k + 1]`` need only rows of earlier waves.
        moved_from: int64, shape ``(variables, columns)``: the column that a variable moves to this
            one, or -1.
        hits: for each variable the columns that it moves onto the border, int64, shape ``(n, 2)``:
            the column and the row that it becomes.
        first: the first row of V, which is 1; its rows are ascending.
        vectors: number of rows of V; those of W follow.
        pivots: int64, shape ``(vectors,)``: columns in which the rows of V were independent.
        smaller: int64, for each row of W how many rows of V it can be combined of.
    """

    limbs: NDArray[np.uint32]
    negative: NDArray[np.bool_]
    offsets: Ints
    terms_at: Ints
    elements: Ints
    jobs: Ints
    waves: Ints
    moved_from: Ints
    hits: tuple[Ints, ...]
    first: int
    vectors: int
    pivots: Ints
    smaller: Ints

    @property
    def degree(self) -> int:
        """Number of columns."""
        return int(self.moved_from.shape[1])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.first + self.vectors + len(self.smaller)

    @property
    def work(self) -> Work:
        """Work for one prime."""
        met = np.array([len(hits) for hits in self.hits], np.float64)
        size, waves = float(self.vectors), len(self.waves) - 1
        return Work(
            products=float(met[self.jobs[:, 1]].sum()) * self.degree,
            dense_products=size**3 + len(self.smaller) * size**2,
            steps=float(STEPS_OF_A_WAVE * waves + self.vectors),
            rounds=waves,
        )


@attrs.frozen(kw_only=True, eq=False)
class Followed:
    """What came out, prime by prime.

    Attributes:
        lucky: whether the steps are those of the walk; the numbers of others mean nothing.
        tails: T, uint32, shape ``(primes, rows of W, vectors)``.
        vectors: V, uint32, shape ``(primes, vectors, columns)``, where it was asked for, or None.
        on_gpu: whether a GPU computed it.
    """

    lucky: tuple[bool, ...]
    tails: NDArray[np.uint32]
    vectors: NDArray[np.uint32] | None
    on_gpu: bool = False


class Follower(Protocol):
    """A :class:`~alkahest.groebner.engine.reducers.Reducer` that follows changes of order, too."""

    def follow(
        self,
        walk: Walk,
        primes: Sequence[int],
        checkpoint: Callable[[], None],
        *,
        vectors: bool,
    ) -> Followed:
        """Follow a walk modulo odd primes below 2**31; ``vectors``: V is asked for."""
        ...


def walk_of(steps: Conversion, basis: EngineBasis, border: Border) -> Walk:
    """What is to be computed for a conversion that was learned modulo one prime."""
    needed = border.needed(steps.source, steps.variable, steps.is_new)
    listed = np.flatnonzero(needed)
    given = listed[border.parent[listed] < 0]
    made = listed[border.parent[listed] >= 0]
    number = np.full(len(needed), -1, np.int64)
    number[given], number[made] = np.arange(len(given)), len(given) + np.arange(len(made))
    n, degree = border.products.shape
    moved_from = np.full((n, degree), -1, np.int64)
    hits = []
    for line, target in zip(border.products, moved_from, strict=True):
        inside = np.flatnonzero(line >= 0)
        target[line[inside]] = inside
        outside = np.flatnonzero(line < 0)
        outside = outside[needed[-1 - line[outside]]]
        hits.append(np.column_stack([outside, number[-1 - line[outside]]]))
    first, size = len(listed), len(steps.standard)
    # Rows of the steps: those of new standard monomials, then those of leading ones.
    is_new = steps.is_new.astype(bool)
    of_step = np.where(is_new, np.cumsum(is_new) - 1, size + np.cumsum(~is_new) - 1) + first
    later = np.flatnonzero(steps.source >= 0)
    jobs = np.concatenate(
        [
            np.column_stack([number[border.parent[made]], border.by[made], number[made]]),
            np.column_stack([first + steps.source[later], steps.variable[later], of_step[later]]),
        ]
    )
    bounds = np.concatenate([border.smaller[border.parent[made]], np.full(len(later), degree)])
    level = _levels(jobs, bounds, hits, first + size + len(steps.leads))
    order = np.argsort(level, kind="stable")
    return Walk(
        limbs=basis.limbs,
        negative=basis.negative,
        offsets=basis.offsets,
        terms_at=border.terms_at,
        elements=border.by[given],
        jobs=jobs[order],
        waves=np.concatenate([[0], np.cumsum(np.bincount(level)[1:])]).astype(np.int64),
        moved_from=moved_from,
        hits=tuple(hits),
        first=first,
        vectors=size,
        pivots=steps.pivots,
        smaller=np.array([element.smaller for element in steps.leads], np.int64),
    )


def _levels(jobs: Ints, bounds: Ints, hits: list[Ints], rows: int) -> Ints:
    """The wave of each job, from 1; its source is zero in the columns from its bound on."""
    level = np.zeros(rows, np.int64)
    found = np.empty(len(jobs), np.int64)
    listed: list[Any] = jobs.tolist()
    for k, (source, variable, target) in enumerate(listed):
        met = hits[variable]
        below = met[: np.searchsorted(met[:, 0], bounds[k]), 1]
        found[k] = level[target] = 1 + max(level[source], level[below].max(initial=0))
    return found


class Following:
    """The images of a conversion over the rationals, modulo primes in descending order.

    Attributes:
        on_gpu: for each batch of primes that was meant for a device, whether a GPU did it.
        seconds: wall seconds that devices took.
    """

    def __init__(self, basis: GroebnerBasis, border: Border, reducer: Any, limits: Limits) -> None:
        self.on_gpu: list[bool] = []
        self.seconds = 0.0
        self._basis = basis
        self._border = border
        self._asked = self._reducer = reducer
        self._limits = limits
        self._done = 0

    def start(self, steps: Conversion) -> None:
        """Follow these steps from now on."""
        self._steps = steps
        self._needed = steps.needed(self._border)
        self._walk: Walk | None = None
        self._ready: dict[int, Image | None] = {}

    def image(self, prime: int) -> Image | None:
        """The new tails, and the new vectors where the result is to be certified, or None."""
        self._done += 1
        if prime not in self._ready:
            self._ready = self._by_device(prime) or {prime: self._by_processor(prime)}
        return self._ready.pop(prime)

    def _by_processor(self, prime: int) -> Image | None:
        new = self._steps.followed(self._basis, self._border, self._needed, prime)
        return None if new is None else self._flat(new.tails, new.vectors)

    def _flat(self, tails: NDArray[Any], vectors: NDArray[Any] | None) -> Image:
        """One image, tails filled with zeros to the width of the vectors."""
        filled = np.pad(tails, ((0, 0), (0, self._border.degree - tails.shape[1])))
        if vectors is None or not self._basis.settings.certify:
            return filled.reshape(-1)
        return np.concatenate([filled, vectors]).reshape(-1)

    def _by_device(self, prime: int) -> dict[int, Image | None] | None:
        """Images modulo this prime and the next ones; None where the processor is to compute."""
        reducer = self._device()
        walk = self._walk
        if reducer is None or walk is None:
            return None
        primes = list(islice(primes_below(prime), reducer.lanes))
        certify = self._basis.settings.certify
        lines = len(walk.smaller) + certify * walk.vectors
        self._limits.foresee(8 * len(primes) * lines * walk.degree)
        started = time.perf_counter()
        found: Followed | None = reducer.follow(
            walk, primes, self._limits.checkpoint, vectors=certify
        )
        self.seconds += time.perf_counter() - started
        self.on_gpu.append(found is not None and found.on_gpu)
        if found is None:
            self._reducer = None  # a device that failed is not asked again
            return None
        rows: Any = [None] * len(primes) if found.vectors is None else found.vectors
        images = zip(primes, found.lucky, found.tails, rows, strict=True)
        return {p: self._flat(tails, row) if lucky else None for p, lucky, tails, row in images}

    def _device(self) -> Any:
        """The reducer that follows next, or None."""
        if self._reducer is None:
            return None
        if self._walk is None:
            self._walk = walk_of(self._steps, self._basis.engine_basis, self._border)
        if hasattr(self._reducer, "for_follow"):
            return self._reducer.for_follow(self._walk.work, self._done)
        return self._reducer if hasattr(self._reducer, "follow") else None

    def added_to(self, run: RunReport) -> RunReport:
        """The report of the old basis, with what devices did here."""
        reducer = self._asked
        if reducer is None:
            return run
        done = where_done(reducer, self.on_gpu)
        seconds = dict(run.seconds)
        if self.on_gpu:
            seconds["follow"] = seconds.get("follow", 0.0) + self.seconds
        return attrs.evolve(
            run,
            reducer=reducer.name if any(self.on_gpu) else run.reducer,
            reductions_on_cpu=run.reductions_on_cpu + done["reductions_on_cpu"],
            reductions_on_gpu=run.reductions_on_gpu + done["reductions_on_gpu"],
            first_gpu_error=run.first_gpu_error or done["first_gpu_error"],
            choice="; ".join(dict.fromkeys(filter(None, [run.choice, done["choice"]]))),
            seconds=seconds,
        )


__all__ = ["Followed", "Follower", "Following", "Walk", "walk_of"]
