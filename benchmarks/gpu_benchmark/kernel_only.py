"""The generated kernel without the call around it, to see what the call costs.

This reaches into the backend, unlike everything else here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alkahest.backends.nvptx.device import open_device
from alkahest.backends.nvptx.kernel import compile_for, load
from alkahest.program import Program
from gpu_benchmark.timing import Run


def prepare(
    program: Program, inputs: Sequence[Any], outputs: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Run, dict[str, Any]]:
    """A launch of the program's kernel on device 0, and facts about its code.

    Args:
        program: float64.
        inputs, outputs: contiguous CuPy arrays of one length on device 0.
        options: for code generation.
    """
    import cupy

    device = open_device(0)
    stream = int(cupy.cuda.get_current_stream().ptr)
    with device.current(stream):
        kernel = load(compile_for(program, None, options), device)
    addresses: list[int] = [array.data.ptr for array in (*inputs, *outputs)]
    points = len(inputs[0])
    table = cupy.array(addresses, cupy.uint64) if kernel.takes_table else None

    def launch() -> object:
        with device.current(stream) as current:
            kernel.launch(addresses if table is None else [table.data.ptr], points, current)
        return table

    return launch, {key: str(value) for key, value in kernel.artifact.metadata.items()}
