"""Threads that carry the chunks of batches to a device and back.

A crew belongs to one device. Each of its threads has a few lanes of its own, so that it copies for
one while the device works on another. The threads take turns at the jobs of all callers: after
some chunks of one job a thread goes on with the next. Nothing here knows what a chunk is.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from alkahest.backends.nvptx.chunks import positive_setting

THREADS_VARIABLE = "ALKAHEST_COPY_THREADS"
"""Environment variable: the number of threads of a crew."""

MOST_THREADS = 16
"""Threads of a crew on machines with as many processors or more."""

_PATIENCE = 1.0

L = TypeVar("L", contravariant=True)


class Work(Protocol[L]):
    """What a crew has to do for one caller."""

    @property
    def chunks(self) -> int:
        """How many there are, at least 1."""
        ...

    @property
    def is_left(self) -> bool:
        """Whether a chunk has not been begun yet."""
        ...

    def carry(self, lanes: Sequence[L]) -> None:
        """Begin some chunks in these lanes and end them; called by several threads at once.

        When it returns or raises, the device no longer uses the lanes.
        """
        ...

    def stop(self) -> None:
        """Have every :meth:`carry` return soon, and begin no other chunk."""
        ...


class Job(Generic[L]):
    """Some work, and who is at it. Everything but :meth:`wait` is for a crew that holds its lock.

    Args:
        work: what there is to do.
        threads: most threads that are at it at once, or None.
    """

    def __init__(self, work: Work[L], threads: int | None = None) -> None:
        self.work = work
        self.threads = threads
        self.error: BaseException | None = None
        self.active = 0
        self._stopped = False
        self._over = threading.Event()

    @property
    def has_room(self) -> bool:
        """Whether one more thread may join."""
        is_full = self.threads is not None and self.active >= self.threads
        return not is_full and not self._stopped and self.work.is_left

    def leave(self, error: BaseException | None) -> None:
        """A thread has left, if need be because of an error."""
        self.active -= 1
        if error is not None:
            self.stop(error)
        self.check()

    def stop(self, error: BaseException | None) -> None:
        """Let no thread join any more; the first error is kept."""
        if self.error is None:
            self.error = error
        self._stopped = True
        self.work.stop()
        self.check()

    def check(self) -> None:
        """Wake the caller when nothing is left and nobody at work."""
        if not self.active and (self._stopped or not self.work.is_left):
            self._over.set()

    def wait(self) -> None:
        """Block until every chunk that was begun has ended and no other will begin."""
        self._over.wait()


class Crew(Generic[L]):
    """Threads and lanes of one device; see the module. Everything is thread-safe.

    Threads start, and open their lanes, when they are first needed, and both are kept. Where
    memory is short, the crew makes do with the lanes that it has.

    Args:
        name: of the threads.
        open_lane: opens a lane; called in a thread of the crew.
        within: makes the context that each thread works in.
        threads: most threads, at least 1.
        depth: lanes of each thread, at least 1.
    """

    def __init__(
        self,
        name: str,
        *,
        open_lane: Callable[[], L],
        within: Callable[[], contextlib.AbstractContextManager[Any]],
        threads: int,
        depth: int,
    ) -> None:
        self.threads = threads
        self.depth = depth
        self._name = name
        self._open_lane = open_lane
        self._within = within
        self._changed = threading.Condition(threading.Lock())
        self._jobs: deque[Job[L]] = deque()
        self._hands: list[threading.Thread] = []
        self._lanes: list[L] = []
        self._opening = 0
        self._closed = False

    def run(self, job: Job[L]) -> bool:
        """Do a job and wait for it; False, and nothing is done, where no thread can be had.

        Whatever is raised, nobody is at the job any more: an interruption of the wait is raised
        when the chunks that had been begun have ended, unless a second one comes.

        Raises:
            BaseException: the first that ``within``, ``open_lane`` or the work raised; what
                interrupted the wait.
        """
        try:
            with self._changed:
                if not self._start(min(self.threads, job.threads or self.threads, job.work.chunks)):
                    return False
                self._jobs.append(job)
                self._changed.notify_all()
            job.wait()
        except BaseException:
            with self._changed:
                job.stop(None)
            job.wait()
            raise
        finally:
            with self._changed:
                if job in self._jobs:
                    self._jobs.remove(job)
        error, job.error = job.error, None
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
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            hands = list(self._hands)
        for thread in hands:
            thread.join(_PATIENCE / len(hands))
        if any(thread.is_alive() for thread in hands):
            return False
        while self._lanes:
            close_lane(self._lanes.pop())
        return True

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

    # What each thread does. No frame may keep a job while its thread is idle: the job refers to
    # the arrays of the caller.

    def _work(self) -> None:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._within())
            except BaseException as error:  # noqa: BLE001 - the callers raise it
                with self._changed:
                    self._hands.remove(threading.current_thread())
                    # While others are there they do the work: this failure may be an old one,
                    # of a thread that was started for a job that has ended.
                    for job in self._jobs if not self._hands else ():
                        job.stop(error)
                return
            hand: _Hand[L] = _Hand()
            while self._take_turn(hand):
                pass

    def _take_turn(self, hand: _Hand[L]) -> bool:
        """Carry some chunks of the next job, if need be after waiting; False to end the thread."""
        job = self._join_next()
        if job is None:
            return False
        error = None
        try:
            if not hand.is_equipped and not self._equip(hand):
                return False
            job.work.carry(hand.lanes)
        except BaseException as caught:  # noqa: BLE001 - the caller raises it
            error = caught
        finally:
            with self._changed:
                job.leave(error)
                self._changed.notify()
            del error  # whose traceback refers to this frame
        return True

    def _join_next(self) -> Job[L] | None:
        """The job whose turn it is, each giving way to the others; None when closed."""
        with self._changed:
            while True:
                for _ in range(len(self._jobs)):
                    self._jobs.rotate(-1)
                    if self._jobs[-1].has_room:
                        self._jobs[-1].active += 1
                        return self._jobs[-1]
                if self._closed:
                    return None
                self._changed.wait()

    def _equip(self, hand: _Hand[L]) -> bool:
        """Open the lanes of a thread; False where it gets none, but others have or may get some.

        Raises:
            Exception: what ``open_lane`` raised, where nobody has a lane.
        """
        with self._changed:
            self._opening += 1
        failure = None
        try:
            while len(hand.lanes) < self.depth:
                hand.lanes.append(self._open_lane())
        except Exception as error:  # noqa: BLE001 - raised below, unless others can work
            failure = error
        with self._changed:
            self._opening -= 1
            self._lanes.extend(hand.lanes)
            if hand.lanes:
                hand.is_equipped = True
                return True
            if failure is not None and not self._lanes and not self._opening:
                raise failure
            self._hands.remove(threading.current_thread())
            return False


class _Hand(Generic[L]):
    """What a thread of a crew has."""

    def __init__(self) -> None:
        self.lanes: list[L] = []
        self.is_equipped = False


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
