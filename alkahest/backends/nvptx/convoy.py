"""The chunks of one batch, as the copy threads carry them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from alkahest.backends.nvptx import carrier_code as records
from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.carrier import Carry
from alkahest.backends.nvptx.chunks import Manifest, Place
from alkahest.backends.nvptx.faults import DriverError
from alkahest.backends.nvptx.staging import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.nvptx.staging import Lane

TURNS = 16
"""Chunks that a thread carries before it turns to the jobs of other callers."""

AROUND_CACHES = True
"""Whether results are written to the caller's memory past the caches."""

# By the step in a status of Carry: error code, what was being done, function of the driver.
_FAILURES = {
    1: ("E-CUDA-003", "copying columns to", "cuMemcpyHtoDAsync"),
    2: ("E-CUDA-006", "running a kernel on", "cuLaunchKernel"),
    3: ("E-CUDA-003", "copying results from", "cuMemcpyDtoHAsync"),
    4: ("E-CUDA-006", "running a kernel on", "cuEventSynchronize"),
}


class Convoy:
    """The chunks of one batch; see :class:`alkahest.backends.nvptx.crew.Work`.

    Args:
        manifest: how each of ``arrays`` travels.
        arrays: every column, then every output; shape (n,), any stride.
        points: points of every chunk but the last.
        spread: addresses on the device of the values of spread columns, by position.
        kernel: handle of the kernel.
        block: threads of a block.
        grids: blocks of a launch over ``points`` points, and of that over the last chunk.
        carry: the loop of the threads.
        driver: the functions that it calls.
        where: the device, as messages name it.
    """

    def __init__(
        self,
        manifest: Manifest,
        arrays: Sequence[NDArray[Any]],
        *,
        points: int,
        spread: Mapping[int, int],
        kernel: int,
        block: int,
        grids: tuple[int, int],
        carry: Carry,
        driver: records.Driver,
        where: str,
    ) -> None:
        n = len(arrays[0])
        self.chunks = -(-n // points)
        self._arrays = arrays  # keeps their memory
        self._spread = spread
        self._manifest = manifest
        self._carry = carry
        self._driver = driver
        self._where = where
        self._layout = layout = manifest.layout(points)
        groups = [manifest.positions(place, outputs=outputs) for place, outputs in _ORDER]
        order = [k for group in groups for k in group]
        ends = [sum(map(len, groups[: i + 1])) for i in range(len(groups))]
        self._tracks = (records.Track * max(1, len(order)))(
            *(self._track(k, layout.offsets[k] or 0) for k in order)
        )
        self._job = records.Job(
            chunks=self.chunks,
            points=points,
            n=n,
            up=layout.up,
            down=layout.down,
            end=layout.end,
            tracks=ctypes.addressof(self._tracks),
            **dict(zip(("staged", "inputs", "locked", "outputs"), ends, strict=True)),
            kernel=kernel,
            block=block,
            grid=grids[0],
            last_grid=grids[1],
            table=manifest.table_bytes,
            stream=AROUND_CACHES,
        )
        self._nanoseconds: list[tuple[int, int, int]] = []

    @property
    def is_left(self) -> bool:
        """Whether a chunk has not been begun yet."""
        return bool(self._job.next < self.chunks)

    def stop(self) -> None:
        """Begin no other chunk."""
        self._job.stop = 1

    def carry(self, lanes: Sequence[Lane]) -> None:
        """Carry up to :data:`TURNS` chunks; the context of the lanes is current.

        Raises:
            CudaError: E-CUDA-003, 006. Nothing is in flight then, either.
        """
        rigs = [lane.rig for lane in lanes]
        for rig, lane in zip(rigs, lanes, strict=True):
            rig.fill(self._addresses(lane), with_table=self._manifest.with_table)
        array = (ctypes.c_uint64 * len(rigs))(*(rig.address for rig in rigs))
        status = self._carry(
            ctypes.addressof(self._driver),
            ctypes.addressof(self._job),
            ctypes.addressof(array),
            len(rigs),
            TURNS,
        )
        for rig, lane in zip(rigs, lanes, strict=True):
            record = rig.record
            if record.chunk >= 0:
                lane.settle()
            self._nanoseconds.append((record.copied_in, record.waited, record.copied_out))
        if status:
            self._fail(*divmod(status, 1 << 32))

    def seconds(self) -> tuple[float, float, float]:
        """Spent copying columns, waiting for the device and copying results, over all threads."""
        sums = [sum(column) for column in zip(*self._nanoseconds, strict=True)]
        return (sums[0] / 1e9, sums[1] / 1e9, sums[2] / 1e9)

    def _track(self, k: int, offset: int) -> records.Track:
        array = self._arrays[k]
        return records.Track(
            address=address_of(array),
            stride=array.strides[0] if len(array) > 1 else array.itemsize,
            itemsize=array.itemsize,
            offset=offset,
        )

    def _addresses(self, lane: Lane) -> list[int]:
        """What the kernel gets for every array when its chunk is in ``lane``."""
        base = lane.block.address
        return [
            self._spread[k] if offset is None else base + offset
            for k, offset in enumerate(self._layout.offsets)
        ]

    def _fail(self, step: int, code: int) -> None:
        error, doing, function = _FAILURES[step]
        with faults.translated(error, f"{doing} {self._where}"):
            raise DriverError(code, function)


_ORDER = (
    (Place.STAGED, False),
    (Place.LOCKED, False),
    (Place.LOCKED, True),
    (Place.STAGED, True),
)
