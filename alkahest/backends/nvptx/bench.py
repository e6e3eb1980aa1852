"""Kernels on a device, timed for :mod:`alkahest.backends.nvptx.tuning`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import faults, kernel, tuning
from alkahest.backends.nvptx.access import SIZES, Access
from alkahest.backends.nvptx.accuracy import DEFAULT
from alkahest.backends.nvptx.device import Device, list_devices, open_device
from alkahest.backends.nvptx.stored import generate

if TYPE_CHECKING:
    from alkahest.plugin import Tuned
    from alkahest.program import Program

COLUMN_BYTES = 128 << 20
"""Bytes of a column: more than caches hold."""

_SHARE = 4
_SAMPLE = 2e-3
_MOST_LAUNCHES = 64


def tune_devices(quick: bool) -> tuple[Tuned, ...]:
    """The quickest shapes on one device of every kind.

    Raises:
        CudaError: E-CUDA-003, E-CUDA-004, E-CUDA-006: what a device refuses.
    """
    found: dict[str, tuple[Tuned, ...]] = {}
    for info in list_devices():
        device = open_device(info.ordinal)
        name = kernel.kind_of(device)
        if name not in found:
            with bench_on(device) as bench:
                found[name] = tuning.tune(name, bench.build, quick=quick)
    return tuple(entry for entries in found.values() for entry in entries)


@contextmanager
def bench_on(device: Device, columns: int = 3, column_bytes: int = COLUMN_BYTES) -> Iterator[Bench]:
    """Memory on a device for timing kernels, given back at the end.

    Args:
        device: to time on.
        columns: most inputs and outputs of a program.
        column_bytes: of one column; less where the device has not four times as much for each.

    Raises:
        CudaError: E-CUDA-003, there is no memory.
    """
    with device.current() as stream:
        doing = f"timing kernels on device {device.ordinal}, {device.name}"
        with faults.translated("E-CUDA-003", doing):
            size = min(column_bytes, device.free_bytes() // (_SHARE * columns))
            size -= size % 256
            memory = device.allocate(size * columns, stream)
        try:
            bench = Bench(device=device, stream=stream, memory=memory, column_bytes=size)
            bench.fill(columns)
            yield bench
        finally:
            device.release(memory, stream)


@attrs.frozen(kw_only=True, eq=False)
class Bench:
    """Columns on a device, which is current.

    Attributes:
        device: where.
        stream: the ``cuda.core.Stream`` of the launches.
        memory: address of the columns.
        column_bytes: of one column.
    """

    device: Device
    stream: Any
    memory: int
    column_bytes: int

    def fill(self, columns: int) -> None:
        """Make all numbers small: one byte everywhere is such a number in every dtype."""
        from cuda.bindings import driver as cu

        with faults.translated("E-CUDA-003", "filling columns"):
            size = self.column_bytes * columns
            faults.check(
                cu.cuMemsetD8Async(self.memory, 0x3C, size, self.stream.handle), "cuMemsetD8Async"
            )

    def build(self, program: Program, points: int) -> TimedKernel:
        """The kernel of a program, as :data:`tuning.Build`.

        Raises:
            CudaError: the driver refuses the code.
        """
        access = Access.plain(program, DEFAULT, points)
        artifact = generate(program, kernel.target_of(self.device), {}, access)
        return TimedKernel(self, kernel.load(artifact, self.device))


@attrs.define(eq=False)
class TimedKernel:
    """See :class:`alkahest.backends.nvptx.tuning.Kernel`."""

    bench: Bench
    kernel: kernel.Kernel
    launches: int = 0

    @property
    def registers(self) -> int:
        """That a thread takes."""
        return self.kernel.registers

    def seconds(self, threads: int) -> float:
        """Time of one launch over the columns, of as many as take some milliseconds.

        Raises:
            CudaError: E-CUDA-006, the driver refuses the launch, or the kernel fails.
        """
        if not self.launches:
            self._time(threads, 1)
            once = max(self._time(threads, 1), 1e-9)
            self.launches = max(1, min(_MOST_LAUNCHES, int(_SAMPLE / once)))
        return self._time(threads, self.launches)

    def _time(self, threads: int, launches: int) -> float:
        bench, shaped = self.bench, attrs.evolve(self.kernel, block=threads)
        program = self.kernel.artifact.program
        n = bench.column_bytes // SIZES[program.dtype]
        count = len(program.inputs) + len(program.outputs)
        addresses = [bench.memory + k * bench.column_bytes for k in range(count)]
        doing = f"timing a kernel on device {bench.device.ordinal}, {bench.device.name}"
        with faults.translated("E-CUDA-006", doing):
            start = perf_counter()
            for _ in range(launches):
                shaped.launch(addresses, n, bench.stream)
            bench.stream.sync()
        return (perf_counter() - start) / launches


__all__ = ["Bench", "bench_on", "tune_devices"]
