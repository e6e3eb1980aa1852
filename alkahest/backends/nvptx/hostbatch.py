"""One batch whose columns live in host memory: cut, carried and reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import carrier, chunks, faults, kernel, transit
from alkahest.backends.nvptx.chunks import SPREAD_POINTS, Layout, Manifest, Place, Track
from alkahest.backends.nvptx.convoy import Convoy
from alkahest.backends.nvptx.crew import Job
from alkahest.backends.nvptx.hostlink import SMALL_BYTES, HostLink
from alkahest.backends.nvptx.staging import address_of, is_page_locked

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAPPED_BYTES = SMALL_BYTES
"""Largest block that a kernel reads and writes where it is, in the host's memory."""

LEAST_CHUNK = 512 << 10
"""Bytes that are worth a trip of their own, where a batch has few for every thread."""


@attrs.frozen(kw_only=True, eq=False)
class HostBatch:
    """A batch for a kernel whose device is current.

    Attributes:
        kernel: what runs.
        columns: one array per input, shape (n,), any stride.
        outputs: one array per output, shape (n,), any stride; they are written.
        n: number of points, at least 1.
        threads: most copy threads, or None.
    """

    kernel: kernel.Kernel
    columns: Sequence[NDArray[Any]]
    outputs: Sequence[NDArray[Any]]
    n: int
    threads: int | None = None

    def run(self, link: HostLink, stream: Any) -> dict[str, Any]:
        """Evaluate everything; the result is complete on return.

        Args:
            link: to the kernel's device.
            stream: a ``cuda.core.Stream`` for what the calling thread does by itself.

        Returns:
            The report; its seconds are summed over the copy threads.

        Raises:
            CudaError: E-CUDA-003 for memory, a copy or a stream; E-CUDA-006 for a kernel.
            InputError: E-INPUT-011 for a chunk size that is no number.
        """
        limit = chunks.limit_of_environment() or self.n
        facts = None
        if self.n * sum(array.itemsize for array in self._arrays) > SMALL_BYTES:
            facts = self._with_crew(link, limit)
        if facts is None:
            facts = self._alone(link, limit, stream)
        device = self.kernel.device
        return {
            "device": device.ordinal,
            "device_name": device.name,
            "target": self.kernel.artifact.target,
            **facts,
        }

    def _alone(self, link: HostLink, limit: int, stream: Any) -> dict[str, Any]:
        """In the calling thread."""
        sizes = tuple(array.itemsize for array in self._arrays)
        manifest, layout = _plan_alone(
            sizes, len(self.columns), self.kernel.takes_table, min(limit, self.n)
        )
        with link.lane(layout.end, stream) as lane:
            transit.carry(
                manifest,
                layout,
                self._arrays,
                lane=lane,
                launch=self.kernel.launch,
                where=self._where,
                # Every thread of a kernel reads the table, which the link is too slow for.
                mapped=layout.end <= MAPPED_BYTES and not manifest.with_table,
            )
        return self._traffic(manifest, layout.points)

    def _with_crew(self, link: HostLink, limit: int) -> dict[str, Any] | None:
        """By the copy threads; None, and nothing is done, where they cannot."""
        manifest = _manifest(
            [array.itemsize for array in self._arrays],
            [_place(array) for array in self._arrays],
            len(self.columns),
            self.kernel.takes_table,
        )
        fitting = manifest.most_points(link.lane_bytes)
        if manifest.layout(fitting).end > link.lane_bytes:
            return None  # one point alone is larger
        share = chunks.rounded(-(-self.n // (link.crew.threads * link.crew.depth)))
        points = max(share, manifest.most_points(LEAST_CHUNK))
        points = min(points, fitting, limit, self.n)
        with self._spread(manifest, points) as spread:
            convoy = Convoy(
                manifest,
                self._arrays,
                points=points,
                spread=spread,
                kernel=int(self.kernel.core.handle),
                block=self.kernel.block,
                grids=(self.kernel.grid(points), self.kernel.grid((self.n - 1) % points + 1)),
                carry=carrier.carry(),
                driver=carrier.of_driver(),
                where=self._where,
            )
            if not link.crew.run(Job(convoy, self.threads)):
                return None
        copied_in, waited, copied_out = convoy.seconds()
        return {
            **self._traffic(manifest, points),
            "seconds_copying_in": copied_in,
            "seconds_waiting": waited,
            "seconds_copying_out": copied_out,
        }

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (*self.columns, *self.outputs)

    @property
    def _where(self) -> str:
        return f"device {self.kernel.device.ordinal}, {self.kernel.device.name}"

    def _traffic(self, manifest: Manifest, points: int) -> dict[str, Any]:
        """What is reported of every batch."""
        number = -(-self.n // points)
        up = down = 0
        for track in manifest.tracks:
            if track.is_output:
                down += track.itemsize * self.n
            elif track.place is Place.SPREAD:
                up += track.itemsize * min(points, SPREAD_POINTS)
            else:
                up += track.itemsize * self.n
        staged = any(track.place is Place.STAGED for track in manifest.tracks)
        return {
            "launches": number,
            "chunks": number,
            "bytes_up": up,
            "bytes_down": down,
            "staging": "pinned" if staged else "direct",
        }

    @contextlib.contextmanager
    def _spread(self, manifest: Manifest, points: int) -> Iterator[dict[int, int]]:
        """Addresses of ``points`` times the value of each spread column, on the device."""
        positions = manifest.positions(Place.SPREAD, outputs=False)
        if not positions:
            yield {}
            return
        device = self.kernel.device
        room = chunks.padded(max(manifest.tracks[k].itemsize for k in positions) * points)
        doing = f"spreading values over {self._where}"
        with device.current() as stream:
            with faults.translated("E-CUDA-003", doing):
                first = device.allocate(room * len(positions), stream)
            try:
                addresses = {k: first + room * i for i, k in enumerate(positions)}
                with faults.translated("E-CUDA-003", doing):
                    for k, address in addresses.items():
                        _fill(address, self.columns[k][:points], stream)
                    stream.sync()
                yield addresses
            finally:
                device.release(first, stream)


def _manifest(
    sizes: Sequence[int], places: Sequence[Place], inputs: int, with_table: bool
) -> Manifest:
    tracks = tuple(
        Track(size, place, is_output=k >= inputs)
        for k, (size, place) in enumerate(zip(sizes, places, strict=True))
    )
    return Manifest(tracks, with_table)


@lru_cache(maxsize=64)
def _plan_alone(
    sizes: tuple[int, ...], inputs: int, with_table: bool, most: int
) -> tuple[Manifest, Layout]:
    """How a batch goes through one lane, with at most ``most`` points at a time."""
    manifest = _manifest(sizes, [Place.STAGED] * len(sizes), inputs, with_table)
    return manifest, manifest.layout(min(manifest.most_points(SMALL_BYTES), most))


def _place(array: NDArray[Any]) -> Place:
    if len(array) > 1 and array.strides[0] == 0:
        return Place.SPREAD
    return Place.LOCKED if is_page_locked(array) else Place.STAGED


def _fill(address: int, column: NDArray[Any], stream: Any) -> None:
    """Queue the copy of a column of one value to the device, most of it from there.

    Raises:
        DriverError: the driver refused a copy.
    """
    import numpy as np
    from cuda.bindings import driver as cu

    source = np.ascontiguousarray(column[:SPREAD_POINTS])
    result = cu.cuMemcpyHtoDAsync(address, address_of(source), source.nbytes, stream.handle)
    faults.check(result, "cuMemcpyHtoDAsync")
    faults.check(cu.cuStreamSynchronize(stream.handle), "cuStreamSynchronize")  # it has been read
    done = source.nbytes
    while done < column.nbytes:
        size = min(done, column.nbytes - done)
        result = cu.cuMemcpyDtoDAsync(address + done, address, size, stream.handle)
        faults.check(result, "cuMemcpyDtoDAsync")
        done += size
