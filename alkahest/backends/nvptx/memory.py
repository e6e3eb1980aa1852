"""Device memory of our own that leaves as an array, for libraries that allocate none for us."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import weakref
from typing import TYPE_CHECKING, Any

from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.access import SIZES
from alkahest.backends.nvptx.order import Marker
from alkahest.errors import CudaError
from alkahest.streams import LEGACY

if TYPE_CHECKING:
    from alkahest.backends.nvptx.device import Device

_UNORDERED = -1
_CUDA = 2


class DeviceArray:
    """An array in C order on a device, exported by DLPack and the CUDA array interface.

    It is what results are when the columns came from an object that has the protocols and belongs
    to no library that makes arrays. Consumers are ordered behind the work that fills it, by the
    stream that they name. The memory goes back when the last of them and this object are gone.

    Attributes:
        shape: number of elements per dimension.
        dtype: NumPy's name of the dtype.
        pointer: address of the first element.
        stream: handle of the stream whose work fills it.
    """

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: str, stream: int) -> None:
        """Allocate, to be filled by work on ``stream``.

        Raises:
            CudaError: E-CUDA-003, there is no memory.
        """
        self.shape = shape
        self.dtype = dtype
        self.stream = stream
        self._device = device
        self._memory = _Memory(device, math.prod(shape) * SIZES[dtype], stream)
        self.pointer = self._memory.address

    def filled(self, marker: Marker) -> None:
        """Say that the work which fills the array ends at ``marker``."""
        self._memory.markers.append(marker)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        import numpy as np

        return {
            "shape": self.shape,
            "typestr": np.dtype(self.dtype).str,
            "data": (self.pointer, False),
            "strides": None,
            "stream": self.stream,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self._device.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule, after making ``stream`` wait for the array.

        Args:
            stream: the consumer's: a handle, 1 or None for the legacy default stream, 2 for the
                calling thread's, -1 for one that is ordered already.
            max_version: newest version of the protocol that the consumer reads.
            dl_device: where the consumer wants the array; only where it is.
            copy: whether it must be copied; it is not.

        Raises:
            BufferError: what the protocol allows and is not done, or forbids.
            CudaError: E-CUDA-003, the driver refused.
        """
        import numpy as np

        if copy:
            raise BufferError("copies are not made")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on CUDA device {self._device.ordinal}")
        if stream == 0:
            raise BufferError("stream 0 is ambiguous; 1 is the legacy default stream")
        consumer = LEGACY if stream is None else stream
        if consumer != _UNORDERED:
            doing = f"ordering a stream behind a result on device {self._device.ordinal}"
            with faults.translated("E-CUDA-003", doing), self._device.entered(consumer):
                for marker in self._memory.markers:
                    marker.hold(consumer)
        memory = self._memory
        core: Any = importlib.import_module("cuda.core")
        buffer = core.Buffer.from_handle(memory.address, memory.size, owner=memory)
        viewed = core.utils.StridedMemoryView
        view = viewed.from_buffer(buffer, self.shape, dtype=np.dtype(self.dtype))
        return view.__dlpack__(max_version=max_version)

    def __repr__(self) -> str:
        return f"<DeviceArray shape={self.shape} dtype={self.dtype} device={self._device.ordinal}>"


class _Memory:
    """An allocation that is given back when nobody refers to it.

    Attributes:
        address: of its first byte.
        size: in bytes, at least 1.
        markers: ends of the work that uses it.
    """

    def __init__(self, device: Device, size: int, stream: int) -> None:
        self.size = max(size, 1)
        self.markers: list[Marker] = []
        doing = f"allocating {size} bytes on device {device.ordinal}, {device.name}"
        with faults.translated("E-CUDA-003", doing), device.entered(stream):
            self.address = device.allocate(self.size, stream)
        finalizer = weakref.finalize(
            self, give_back, os.getpid(), device, self.address, self.markers
        )
        finalizer.atexit = False


def give_back(process: int, device: Device, address: int, markers: list[Marker]) -> None:
    """Release memory in the order of a stream of our own; in a forked child, do nothing.

    The stream that it was allocated for may be gone, or be a thread's default stream, which is
    another one in the thread that comes here.
    """
    if process != os.getpid():
        return
    stream = device.closing_stream
    # A context that a failed kernel has ruined takes nothing back; that failure was reported.
    with contextlib.suppress(CudaError, faults.DriverError), device.entered(stream):
        for marker in markers:
            marker.hold(stream)
        device.release(address, stream)
