"""One batch whose columns live in host memory: cut, carried and reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import chunks, faults, kernel, transit
from alkahest.backends.nvptx.chunks import SPREAD_POINTS, Cut, Layout, Manifest, Place, Track
from alkahest.backends.nvptx.convoy import Convoy
from alkahest.backends.nvptx.hostlink import SMALL_BYTES, HostLink
from alkahest.backends.nvptx.staging import address_of, is_page_locked

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Measured on a host with 16 cores, a link of 55 GB/s each way and an H200, in microseconds unless
# it says otherwise, for x*y of float64.

MAPPED_BYTES = SMALL_BYTES
"""Largest block that a kernel reads and writes where the calling thread put it."""

MAPPED_CREW_BYTES = 32 << 20
"""Largest batch whose chunks are read and written where the copy threads put them.

Two calls of the driver less per chunk: 350 against 525 for 2**18 points (6 MiB), 730 against 1000 for
2**20 (24 MiB), 2200 either way for 2**22 (96 MiB).
"""

LOCKED_BYTES = 4 << 20
"""Smallest batch whose arrays are asked whether they are page-locked.

That takes 10 per array, in which the threads copy as much as half a megabyte.
"""

LEAST_CHUNK = 256 << 10
"""Bytes that are worth a trip of their own, where a batch has few for every thread.

With 128 KiB, 2**16 points take 264 to 278 instead of 214 to 264; with 512 KiB and copies, 380.
"""

CHUNKS_PER_THREAD = 2
"""Chunks of each thread in a batch that is not large: one for each of its lanes.

2**20 points take 730 with two, 850 with one, 1040 with four.
"""

PAGE_BYTES = 2 << 20
"""Bytes of the large pages that the system gives to large arrays.

A page that is written for the first time is cleared by whoever writes, and by several threads at once
where these meet in it. With chunks that begin where pages do, 2**27 fresh results of one column
take 47 ms instead of 55.
"""


@attrs.frozen(kw_only=True, eq=False)
class HostBatch:
    """A batch for a kernel whose device is current.

    Attributes:
        kernel: what runs.
        columns: one array per input, shape (n,), any stride.
        outputs: one array per output, shape (n,), any stride; they are written.
        n: number of points, at least 1.
        threads: most copy threads, or None.
        fresh: whether the memory of the outputs has probably never been written.
    """

    kernel: kernel.Kernel
    columns: Sequence[NDArray[Any]]
    outputs: Sequence[NDArray[Any]]
    n: int
    threads: int | None = None
    fresh: bool = False

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
        return self._traffic(manifest, layout.points, -(-self.n // layout.points))

    def _with_crew(self, link: HostLink, limit: int) -> dict[str, Any] | None:
        """By the copy threads; None, and nothing is done, where they cannot."""
        sizes = tuple([array.itemsize for array in self._arrays])
        inputs, with_table = len(self.columns), self.kernel.takes_table
        size = self.n * sum(sizes)
        places = tuple([_place(array, size >= LOCKED_BYTES) for array in self._arrays])
        # Every thread of a kernel reads the table, which the link is too slow for.
        mapped = size <= MAPPED_CREW_BYTES and not with_table and Place.LOCKED not in places
        hands = min(link.crew.threads, self.threads or link.crew.threads)
        manifest = _manifest(sizes, places, inputs, with_table)
        before_page = self._before_page if self.fresh else None
        cut = _cut(manifest, self.n, link.lane_bytes, hands, limit, before_page)
        if cut is None:
            return None
        with self._spread(manifest, cut.points) as spread:
            convoy = Convoy(
                manifest,
                self._arrays,
                cut=cut,
                spread=spread,
                kernel=int(self.kernel.core.handle),
                block=self.kernel.block,
                grids=[self.kernel.grid(points) for points in cut.sizes],
                where=self._where,
                copied=0 if mapped else None,
                threads=self.threads,
            )
            if not link.crew.run(convoy):
                return None
            convoy.check()
        copied_in, waited, copied_out = convoy.seconds()
        return {
            **self._traffic(manifest, cut.points, cut.chunks),
            "seconds_copying_in": copied_in,
            "seconds_waiting": waited,
            "seconds_copying_out": copied_out,
        }

    @property
    def _before_page(self) -> int:
        """Points of the first output before a page begins."""
        output = self.outputs[0]
        return -address_of(output) % PAGE_BYTES // output.itemsize

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (*self.columns, *self.outputs)

    @property
    def _where(self) -> str:
        return f"device {self.kernel.device.ordinal}, {self.kernel.device.name}"

    def _traffic(self, manifest: Manifest, points: int, number: int) -> dict[str, Any]:
        """What is reported of every batch, in ``number`` chunks of up to ``points`` points."""
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


@lru_cache(maxsize=256)
def _manifest(
    sizes: tuple[int, ...], places: tuple[Place, ...], inputs: int, with_table: bool
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
    manifest = _manifest(sizes, (Place.STAGED,) * len(sizes), inputs, with_table)
    return manifest, manifest.layout(min(manifest.most_points(SMALL_BYTES), most))


@lru_cache(maxsize=256)
def _cut(
    manifest: Manifest, n: int, lane_bytes: int, hands: int, limit: int, before_page: int | None
) -> Cut | None:
    """How a batch is cut for a crew; None where one point alone is too large for a lane.

    Args:
        manifest: what travels.
        n: number of points.
        lane_bytes: of each lane.
        hands: threads that carry it.
        limit: most points of a chunk.
        before_page: points of the first output before a page begins; None where pages are not
            minded.
    """
    most = manifest.most_points(lane_bytes)
    if manifest.layout(most).end > lane_bytes:
        return None
    most = min(most, limit, n)
    rounds = -(-n // (hands * most))
    if rounds > CHUNKS_PER_THREAD and before_page is not None:
        page = PAGE_BYTES // next(track.itemsize for track in manifest.tracks if track.is_output)
        if page <= most:
            return Cut(n, most - most % page, before_page % page or page)
    share = chunks.rounded(-(-n // (hands * max(rounds, CHUNKS_PER_THREAD))))
    return Cut.even(n, min(most, max(share, manifest.most_points(LEAST_CHUNK))))


def _place(array: NDArray[Any], may_be_locked: bool) -> Place:
    if len(array) > 1 and array.strides[0] == 0:
        return Place.SPREAD
    return Place.LOCKED if may_be_locked and is_page_locked(array) else Place.STAGED


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
