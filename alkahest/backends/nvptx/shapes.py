"""The shape of a kernel: points per thread and threads per block.

Points per thread are chosen with the code, by tables that were measured on an H200; threads per
block when the driver has compiled it, by the registers that it takes. Where `alkahest calibrate`
has found something quicker on a device (:mod:`alkahest.backends.nvptx.tuning`), that is taken there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from alkahest.backends.nvptx import arithmetic, sizes
from alkahest.backends.nvptx.accuracy import DEFAULT, FAST, STRICT
from alkahest.backends.nvptx.lowerings import ROWS

if TYPE_CHECKING:
    from alkahest.program import Program

BLOCKS = (128, 192, 256)
"""Threads of a block, the best first where as many fit on a multiprocessor. With 64 memory is up to
70 % slower on an H200, since blocks are not begun fast enough; beyond 128 nothing is gained by
itself."""

WIDEST = {"float64": 2, "float32": 4}
"""dtype -> points per thread whose columns fill the widest access to memory, 16 bytes."""

ALIGNMENT = 16
"""Bytes of that access."""

WIDE_REGISTERS = 96
"""Registers that a thread of several points may be estimated to need."""

WIDE_ARRAYS = 5
"""Columns and outputs, at most, of a kernel with several points per thread. Measured on an H200:
with 5 arrays two points a thread are as fast as one or up to 20 % faster, with 9 a percent slower,
with 15 by 7 %."""

WIDE_CODE = {STRICT: 2_000, DEFAULT: 150, FAST: 150}
"""Accuracy mode -> instructions, at most, of one of its points. Measured there too: with 132 two
points a thread are faster, with 165, 250 and 2600 one is as fast or up to 12 % faster, and compiled
in half the time. The functions of libdevice, of which a point runs a part only, want the 16 bytes."""

MEMORY_CODE = 24
"""Instructions, at most, of a point of a kernel that waits for memory alone."""

MEMORY, FUNCTION, COMPUTE, OTHER = "memory", "function", "compute", "other"
"""Kinds of work: little code for each point, a function or two, much code; and kernels of too many
columns and outputs, or of complex numbers, for which nothing is tuned."""

_REGISTER_FILE = 65_536
_REGISTERS_AT_ONCE = 8
_RESIDENT_THREADS = 2_048
_FOR_FUNCTIONS = 24
_REGISTERS = {"float64": 2, "float32": 1}


@attrs.frozen
class Shape:
    """How a kernel is launched.

    Attributes:
        points: that a thread computes.
        threads: of a block.
    """

    points: int
    threads: int


@attrs.frozen(eq=False)
class Tuning:
    """The shapes that were found to be quicker on one kind of device.

    Attributes:
        shapes: (dtype, kind of work) -> shape; what is not there is chosen by the tables here.
    """

    shapes: Mapping[tuple[str, str], Shape] = attrs.field(factory=dict)

    def points(self, dtype: str, work: str) -> int | None:
        """Points per thread, or None where the tables choose."""
        found = self.shapes.get((dtype, work))
        return None if found is None else found.points

    def threads(self, dtype: str, work: str) -> int | None:
        """Threads per block, or None where the registers choose."""
        found = self.shapes.get((dtype, work))
        return None if found is None else found.threads

    def text(self, dtype: str) -> str:
        """What code for ``dtype`` depends on, for cache keys: ``"compute 1, memory 2"``."""
        found = sorted((work, s.points) for (name, work), s in self.shapes.items() if name == dtype)
        return ", ".join(f"{work} {points}" for work, points in found)


UNTUNED = Tuning()
"""Where nothing was measured."""


@attrs.frozen
class Choice:
    """What is known of a kernel's shape when its code is generated.

    Attributes:
        points: that a thread computes.
        work: kind of work, by which the threads of a block are chosen on a device.
    """

    points: int
    work: str


def choose(program: Program, mode: str, tuning: Tuning = UNTUNED) -> Choice:
    """Points per thread of the program's kernel, and the kind of its work.

    Args:
        program: verified.
        mode: accuracy mode.
        tuning: of the device that it is for.
    """
    widest = WIDEST.get(program.dtype, 1)
    arrays = len(program.inputs), len(program.outputs)
    if widest == 1 or not program.inputs or sum(arrays) > WIDE_ARRAYS:
        return Choice(1, OTHER)
    program = arithmetic.prepared(program, mode)
    code = sizes.code(program, ROWS[mode])
    work = MEMORY if code <= MEMORY_CODE else FUNCTION if code <= WIDE_CODE[mode] else COMPUTE
    points = tuning.points(program.dtype, work)
    if points is None:
        points = 1 if work == COMPUTE else widest
    if points == 1:
        return Choice(1, work)
    values = live_values(program) + (points - 1) * max(arrays)
    needed = values * _REGISTERS[program.dtype] + _FOR_FUNCTIONS
    return Choice(points if needed <= WIDE_REGISTERS else 1, work)


def points_per_thread(program: Program, mode: str, tuning: Tuning = UNTUNED) -> int:
    """How many consecutive points a thread of the program's kernel computes, 1 or the widest.

    Two points need hardly more registers than one while a program's values are few, and move 16
    bytes at once. With many values, more threads of one point each are better; so they are where a
    thread has too little memory traffic to wait for, or so much that there is enough of it anyway.
    """
    return choose(program, mode, tuning).points


def threads_per_block(registers: int, tuned: int | None = None) -> int:
    """The block of which most threads fit on a multiprocessor at once, or the tuned one.

    Args:
        registers: that a thread of the compiled kernel takes.
        tuned: threads that were found to be quicker; they count where at least one block fits.
    """
    if tuned and resident_threads(registers, tuned):
        return tuned
    return max(BLOCKS, key=lambda threads: resident_threads(registers, threads))


def resident_threads(registers: int, threads: int) -> int:
    """Threads on a multiprocessor at once, in blocks of ``threads``."""
    taken = -(-max(registers, 1) // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
    return min(_REGISTER_FILE // (taken * threads), _RESIDENT_THREADS // threads) * threads


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
