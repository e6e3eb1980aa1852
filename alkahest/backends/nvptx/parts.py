"""Very large programs as a row of functions, which hand values on in local memory.

The driver's compiler takes time that grows with the square of a function's length, and more: one of
10000 instructions takes ten seconds, ten of 1000 take one. So does the number of registers that it
would like to have. A thread of such a program computes for so long that the calls do not matter.
"""

from __future__ import annotations

import heapq

from alkahest.backends.nvptx.block import Block, Symbols
from alkahest.backends.nvptx.writer import Writer
from alkahest.ops import Kind
from alkahest.program import Program

LARGEST_WHOLE = 2_000
"""Instructions, at most, of a program that is one function."""

PART = 500
"""Instructions of a part."""

_LOCAL = "ptr addrspace(5)"


class PartsWriter(Writer):
    """Writes a kernel that loads all columns, calls every part, and stores all outputs."""

    def write(self, symbols: Symbols) -> None:
        """Write the kernel; the parts become functions of ``symbols``."""
        program, layout, block = self._program, self._layout, self._block
        self._pairs = set()  # what a sine and a cosine share would have to be handed on
        frame = _Frame(program, self._used, set(self._wanted()))
        size = f"[{frame.size} x double]"
        block.frame.append(f"  %frame.all = alloca {size}")
        block.line(f"  %frame = addrspacecast ptr %frame.all to {_LOCAL}")
        for number in self._used:
            value = layout.converted(number, layout.load(number))
            _Part(program, frame, block).save(number, value)
        for part in range(frame.parts):
            name = f"alkahest_part_{part}"
            symbols.shared[name] = self._function(name, part, frame, symbols)
            block.line(f"  call void @{name}({_LOCAL} %frame)")
        kept = _Part(program, frame, block)
        for number, positions in self._wanted().items():
            value = self._constant(number) or kept.load(number)
            for position in positions:
                self._store(position, *self._stored(number, value))

    def _function(self, name: str, part: int, frame: _Frame, symbols: Symbols) -> str:
        """The definition of one part."""
        program, first = self._program, self._program.first_instruction
        whole, self._block = self._block, Block(program.dtype, symbols, out_of_line=True)
        values = _Part(program, frame, self._block)
        start = part * PART
        for number, instruction in enumerate(program.code[start : start + PART], first + start):
            operands = [self._operand(a, values.load, values) for a in instruction.args]
            values.keep(number, self._instruction(number, instruction, operands))
        block, self._block = self._block, whole
        head = f"define internal void @{name}({_LOCAL} %frame) noinline nounwind {{"
        return "\n".join([head, "entry:", *block.lines, "  ret void", "}"])

    def _constant(self, number: int) -> str | None:
        """A constant as an operand, or None for any other value."""
        is_constant = len(self._program.inputs) <= number < self._program.first_instruction
        return self._operand(number, str, []) if is_constant else None


class _Frame:
    """Places in local memory of the values that one part hands on to others.

    Attributes:
        size: number of places, of 8 bytes each.
        parts: number of parts.
        places: value -> place.
    """

    def __init__(self, program: Program, columns: list[int], outputs: set[int]) -> None:
        first, inputs = program.first_instruction, len(program.inputs)
        self.parts = -(-len(program.code) // PART)
        last_part = dict.fromkeys(columns, -1)
        for position, (_, args, _) in enumerate(program.code):
            for value in args:
                if not inputs <= value < first:
                    last_part[value] = position // PART
        last_part.update(dict.fromkeys((v for v in outputs if not inputs <= v < first), self.parts))
        self.places: dict[int, int] = {}
        self.size = 0
        free: list[int] = []
        ends: list[tuple[int, int]] = []
        for value in sorted(last_part):
            part = (value - first) // PART if value >= first else -1
            if last_part[value] == part and value >= first:
                continue
            while ends and ends[0][0] < part:
                free.append(heapq.heappop(ends)[1])
            if not free:
                free.append(self.size)
                self.size += 1
            self.places[value] = free.pop()
            heapq.heappush(ends, (last_part[value], self.places[value]))


class _Part:
    """Values in one function: computed there, or loaded when they are needed first."""

    def __init__(self, program: Program, frame: _Frame, block: Block) -> None:
        self._program = program
        self._frame = frame
        self._block = block
        self._known: dict[int, str] = {}

    def __getitem__(self, position: int) -> str:
        return self.load(self._program.first_instruction + position)

    def keep(self, number: int, value: str) -> None:
        """A value that was computed here."""
        self._known[number] = value
        if number in self._frame.places:
            self.save(number, value)

    def load(self, number: int) -> str:
        """A value, in this function."""
        if number not in self._known:
            is_bool, address = self._address(number)
            kind = "i8" if is_bool else self._block.type
            loaded = self._block.emit(f"load {kind}, {_LOCAL} {address}, align 8")
            if is_bool:
                loaded = self._block.emit(f"trunc i8 {loaded} to i1")
            self._known[number] = loaded
        return self._known[number]

    def save(self, number: int, value: str) -> None:
        """Put a value into its place."""
        is_bool, address = self._address(number)
        kind = self._block.type
        if is_bool:
            kind, value = "i8", self._block.emit(f"zext i1 {value} to i8")
        self._block.line(f"  store {kind} {value}, {_LOCAL} {address}, align 8")

    def _address(self, number: int) -> tuple[bool, str]:
        offset = 8 * self._frame.places[number]
        address = self._block.emit(f"getelementptr inbounds i8, {_LOCAL} %frame, i64 {offset}")
        return self._program.kinds[number] is Kind.BOOL, address
