"""Programs to LLVM assembly: one kernel, nothing linked yet.

The kernel's shape, for a program of two inputs and one output::

    define ptx_kernel void @alkahest_eval(ptr column 0, ptr column 1, ptr output 0, i64 n)
        i = (number of the thread) * (points per thread)
        if (i < n) load everything, compute, store every output

A grid has to have a thread for every point, or for every two of them in double precision, every
four in single precision, where that pays (:mod:`alkahest.backends.nvptx.shapes`); the columns then
move in pieces of 16 bytes, except for the last points. The parameters in general, and how columns
are reached that are not contiguous, are the matter of :mod:`alkahest.backends.nvptx.access` and
:mod:`alkahest.backends.nvptx.layout`.

Functions of our own are there in their near parts, which have no branches; what they leave open is
settled once, at the end (:mod:`alkahest.backends.nvptx.doubts`). In large programs functions are
called instead of being inlined, and very large ones are taken apart themselves
(:mod:`alkahest.backends.nvptx.parts`).

Values are named by numbers only; no text of the user's gets into the assembly.
"""

from __future__ import annotations

import attrs

from alkahest.backends.nvptx import accuracy, arithmetic, sizes
from alkahest.backends.nvptx.access import Access
from alkahest.backends.nvptx.block import Block, Symbols
from alkahest.backends.nvptx.careful import CarefulWriter
from alkahest.backends.nvptx.doubts import Doubts
from alkahest.backends.nvptx.layout import Layout
from alkahest.backends.nvptx.lowerings import ROWS
from alkahest.backends.nvptx.parts import LARGEST_WHOLE, PartsWriter
from alkahest.backends.nvptx.writer import Writer
from alkahest.program import Program

ENTRY = "alkahest_eval"

EARLY_LOADS = 24
"""Columns, at most, that a thread of one point loads before it computes; others when needed."""

_SREGS = ("tid.x", "ntid.x", "ctaid.x")


@attrs.frozen
class Kernel:
    """A program as LLVM assembly.

    Attributes:
        text: the kernel and the functions it shares, without declarations.
        symbols: what it calls.
        instructions: of the program, after the passes of the accuracy mode.
        abi: ``"pointers"`` or ``"table"``.
        inlined: whether the functions are a part of the kernel.
    """

    text: str
    symbols: Symbols
    instructions: int
    abi: str
    inlined: bool


def kernel(program: Program, access: Access | None = None, mode: str = accuracy.DEFAULT) -> Kernel:
    """The kernel of a verified program.

    Args:
        program: real; complex ones are for :func:`alkahest.backends.nvptx.pairs.kernel`.
        access: how columns and outputs are reached; None is :meth:`Access.plain`.
        mode: one of :data:`accuracy.MODES`.

    Raises:
        CudaError: E-CUDA-002 naming an operation that is not lowered.
    """
    access = access or Access.plain(program, mode)
    program = arithmetic.prepared(program, mode)
    symbols, rows = Symbols(), ROWS[mode]
    is_long = len(program.code) > LARGEST_WHOLE
    is_large = is_long or sizes.is_large(program, rows)
    block = Block(program.dtype, symbols, label="body", out_of_line=is_large)
    layout = Layout(access, block)
    if is_long:
        PartsWriter(program, block, layout, rows).write(symbols)
        return finished(program, layout, block, symbols)
    doubts = None if is_large else Doubts(program, block)
    writer = KernelWriter(program, block, layout, rows, doubts)
    if access.points > 1:
        writer.write_wide(access.points)
    else:
        writer.write_single()
    writer.write_careful(access.points)
    return finished(program, layout, block, symbols)


def finished(program: Program, layout: Layout, block: Block, symbols: Symbols) -> Kernel:
    """The kernel around a ``block`` in which everything is written."""
    for register in _SREGS:
        symbol = f"llvm.nvvm.read.ptx.sreg.{register}"
        symbols.declarations[symbol] = f"declare i32 @{symbol}()"
    text = "\n".join(
        [
            *symbols.shared.values(),
            f"define ptx_kernel void @{ENTRY}({layout.signature}) nounwind {{",
            "entry:",
            *block.frame,
            _PROLOGUE.format(points=layout.access.points),
            *block.lines,
            "  br label %exit",
            _EPILOGUE,
        ]
    )
    return Kernel(text, symbols, len(program.code), layout.abi, not block.out_of_line)


class KernelWriter(Writer):
    """Writes loads, computation and stores of a thread's points."""

    _is_careful = False

    def write_single(self) -> None:
        """One point: what is computed is stored at once, where no column can be overwritten."""
        program, layout, in_place = self._program, self._layout, self._layout.access.in_place
        loaded: dict[int, str] = {}

        def column(number: int) -> str:
            if number not in loaded:
                loaded[number] = layout.converted(number, layout.load(number))
            return loaded[number]

        if len(program.inputs) <= EARLY_LOADS or in_place:
            for number in self._used:
                column(number)
        wanted = self._wanted()
        values: list[str] = []
        for value in self._values(column):
            number = program.first_instruction + len(values)
            values.append(value)
            if not in_place:
                for position in wanted.pop(number, ()):
                    self._store(position, *self._stored(number, value))
        if in_place:
            self._settle()
        for number, positions in wanted.items():
            result = self._operand(number, column, values)
            for position in positions:
                self._store(position, *self._stored(number, result))
        if not in_place:
            self._settle()

    def _settle(self) -> None:
        """Leave for the careful code where anything is in doubt."""
        doubt = self._doubts.all if self._doubts else None
        if doubt is None:
            return
        self._block.split(self._block.unlikely(doubt), "careful", "sure")
        self._block.start("sure")
        self._is_careful = True

    def write_careful(self, points: int) -> None:
        """What computes every point of the thread again, behind everything else."""
        if not self._is_careful:
            return
        aside = self._block.aside("careful")
        layout = self._layout.again(aside)
        CarefulWriter(self._program, aside, layout, self._rows).write(
            points, frugal=self._block.calls_functions
        )
        self._block.jump("exit")
        self._block.join(aside)

    def write_wide(self, points: int) -> None:
        """Several points in vectors; a thread that has fewer, the last one, is careful."""
        block, layout = self._block, self._layout
        room = block.emit("sub nuw i64 %n, %i")
        block.split(block.emit(f"icmp uge i64 {room}, {points}"), "wide", "careful")
        block.start("wide")
        self._is_careful = True
        columns = {number: self._lanes(number, points) for number in self._used}
        results: dict[int, list[tuple[str, str]]] = {number: [] for number in self._wanted()}
        for point in range(points):
            column = {number: lanes[point] for number, lanes in columns.items()}.__getitem__
            values = list(self._values(column))
            for number, found in results.items():
                value = self._operand(number, column, values)
                found.append(self._stored(number, value))
        if layout.access.in_place:
            self._settle()
        for number, positions in self._wanted().items():
            vector, (kind, _) = "poison", results[number][0]
            for point, (_, value) in enumerate(results[number]):
                vector = block.emit(
                    f"insertelement <{points} x {kind}> {vector}, {kind} {value}, i32 {point}"
                )
            for position in positions:
                self._store(position, kind, vector, points=points)
        if not layout.access.in_place:
            self._settle()

    def _lanes(self, number: int, points: int) -> list[str]:
        """A column at every point of the thread."""
        block, layout = self._block, self._layout
        kind = layout.in_memory(number)
        if not kind:
            return [layout.load(number)] * points
        vector = layout.load(number, points=points)
        lanes = [
            block.emit(f"extractelement <{points} x {kind}> {vector}, i32 {point}")
            for point in range(points)
        ]
        return [layout.converted(number, lane) for lane in lanes]


_PROLOGUE = """\
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %within = zext i32 %tid to i64
  %size = zext i32 %ntid to i64
  %block = zext i32 %ctaid to i64
  %before = mul nuw nsw i64 %block, %size
  %thread = add nuw nsw i64 %before, %within
  %i = mul nuw nsw i64 %thread, {points}
  %any = icmp ult i64 %i, %n
  br i1 %any, label %body, label %exit

body:"""

_EPILOGUE = """\
exit:
  ret void
}"""
