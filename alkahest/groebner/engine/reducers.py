"""What does the linear algebra: the interface that a GPU plugin implements, and the host's.

A plugin of another distribution offers its reducer through the hook ``alkahest_make_reducer``. It
gets NumPy arrays inside the records named here and may return any objects with the same
attributes, so that it need not import this package. A reducer need not be able to lift, as a
:class:`LiftingReducer` is: the host does it then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, cast

import numpy as np

from alkahest.errors import AlkahestError, CudaError
from alkahest.groebner.engine.lanes import LANES
from alkahest.groebner.engine.reduction import ReducedRows, echelon, normal_forms
from alkahest.groebner.engine.trace import Images, KeptImages, KeptResidues, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.lift import Lift
    from alkahest.groebner.engine.symbolic import SymbolicMatrix

Checkpoint = Callable[[], None]
"""Called between pieces of work; raises to stop, and nothing must be left running then."""


class Reducer(Protocol):
    """Linear algebra of one kind on one device."""

    @property
    def name(self) -> str:
        """For reports, for instance ``"cpu"``."""
        ...

    @property
    def on_gpu(self) -> bool:
        """Whether the work is meant for a GPU; each result says where it was done."""
        ...

    @property
    def lanes(self) -> int:
        """Number of primes that one call of :meth:`replay` takes, a multiple of eight."""
        ...

    def echelon(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Checkpoint,
    ) -> ReducedRows:
        """Reduced row echelon form of the lower rows modulo the known pivots.

        See :func:`alkahest.groebner.engine.reduction.echelon`.
        """
        ...

    def normal_forms(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        checkpoint: Checkpoint,
    ) -> ReducedRows:
        """Each lower row modulo the known pivots.

        See :func:`alkahest.groebner.engine.reduction.normal_forms`.
        """
        ...

    def replay(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Checkpoint,
    ) -> Images:
        """The traced run modulo :attr:`lanes` primes.

        See :func:`alkahest.groebner.engine.replay.replay`.
        """
        ...


KeptLanes = tuple[KeptResidues, Sequence[int]]
"""Residues, and the lanes of them that are meant."""


class LiftingReducer(Reducer, Protocol):
    """A reducer that can also lift, from residues that its device keeps."""

    def replay_kept(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Checkpoint,
    ) -> KeptImages | Images:
        """As :meth:`replay`, but the residues stay there, unless memory is short."""
        ...

    def settle(
        self,
        lift: Lift,
        kept: Sequence[KeptLanes],
        primes: tuple[int, ...],
        checkpoint: Checkpoint,
    ) -> bool:
        """Do what ``lift.settle`` and, for what was known before, ``lift.recheck`` do.

        Args:
            lift: what is known so far; changed only as far as polynomials are found or given up.
            kept: from :meth:`replay_kept`; the lanes are those of ``primes`` in their order.
            primes: the last one is not lifted from but checks the result.
            checkpoint: see above.

        Returns:
            Whether it was tried; False where the device is not able to, for want of memory say.
        """
        ...


class Learner(Reducer, Protocol):
    """A reducer that takes part in learning, which is the host's where this method is missing."""

    def echelon_with_rows(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Checkpoint,
    ) -> tuple[ReducedRows, NDArray[np.int64]]:
        """The echelon form, and which lower rows to record.

        See :func:`alkahest.groebner.engine.profile.echelon_with_rows`.
        """
        ...


def lifting(reducer: Reducer) -> LiftingReducer | None:
    """``reducer`` if it can lift."""
    return cast("LiftingReducer", reducer) if hasattr(reducer, "replay_kept") else None


class _HostReducer:
    """Eight lanes in vector registers of the host."""

    name = "cpu"
    on_gpu = False
    lanes = LANES
    echelon = staticmethod(echelon)
    normal_forms = staticmethod(normal_forms)

    def echelon_with_rows(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Checkpoint,
    ) -> tuple[ReducedRows, NDArray[np.int64]]:
        # Imported here because compiling takes time that a run without record need not spend.
        from alkahest.groebner.engine.profile import echelon_with_rows

        return echelon_with_rows(matrix, coefficients, prime, seed, checkpoint)

    def replay(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Checkpoint,
    ) -> Images:
        # Imported here because its functions take seconds to compile the first time.
        from alkahest.groebner.engine.replay import replay

        return replay(trace, inputs, primes, checkpoint)


def host_reducer() -> Learner:
    """The reducer of the host."""
    return _HostReducer()


class _FallbackReducer:
    """Another reducer as long as it works, and the host for what it fails at.

    Attributes:
        failures: how many reductions it failed at.
        failed_liftings: how often it failed at residues that it kept.
        first_error: what it said the first time, or "".
    """

    def __init__(self, first: Reducer) -> None:
        self._first = first
        self._host = _HostReducer()
        self.name = first.name
        self.on_gpu = first.on_gpu
        self.lanes = first.lanes
        self.failures = 0
        self.failed_liftings = 0
        self.first_error = ""
        if hasattr(first, "follow"):
            self.follow = self._follow
        if hasattr(first, "echelon_with_rows"):
            self.echelon_with_rows = partial(self._tried, "echelon_with_rows")

    def _follow(self, *arguments: Any, **options: Any) -> Any:
        """See :class:`alkahest.groebner.following.Follower`; None where the host is to follow."""
        try:
            return self._first.follow(*arguments, **options)  # type: ignore[attr-defined]
        except AlkahestError as error:
            self._failed(error)
            return None

    def _failed(self, error: AlkahestError) -> None:
        self._noted(error)
        self.failures += 1

    def _noted(self, error: AlkahestError) -> None:
        """Let through what is no failure of a device, a deadline for instance."""
        if not isinstance(error, CudaError) and error.code != "E-SOLVE-010":
            raise error
        self.first_error = self.first_error or f"[{error.code}] {error.message}"

    def _tried(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._first, method)(*arguments)
        except AlkahestError as error:
            self._failed(error)
            return getattr(self._host, method)(*arguments)

    def for_matrix(self, matrix: SymbolicMatrix) -> Reducer:
        chosen = reducing(self._first, matrix)
        return self if chosen is self._first else chosen

    def echelon(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Checkpoint,
    ) -> ReducedRows:
        found = self._tried("echelon", matrix, coefficients, prime, seed, checkpoint)
        return cast("ReducedRows", found)

    def normal_forms(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        checkpoint: Checkpoint,
    ) -> ReducedRows:
        found = self._tried("normal_forms", matrix, coefficients, prime, checkpoint)
        return cast("ReducedRows", found)

    def replay(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Checkpoint,
    ) -> Images:
        try:
            return self._first.replay(trace, inputs, primes, checkpoint)
        except AlkahestError as error:
            self._failed(error)
            return self.replay_here(trace, inputs, primes, checkpoint)

    def replay_here(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Checkpoint,
    ) -> Images:
        """As :meth:`replay`, on the host."""
        parts = [
            self._host.replay(
                trace,
                np.ascontiguousarray(inputs[:, at : at + LANES]),
                primes[at : at + LANES],
                checkpoint,
            )
            for at in range(0, len(primes), LANES)
        ]
        return Images(
            primes=tuple(primes),
            lucky=tuple(flag for part in parts for flag in part.lucky),
            tails=np.concatenate([part.tails for part in parts], axis=1),
        )


class _LiftingFallback(_FallbackReducer):
    """The same for a reducer that can lift; residues that its device loses are made again here."""

    def __init__(self, first: LiftingReducer) -> None:
        super().__init__(first)
        self._lifting = first

    def replay_kept(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Checkpoint,
    ) -> KeptImages | Images:
        try:
            images = self._lifting.replay_kept(trace, inputs, primes, checkpoint)
        except AlkahestError as error:
            self._failed(error)
            return self.replay_here(trace, inputs, primes, checkpoint)
        kept = getattr(images, "kept", None)
        if kept is None:
            return images

        def again() -> NDArray[np.uint32]:
            return self.replay_here(trace, inputs, primes, checkpoint).tails

        return KeptImages(
            primes=images.primes,
            lucky=images.lucky,
            kept=_Recoverable(kept, again, self.lost),
            on_gpu=images.on_gpu,
        )

    def settle(
        self,
        lift: Lift,
        kept: Sequence[KeptLanes],
        primes: tuple[int, ...],
        checkpoint: Checkpoint,
    ) -> bool:
        there = [(one.there, lanes) for one, lanes in kept if isinstance(one, _Recoverable)]
        try:
            return self._lifting.settle(lift, there, primes, checkpoint)
        except AlkahestError as error:
            self.lost(error)
            return False

    def lost(self, error: AlkahestError) -> None:
        """Count a failure at residues that were kept."""
        self._noted(error)
        self.failed_liftings += 1


class _Recoverable:
    """Residues that a device keeps, and the way to have them without it.

    Attributes:
        there: the device's.
    """

    def __init__(
        self,
        there: KeptResidues,
        again: Callable[[], NDArray[np.uint32]],
        lost: Callable[[AlkahestError], None],
    ) -> None:
        self.there = there
        self._again = again
        self._lost = lost
        self._here: NDArray[np.uint32] | None = None

    def columns(self, lanes: Sequence[int]) -> NDArray[np.uint32]:
        if self._here is None:
            try:
                return self.there.columns(lanes)
            except AlkahestError as error:
                self._lost(error)
            self._here = self._again()
        return self._here[:, list(lanes)]

    def close(self) -> None:
        self.there.close()


def with_fallback(reducer: Reducer) -> Reducer:
    """The same, but the host does what fails on its device."""
    there = lifting(reducer)
    return _FallbackReducer(reducer) if there is None else _LiftingFallback(there)


class Chooser(Protocol):
    """A reducer that says, time after time, whether it or another is to do the work.

    Either method may be missing: the reducer then does all work of that kind.
    """

    def for_replay(self, trace: Trace, done: int) -> Reducer:
        """What replays next, when ``done`` primes have been replayed."""
        ...

    def for_matrix(self, matrix: SymbolicMatrix) -> Reducer:
        """What reduces a matrix modulo one prime."""
        ...


def replaying(reducer: Reducer, trace: Trace, done: int) -> Reducer:
    """``reducer``, or what it chooses if it is a :class:`Chooser`."""
    choose = getattr(reducer, "for_replay", None)
    return reducer if choose is None else cast(Reducer, choose(trace, done))


def reducing(reducer: Reducer, matrix: SymbolicMatrix) -> Reducer:
    """The same for a matrix."""
    choose = getattr(reducer, "for_matrix", None)
    return reducer if choose is None else cast(Reducer, choose(matrix))


class Whereabouts(TypedDict):
    """Fields of :class:`~alkahest.groebner.engine.records.RunReport`."""

    planned_on_cpu: int
    reductions_on_cpu: int
    reductions_on_gpu: int
    first_gpu_error: str
    choice: str


def failed_so_far(reducer: Reducer) -> tuple[int, int]:
    """How many reductions, and liftings, a device has failed at since the reducer was made."""
    return getattr(reducer, "failures", 0), getattr(reducer, "failed_liftings", 0)


def where_done(
    reducer: Reducer, on_gpu: Sequence[bool], before: tuple[int, int] = (0, 0)
) -> Whereabouts:
    """Fields of a report.

    Args:
        reducer: what did some reductions.
        on_gpu: where each of them was done.
        before: what had failed before them.
    """
    failures, liftings = (n - b for n, b in zip(failed_so_far(reducer), before, strict=True))
    done = sum(on_gpu)
    left = len(on_gpu) - done
    failed = left if reducer.on_gpu else failures
    return {
        "planned_on_cpu": left - failed,
        "reductions_on_cpu": failed + liftings,
        "reductions_on_gpu": done,
        "first_gpu_error": getattr(reducer, "first_error", ""),
        "choice": getattr(reducer, "choice", ""),
    }
