"""Evaluates programs on a device: columns in host memory, or arrays where they are."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from alkahest import result_memory
from alkahest.backends.nvptx import arrays, driver, faults
from alkahest.backends.nvptx.device import Device, open_device
from alkahest.backends.nvptx.fastcalls import FastCalls
from alkahest.backends.nvptx.hostbatch import HostBatch
from alkahest.backends.nvptx.hostlink import link_to
from alkahest.backends.nvptx.kernel import Kernel, fitted, load
from alkahest.backends.nvptx.memory import DeviceArray
from alkahest.plugin import Artifact, Batch, DeviceBatch, Outcome


class NvptxEvaluator:
    """Evaluates one program on one device; see :class:`alkahest.plugin.DeviceEvaluator`.

    Nothing happens on the device before the first call. Any thread may call. Threads share the
    loaded kernels and, for large host arrays, the copy threads and buffers of the device
    (:mod:`alkahest.backends.nvptx.hostlink`), so that their copies and launches overlap; no lock is
    held and the interpreter's is free while the driver works.

    Attributes:
        fast_call: see :class:`alkahest.backends.nvptx.fastcalls.FastCalls`.
    """

    def __init__(self, artifact: Artifact, ordinal: int | None) -> None:
        self._artifact = artifact
        self._ordinal = 0 if ordinal is None else ordinal
        self._loading = threading.Lock()
        self._codes: dict[Device, Artifact] = {}
        self._kernels: dict[Device, Kernel] = {}
        self._arrays = arrays.DeviceArrayEvaluator(artifact.program, self._code_for, self._load)
        self.fast_call = FastCalls(artifact.program, self._arrays.plain_launchers)

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point; the result is complete on return.

        Nothing is read or written before the earlier work of ``batch.stream`` is done. Small
        batches are then queued on it, or on the calling thread's default stream; others go in
        chunks through streams of our own. ``ALKAHEST_CUDA_CHUNK`` limits the points of a chunk.

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
        outputs = batch.out or result_memory.outputs_for(
            batch.n, [np.dtype(name) for name in names]
        )
        if batch.n == 0:
            return Outcome(outputs=outputs, report={"device": ordinal, "launches": 0, "chunks": 0})
        device = open_device(ordinal)
        with device.current(batch.stream) as stream:
            call = HostBatch(
                kernel=self._load(device),
                columns=batch.columns,
                outputs=outputs,
                n=batch.n,
                threads=batch.threads,
                fresh=batch.out is None,
            )
            if batch.stream is not None:
                with faults.translated("E-CUDA-006", "waiting for the earlier work of stream="):
                    stream.sync()
            return Outcome(outputs=outputs, report=call.run(link_to(device), stream))

    def evaluate_on_device(self, batch: DeviceBatch) -> dict[str, Any]:
        """Queue a batch where its columns are.

        Raises:
            CudaError: see :meth:`alkahest.backends.nvptx.arrays.DeviceArrayEvaluator.evaluate`.
        """
        return self._arrays.evaluate(batch)

    def evaluate_addresses(self, addresses: Sequence[int], n: int, stream: Any) -> None:
        """Queue a kernel over contiguous memory; see :meth:`DeviceArrayEvaluator.evaluate_addresses`."""
        self._arrays.evaluate_addresses(open_device(self._ordinal), addresses, n, stream)

    def allocate(self, shape: tuple[int, ...], dtype: str, device: int, stream: int) -> DeviceArray:
        """Memory for results of work on ``stream``.

        Raises:
            CudaError: E-CUDA-003, there is no such device or no memory.
        """
        return DeviceArray(open_device(device), shape, dtype, stream)

    def locate(self, pointer: int) -> int:
        """Ordinal of the device of an address; see :func:`arrays.locate`."""
        return arrays.locate(pointer)

    def _load(self, device: Device) -> Kernel:
        """The kernel for contiguous columns on ``device``, which is current; loaded once."""
        kernel = self._kernels.get(device)
        if kernel is None:
            with self._loading:
                kernel = self._kernels.get(device)
                if kernel is None:
                    kernel = self._kernels[device] = load(self._code_for(device), device)
        return kernel

    def _code_for(self, device: Device) -> Artifact:
        """The code for contiguous columns on ``device``, which stays the same from then on."""
        code = self._codes.get(device)
        if code is None:
            code = self._codes.setdefault(device, fitted(self._artifact, device))
        return code
