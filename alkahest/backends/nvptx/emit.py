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

Values are named by numbers only; no text of the user's gets into the assembly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from alkahest.backends.nvptx import accuracy, arithmetic
from alkahest.backends.nvptx.access import Access
from alkahest.backends.nvptx.block import TYPES, Block, Symbols
from alkahest.backends.nvptx.layout import Layout
from alkahest.backends.nvptx.lowerings import (
    ROWS,
    Compare,
    Expansion,
    Intrinsic,
    Library,
    Logic,
    Opcode,
    Own,
    Row,
    Shared,
)
from alkahest.backends.nvptx.mathcode import PAIR
from alkahest.errors import CudaError
from alkahest.ops import Kind
from alkahest.program import Instruction, Program

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
    """

    text: str
    symbols: Symbols
    instructions: int
    abi: str


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
    symbols = Symbols()
    block = Block(program.dtype, symbols, label="body")
    layout = Layout(access, block)
    writer = Writer(program, block, layout, ROWS[mode])
    if access.points > 1:
        writer.write_wide(access.points)
    else:
        writer.write_single()
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
            _PROLOGUE.format(points=layout.access.points),
            *block.lines,
            "  br label %exit",
            _EPILOGUE,
        ]
    )
    return Kernel(text, symbols, len(program.code), layout.abi)


class Writer:
    """Writes loads, computation and stores into a block."""

    def __init__(
        self, program: Program, block: Block, layout: Layout, rows: Mapping[str, Row]
    ) -> None:
        self._program = program
        self._block = block
        self._layout = layout
        self._rows = rows
        self._constants = [
            str(c).lower() if isinstance(c, bool) else block.constant(_real(c))
            for c in program.constants
        ]
        calls = {(op, args[0]) for op, args, _ in program.code if op in _SINCOS}
        paired = isinstance(rows["sin"], Own) and program.dtype == "float64"
        self._pairs = {
            a for op, a in calls if paired and ("sin", a) in calls and ("cos", a) in calls
        }

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
            number = len(program.inputs) + len(self._constants) + len(values)
            values.append(value)
            if not in_place:
                for position in wanted.pop(number, ()):
                    self._store(position, *self._stored(number, value))
        for number, positions in wanted.items():
            result = self._operand(number, column, values)
            for position in positions:
                self._store(position, *self._stored(number, result))

    def write_wide(self, points: int) -> None:
        """Several points: vectors, unless this thread has the last points and they are fewer."""
        block = self._block
        block.line(f"  %room = sub nuw i64 %n, %i\n  %full = icmp uge i64 %room, {points}")
        columns = self._load_wide(points)
        results: dict[int, list[tuple[str, str]]] = {number: [] for number in self._wanted()}
        for point in range(points):
            column = {number: lanes[point] for number, lanes in columns.items()}.__getitem__
            values = list(self._values(column))
            for number, found in results.items():
                found.append(self._stored(number, self._operand(number, column, values)))
        block.split("%full", "wide.end", "rest.end")
        block.start("wide.end")
        for number, positions in self._wanted().items():
            vector, (kind, _) = "poison", results[number][0]
            for point, (_, value) in enumerate(results[number]):
                vector = block.emit(
                    f"insertelement <{points} x {kind}> {vector}, {kind} {value}, i32 {point}"
                )
            for position in positions:
                self._store(position, kind, vector, points=points)
        block.jump("exit")
        block.start("rest.end")
        for point in range(points):
            if point > 0:
                more = block.emit(f"icmp ugt i64 %room, {point}")
                block.split(more, f"rest.{point}", "exit")
                block.start(f"rest.{point}")
            index = block.emit(f"add nuw i64 %i, {point}")
            for number, positions in self._wanted().items():
                for position in positions:
                    self._store(position, *results[number][point], index=index)

    def _load_wide(self, points: int) -> dict[int, list[str]]:
        """Every column that is used, one value per point; threads with less read one twice."""
        block, layout = self._block, self._layout
        arrays = [k for k in self._used if layout.in_memory(k)]
        block.split("%full", "wide", "rest")
        block.start("wide")
        vectors = {k: layout.load(k, points=points) for k in arrays}
        whole = {
            k: [
                block.emit(f"extractelement <{points} x {layout.in_memory(k)}> {v}, i32 {point}")
                for point in range(points)
            ]
            for k, v in vectors.items()
        }
        block.jump("points")
        block.start("rest")
        parts: dict[int, list[str]] = {k: [] for k in arrays}
        for point in range(points):
            index = "%i"
            if point:
                here = block.emit(f"icmp ugt i64 %room, {point}")
                index = block.emit(f"add nuw i64 %i, {point}")
                index = block.emit(f"select i1 {here}, i64 {index}, i64 %i")
            for k in arrays:
                parts[k].append(layout.load(k, index))
        block.jump("points")
        block.start("points")
        columns = {k: [layout.load(k)] * points for k in self._used if k not in arrays}
        for k in arrays:
            merged = [
                block.emit(f"phi {layout.in_memory(k)} [ {a}, %wide ], [ {b}, %rest ]")
                for a, b in zip(whole[k], parts[k], strict=True)
            ]
            columns[k] = merged
        return {k: [layout.converted(k, x) for x in lanes] for k, lanes in columns.items()}

    @property
    def _used(self) -> list[int]:
        """Columns that are needed, in order."""
        program = self._program
        used = {a for _, args, _ in program.code for a in args}
        used.update(program.outputs[source] for source in self._layout.access.sources)
        return [number for number in range(len(program.inputs)) if number in used]

    def _wanted(self) -> dict[int, list[int]]:
        """Values that are stored -> positions of the arrays that they go to."""
        wanted: dict[int, list[int]] = {}
        for position, source in enumerate(self._layout.access.sources, len(self._program.inputs)):
            wanted.setdefault(self._program.outputs[source], []).append(position)
        return wanted

    def _operand(self, number: int, column: Callable[[int], str], values: Sequence[str]) -> str:
        inputs = len(self._program.inputs)
        if number < inputs:
            return column(number)
        number -= inputs
        constants = len(self._constants)
        return self._constants[number] if number < constants else values[number - constants]

    def _values(self, column: Callable[[int], str]) -> Iterator[str]:
        """Compute one point: gives the result of every instruction when it has been written."""
        values: list[str] = []
        pairs: dict[int, str] = {}
        for instruction in self._program.code:
            operands = [self._operand(a, column, values) for a in instruction.args]
            values.append(self._computed(instruction, operands, pairs))
            yield values[-1]

    def _computed(
        self, instruction: Instruction, operands: list[str], pairs: dict[int, str]
    ) -> str:
        """Write one instruction; ``pairs`` holds what sines and cosines share so far."""
        if instruction.op in _SINCOS and instruction.args[0] in self._pairs:
            return self._of_pair(instruction, operands[0], pairs)
        return self._instruction(instruction, operands)

    def _of_pair(self, instruction: Instruction, x: str, pairs: dict[int, str]) -> str:
        """Sine or cosine, of an argument of which the other is wanted too."""
        argument = instruction.args[0]
        row = self._rows[instruction.op]
        assert isinstance(row, Own)
        if argument not in pairs:
            pairs[argument] = self._block.own("sincos", x, part=row.part)
        index = _SINCOS.index(instruction.op)
        return self._block.emit(f"extractvalue {PAIR} {pairs[argument]}, {index}")

    def _instruction(self, instruction: Instruction, operands: list[str]) -> str:
        block, (op, _, parameter) = self._block, instruction
        match self._rows.get(op):
            case Opcode(name):
                return block.op(name, *operands)
            case Compare(predicate):
                return block.compare(predicate, *operands)
            case Logic(name):
                return block.logic(name, *operands)
            case Intrinsic(name):
                return block.intrinsic(name, *operands)
            case Own(name, part) if block.dtype == "float64":
                return block.own(name, *operands, part=part)
            case Own(name, _):
                return block.library(f"__nv_{name}", *operands)
            case Library(name):
                return block.library(name, *operands)
            case Shared(name, build):
                return block.shared(name, build, *operands)
            case Expansion(build):
                extra = () if parameter is None else (parameter,)
                return build(block, *operands, *extra)
        raise CudaError(
            "E-CUDA-002",
            f"operation {op!r} is not lowered for GPUs",
            remediation="Use a CPU backend.",
        )

    def _stored(self, number: int, value: str) -> tuple[str, str]:
        """LLVM's type in memory of a value, and the value in it."""
        if self._program.kinds[number] is Kind.BOOL:
            return "i8", self._block.emit(f"zext i1 {value} to i8")
        return self._block.type, value

    def _store(
        self, position: int, kind: str, value: str, *, index: str = "%i", points: int = 1
    ) -> None:
        address = self._layout.address(position, kind, index)
        align = points * (1 if kind == "i8" else TYPES[self._program.dtype][2])
        kind = f"<{points} x {kind}>" if points > 1 else kind
        self._block.line(f"  store {kind} {value}, ptr addrspace(1) {address}, align {align}")


_SINCOS = ("sin", "cos")


def _real(constant: complex) -> float:
    assert isinstance(constant, float)  # verify() admits complex constants in complex programs only
    return constant


_PROLOGUE = """\
entry:
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
