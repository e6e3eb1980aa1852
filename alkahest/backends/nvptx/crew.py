"""Threads that carry the chunks of batches to a device and back.

A crew belongs to one device. Each of its threads has a few lanes of its own, so that it copies for
one while the device works on another. The threads take turns at the jobs of all callers: after
some chunks of one job a thread goes on with the next. Python starts the threads and opens their
lanes; what they do then, until the crew is closed, is machine code
(:mod:`alkahest.backends.nvptx.carrier`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from alkahest.backends.nvptx import carrier_code as records
from alkahest.backends.nvptx.chunks import positive_setting
from alkahest.backends.nvptx.desk import Desk, Equipped

THREADS_VARIABLE = "ALKAHEST_COPY_THREADS"
"""Environment variable: the number of threads of a crew."""

MOST_THREADS = 16
"""Threads of a crew on machines with as many processors or more.

A link of 55 GB/s is 90 % busy with 12 as with 16 where results go to memory that has been used before
(8: 67 %); with fresh memory, whose pages have to be cleared, it is 46 % with 12 and 61 % with 16.
"""

SEATS = 64
"""Jobs that are done at once; further callers do theirs by themselves."""

_PATIENCE = 1.0

L = TypeVar("L", bound=Equipped)


class Job(Protocol):
    """What a crew carries for one caller."""

    @property
    def record(self) -> records.Job:
        """For the machine code. Whatever it refers to lives as long as this object."""
        ...


class Crew(Generic[L]):
    """Threads and lanes of one device; see the module. Everything is thread-safe.

    Threads start, and open their lanes, when they are first needed, and both are kept. Where
    memory is short, the crew makes do with the lanes that it has. A thread that gets none, or that
    cannot begin, ends; a later job starts another in its place. Only the last one of a crew to end
    like that has the jobs that are there fail with its reason: while another thread lives, that
    one does them, or is the last.

    Args:
        name: of the threads.
        open_lane: opens a lane; called in a thread of the crew.
        within: makes the context that each thread works in.
        driver: gives the functions that the threads call.
        threads: most threads, at least 1.
        depth: lanes of each thread, at least 1.
    """

    def __init__(
        self,
        name: str,
        *,
        open_lane: Callable[[], L],
        within: Callable[[], contextlib.AbstractContextManager[Any]],
        driver: Callable[[], records.Driver],
        threads: int,
        depth: int,
    ) -> None:
        self.threads = threads
        self.depth = depth
        self._name = name
        self._open_lane = open_lane
        self._within = within
        self._driver = driver
        self._lock = threading.Lock()
        self._desk: Desk | None = None
        self._seated: list[Job | None] = [None] * SEATS
        self._failures: dict[int, BaseException] = {}
        self._hands: list[threading.Thread] = []
        self._lanes: list[L] = []
        self._closed = False

    def run(self, job: Job) -> bool:
        """Do a job and wait for it; False, and nothing is done, where no thread can be had.

        Whether the threads met an error is in the record. Whatever is raised, nobody is at the job
        any more: an interruption of the wait is raised when the chunks that had been begun have
        ended.

        Raises:
            BaseException: why no thread could begin; what interrupted the wait.
            CudaError: E-CUDA-001 where LLVM cannot be used.
        """
        record = job.record
        with self._lock:
            wanted = min(self.threads, record.most, record.chunks)
            desk = self._open_desk()
            seat = self._seat() if desk is not None and self._start(wanted) else None
            if desk is None or seat is None:
                return False
            self._seated[seat] = job
        try:
            try:
                with self._lock:  # a crew that is closed now ends when it has seen this job
                    if self._closed:
                        return False
                    desk.leave(record, seat, wanted)
                while not desk.wait(record, seat):
                    pass  # here Python calls the handlers of signals
            except BaseException:
                desk.stop(record, seat)
                desk.wait(record, seat, patient=True)
                raise
        finally:
            with self._lock:
                # A second interruption can get here before the threads are through: the memory that
                # they use is kept, and so is the seat.
                if record.over == records.LEFT:
                    self._seated[seat] = None
                error = self._failures.pop(seat, None)
        if error is not None:
            try:
                raise error
            finally:
                del error  # whose traceback refers to this frame
        return True

    def close(self, close_lane: Callable[[L], Any]) -> bool:
        """End the threads when their jobs are done, and give back the lanes.

        False, and the lanes are left alone, where a thread is still at work after a second.
        """
        with self._lock:
            self._closed = True
            hands = list(self._hands)
            if self._desk is not None:
                self._desk.close(len(hands))
        for thread in hands:
            thread.join(_PATIENCE / len(hands))
        if any(thread.is_alive() for thread in hands):
            return False
        while self._lanes:
            close_lane(self._lanes.pop())
        return True

    def _open_desk(self) -> Desk | None:
        """The desk, made by the first job; None without semaphores."""
        if self._desk is None:
            with contextlib.suppress(OSError):
                self._desk = Desk(SEATS)
        return self._desk

    def _seat(self) -> int | None:
        """A free seat, or None."""
        return next((k for k, job in enumerate(self._seated) if job is None), None)

    def _start(self, wanted: int) -> int:
        """Have ``wanted`` threads, or as many as can be had; returns how many there are."""
        while len(self._hands) < wanted and not self._closed:
            name = f"{self._name}-{len(self._hands)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more, or the process is about to exit
                break
            self._hands.append(thread)
        return 0 if self._closed else len(self._hands)

    # What each thread does.

    def _work(self) -> None:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._within())
                driver = self._driver()
                lanes = self._open_lanes()
            except BaseException as error:  # noqa: BLE001 - the callers raise it
                self._give_up(error)
                return
            desk = self._desk
            assert desk is not None  # made before the first thread
            desk.serve(driver, lanes)

    def _open_lanes(self) -> list[L]:
        """The lanes of a thread, or as many as there is memory for.

        Raises:
            Exception: what ``open_lane`` raised, where there is none.
        """
        lanes: list[L] = []
        try:
            while len(lanes) < self.depth:
                lanes.append(self._open_lane())
        except Exception:
            if not lanes:
                raise
        with self._lock:
            self._lanes.extend(lanes)
        return lanes

    def _give_up(self, error: BaseException) -> None:
        """End the calling thread, which cannot work; the last one has every job fail."""
        with self._lock:
            self._hands.remove(threading.current_thread())
            if self._hands or self._desk is None:
                return
            for seat, job in enumerate(self._seated):
                if job is not None:
                    self._failures[seat] = error
                    self._desk.stop(job.record, seat)


def copy_threads() -> int:
    """Threads of a crew: what the environment says, else one per processor of this process.

    Raises:
        InputError: E-INPUT-011 where the environment variable is not a positive integer.
    """
    given = positive_setting(THREADS_VARIABLE, "the number of threads that copy")
    return given if given is not None else min(_processors(), MOST_THREADS)


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
