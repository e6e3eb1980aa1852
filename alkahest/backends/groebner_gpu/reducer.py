"""The reducer that this plugin offers: the engine's linear algebra on one or several GPUs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from alkahest.backends.groebner_gpu import model, rounds
from alkahest.backends.groebner_gpu.conversion import follow
from alkahest.backends.groebner_gpu.kept import Kept, joined
from alkahest.backends.groebner_gpu.lifting import settle
from alkahest.backends.groebner_gpu.plugin import BACKEND
from alkahest.backends.groebner_gpu.record import Record, record_of
from alkahest.backends.groebner_gpu.replay import replay, replay_kept
from alkahest.groebner.engine.reducers import host_reducer
from alkahest.groebner.engine.trace import Images, KeptImages
from alkahest.groebner.engine.work import work_of_matrix
from alkahest.groebner.following import Followed
from alkahest.plugin import calibrated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.sessions import Device
    from alkahest.groebner.engine.lift import Lift
    from alkahest.groebner.engine.reducers import Reducer
    from alkahest.groebner.engine.reduction import ReducedRows
    from alkahest.groebner.engine.symbolic import SymbolicMatrix
    from alkahest.groebner.engine.trace import Trace
    from alkahest.groebner.engine.work import Work
    from alkahest.groebner.following import Walk

Found = TypeVar("Found")

LANES_OF_A_DEVICE = 64
"""Primes that one call brings to each device; fewer at once where its memory is short."""

LEAST_PRODUCTS = 1e7
"""Products that a matrix modulo one prime must be expected to take to be worth some hundred launches.

A core of a processor does about 1e9 a second.
"""


class GpuReducer:
    """Linear algebra on devices: replays divide their primes, single matrices take the first.

    Attributes:
        name: of the devices.
        on_gpu: whether the devices are GPUs.
        lanes: primes that a replay takes.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        first = devices[0]
        self.name = first.name if len(devices) == 1 else f"{len(devices)} devices: {first.name}"
        self.on_gpu = all(device.is_gpu for device in devices)
        self.lanes = LANES_OF_A_DEVICE * len(devices)
        self._devices = tuple(devices)
        self._records: weakref.WeakKeyDictionary[Trace, Record] = weakref.WeakKeyDictionary()

    def echelon(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Callable[[], None],
    ) -> ReducedRows:
        """See :func:`alkahest.backends.groebner_gpu.rounds.echelon`."""
        return rounds.echelon(self._devices[0], matrix, coefficients, prime, seed, checkpoint)

    def echelon_with_rows(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Callable[[], None],
    ) -> tuple[ReducedRows, NDArray[np.int64]]:
        """See :func:`alkahest.backends.groebner_gpu.rounds.echelon_with_rows`."""
        return rounds.echelon_with_rows(
            self._devices[0], matrix, coefficients, prime, seed, checkpoint
        )

    def normal_forms(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        checkpoint: Callable[[], None],
    ) -> ReducedRows:
        """See :func:`alkahest.backends.groebner_gpu.rounds.normal_forms`."""
        return rounds.normal_forms(self._devices[0], matrix, coefficients, prime, checkpoint)

    def for_matrix(self, matrix: SymbolicMatrix) -> Reducer:
        """See :class:`alkahest.groebner.engine.reducers.Chooser`."""
        is_large = work_of_matrix(matrix).products >= LEAST_PRODUCTS
        return self if is_large else host_reducer()

    def predicted(self, work: Work, lanes: int, primes: int) -> tuple[float, float] | str:
        """See :class:`alkahest.groebner.engine.choosing.PredictingReducer`."""
        figures, obstacle = calibrated(BACKEND)
        if not figures:
            return f"{obstacle}; run `alkahest calibrate`"
        devices = min(lanes, len(self._devices))
        return model.predicted(figures, devices, work, lanes, primes)

    def replay(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Callable[[], None],
    ) -> Images:
        """See :func:`alkahest.backends.groebner_gpu.replay.replay`; devices work side by side."""
        done = self._side_by_side(replay, trace, inputs, primes, checkpoint)
        return Images(
            primes=tuple(primes),
            lucky=_flags(lucky for _, lucky in done),
            tails=done[0][0] if len(done) == 1 else np.concatenate([t for t, _ in done], axis=1),
            on_gpu=self.on_gpu,
        )

    def replay_kept(
        self,
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Callable[[], None],
    ) -> KeptImages | Images:
        """See :class:`alkahest.groebner.engine.reducers.LiftingReducer`."""
        done = self._side_by_side(replay_kept, trace, inputs, primes, checkpoint)
        flags = _flags(lucky for _, lucky in done)
        kept = joined([(part, len(lucky)) for part, lucky in done])
        if isinstance(kept, Kept):
            return KeptImages(primes=tuple(primes), lucky=flags, kept=kept, on_gpu=self.on_gpu)
        return Images(primes=tuple(primes), lucky=flags, tails=kept, on_gpu=self.on_gpu)

    def settle(
        self,
        lift: Lift,
        kept: Sequence[tuple[Kept, Sequence[int]]],
        primes: tuple[int, ...],
        checkpoint: Callable[[], None],
    ) -> bool:
        """See :func:`alkahest.backends.groebner_gpu.lifting.settle`; the first device does it."""
        return settle(lift, kept, primes, checkpoint)

    def _side_by_side(
        self,
        compute: Callable[..., Found],
        trace: Trace,
        inputs: NDArray[np.uint32],
        primes: Sequence[int],
        checkpoint: Callable[[], None],
    ) -> list[Found]:
        """What each device finds for its share of the primes."""
        record = self._records.get(trace)
        if record is None:
            record = self._records[trace] = record_of(trace)

        def one(device: Device, part: slice) -> Found:
            return compute(device, record, inputs[:, part], primes[part], checkpoint)

        return self._divided(one, len(primes))

    def follow(
        self,
        walk: Walk,
        primes: Sequence[int],
        checkpoint: Callable[[], None],
        *,
        vectors: bool,
    ) -> Followed:
        """See :func:`alkahest.backends.groebner_gpu.conversion.follow`; devices work side by side."""

        def compute(device: Device, part: slice) -> tuple[Any, Any, Any]:
            return follow(device, walk, primes[part], checkpoint, vectors=vectors)

        lucky, tails, rows = zip(*self._divided(compute, len(primes)), strict=True)
        return Followed(
            lucky=tuple(np.concatenate(lucky).tolist()),
            tails=np.concatenate(tails),
            vectors=np.concatenate(rows) if vectors else None,
            on_gpu=self.on_gpu,
        )

    def _divided(self, compute: Callable[[Device, slice], Found], primes: int) -> list[Found]:
        """What the devices compute for their shares of the primes."""
        share = -(-primes // len(self._devices))
        parts = [slice(at, at + share) for at in range(0, primes, share)]
        if len(parts) == 1:
            return [compute(self._devices[0], parts[0])]
        with ThreadPoolExecutor(len(parts)) as pool:
            pairs = zip(self._devices, parts, strict=False)
            futures = [pool.submit(compute, device, part) for device, part in pairs]
        try:
            # What one device raises is raised when the others have ended too.
            return [future.result() for future in futures]
        except BaseException:
            futures.clear()  # what other devices keep goes back now, and not with the traceback
            raise


def _flags(parts: Iterable[NDArray[np.bool_]]) -> tuple[bool, ...]:
    return tuple(bool(flag) for part in parts for flag in part)


def make_reducer(ordinal: int | None) -> GpuReducer:
    """The reducer of one device, or of every device.

    Raises:
        CudaError: E-CUDA-003 or 004 where there is no such device, or its driver is too old.
    """
    from alkahest.backends.groebner_gpu.gpu import open_all, open_gpu

    return GpuReducer(open_all() if ordinal is None else [open_gpu(ordinal)])


__all__ = ["LANES_OF_A_DEVICE", "LEAST_PRODUCTS", "GpuReducer", "make_reducer"]
