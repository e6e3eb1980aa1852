"""Generated kernels, compiled and called directly: no threads, no caches, no checks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.backends.cpu.jit import engine
from alkahest.backends.cpu.jit.emit import KernelCode, emit_kernel
from alkahest.backends.cpu.jit.host import HostTarget
from alkahest.program import Program

Array = NDArray[Any]

_SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


@attrs.frozen(eq=False)
class Built:
    """A kernel in memory.

    Attributes:
        program: what it computes.
        code: its text.
        machine: keeps it in memory.
    """

    program: Program
    code: KernelCode
    machine: engine.Code

    def into(
        self, columns: Sequence[Array], outputs: Sequence[Array], begin: int, end: int
    ) -> None:
        """Compute some points; all arrays are contiguous."""
        arrays = (*columns, *outputs)
        addresses = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        scratch = np.zeros(self.code.scratch_bytes, np.uint8)
        entry = _SIGNATURE(self.machine.address(self.code.entry))
        entry(ctypes.addressof(addresses), scratch.ctypes.data, begin, end)

    def __call__(self, *columns: Array) -> tuple[Array, ...]:
        """All outputs for all points of the first column."""
        n = len(columns[0])
        outputs = tuple([np.empty(n, dtype) for dtype in self.program.output_dtypes])
        self.into([np.ascontiguousarray(c) for c in columns], outputs, 0, n)
        return outputs


def build(program: Program, wanted: str = "native", **choices: Any) -> Built:
    """Generate and compile; ``wanted`` is a target as ``ALKAHEST_CPU_TARGET`` is written."""
    target = HostTarget.detect().narrowed(wanted)
    code = emit_kernel(program, target, **choices)
    machine = engine.Code(engine.compile_ir(code.ir, target), (code.entry,), code.symbols)
    return Built(program, code, machine)
