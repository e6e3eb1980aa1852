"""A batch that the calling thread carries by itself, one chunk after the other.

For small batches, which the kernel reads and writes where the host put them, without a copy by the
device; and for any other that the copy threads cannot take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.chunks import Layout, Manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.nvptx.staging import Lane


class Launch(Protocol):
    """Queues a kernel; see :meth:`alkahest.backends.nvptx.kernel.Kernel.launch`."""

    def __call__(self, addresses: Sequence[int], n: int, stream: Any) -> None: ...


def carry(
    manifest: Manifest,
    layout: Layout,
    arrays: Sequence[NDArray[Any]],
    *,
    lane: Lane,
    launch: Launch,
    where: str,
    mapped: bool,
) -> None:
    """Evaluate a batch through one lane; the results are complete on return.

    Args:
        manifest: of ``arrays``, all of them staged.
        layout: of every chunk; the last may have fewer points.
        arrays: every column, then every output; shape (n,), any stride.
        lane: large enough for the layout; it may still be in use after an error.
        launch: queues the kernel.
        where: the device, as messages name it.
        mapped: whether the kernel works on the host's memory itself.

    Raises:
        CudaError: E-CUDA-003, a copy was refused; E-CUDA-006, the kernel was, or failed.
    """
    import numpy as np

    n = len(arrays[0])
    base = lane.block.host_address if mapped else lane.block.address
    arguments = [base + offset for offset in layout.offsets if offset is not None]
    table = None
    if manifest.with_table:
        table, arguments = np.array(arguments, np.uint64).view(np.uint8), [base]
    places = _places(lane, layout, arrays)
    for start in range(0, n, layout.points):
        stop = min(start + layout.points, n)
        for track, place, array in zip(manifest.tracks, places, arrays, strict=True):
            if not track.is_output:
                np.copyto(place[: stop - start], array[start:stop])
        if table is not None:
            np.copyto(lane.block.host[: len(table)], table)
        if not mapped and layout.up:
            with faults.translated("E-CUDA-003", f"copying columns to {where}"):
                lane.send(layout.up)
        with faults.translated("E-CUDA-006", f"running a kernel on {where}"):
            launch(arguments, stop - start, lane.stream)
        if not mapped:
            with faults.translated("E-CUDA-003", f"copying results from {where}"):
                lane.fetch(layout.down, layout.end - layout.down)
        with faults.translated("E-CUDA-006", f"running a kernel on {where}"):
            lane.wait()
        for track, place, array in zip(manifest.tracks, places, arrays, strict=True):
            if track.is_output:
                np.copyto(array[start:stop], place[: stop - start])


def _places(lane: Lane, layout: Layout, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The host's part of each array's place in the lane."""
    return [
        lane.block.host[offset : offset + layout.points * array.itemsize].view(array.dtype)
        for offset, array in zip(layout.offsets, arrays, strict=True)
        if offset is not None
    ]
