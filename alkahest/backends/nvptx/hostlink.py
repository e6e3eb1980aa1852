"""The page-locked memory and the copy threads of each device.

Both are made by the first batch that needs them, kept, and given back when the process exits. A
forked child has neither: it is refused before it gets here, and gives nothing back.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs

from alkahest.backends.nvptx import carrier
from alkahest.backends.nvptx.crew import Crew, copy_threads
from alkahest.backends.nvptx.device import Device
from alkahest.backends.nvptx.staging import Block, Lane, Streams

# Measured on a host with 16 cores and an H200, whose link carries 55 GB/s each way and 50 both ways at
# once. Shares are of what that link gives for x*y, and for a cubic of x, over 2**27 float64.

LANE_BYTES = (4 << 20) + (64 << 10)
"""Page-locked bytes, and bytes on the device, of each lane of a crew.

A chunk costs the device about 10 us besides its bytes, while the caches have to hold all lanes: 90 %
and 84 % with 4 MiB, 91 and 85 with 5, 76 and 65 with 2, 54 and 38 with 1, 58 and 48 with 8. The rest
is for alignment, so that lengths of powers of two give no chunk too many.
"""

LANES_PER_THREAD = 2
"""Lanes of each copy thread: 82 % and 70 % with three."""

STREAMS = 8
"""Streams that the lanes of a crew share.

From 3 to 8 large batches are the same, 90 % and 82 %; with one for each lane 85 and 79. Batches of
2**18 points, whose kernels use the link themselves, take 440 us with 4 and 350 with 24.
"""

SMALL_BYTES = 1 << 20
"""Page-locked bytes, and bytes on the device, of a block for a batch that its caller carries.

With x*y of 2**15 points (768 KiB) it takes 150 to 200 us, as the crew does; of 2**14, 100 to 150, the
crew 140 to 180.
"""

SMALL_BLOCKS = 16
"""Most of those; further callers wait for one."""


@attrs.frozen(kw_only=True, eq=False)
class HostLink:
    """What carries host columns to one device.

    Attributes:
        device: the device.
        crew: threads and lanes for batches of several chunks.
        streams: of the lanes.
        lane_bytes: size of the block of each lane of the crew.
    """

    device: Device
    crew: Crew[Lane]
    streams: Streams
    lane_bytes: int
    _free: deque[Block] = attrs.field(factory=deque, init=False)
    _seats: threading.BoundedSemaphore = attrs.field(
        factory=partial(threading.BoundedSemaphore, SMALL_BLOCKS), init=False
    )

    @contextlib.contextmanager
    def lane(self, size: int, stream: Any) -> Iterator[Lane]:
        """A lane of at least ``size`` bytes on the caller's stream, whose context is current.

        Blocks of up to :data:`SMALL_BYTES` are kept for the next call. On leaving, nothing is
        queued on the stream any more.

        Raises:
            CudaError: E-CUDA-003, there is not enough memory.
        """
        with self._seats:
            kept = size <= SMALL_BYTES and self._may_keep
            block = self._kept_block(stream) if kept else Block.open(self.device, size, stream)
            lane = Lane.on(block, stream)
            try:
                yield lane
            except BaseException:
                lane.settle()
                raise
            finally:
                if kept:
                    self._free.append(block)
                else:
                    block.close(self.device, stream)

    @property
    def _may_keep(self) -> bool:
        # Without a pool, memory belongs to the context that is current, which may be a stream's.
        return self.device.pool is not None

    def _kept_block(self, stream: Any) -> Block:
        try:
            return self._free.pop()
        except IndexError:
            return Block.open(self.device, SMALL_BYTES, stream)

    def close(self) -> None:
        """Give everything back that is not in use."""
        with self.device.current() as stream:
            if self.crew.close(lambda lane: lane.close(self.device)):
                self.streams.close()
            while self._free:
                self._free.pop().close(self.device, stream)


_lock = threading.Lock()
_links: dict[Device, HostLink] = {}
_opened_in: int | None = None


def link_to(device: Device) -> HostLink:
    """The one link to ``device`` of this process.

    Raises:
        InputError: E-INPUT-011 for a number of copy threads that is none, before the first link
            is made.
    """
    link = _links.get(device)
    if link is None:
        with _lock:
            link = _links.get(device)
            if link is None:
                link = _links[device] = _make(device)
    return link


def _make(device: Device) -> HostLink:
    global _opened_in
    size = LANE_BYTES
    streams = Streams(device, STREAMS)
    crew = Crew(
        f"alkahest-copy-{device.ordinal}",
        open_lane=lambda: Lane.open(device, size, streams.next()),
        within=device.current,
        driver=carrier.of_driver,
        threads=copy_threads(),
        depth=LANES_PER_THREAD,
    )
    if _opened_in is None:
        _opened_in = os.getpid()
        atexit.register(close_all)
    return HostLink(device=device, crew=crew, streams=streams, lane_bytes=size)


def close_all() -> None:
    """Give back the memory and the threads of every link, in the process that made them."""
    if _opened_in != os.getpid():
        return
    with _lock:
        links = list(_links.values())
        _links.clear()
    for link in links:
        # A context that a failed kernel has ruined is given back by the system.
        with contextlib.suppress(Exception):
            link.close()
