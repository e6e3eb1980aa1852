"""Page-locked host memory with a twin on the device, and the copies between them."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.carrier import Rig

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.nvptx.device import Device


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """Memory of the host, which the device reads and writes too, and as much of the device's.

    Attributes:
        host: shape (size,), uint8, page-locked, aligned to pages.
        host_address: of ``host``, for the host and for kernels.
        address: of the device's memory.
    """

    host: NDArray[Any]
    host_address: int
    address: int

    @classmethod
    def open(cls, device: Device, size: int, stream: Any) -> Block:
        """Allocate ``size`` bytes of each for ``device``, which is current.

        Raises:
            CudaError: E-CUDA-003, there is not enough of either memory.
        """
        import numpy as np
        from cuda.bindings import driver as cu

        where = _name(device)
        with contextlib.ExitStack() as undo:
            doing = f"allocating {size} bytes of page-locked memory for {where}"
            with faults.translated("E-CUDA-003", doing):
                # Portable: also for the streams of contexts other than the current one.
                flags = cu.CU_MEMHOSTALLOC_PORTABLE | cu.CU_MEMHOSTALLOC_DEVICEMAP
                host_address = int(faults.check(cu.cuMemHostAlloc(size, flags), "cuMemHostAlloc"))
            undo.callback(cu.cuMemFreeHost, host_address)
            with faults.translated("E-CUDA-003", f"allocating {size} bytes on {where}"):
                address = device.allocate(size, stream)
                undo.callback(device.release, address, stream)
                # Downloads take the gaps between results along, which nothing else writes and
                # compute-sanitizer would complain of.
                result = cu.cuMemsetD8Async(address, 0, size, stream.handle)
                faults.check(result, "cuMemsetD8Async")
                # Until the allocation is complete, only this stream could use it.
                faults.check(cu.cuStreamSynchronize(stream.handle), "cuStreamSynchronize")
            undo.pop_all()
        memory = (ctypes.c_ubyte * size).from_address(host_address)
        host = np.frombuffer(memoryview(memory), np.uint8)
        return cls(host=host, host_address=host_address, address=address)

    def close(self, device: Device, stream: Any) -> None:
        """Give both memories back; the device is current and no longer uses them.

        A failure is not reported, as in :meth:`Device.release`.
        """
        from cuda.bindings import driver as cu

        device.release(self.address, stream)
        cu.cuMemFreeHost(self.host_address)


@attrs.frozen(kw_only=True, eq=False)
class Lane:
    """A block and the stream that carries it; one thread at a time uses it.

    Attributes:
        block: the memory.
        stream: the ``cuda.core.Stream`` that everything is queued on.
        rig: the lane, as the copy threads see it.
    """

    block: Block
    stream: Any
    rig: Rig

    @classmethod
    def on(cls, block: Block, stream: Any, event: int = 0) -> Lane:
        """The lane of ``block`` and ``stream``, and of an event if copy threads shall use it."""
        rig = Rig(
            host=block.host_address,
            device=block.address,
            queue=int(stream.handle),
            event=event,
        )
        return cls(block=block, stream=stream, rig=rig)

    @classmethod
    def open(cls, device: Device, size: int, stream: Any) -> Lane:
        """A lane of ``size`` bytes on a stream of ``device``, which is current, for copy threads.

        Raises:
            CudaError: E-CUDA-003, there is not enough memory, or the driver refused.
        """
        from cuda.bindings import driver as cu

        with contextlib.ExitStack() as undo:
            with faults.translated("E-CUDA-003", f"creating an event on {_name(device)}"):
                event = int(faults.check(cu.cuEventCreate(EVENT_FLAGS), "cuEventCreate"))
                undo.callback(cu.cuEventDestroy, event)
            lane = cls.on(Block.open(device, size, stream), stream, event)
            undo.pop_all()
        return lane

    def close(self, device: Device) -> None:
        """Give the memory and the event back; ``device`` is current. Failures are not reported."""
        from cuda.bindings import driver as cu

        self.settle()
        self.block.close(device, self.stream)
        cu.cuEventDestroy(self.rig.record.event)

    def send(self, size: int) -> None:
        """Queue the upload of the first ``size`` bytes of the block.

        Raises:
            DriverError: the driver refused the copy.
        """
        from cuda.bindings import driver as cu

        block = self.block
        result = cu.cuMemcpyHtoDAsync(block.address, block.host_address, size, self.stream.handle)
        faults.check(result, "cuMemcpyHtoDAsync")

    def fetch(self, offset: int, size: int) -> None:
        """Queue the download of ``size`` bytes of the block from ``offset`` on.

        Raises:
            DriverError: the driver refused the copy.
        """
        from cuda.bindings import driver as cu

        source, target = self.block.address + offset, self.block.host_address + offset
        result = cu.cuMemcpyDtoHAsync(target, source, size, self.stream.handle)
        faults.check(result, "cuMemcpyDtoHAsync")

    def fetch_from(self, address: int, size: int) -> None:
        """Queue the download of ``size`` bytes of other memory of the device to the block's begin.

        Raises:
            DriverError: the driver refused the copy.
        """
        from cuda.bindings import driver as cu

        target = self.block.host_address
        result = cu.cuMemcpyDtoHAsync(target, address, size, self.stream.handle)
        faults.check(result, "cuMemcpyDtoHAsync")

    def wait(self) -> None:
        """Wait until everything that is queued is done; the interpreter lock is released.

        Raises:
            DriverError: something that was queued has failed.
        """
        from cuda.bindings import driver as cu

        faults.check(cu.cuStreamSynchronize(self.stream.handle), "cuStreamSynchronize")

    def settle(self) -> None:
        """Wait until nothing is queued, whatever came of it."""
        from cuda.bindings import driver as cu

        cu.cuStreamSynchronize(self.stream.handle)


class Streams:
    """A few streams of a device that take turns at the lanes of a crew; any thread may ask.

    Args:
        device: whose.
        most: how many there are when all have been needed.
    """

    def __init__(self, device: Device, most: int) -> None:
        self._device = device
        self._most = most
        self._given = 0
        self._lock = threading.Lock()
        self._made: list[Any] = []

    def next(self) -> Any:
        """The stream whose turn it is; the device is current.

        Raises:
            CudaError: E-CUDA-003, the driver refused to create one.
        """
        from cuda.bindings import driver as cu
        from cuda.core import Stream

        with self._lock:
            position = self._given % self._most
            if position == len(self._made):
                with faults.translated("E-CUDA-003", f"creating a stream on {_name(self._device)}"):
                    flags = int(cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
                    handle = int(faults.check(cu.cuStreamCreate(flags), "cuStreamCreate"))
                self._made.append(Stream.from_handle(handle))
            self._given += 1
            return self._made[position]

    def close(self) -> None:
        """Give them back; the device is current and no lane uses them."""
        from cuda.bindings import driver as cu

        while self._made:
            cu.cuStreamDestroy(self._made.pop().handle)


EVENT_FLAGS = 2
"""``CU_EVENT_DISABLE_TIMING`` alone: threads that wait spin.

They wait for less than a chunk takes. Being woken costs more: of 55 GB/s, a cubic of 2**27 float64 got
78 % from threads that spin and 66 % from threads that sleep.
"""


def _name(device: Device) -> str:
    return f"device {device.ordinal}, {device.name}"


def is_page_locked(array: NDArray[Any]) -> bool:
    """Whether the device can copy ``array`` by itself: contiguous, all in page-locked memory.

    A context must be current. False wherever the driver does not say.
    """
    from cuda.bindings import driver as cu

    if not array.flags.c_contiguous or not array.nbytes:
        return False
    address = address_of(array)
    names = cu.CUpointer_attribute
    asked = [
        names.CU_POINTER_ATTRIBUTE_HOST_POINTER,
        names.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        names.CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    ]
    # The call for several attributes gives zeros for ordinary memory; the one for a single
    # attribute gives an error, which sanitizers count.
    code, answers = cu.cuPointerGetAttributes(len(asked), asked, address)
    if int(code):
        return False
    host, start, size = map(int, answers)
    return host != 0 and start <= address and address + array.nbytes <= start + size


def address_of(array: NDArray[Any]) -> int:
    """Address of the first value."""
    address: int = array.__array_interface__["data"][0]
    return address
