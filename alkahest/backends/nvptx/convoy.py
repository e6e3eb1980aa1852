"""The chunks of one batch, as machine code carries them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import carrier_code as records
from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.chunks import ORDER, Cut, Layout, Manifest
from alkahest.backends.nvptx.faults import DriverError
from alkahest.backends.nvptx.staging import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

TURNS = 16
"""Chunks that a thread carries before it turns to the jobs of other callers."""

AROUND_CACHES = True
"""Whether results are written to the caller's memory past the caches.

On a host with 16 cores and an H200, 12 threads, 2**27 points: 10 ms for the copies of 1 GiB of
results, 15 ms through the caches. Columns must stay in the caches, from where the device reads them:
past them, copies of 2 GiB take 47 ms instead of 23.
"""

# By the step in a status of Carry: error code, what was being done, function of the driver.
_FAILURES = {
    1: ("E-CUDA-003", "copying columns to", "cuMemcpyHtoDAsync"),
    2: ("E-CUDA-006", "running a kernel on", "cuLaunchKernel"),
    3: ("E-CUDA-003", "copying results from", "cuMemcpyDtoHAsync"),
    4: ("E-CUDA-006", "running a kernel on", "cuEventSynchronize"),
}

_ANY = 1 << 32


class Convoy:
    """The chunks of one batch; see :class:`alkahest.backends.nvptx.crew.Job`.

    Args:
        manifest: how each of ``arrays`` travels.
        arrays: every column, then every output; shape (n,), any stride.
        cut: where a chunk begins and ends.
        spread: addresses on the device of the values of spread columns, by position.
        kernel: handle of the kernel.
        block: threads of a block.
        grids: blocks of the launches over each of ``cut.sizes``.
        where: the device, as messages name it.
        copied: how many arrays, from the first on, the device has copies of; all the inputs at
            least, or none. The kernel reads and writes the others in the host's memory. None for all.
        threads: most threads that carry it at once, or None.

    Attributes:
        record: for the machine code.
    """

    def __init__(
        self,
        manifest: Manifest,
        arrays: Sequence[NDArray[Any]],
        *,
        cut: Cut,
        spread: Mapping[int, int],
        kernel: int,
        block: int,
        grids: Sequence[int],
        where: str,
        copied: int | None = None,
        threads: int | None = None,
    ) -> None:
        copied = len(arrays) if copied is None else copied
        plan = _plan(manifest, cut.points)
        layout = plan.layout
        self._arrays = arrays  # keeps their memory
        self._where = where
        self._tracks = (records.Track * len(arrays))(
            *(_track(arrays[k], layout.offsets[k] or 0) for k in plan.order)
        )
        self._addresses = (ctypes.c_int64 * len(arrays))(
            *(spread[k] if at is None else ~at for k, at in enumerate(layout.offsets))
        )
        self.record = records.Job(
            chunks=cut.chunks,
            points=cut.points,
            n=cut.n,
            up=layout.up if copied else 0,
            down=layout.down if copied == len(arrays) else layout.end,
            end=layout.end,
            tracks=ctypes.addressof(self._tracks),
            staged=plan.ends[0],
            inputs=plan.ends[1],
            locked=plan.ends[2],
            outputs=plan.ends[3],
            kernel=kernel,
            block=block,
            first=cut.first,
            grid=grids[0],
            first_grid=grids[1],
            last_grid=grids[2],
            around=AROUND_CACHES,
            addresses=ctypes.addressof(self._addresses),
            arrays=len(arrays),
            copied=copied,
            table=manifest.with_table,
            turns=TURNS,
            most=_ANY if threads is None else threads,
        )

    def check(self) -> None:
        """See whether all went well.

        Raises:
            CudaError: E-CUDA-003, a copy was refused; E-CUDA-006, a kernel was, or has failed.
        """
        if self.record.status:
            step, code = divmod(self.record.status, 1 << 32)
            error, doing, function = _FAILURES[step]
            with faults.translated(error, f"{doing} {self._where}"):
                raise DriverError(code, function)

    def seconds(self) -> tuple[float, float, float]:
        """Spent copying columns, waiting for the device and copying results, over all threads."""
        record = self.record
        return (record.copied_in / 1e9, record.waited / 1e9, record.copied_out / 1e9)


@attrs.frozen
class _Plan:
    """What convoys of one manifest and chunk size have in common.

    Attributes:
        layout: of a chunk.
        order: positions of the arrays, in the order in which the machine code goes through them.
        ends: where the groups of :data:`ORDER` end in it.
    """

    layout: Layout
    order: tuple[int, ...]
    ends: tuple[int, ...]


@lru_cache(maxsize=256)
def _plan(manifest: Manifest, points: int) -> _Plan:
    groups = [manifest.positions(place, outputs=outputs) for place, outputs in ORDER]
    ends = [sum(map(len, groups[: i + 1])) for i in range(len(groups))]
    order = tuple(k for group in groups for k in group)
    return _Plan(manifest.layout(points), order, tuple(ends))


def _track(array: NDArray[Any], offset: int) -> records.Track:
    stride = array.strides[0] if len(array) > 1 else array.itemsize
    return records.Track(address_of(array), stride, array.itemsize, offset)
