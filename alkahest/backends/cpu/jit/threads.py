"""Worker threads whose waiting and sharing out is machine code.

A call that is worth it is cut into chunks. The calling thread takes chunks one after the other, and
so does every worker that comes in time; nobody waits for a worker that has not begun. So a worker
that sleeps too long, or a processor that somebody else uses, makes a call no slower than one thread.

What a caller does wait for is a chunk that a worker has begun, and that takes long where others want
the processor. So calls of a few milliseconds at most are judged: each kernel remembers the time of a
point in one thread, and when a shared call was slower than that, the next ones are not shared, twice
as many after each such call.

Workers are threads of the system that never see the interpreter. They spin a few microseconds for
the next job and then sleep. One job is shared at a time: a caller that finds the workers taken does
its own work alone, so any number of Python threads may call. A forked child starts its own workers.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from alkahest.backends.cpu.jit import threads_code
from alkahest.backends.cpu.jit.threads_code import HAS_JOB, IS_IDLE, MUTEX, SPINS, WORDS
from alkahest.errors import InputError

VARIABLE = "ALKAHEST_NUM_THREADS"
"""Environment variable: the number of threads of calls that do not say ``threads=``."""

MOST_THREADS = 256
"""Threads of one call, whatever is asked for."""

_SPIN_COUNT = 600
"""Pauses before a worker sleeps: some 20 microseconds, a little more than Python needs between calls."""


def code(architecture: str) -> str:
    """The IR of ``worker`` and ``share`` for this system and a processor, ``"x86_64"`` for instance."""
    if _threads_library() is None:
        return threads_code.ALONE
    return threads_code.code("aarch64" if architecture == "arm64" else architecture)


def default_threads() -> int:
    """Threads of a call that does not say: ``ALKAHEST_NUM_THREADS``, or the processors we may use.

    Raises:
        InputError: E-INPUT-011 for a value that is no number of threads.
    """
    text = os.environ.get(VARIABLE, "")
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise InputError(
                "E-INPUT-011",
                f"{VARIABLE}={text!r} is not a number of threads",
                remediation=f"Set it to 1 or more, or unset {VARIABLE}.",
            )
        return min(int(text), MOST_THREADS)
    return min(usable_processors(), MOST_THREADS)


def usable_processors() -> int:
    """Processors that the system lets this process use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """The workers of this process; see the module. Safe to use from many threads.

    Args:
        address_of: gives the address of a function of the runtime by its name.
    """

    def __init__(self, address_of: Callable[[str], int]) -> None:
        self._worker = address_of("worker")
        share = ctypes.CFUNCTYPE(
            ctypes.c_int64, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4, ctypes.c_void_p
        )
        self._share = share(address_of("share"))
        self._memory = ctypes.create_string_buffer(WORDS * 8 + 64)
        # Workers look at it until the very end of the process, so it is never given back.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Have no workers, as at the start: those of a parent are not in its child.

        The place stays the same, since fast calls know it.
        """
        self._starting = threading.Lock()
        self._workers = 0
        self._most = MOST_THREADS
        ctypes.memset(self.address, 0, WORDS * 8)
        system = _threads_library()
        if system is None:
            self._most = 1
            return
        ctypes.c_int64.from_address(self.address + 8 * SPINS).value = _SPIN_COUNT
        system.pthread_mutex_init(ctypes.c_void_p(self.address + 8 * MUTEX), None)
        for condition in (HAS_JOB, IS_IDLE):
            system.pthread_cond_init(ctypes.c_void_p(self.address + 8 * condition), None)

    def have(self, threads: int) -> int:
        """Have ``threads`` threads, the caller's included, or as many as there can be."""
        wanted = min(threads, self._most)
        if self._workers + 1 < wanted:
            with self._starting:
                while self._workers + 1 < wanted:
                    if not self._start():
                        self._most = self._workers + 1
                        break
                    self._workers += 1
        return min(wanted, self._workers + 1)

    def _start(self) -> bool:
        system = _threads_library()
        handle = ctypes.c_void_p()
        create = system.pthread_create if system else None
        return create is not None and not create(
            ctypes.byref(handle),
            None,
            ctypes.c_void_p(self._worker),
            ctypes.c_void_p(self.address),
        )

    def share(
        self,
        function: int,
        data: int,
        scratch: int,
        stride: int,
        n: int,
        chunk: int,
        threads: int,
        record: int = 0,
    ) -> int:
        """Run ``function(data, scratch, begin, end)`` over all points; returns the threads used.

        Args:
            function: address of the code.
            data: address, passed on.
            scratch: address of ``threads`` times ``stride`` bytes.
            stride: bytes of scratch memory of one thread.
            n: number of points, at least 1.
            chunk: points that a thread takes at once.
            threads: as :meth:`have` gave it, at least 1.
            record: address of the kernel's :func:`record`, or 0 to share in any case.
        """
        arguments = (function, data, scratch, stride, n, chunk, threads - 1, record)
        return int(self._share(self.address, *arguments))


def record() -> Any:
    """What a kernel remembers of its shared calls."""
    return (ctypes.c_int64 * 4)()


def _threads_library() -> Any:
    """The system's library with POSIX threads, or None where there is none."""
    return None if sys.platform == "win32" else ctypes.CDLL(None)


__all__ = [
    "MOST_THREADS",
    "VARIABLE",
    "Pool",
    "code",
    "default_threads",
    "record",
    "usable_processors",
]
