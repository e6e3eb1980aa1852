"""Large downloads: through page-locked memory that is kept, by several threads at once.

The driver copies to memory that is not page-locked at a fraction of the link's speed, and the
pages of a fresh array are cleared by whoever writes them first: both are work for several threads.
"""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.backends.nvptx.crew import copy_threads
from alkahest.backends.nvptx.hostlink import SMALL_BYTES, link_to
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.nvptx.device import Device

LEAST_BYTES = 4 << 20
"""Bytes from which on a download is divided among threads."""


def download(device: Device, address: int, values: NDArray[Any]) -> None:
    """Fill a C-contiguous array from device memory that nothing writes any more.

    Raises:
        CudaError: E-CUDA-003, no page-locked memory can be had.
        DriverError: the driver refused a copy.
    """
    octets = values.reshape(-1).view(np.uint8)
    starts = deque(range(0, octets.size, SMALL_BYTES))
    link = link_to(device)
    refused: list[CudaError] = []

    def carry() -> None:
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(device.current())
                lane = stack.enter_context(link.lane(SMALL_BYTES, stream))
            except CudaError as error:
                refused.append(error)  # the others do without this thread
                return
            while starts:
                try:
                    start = starts.popleft()
                except IndexError:
                    return
                target = octets[start : start + SMALL_BYTES]
                lane.fetch_from(address + start, target.size)
                lane.wait()
                target[:] = lane.block.host[: target.size]

    threads = min(copy_threads(), len(starts))
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(carry) for _ in range(threads)]:
            done.result()
    if len(refused) == threads:
        raise refused[0]


__all__ = ["LEAST_BYTES", "download"]
