"""Launching a kernel with as little host time as the driver allows.

The parameters are packed by one call into memory that was laid out before, and ``cuLaunchKernel``
is called directly: a launch takes a few microseconds.
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
        self._with_table = kernel.takes_table
        self.unaligned = access.alignment - 1
        self._packing = access.packing
        self._block = kernel.block
        self._per_block = kernel.block * kernel.points
        self._launch = cu.cuLaunchKernel
        self._function = int(kernel.core.handle)
        # The driver reads the parameters while other Python threads run, so that each launch in
        # progress has its own memory for them.
        self._free: list[_Parameters] = []

    def __call__(self, slots: Sequence[float], stream: int) -> None:
        """Queue one launch on a stream, whose context is current.

        Args:
            slots: a number per slot, the last one that of the points, at least 1.
            stream: handle.

        Raises:
            CudaError: E-CUDA-006, the driver refused the launch; E-CUDA-003, the memory for the
                table of parameters.
        """
        n = int(slots[-1])
        if self._with_table:
            self._launch_with_table(slots, n, stream)
            return
        try:
            parameters = self._free.pop()
        except IndexError:
            parameters = _Parameters(self._packing.size // 8)
        self._packing.pack_into(parameters.memory, 0, *slots)
        self._queue(n, stream, parameters.table)
        self._free.append(parameters)

    def _launch_with_table(self, slots: Sequence[float], n: int, stream: int) -> None:
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
                parameters = _Parameters(2)
                parameters.memory[:] = [address, n]
                self._queue(n, stream, parameters.table)
            finally:
                device.release(address, stream)

    def _queue(self, n: int, stream: int, table: int) -> None:
        grid = -(-n // self._per_block)
        if grid > MOST_BLOCKS:
            grid = self.kernel.grid(n)  # which refuses
        (code,) = self._launch(self._function, grid, 1, 1, self._block, 1, 1, 0, stream, table, 0)
        if code:
            device = self.kernel.device
            with faults.translated("E-CUDA-006", f"running a kernel on {_place(device)}"):
                raise faults.DriverError(int(code), "cuLaunchKernel")


class _Parameters:
    """Memory for the parameters of a launch.

    Attributes:
        memory: a slot of 8 bytes for each.
        table: address of the array of their addresses, which is what the driver takes.
    """

    def __init__(self, count: int) -> None:
        self.memory = (ctypes.c_uint64 * count)()
        start = ctypes.addressof(self.memory)
        self._addresses = (ctypes.c_void_p * count)(*(start + 8 * k for k in range(count)))
        self.table = ctypes.addressof(self._addresses)


def _place(device: Any) -> str:
    return f"device {device.ordinal}, {device.name}"


__all__ = ["Launcher"]
