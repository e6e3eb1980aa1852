"""Devices of the CUDA driver, opened as ``alkahest-nvptx`` opens them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu import compiling
from alkahest.backends.groebner_gpu.downloads import LEAST_BYTES, download
from alkahest.backends.groebner_gpu.sessions import Argument, Words, checked
from alkahest.backends.nvptx import driver, faults
from alkahest.backends.nvptx.device import Device as CudaDevice
from alkahest.backends.nvptx.device import open_device
from alkahest.backends.nvptx.memory import give_back
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_lock = threading.Lock()
_kernels: dict[tuple[CudaDevice, str, int], Any] = {}
"""Loaded kernels: device, name, group."""


@attrs.frozen(eq=False)
class Gpu:
    """A :class:`~alkahest.backends.groebner_gpu.sessions.Device` of the driver."""

    device: CudaDevice
    shared_bytes: int
    is_gpu: bool = True

    @property
    def name(self) -> str:
        """The vendor's."""
        return self.device.name

    @property
    def ordinal(self) -> int:
        """Its number."""
        return self.device.ordinal

    @property
    def multiprocessors(self) -> int:
        """Number of streaming multiprocessors."""
        return self.device.multiprocessors

    @property
    def tensor_cores(self) -> bool:
        """Whether products in double precision are faster on tensor cores."""
        return self.device.capability in compiling.QUICK_DOUBLE

    @contextlib.contextmanager
    def session(self) -> Iterator[_Session]:
        """Use the device on the calling thread's default stream."""
        with self.device.current() as stream:
            session = _Session(self, stream)
            try:
                doing = f"Gröbner linear algebra on device {self.ordinal}, {self.name}"
                with faults.translated("E-CUDA-003", doing):
                    yield session
            except BaseException:
                session.settle()
                raise
            finally:
                session.close()

    def release(self, words: Words) -> None:
        """Give back what a session has kept."""
        give_back(os.getpid(), self.device, words.memory, [])


class _Session:
    def __init__(self, gpu: Gpu, stream: Any) -> None:
        self._gpu = gpu
        self._stream = stream
        self._handle = int(stream.handle)
        self._memory: set[int] = set()
        self._sent: list[NDArray[Any]] = []

    def free_bytes(self) -> int:
        return self._gpu.device.free_bytes()

    def allocate(self, words: int) -> Words:
        address = self._gpu.device.allocate(4 * max(words, 1), self._stream)
        self._memory.add(address)
        return Words(address)

    def free(self, words: Words) -> None:
        self._memory.discard(words.memory)
        self._gpu.device.release(words.memory, self._stream)

    def keep(self, words: Words) -> None:
        self._memory.discard(words.memory)

    def write(self, words: Words, values: NDArray[Any]) -> None:
        """See :meth:`~alkahest.backends.groebner_gpu.sessions.Session.write`.

        A driver that stages memory that is not page-locked has read it when the call returns; where
        the device reads such memory itself, it need not have (CUDA Driver API, "API synchronization
        behavior"). So arrays live until the stream has been waited for.
        """
        from cuda.bindings import driver as cu

        self._sent.append(values)
        copied = cu.cuMemcpyHtoDAsync(
            _address(words), values.ctypes.data, values.nbytes, self._handle
        )
        faults.check(copied, "cuMemcpyHtoDAsync")

    def read(self, words: Words, values: NDArray[Any]) -> None:
        from cuda.bindings import driver as cu

        if values.nbytes >= LEAST_BYTES:
            self.wait()
            download(self._gpu.device, _address(words), values)
            return
        copied = cu.cuMemcpyDtoHAsync(
            values.ctypes.data, _address(words), values.nbytes, self._handle
        )
        faults.check(copied, "cuMemcpyDtoHAsync")
        self.wait()

    def zero(self, words: Words, count: int) -> None:
        from cuda.bindings import driver as cu

        faults.check(
            cu.cuMemsetD32Async(_address(words), 0, count, self._handle), "cuMemsetD32Async"
        )

    def copy(self, source: Words, target: Words, count: int) -> None:
        from cuda.bindings import driver as cu

        copied = cu.cuMemcpyDtoDAsync(_address(target), _address(source), 4 * count, self._handle)
        faults.check(copied, "cuMemcpyDtoDAsync")

    def launch(
        self,
        kernel: str,
        group: int,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared: int,
        *arguments: Argument,
    ) -> None:
        from cuda.core import LaunchConfig, launch

        config = LaunchConfig(grid=grid, block=block, shmem_size=shared)
        passed = [np.int32(checked(a)) if isinstance(a, int) else _address(a) for a in arguments]
        launch(self._stream, config, _kernel(self._gpu, kernel, group), *passed)

    def wait(self) -> None:
        from cuda.bindings import driver as cu

        faults.check(cu.cuStreamSynchronize(self._handle), "cuStreamSynchronize")
        self._sent.clear()

    def settle(self) -> None:
        """Return when nothing is queued any more, whatever came of it."""
        from cuda.bindings import driver as cu

        cu.cuStreamSynchronize(self._handle)
        self._sent.clear()

    def close(self) -> None:
        """Give back what was not freed, when nothing that was written is still read."""
        if self._sent:
            self.settle()
        for address in self._memory:
            self._gpu.device.release(address, self._stream)
        self._memory.clear()


def _address(words: Words | None) -> int:
    return 0 if words is None else int(words.memory) + 4 * words.start


def _kernel(gpu: Gpu, name: str, group: int) -> Any:
    """A kernel on a device that is current, loaded by the first call."""
    key = (gpu.device, name, group)
    found = _kernels.get(key)
    if found is None:
        with _lock:
            found = _kernels.get(key)
            if found is None:
                found = _kernels[key] = _loaded(gpu, name, group)
    return found


def _loaded(gpu: Gpu, name: str, group: int) -> Any:
    from cuda.bindings import driver as cu
    from cuda.core import ObjectCode

    target = "sm_{}{}".format(*gpu.device.capability)
    code = compiling.machine_code(compiling.FILE_OF[name], group, target)
    kernel = ObjectCode.from_cubin(code).get_kernel(name)
    shared = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    static = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    used = faults.check(
        cu.cuKernelGetAttribute(static, kernel.handle, gpu.ordinal), "cuKernelGetAttribute"
    )
    faults.check(
        cu.cuKernelSetAttribute(
            shared, max(0, gpu.shared_bytes - int(used)), kernel.handle, gpu.ordinal
        ),
        "cuKernelSetAttribute",
    )
    return kernel


def open_gpu(ordinal: int) -> Gpu:
    """A device, ready for kernels.

    Raises:
        CudaError: E-CUDA-003 or 004 where there is no such device, or its driver is too old.
    """
    driver.check_ordinal(ordinal)
    version = driver.started().version
    if version < compiling.OLDEST_DRIVER:
        have, need = map(driver.cuda_release, (version, compiling.OLDEST_DRIVER))
        raise CudaError(
            "E-CUDA-003",
            f"the driver supports CUDA {have}; the kernels of Gröbner bases need {need} or newer",
            remediation=driver.UPDATE_DRIVER,
        )
    device = open_device(ordinal)
    from cuda.bindings import driver as cu

    most = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    with faults.translated("E-CUDA-003", f"asking device {ordinal} for its shared memory"):
        shared = faults.check(cu.cuDeviceGetAttribute(most, ordinal), "cuDeviceGetAttribute")
    return Gpu(device=device, shared_bytes=int(shared))


def open_all() -> list[Gpu]:
    """Every device, at least one.

    Raises:
        CudaError: E-CUDA-003 where there is none.
    """
    return [open_gpu(ordinal) for ordinal in range(max(1, driver.started().count))]


__all__ = ["Gpu", "open_all", "open_gpu"]
