"""Launching a kernel with as little host time as the driver allows.

The parameters are packed by one call into memory that the launch keeps, so that the same launch can
be queued again without any of it, and ``cuLaunchKernel`` is called directly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.kernel import MOST_BLOCKS

if TYPE_CHECKING:
    from alkahest.backends.nvptx.access import Access
    from alkahest.backends.nvptx.kernel import Kernel


class Launcher:
    """Launches one kernel, of one access, on one device; any thread may.

    Attributes:
        kernel: what is launched.
        context: of the device, as an integer.
        facts: for the report of a call.
        unaligned: bits that no address may have.
        launch: the driver's call.
        function: what it launches.
    """

    def __init__(self, kernel: Kernel, access: Access) -> None:
        from cuda.bindings import driver as cu

        self.kernel = kernel
        self.context = int(kernel.device.context)
        self.facts = {
            "device": kernel.device.ordinal,
            "device_name": kernel.device.name,
            "target": kernel.artifact.target,
            "launches": 1,
            "access": access.text,
        }
        self.unaligned = access.alignment - 1
        # The bindings' own kind of handle: they would make one of a number at every launch.
        self.launch = cu.cuLaunchKernel
        self.function = cu.CUfunction(int(kernel.core.handle))
        self._packing = access.packing
        self._count = access.packing.size // 8
        self._block = kernel.block
        self._points = kernel.block * kernel.points
        self._with_table = kernel.takes_table

    def __call__(self, slots: Sequence[float], stream: int) -> None:
        """Queue one launch on a stream, whose context is current.

        Args:
            slots: a number per slot, the last one that of the points, at least 1.
            stream: handle.

        Raises:
            CudaError: E-CUDA-006, the driver refused the launch; E-CUDA-003, the memory for the
                table of parameters; E-CUDA-004, more points than a launch has threads for.
        """
        ready = self.ready(slots)
        if ready is None:
            self._launch_with_table(slots, stream)
        else:
            ready(stream)

    def ready(self, slots: Sequence[float]) -> Ready | None:
        """The launch with these slots, or None where they have to go through device memory.

        Raises:
            CudaError: E-CUDA-004, more points than a launch has threads for.
        """
        if self._with_table:
            return None
        parameters = Parameters(self._count)
        self._packing.pack_into(parameters.memory, parameters.start, *slots)
        return self._with(parameters, int(slots[-1]))

    def _launch_with_table(self, slots: Sequence[float], stream: int) -> None:
        from cuda.bindings import driver as cu

        device = self.kernel.device
        packed = self._packing.pack(*slots)
        doing = f"passing {len(slots)} parameters to device {device.ordinal}, {device.name}"
        with faults.translated("E-CUDA-003", doing):
            address = device.allocate(len(packed), stream)
            try:
                # Pageable memory has been read when the call returns.
                copied = cu.cuMemcpyHtoDAsync(address, packed, len(packed), stream)
                faults.check(copied, "cuMemcpyHtoDAsync")
                parameters, n = Parameters(2), int(slots[-1])
                parameters.memory[2:] = [address, n]
                self._with(parameters, n)(stream)
            finally:
                device.release(address, stream)

    def _with(self, parameters: Parameters, n: int) -> Ready:
        grid = -(-n // self._points)
        if grid > MOST_BLOCKS:
            grid = self.kernel.grid(n)  # which refuses
        return Ready(self, (self.function, grid, 1, 1, self._block, 1, 1, 0), parameters)


class Parameters:
    """Memory for the parameters of a launch: their addresses, which the driver takes, then they.

    Attributes:
        memory: 8 bytes for each address and each parameter.
        start: bytes before the first parameter.
        table: address of the memory.
    """

    __slots__ = ("memory", "start", "table")

    def __init__(self, count: int) -> None:
        self.memory = (ctypes.c_uint64 * (2 * count))()
        self.table = ctypes.addressof(self.memory)
        self.start = 8 * count
        first = self.table + self.start
        self.memory[:count] = [*range(first, first + 8 * count, 8)]


class Ready:
    """A launch whose parameters are laid out; any thread may queue it, again and again.

    Args:
        launcher: of the kernel.
        shape: what ``cuLaunchKernel`` takes before the stream.
        parameters: filled in.

    Attributes:
        context: of the device, as an integer.
        facts: for the report of a call.
    """

    __slots__ = ("_launch", "_launcher", "_parameters", "_shape", "_table", "context", "facts")

    def __init__(self, launcher: Launcher, shape: tuple[Any, ...], parameters: Parameters) -> None:
        self.context = launcher.context
        self.facts = launcher.facts
        self._launcher = launcher
        self._launch = launcher.launch
        self._shape = shape
        self._parameters = parameters
        self._table = parameters.table

    def __call__(self, stream: int) -> None:
        """Queue it on a stream, whose context is current.

        Raises:
            CudaError: E-CUDA-006, the driver refused.
        """
        (code,) = self._launch(*self._shape, stream, self._table, 0)
        if code:
            device = self._launcher.kernel.device
            doing = f"running a kernel on device {device.ordinal}, {device.name}"
            with faults.translated("E-CUDA-006", doing):
                raise faults.DriverError(int(code), "cuLaunchKernel")


__all__ = ["Launcher", "Ready"]
