"""Evaluates programs on a device, with columns that live in host memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import driver, faults, transfer
from alkahest.backends.nvptx.device import KEPT_BYTES, Device, open_device
from alkahest.backends.nvptx.kernel import Kernel, load
from alkahest.plugin import Artifact, Batch, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray


class NvptxEvaluator:
    """Evaluates one program on one device; see :class:`alkahest.plugin.Evaluator`.

    Nothing happens on the device before the first :meth:`evaluate`. Any thread may call. Threads
    share the loaded kernel and nothing else, so that their copies and launches overlap; no lock is
    held and the interpreter's is free while the driver works.
    """

    def __init__(self, artifact: Artifact, ordinal: int | None) -> None:
        self._artifact = artifact
        self._ordinal = 0 if ordinal is None else ordinal
        self._loading = threading.Lock()
        self._kernel: Kernel | None = None

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point; the result is complete on return.

        Work is queued on ``batch.stream``, or on the calling thread's default stream. A batch
        that needs more than 80 % of the free device memory, or has more points than
        ``ALKAHEST_CUDA_CHUNK`` says, goes in chunks.

        Raises:
            CudaError: E-CUDA-003 without such a device, or where the driver refuses the code, the
                memory or a copy; E-CUDA-004 for a device that is too old; E-CUDA-006 where the
                kernel cannot be launched or fails.
            InputError: E-INPUT-011 for a chunk size that is no number.
            InputTypeError: E-INPUT-008 for a stream that is none.
        """
        import numpy as np

        ordinal = driver.check_ordinal(self._ordinal)
        names = self._artifact.program.output_dtypes
        outputs = batch.out or tuple(np.empty(batch.n, name) for name in names)
        if batch.n == 0:
            return Outcome(outputs=outputs, report={"device": ordinal, "launches": 0, "chunks": 0})
        device = open_device(ordinal)
        with device.current(batch.stream) as stream:
            call = _Call(
                kernel=self._load(device),
                columns=batch.columns,
                outputs=outputs,
                n=batch.n,
                stream=stream,
            )
            return Outcome(outputs=outputs, report=call.run())

    def _load(self, device: Device) -> Kernel:
        """The kernel on ``device``, which is current; the first call loads it."""
        kernel = self._kernel
        if kernel is None or kernel.device is not device:
            with self._loading:
                kernel = self._kernel
                if kernel is None or kernel.device is not device:
                    kernel = self._kernel = load(self._artifact, device)
        return kernel


@attrs.frozen(kw_only=True, eq=False)
class _Call:
    """One batch on its way through the device, which is current."""

    kernel: Kernel
    columns: Sequence[NDArray[Any]]
    outputs: Sequence[NDArray[Any]]
    n: int
    stream: Any
    traffic: transfer.Traffic = attrs.field(factory=transfer.Traffic)

    def run(self) -> dict[str, Any]:
        """Everything, chunk by chunk; returns the report."""
        import numpy as np

        arrays = (*self.columns, *self.outputs)
        points = self._chunk_points(sum(array.itemsize for array in arrays))
        with self._buffers([array.itemsize * points for array in arrays]) as buffers:
            arguments: Sequence[int] = buffers
            with contextlib.ExitStack() as stack:
                if self.kernel.takes_table:
                    table = np.array(buffers, np.uint64)
                    arguments = stack.enter_context(self._buffers([table.nbytes]))
                    self._upload([table], arguments)
                for start in range(0, self.n, points):
                    self._chunk(slice(start, min(start + points, self.n)), buffers, arguments)
        chunks = -(-self.n // points)
        return {
            "device": self.kernel.device.ordinal,
            "device_name": self.kernel.device.name,
            "target": self.kernel.artifact.target,
            "launches": chunks,
            "chunks": chunks,
            "bytes_up": self.traffic.up,
            "bytes_down": self.traffic.down,
        }

    def _chunk(self, part: slice, buffers: Sequence[int], arguments: Sequence[int]) -> None:
        inputs, results = buffers[: len(self.columns)], buffers[len(self.columns) :]
        fresh = [
            (column[part], address)
            for column, address in zip(self.columns, inputs, strict=True)
            if part.start == 0 or not transfer.is_spread(column)
        ]
        kept = self._upload([column for column, _ in fresh], [address for _, address in fresh])
        with self._translated("E-CUDA-006", "running a kernel"):
            self.kernel.launch(arguments, part.stop - part.start, self.stream)
            self.stream.sync()
        del kept
        places = [output[part] for output in self.outputs]
        with self._translated("E-CUDA-003", "copying results from the device"):
            received = [
                transfer.download(address, place, self.stream, self.traffic)
                for address, place in zip(results, places, strict=True)
            ]
            self.stream.sync()
        for place, values in zip(places, received, strict=True):
            if values is not place:
                place[...] = values

    def _upload(
        self, columns: Sequence[NDArray[Any]], buffers: Sequence[int]
    ) -> list[NDArray[Any]]:
        """Queue the copies; the returned arrays must live until the stream is synchronised."""
        with self._translated("E-CUDA-003", "copying columns to the device"):
            return [
                transfer.upload(column, buffer, self.stream, self.traffic)
                for column, buffer in zip(columns, buffers, strict=True)
            ]

    def _chunk_points(self, bytes_per_point: int) -> int:
        free = None
        if self.n * bytes_per_point > KEPT_BYTES:  # asking costs more than a small batch
            with self._translated("E-CUDA-003", "asking for free memory"):
                free = self.kernel.device.free_bytes()
        return transfer.chunk_points(self.n, bytes_per_point, free)

    @contextlib.contextmanager
    def _buffers(self, sizes: Sequence[int]) -> Iterator[list[int]]:
        """Addresses of device memory of these sizes in bytes, freed whatever happens."""
        from cuda.bindings import driver as cu

        device = self.kernel.device
        addresses: list[int] = []
        try:
            with self._translated("E-CUDA-003", f"allocating {sum(sizes)} bytes"):
                for size in sizes:
                    addresses.append(device.allocate(size, self.stream))
            yield addresses
        finally:
            for address in addresses:
                device.release(address, self.stream)
            # Nothing may still read the caller's arrays when an error leaves this call, and the
            # pool gives memory back at a synchronisation.
            cu.cuStreamSynchronize(self.stream.handle)

    def _translated(self, error: str, doing: str) -> contextlib.AbstractContextManager[None]:
        device = self.kernel.device
        return faults.translated(error, f"{doing} on device {device.ordinal}, {device.name}")
