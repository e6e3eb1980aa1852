"""Clocks: device time by CUDA events, wall time, medians, deadlines.

Samples of several subjects are interleaved, A B C A B C, so that all see the same machine. Before
each sample the device is kept busy filling a scratch buffer: that evicts the inputs from the cache,
and while it lasts the host queues the subject's work, so that device time has no host time in it.
"""

from __future__ import annotations

import contextlib
import math
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import attrs

Run = Callable[[], object]

WARM_UPS = 3

_SCRATCH_BYTES = 1 << 30
_FILLS = 4
_QUEUED = 4
"""Calls between two looks at the wall clock, where no event can be had."""


class OutOfTime(BaseException):
    """A deadline has passed; no ``Exception``, so that no compiler catches it and falls back."""


@attrs.frozen
class Sample:
    """Times of one subject.

    Attributes:
        milliseconds: in the order in which they were taken.
    """

    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """What is compared."""
        return statistics.median(self.milliseconds)

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles over the median; differences below it are noise."""
        if len(self.milliseconds) < 4:
            return math.nan
        low, _, high = statistics.quantiles(self.milliseconds, n=4)
        return (high - low) / 2 / self.median


class DeviceClock:
    """Takes device times on CuPy's current stream, which everybody but JAX works on."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        free, _ = cupy.cuda.runtime.memGetInfo()
        self._scratch = cupy.empty(min(_SCRATCH_BYTES, free // 16) // 8)
        self._events = cupy.cuda.Event(), cupy.cuda.Event()

    def event_time(self, run: Run) -> float:
        """Milliseconds of device time that ``run`` queues, once."""
        start, stop = self._events
        self._occupy()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, stop))

    def wall_time(self, run: Run, finish: Callable[[object], object]) -> float:
        """Milliseconds per call by the wall clock, of a few calls queued at once.

        Args:
            run: one call.
            finish: waits for what a call returned.
        """
        self._occupy()
        self._cupy.cuda.runtime.deviceSynchronize()
        start = time.perf_counter()
        for _ in range(_QUEUED):
            last = run()
        finish(last)
        return (time.perf_counter() - start) / _QUEUED * 1e3

    def _occupy(self) -> None:
        for _ in range(_FILLS):
            self._scratch.fill(1.25)


def interleaved(clocks: Sequence[Callable[[], float]], repeats: int) -> list[Sample]:
    """``repeats`` samples of each clock, taken in turns, after a few rounds that do not count."""
    rounds = [[clock() for clock in clocks] for _ in range(WARM_UPS + repeats)][WARM_UPS:]
    return [Sample(tuple(times)) for times in zip(*rounds, strict=True)]


def wall_samples(run: Run, *, at_least: int, seconds: float) -> Sample:
    """Wall times of calls that wait for their result: until both limits are reached, 50 at most."""
    run()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < at_least or (time.perf_counter() - begin < seconds and len(times) < 50):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return Sample(tuple(times))


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` in the block once it has run for ``seconds``; main thread only.

    A call into compiled code is not interrupted before it returns.
    """
    if not hasattr(signal, "setitimer"):
        yield  # not a Unix system: no deadline
        return

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
