"""Where callers leave the jobs of a crew, and its threads find them; see ``carrier_desk``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Protocol

from alkahest.backends.nvptx import carrier
from alkahest.backends.nvptx import carrier_code as records


class Equipped(Protocol):
    """A lane."""

    @property
    def rig(self) -> carrier.Rig:
        """What the machine code knows of it."""
        ...


class Desk:
    """A desk with a number of seats. Seats are given out elsewhere.

    Args:
        seats: most jobs that are done at once.

    Raises:
        CudaError: E-CUDA-001 where LLVM cannot be used.
        OSError: the C library has no unnamed semaphores.
    """

    def __init__(self, seats: int) -> None:
        self._code = carrier.code()
        self._semaphores = _Semaphores(seats + 2)
        self._jobs = (ctypes.c_int64 * seats)()
        lock, work = seats, seats + 1
        self._record = records.Desk(
            take=self._semaphores.take,
            give=self._semaphores.give,
            lock=self._semaphores.address(lock),
            work=self._semaphores.address(work),
            jobs=ctypes.addressof(self._jobs),
            seats=seats,
        )
        self._work = work
        self._address = ctypes.addressof(self._record)
        self._semaphores.post(lock)

    def leave(self, job: records.Job, seat: int, threads: int) -> None:
        """Leave a job at a free seat and wake some threads."""
        job.done = self._semaphores.address(seat)
        self._code.post(self._address, ctypes.addressof(job), seat, threads)

    def wait(self, job: records.Job, seat: int, *, patient: bool = False) -> bool:
        """Whether the job is over: nobody is at it, and nobody will be. Then its seat is free.

        False when a signal has interrupted a caller who is not patient.
        """
        return not self._code.wait(self._address, ctypes.addressof(job), seat, patient)

    def stop(self, job: records.Job, seat: int) -> None:
        """Have no other chunk begun."""
        job.done = self._semaphores.address(seat)
        self._code.stop(self._address, ctypes.addressof(job))

    def serve(self, driver: records.Driver, lanes: Sequence[Equipped]) -> None:
        """Carry jobs in these lanes until the desk is closed and has none that waits."""
        array = (ctypes.c_uint64 * len(lanes))(*(lane.rig.address for lane in lanes))
        self._code.serve(
            ctypes.addressof(driver), self._address, ctypes.addressof(array), len(lanes)
        )

    def close(self, threads: int) -> None:
        """Have that many threads return from :meth:`serve`."""
        self._record.closed = 1
        for _ in range(threads):
            self._semaphores.post(self._work)


class _Semaphores:
    """Semaphores of the C library, all of them 0 at first.

    Args:
        count: how many.

    Attributes:
        take: address of ``sem_wait``.
        give: address of ``sem_post``.

    Raises:
        OSError: there are none.
    """

    def __init__(self, count: int) -> None:
        try:
            library = ctypes.CDLL(None)
            take, give, init = library.sem_wait, library.sem_post, library.sem_init
        except (AttributeError, OSError, TypeError) as missing:
            raise OSError("the C library has no semaphores") from missing
        self.take, self.give = (_address_of(function) for function in (take, give))
        self._memory = (ctypes.c_uint64 * ((count + 1) * _APART // 8))()
        first = ctypes.addressof(self._memory)
        self._first = first + -first % _APART
        self._give = give
        for position in range(count):
            if init(ctypes.c_void_p(self.address(position)), 0, 0):
                raise OSError("the C library has no unnamed semaphores")

    def address(self, position: int) -> int:
        """Of one of them."""
        return self._first + position * _APART

    def post(self, position: int) -> None:
        """Give one of them."""
        self._give(ctypes.c_void_p(self.address(position)))


_APART = 64
"""Bytes for a semaphore, which has 16 to 32: no two of them are in one line of the caches."""


def _address_of(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
