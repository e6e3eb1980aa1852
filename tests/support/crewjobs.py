"""Crews, jobs and lanes to test threads that carry chunks with, without any driver."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from collections.abc import Callable

from fakelink import FakeDriver, FakeLane

from alkahest.backends.nvptx import carrier_code as records
from alkahest.backends.nvptx.crew import Crew


class Chunks:
    """A job without columns whose kernel is a function of Python; one chunk a turn.

    Args:
        chunks: how many.
        step: what is done for each; a chunk for which it raises or returns True fails.
        threads: most threads that are at it.

    Attributes:
        done: which thread did which chunk.
        most_at_once: most threads in ``step`` at once.
    """

    def __init__(
        self,
        chunks: int,
        step: Callable[[int], object] = lambda chunk: None,
        threads: int = 1 << 32,
    ) -> None:
        self.chunks = chunks
        self.step = step
        self.done: list[tuple[int, str]] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        self._addresses = (ctypes.c_int64 * 1)(id(self))
        self.record = records.Job(
            chunks=chunks,
            points=1,
            n=chunks,
            kernel=1,
            grid=1,
            last_grid=1,
            block=1,
            arrays=1,
            addresses=ctypes.addressof(self._addresses),
            turns=1,
            most=threads,
        )

    def carried(self) -> bool:
        """Count a chunk, and say whether it has failed; called by the driver."""
        with self._lock:
            chunk = len(self.done)
            self.done.append((chunk, threading.current_thread().name))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return bool(self.step(chunk))
        finally:
            with self._lock:
                self.at_once -= 1

    @property
    def failure(self) -> int:
        """What the driver said to the launch that failed, or 0."""
        step, code = divmod(self.record.status, 1 << 32)
        assert step in (0, 2)
        return code


class Opener:
    """Opens lanes, as many as there is memory for."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.lanes: list[FakeLane] = []
        self._lock = threading.Lock()

    def __call__(self) -> FakeLane:
        with self._lock:
            if len(self.lanes) >= self.most:
                raise MemoryError("no more lanes")
            self.lanes.append(FakeLane(64))
            return self.lanes[-1]


class Driver(FakeDriver):
    """Calls the step of a job, which it finds by the only argument of the kernel."""

    def __init__(self) -> None:
        super().__init__(lambda addresses, n: None, 1)
        self.jobs: dict[int, weakref.ref[Chunks]] = {}

    def _launch(self, function: int, grid: int, *rest: int) -> int:
        pointers = ctypes.cast(rest[-2], ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
        job = self.jobs[int(pointers[0][0])]()
        assert job is not None
        return 700 if job.carried() else 0


class TestCrew(Crew[FakeLane]):
    """A crew whose driver is told of every job."""

    __test__ = False

    def __init__(self, **settings: object) -> None:
        self.known = Driver()
        super().__init__("test-crew", driver=lambda: self.known.record, **settings)  # type: ignore[arg-type]

    def run(self, job: Chunks) -> bool:  # type: ignore[override]
        self.known.jobs[id(job)] = weakref.ref(job)
        return super().run(job)


def in_thread(crew: TestCrew, job: Chunks) -> threading.Thread:
    """Start a caller."""
    thread = threading.Thread(target=crew.run, args=(job,))
    thread.start()
    return thread


def until(condition: Callable[[], object]) -> None:
    """Wait, at most ten seconds, for something to become true."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.001)
