"""Deadlines, memory bounds and progress: asked between rounds and between batches of rows."""

from __future__ import annotations

import mmap
import sys
import time

import attrs

from alkahest.errors import SolverError
from alkahest.groebner.engine.records import Progress, ProgressCallback


def _resident_bytes() -> int:
    """Memory of this process now; where the system does not say, its peak so far, or 0."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # no such module on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@attrs.define(kw_only=True)
class Limits:
    """What bounds a run and who is told of it.

    Attributes:
        deadline: reading of :func:`time.monotonic` at which to stop, or None.
        memory: bytes that the process may grow by during the run, or None.
        progress: called by :meth:`tell`, or None.
    """

    deadline: float | None = None
    memory: int | None = None
    progress: ProgressCallback | None = None
    _start: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._start = 0 if self.memory is None else _resident_bytes()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, not negative, or None."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def checkpoint(self) -> None:
        """Stop the run when a limit has been reached.

        Raises:
            SolverError: E-SOLVE-012.
        """
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise SolverError("E-SOLVE-012", "the deadline passed before the basis was complete")
        if self.memory is not None:
            self.foresee(0)

    def foresee(self, more: int) -> None:
        """Stop the run rather than allocate ``more`` bytes beyond the limit: E-SOLVE-012."""
        if self.memory is not None and _resident_bytes() - self._start + more > self.memory:
            raise SolverError(
                "E-SOLVE-012", f"the computation needs more than memory={self.memory} bytes"
            )

    def tell(self, progress: Progress) -> None:
        """Report progress, then check the limits. An exception of the callback ends the run."""
        if self.progress is not None:
            self.progress(progress)
        self.checkpoint()
