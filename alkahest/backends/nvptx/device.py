"""One device of this process: its context, memory and streams.

A device is opened once, by whichever thread comes first; only opening takes a lock. It uses the
primary context, which CuPy, PyTorch and the CUDA runtime use too, and leaves the calling thread
with the context that it had.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import attrs

from alkahest.backends.nvptx import driver, faults
from alkahest.errors import CudaError
from alkahest.plugin import DeviceInfo
from alkahest.streams import LEGACY, PER_THREAD, stream_handle

KEPT_BYTES = 256 << 20
"""Freed device memory that stays reserved for the next call; anything above goes back."""

_DEFAULT_STREAMS = frozenset({0, LEGACY, PER_THREAD})
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


@attrs.frozen(kw_only=True, eq=False)
class Device:
    """An opened device.

    Attributes:
        ordinal: its number.
        name: the vendor's name for it.
        capability: (major, minor).
        multiprocessors: number of streaming multiprocessors.
        core: the ``cuda.core.Device``.
        context: the primary context, a ``CUcontext``.
        pool: the ``cuda.core`` memory pool that buffers come from, or None where the device has
            no pools.
        closing_stream: handle of a stream for giving memory back whatever other streams do.
    """

    ordinal: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    core: Any
    context: Any
    pool: Any
    closing_stream: int

    @contextlib.contextmanager
    def current(self, stream: object = None) -> Iterator[Any]:
        """Make the device current in this thread and give the ``cuda.core.Stream`` to use.

        Args:
            stream: None for the calling thread's default stream; a ``cuda.core.Stream``, or what
                :func:`alkahest.streams.stream_handle` reads. Its own context is used.

        Raises:
            InputTypeError: E-INPUT-008, ``stream`` is none of these.
            CudaError: E-CUDA-003, ``stream`` belongs to another device, or the driver refused;
                E-CUDA-004, ``stream`` is being captured into a graph.
        """
        used = self._stream(stream)
        if self.is_capturing(int(used.handle)):
            raise CudaError(
                "E-CUDA-004",
                "stream= is being captured into a graph, which cannot hold a call: it copies host "
                "memory and waits",
                remediation="Pass another stream, or end the capture first.",
            )
        with self.entered(int(used.handle)):
            yield used

    @contextlib.contextmanager
    def entered(self, handle: int) -> Iterator[None]:
        """Make the context of a stream current, given its handle; 1 and 2 are default streams.

        Raises:
            CudaError: E-CUDA-003, the stream belongs to another device, or the driver refused.
        """
        from cuda.bindings import driver as cu

        with faults.translated("E-CUDA-003", f"making device {self.ordinal} current"):
            context = self._context_of(handle)
            faults.check(cu.cuCtxPushCurrent(context), "cuCtxPushCurrent")
        try:
            yield
        finally:
            # A context that a failed kernel has ruined cannot report more than the block did.
            cu.cuCtxPopCurrent()

    def handle_of(self, stream: object) -> int:
        """The handle of a stream, given as for :meth:`current`; 1 and 2 are default streams.

        Raises:
            InputTypeError: E-INPUT-008, ``stream`` is none.
        """
        return int(self._stream(stream).handle)

    def is_capturing(self, handle: int) -> bool:
        """Whether what is queued on a stream becomes part of a graph and does not run.

        Raises:
            CudaError: E-CUDA-003, the driver does not know the stream.
        """
        from cuda.bindings import driver as cu

        if handle in _DEFAULT_STREAMS:
            return False
        with faults.translated("E-CUDA-003", "asking whether stream= is being captured"):
            return bool(faults.check(cu.cuStreamIsCapturing(handle), "cuStreamIsCapturing"))

    def free_bytes(self) -> int:
        """Bytes that can be allocated now; the device must be current."""
        from cuda.bindings import driver as cu

        free, _ = faults.check(cu.cuMemGetInfo(), "cuMemGetInfo")
        if self.pool is None:
            return int(free)
        facts = self.pool.attributes
        return int(free + facts.reserved_mem_current - facts.used_mem_current)

    def allocate(self, size: int, stream: Any) -> int:
        """Address of ``size`` bytes that work on a stream can use; the device must be current.

        Args:
            size: in bytes.
            stream: a ``cuda.core.Stream``, or a handle.

        Raises:
            DriverError: there is no memory, or the driver refused.
        """
        from cuda.bindings import driver as cu

        if self.pool is None:
            return int(faults.check(cu.cuMemAlloc(size), "cuMemAlloc"))
        result = cu.cuMemAllocFromPoolAsync(size, self.pool.handle, _handle(stream))
        return int(faults.check(result, "cuMemAllocFromPoolAsync"))

    def release(self, address: int, stream: Any) -> None:
        """Give memory back when the work on a stream is done; the device must be current.

        A failure is not reported: it happens in contexts that a failed kernel has ruined, and
        that has been reported. (``cuda.core.Buffer`` would print it.)
        """
        from cuda.bindings import driver as cu

        if self.pool is None:
            cu.cuMemFree(address)
        else:
            cu.cuMemFreeAsync(address, _handle(stream))

    def _stream(self, stream: object) -> Any:
        from cuda.core import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

        if stream is None:
            return PER_THREAD_DEFAULT_STREAM
        if isinstance(stream, Stream):
            return stream
        handle = stream_handle(stream)
        if handle == LEGACY:
            return LEGACY_DEFAULT_STREAM
        return PER_THREAD_DEFAULT_STREAM if handle == PER_THREAD else Stream.from_handle(handle)

    def _context_of(self, handle: int) -> Any:
        """The context to launch in: a created stream's own, the primary one otherwise."""
        from cuda.bindings import driver as cu

        if handle in _DEFAULT_STREAMS:
            return self.context
        context = faults.check(cu.cuStreamGetCtx(handle), "cuStreamGetCtx")
        if int(context) == int(self.context):
            return context
        faults.check(cu.cuCtxPushCurrent(context), "cuCtxPushCurrent")
        owner = cu.cuCtxGetDevice()
        cu.cuCtxPopCurrent()
        ordinal = int(faults.check(owner, "cuCtxGetDevice"))
        if ordinal != self.ordinal:
            raise CudaError(
                "E-CUDA-003",
                f"stream= belongs to device {ordinal}, the call is for device {self.ordinal}",
                remediation="Pass a stream of the device, or device= the stream's ordinal.",
            )
        return context


def _handle(stream: Any) -> int:
    return int(getattr(stream, "handle", stream))


_lock = threading.Lock()
_opened: dict[tuple[int, int], Device] = {}


def open_device(ordinal: int) -> Device:
    """The device of that number, opened by the first call in this process.

    Raises:
        CudaError: E-CUDA-003 or E-CUDA-004, see :func:`driver.check_ordinal`; E-CUDA-003 when its
            context cannot be created.
    """
    number = driver.check_ordinal(ordinal)
    key = (os.getpid(), number)
    device = _opened.get(key)
    if device is None:
        with _lock:
            device = _opened.get(key)
            if device is None:
                device = _opened[key] = _open(number)
    return device


def _open(ordinal: int) -> Device:
    from cuda.bindings import driver as cu
    from cuda.core import Device as CoreDevice

    with faults.translated("E-CUDA-003", f"opening device {ordinal}"):
        before = faults.check(cu.cuCtxGetCurrent(), "cuCtxGetCurrent")
        try:
            core = CoreDevice(ordinal)
            core.set_current()
            context = faults.check(cu.cuCtxGetCurrent(), "cuCtxGetCurrent")
            stream = faults.check(cu.cuStreamCreate(_NON_BLOCKING), "cuStreamCreate")
            return Device(
                ordinal=ordinal,
                name=core.name,
                capability=driver.device_capability(cu, ordinal),
                multiprocessors=core.properties.multiprocessor_count,
                core=core,
                context=context,
                pool=_pool(cu, core),
                closing_stream=int(stream),
            )
        finally:
            faults.check(cu.cuCtxSetCurrent(before), "cuCtxSetCurrent")


def _pool(cu: Any, core: Any) -> Any:
    """A memory pool of our own.

    The device's default pool is left alone: ``cuda.core`` would have it keep everything that was
    ever freed, which other libraries in the process could then not allocate.
    """
    from cuda.core import DeviceMemoryResource, DeviceMemoryResourceOptions

    if not core.properties.memory_pools_supported:
        return None
    pool = DeviceMemoryResource(core.device_id, options=DeviceMemoryResourceOptions())
    threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    kept = cu.cuuint64_t(KEPT_BYTES)
    faults.check(cu.cuMemPoolSetAttribute(pool.handle, threshold, kept), "cuMemPoolSetAttribute")
    return pool


def list_devices() -> tuple[DeviceInfo, ...]:
    """Every usable device, without creating a context; empty when there is none.

    Raises:
        CudaError: E-CUDA-003 where the driver lists a device and does not describe it.
    """
    count = driver.device_count()
    with faults.translated("E-CUDA-003", "asking for the devices"):
        return tuple(_describe(ordinal) for ordinal in range(count))


def _describe(ordinal: int) -> DeviceInfo:
    from cuda.bindings import driver as cu

    memory = faults.check(cu.cuDeviceTotalMem(ordinal), "cuDeviceTotalMem")
    major, minor = driver.device_capability(cu, ordinal)
    return DeviceInfo(
        ordinal=ordinal,
        name=driver.device_name(cu, ordinal),
        memory=int(memory),
        target=f"sm_{major}{minor}",
        facts={"compute_capability": [major, minor]},
    )
