"""Threads of the processor that share one step of a computation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alkahest.groebner.engine.reducers import Reducer


def threads_beside(reducer: Reducer) -> int:
    """How many threads the processor's own steps may use.

    Beside a device all that there are, since nothing else would use them; otherwise one, so that
    a computation keeps to one core and several can run side by side.
    """
    if not reducer.on_gpu:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_SHARE = 1 << 14
"""Entries of a matrix, or monomials, at least, that a thread is woken for."""


class Team:
    """At most so many threads, started when they are first needed; ended by leaving the block."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def split(self, entries: int) -> list[int]:
        """Bounds of the parts into which work on so many entries of a matrix is best divided."""
        parts = max(1, min(self.size, entries // _SHARE))
        return [entries * k // parts for k in range(parts + 1)]

    def each(self, work: Callable[[int, int], object], bounds: Sequence[int]) -> None:
        """Call ``work`` for each stretch between neighbouring bounds, side by side.

        Nothing but compiled code that releases the interpreter's lock gains by it.
        """
        if len(bounds) == 2:
            work(*bounds)
            return
        stretches = list(pairwise(bounds))
        if len(stretches) > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.size - 1)
        # This thread takes the first stretch itself.
        futures = [self._pool.submit(work, *one) for one in stretches[1:]] if self._pool else []
        try:
            if stretches:
                work(*stretches[0])
        finally:
            for future in futures:
                future.result()
