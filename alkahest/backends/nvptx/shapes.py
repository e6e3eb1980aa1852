"""The shape of a kernel: points per thread and threads per block, from tables that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alkahest.backends.nvptx import arithmetic

if TYPE_CHECKING:
    from alkahest.program import Program

BLOCK = 128
"""Threads of a block."""

WIDEST = {"float64": 2, "float32": 4}
"""dtype -> points per thread whose columns fill the widest access to memory, 16 bytes."""

ALIGNMENT = 16
"""Bytes of that access."""

WIDE_REGISTERS = 96
"""Registers that a thread of several points may be estimated to need; measured on an H200."""

WIDE_ARRAYS = 32
"""Columns and outputs, at most, of a kernel with several points per thread."""

_FOR_FUNCTIONS = 24
_REGISTERS = {"float64": 2, "float32": 1}


def points_per_thread(program: Program, mode: str) -> int:
    """How many consecutive points a thread of the program's kernel computes, 1 or the widest.

    Two points need hardly more registers than one while a program's values are few, and move 16
    bytes at once. With many values, more threads of one point each are better.
    """
    widest = WIDEST.get(program.dtype, 1)
    arrays = len(program.inputs), len(program.outputs)
    if widest == 1 or not program.inputs or sum(arrays) > WIDE_ARRAYS:
        return 1
    values = live_values(arithmetic.prepared(program, mode)) + (widest - 1) * max(arrays)
    needed = values * _REGISTERS[program.dtype] + _FOR_FUNCTIONS
    return widest if needed <= WIDE_REGISTERS else 1


def live_values(program: Program) -> int:
    """Most values that are needed at once, if columns are loaded first and outputs stored last."""
    first = program.first_instruction
    last_use: dict[int, int] = {}
    for number, instruction in enumerate(program.code, first):
        for operand in instruction.args:
            last_use[operand] = number
    for output in program.outputs:
        last_use[output] = first + len(program.code)
    ends = [0] * (len(program.code) + 1)
    for value, number in last_use.items():
        if value < len(program.inputs) or value >= first:
            ends[number - first] += 1
    live = most = len(program.inputs)
    for position in range(len(program.code)):
        live += 1
        most = max(most, live)
        live -= ends[position]
        live -= first + position not in last_use
    return most
