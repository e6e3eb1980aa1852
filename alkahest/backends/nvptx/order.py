"""The order of work on different streams, and what has to live until work is done."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from alkahest.backends.nvptx import faults

if TYPE_CHECKING:
    from alkahest.backends.nvptx.device import Device

_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_NOT_READY = 600  # CUDA_ERROR_NOT_READY


class Marker:
    """A point in the work of a stream: everything queued on it so far."""

    def __init__(self, handle: int) -> None:
        """Mark what is queued on a stream, whose context is current.

        Raises:
            DriverError: the driver refused.
        """
        from cuda.bindings import driver as cu

        self._event = faults.check(cu.cuEventCreate(_NO_TIMING), "cuEventCreate")
        # Destroying an event whose point is not reached is put off by the driver until it is.
        weakref.finalize(self, _destroy, os.getpid(), int(self._event)).atexit = False
        faults.check(cu.cuEventRecord(self._event, handle), "cuEventRecord")

    def is_reached(self) -> bool:
        """Whether the work is done; so it is in a context that a failed kernel has ruined."""
        from cuda.bindings import driver as cu

        return int(cu.cuEventQuery(self._event)[0]) != _NOT_READY

    def hold(self, handle: int) -> None:
        """Let later work on a stream wait for this point.

        Raises:
            DriverError: the driver refused.
        """
        from cuda.bindings import driver as cu

        faults.check(cu.cuStreamWaitEvent(handle, self._event, 0), "cuStreamWaitEvent")


def _destroy(process: int, event: int) -> None:
    if process == os.getpid():
        from cuda.bindings import driver as cu

        cu.cuEventDestroy(event)


def follow(device: Device, handle: int, others: Iterable[int]) -> None:
    """Let later work on one stream wait for what is queued on others.

    Raises:
        CudaError: E-CUDA-003, a stream belongs to another device.
        DriverError: the driver refused.
    """
    for other in others:
        with device.entered(other):
            marker = Marker(other)
        marker.hold(handle)


class Kept:
    """Objects whose memory queued work still reads, until it has been done.

    They are let go by later calls: nothing here waits, and nothing runs in between.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Marker, Any]] = deque()

    def add(self, marker: Marker, objects: Any) -> None:
        """Keep ``objects`` until the point is reached."""
        self._waiting.append((marker, objects))

    def let_go(self) -> None:
        """Drop what is no longer needed; any thread may."""
        for _ in range(len(self._waiting)):
            try:
                marker, objects = self._waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            if not marker.is_reached():
                self._waiting.append((marker, objects))

    def __len__(self) -> int:
        return len(self._waiting)


KEPT = Kept()
"""What the calls of this process keep."""
