"""A device that is none: host memory, and the kernels' twins instead of the kernels.

It goes through the same host code as a GPU, and fails on request as a GPU fails. It is for tests:
no device option leads to it, and its work does not count as a GPU's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu import twin
from alkahest.backends.groebner_gpu.sessions import Argument, Words, checked
from alkahest.backends.nvptx import faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

OUT_OF_MEMORY, LAUNCH_FAILED = 2, 719
"""Numbers of ``CUresult``; a context is lost after the second."""

Launch = Callable[[str, int, tuple[int, ...], tuple[int, ...], int, list[Any]], None]
"""Runs a kernel: its name, group, grid, block, bytes of shared memory, arrays and integers."""

_UNWRITTEN = 0xDEADBEEF


def run_twin(
    kernel: str,
    group: int,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    arguments: list[Any],
) -> None:
    """Run a kernel's twin."""
    getattr(twin, kernel)(twin.Launched(group=group, grid=grid), *arguments)


@attrs.define(eq=False, kw_only=True)
class EmulatedDevice:
    """See the module.

    Attributes:
        ordinal: its number.
        memory: bytes that it has.
        shared_bytes: most shared memory of a block.
        launch: what runs kernels.
        fails_at: number of the launch that fails, counted from 1, and with it all later calls.
        launches: names of the kernels launched so far.
        name: for reports.
        multiprocessors, tensor_cores: as a GPU would say.
        is_gpu: what reports count its work as.
        kept: bytes that outlive their sessions.
    """

    ordinal: int = 0
    memory: int = 1 << 32
    shared_bytes: int = 227 << 10
    launch: Launch = run_twin
    fails_at: int | None = None
    launches: list[str] = attrs.field(factory=list)
    name: str = "emulated"
    multiprocessors: int = 132
    tensor_cores: bool = True
    is_gpu: bool = False
    kept: int = 0

    @contextlib.contextmanager
    def session(self) -> Iterator[_Session]:
        """Use the device."""
        with faults.translated("E-CUDA-003", f"Gröbner linear algebra on device {self.ordinal}"):
            yield _Session(self)

    def release(self, words: Words) -> None:
        """Give back what a session has kept."""
        self.kept -= words.memory.nbytes

    @property
    def is_lost(self) -> bool:
        """Whether a launch has failed."""
        return self.fails_at is not None and len(self.launches) >= self.fails_at


class _Session:
    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._used = 0

    def _alive(self) -> None:
        if self._device.is_lost:
            raise faults.DriverError(LAUNCH_FAILED, "cuStreamSynchronize")

    def free_bytes(self) -> int:
        self._alive()
        return self._device.memory - self._device.kept - self._used

    def allocate(self, words: int) -> Words:
        self._alive()
        self._used += 4 * words
        if self._used > self._device.memory - self._device.kept:
            raise faults.DriverError(OUT_OF_MEMORY, "cuMemAllocFromPoolAsync")
        return Words(np.full(max(words, 1), _UNWRITTEN, np.uint32))

    def free(self, words: Words) -> None:
        self._used -= 4 * len(words.memory)

    def keep(self, words: Words) -> None:
        self._used -= words.memory.nbytes
        self._device.kept += words.memory.nbytes

    def write(self, words: Words, values: NDArray[Any]) -> None:
        self._alive()
        words.memory[words.start : words.start + values.size] = values.reshape(-1).view(np.uint32)

    def read(self, words: Words, values: NDArray[Any]) -> None:
        self._alive()
        source = words.memory[words.start : words.start + values.size]
        values[...] = source.view(values.dtype).reshape(values.shape)

    def zero(self, words: Words, count: int) -> None:
        self._alive()
        words.memory[words.start : words.start + count] = 0

    def copy(self, source: Words, target: Words, count: int) -> None:
        self._alive()
        moved = source.memory[source.start : source.start + count]
        target.memory[target.start : target.start + count] = moved

    def launch(
        self,
        kernel: str,
        group: int,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shared: int,
        *arguments: Argument,
    ) -> None:
        self._alive()
        if shared > self._device.shared_bytes:
            raise faults.DriverError(1, "cuLaunchKernelEx")
        self._device.launches.append(kernel)
        if not self._device.is_lost:
            passed = [
                a.memory[a.start :] if isinstance(a, Words) else a if a is None else checked(a)
                for a in arguments
            ]
            self._device.launch(kernel, group, grid, block, shared, passed)

    def wait(self) -> None:
        self._alive()


__all__ = ["EmulatedDevice", "Launch", "run_twin"]
