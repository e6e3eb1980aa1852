"""Instructions of a program, one after the other, as LLVM assembly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from alkahest.backends.nvptx.block import TYPES, Block
from alkahest.backends.nvptx.doubts import Doubts
from alkahest.backends.nvptx.layout import Layout
from alkahest.backends.nvptx.lowerings import LOWERINGS, Expansion, Library, Own, Row, Shared
from alkahest.backends.nvptx.mathcode import PAIR
from alkahest.errors import CudaError
from alkahest.ops import Kind
from alkahest.program import Instruction, Program
from alkahest.program.llvm_rows import Compare, Intrinsic, Logic, Opcode


class Values(Protocol):
    """Results of instructions so far, by position."""

    def __getitem__(self, position: int, /) -> str: ...


class Writer:
    """Writes the computation of a point, and stores, into a block."""

    def __init__(
        self,
        program: Program,
        block: Block,
        layout: Layout,
        rows: Mapping[str, Row],
        doubts: Doubts | None = None,
    ) -> None:
        """Begin to write; without ``doubts`` functions are right for all arguments at once."""
        self._program = program
        self._block = block
        self._layout = layout
        self._rows = rows
        self._doubts = doubts
        calls = {(op, args[0]) for op, args, _ in program.code if op in _SINCOS}
        paired = isinstance(rows["sin"], Own) and program.dtype == "float64"
        self._pairs = {
            a for op, a in calls if paired and ("sin", a) in calls and ("cos", a) in calls
        }

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

    def _operand(self, number: int, column: Callable[[int], str], values: Values) -> str:
        inputs = len(self._program.inputs)
        if number < inputs:
            return column(number)
        first = self._program.first_instruction
        if number >= first:
            return values[number - first]
        constant = self._program.constants[number - inputs]
        if isinstance(constant, bool):
            return str(constant).lower()
        return self._block.pooled(_real(constant))

    def _values(self, column: Callable[[int], str]) -> Iterator[str]:
        """Compute one point: gives the result of every instruction when it has been written."""
        values: list[str] = []
        pairs: dict[int, str] = {}
        for number, instruction in enumerate(self._program.code, self._program.first_instruction):
            operands = [self._operand(a, column, values) for a in instruction.args]
            values.append(self._computed(number, instruction, operands, pairs))
            yield values[-1]

    def _computed(
        self, number: int, instruction: Instruction, operands: list[str], pairs: dict[int, str]
    ) -> str:
        """Write one instruction; ``pairs`` holds what sines and cosines share so far."""
        if instruction.op in _SINCOS and instruction.args[0] in self._pairs:
            return self._of_pair(number, instruction, operands[0], pairs)
        if instruction.op == "select" and self._doubts is not None:
            self._doubts.choose(number, operands[0])
        return self._instruction(number, instruction, operands)

    def _of_pair(self, number: int, instruction: Instruction, x: str, pairs: dict[int, str]) -> str:
        """Sine or cosine, of an argument of which the other is wanted too."""
        argument = instruction.args[0]
        row = self._rows[instruction.op]
        assert isinstance(row, Own)
        if argument not in pairs:
            pairs[argument] = self._own(number, "sincos", row.part, x)
        elif not row.part and self._doubts is not None:
            self._doubts.add(number, self._block.is_far("sincos", x))
        index = _SINCOS.index(instruction.op)
        return self._block.emit(f"extractvalue {PAIR} {pairs[argument]}, {index}")

    def _own(self, number: int, name: str, part: str, *operands: str) -> str:
        """A function of ours: the near part, and a doubt, where doubts are collected."""
        if part or self._doubts is None:
            return self._block.own(name, *operands, part=part)
        self._doubts.add(number, self._block.is_far(name, *operands))
        return self._block.own(name, *operands, part=".near")

    def _instruction(self, number: int, instruction: Instruction, operands: list[str]) -> str:
        block, (op, _, parameter) = self._block, instruction
        row = self._rows.get(op)
        if isinstance(row, Own) and block.dtype != "float64":
            row = LOWERINGS[op]
        match row:
            case Opcode(name):
                return block.op(name, *operands)
            case Compare(predicate):
                return block.compare(predicate, *operands)
            case Logic(name):
                return block.logic(name, *operands)
            case Intrinsic(name):
                return block.intrinsic(name, *operands)
            case Own(name, part):
                return self._own(number, name, part, *operands)
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
