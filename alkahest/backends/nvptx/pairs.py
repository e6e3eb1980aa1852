"""Kernels of complex programs: the real program of :func:`alkahest.program.split_complex.split`.

A complex number is two adjacent elements in memory, which are loaded and stored as one vector.
What the real program wants hardly ever, recovered infinities and operands out of range, waits in
branches: a ``select`` on a nan test chooses between the usual value and one whose instructions
nothing else needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from alkahest.backends.nvptx import accuracy, arithmetic, emit, sizes
from alkahest.backends.nvptx.access import CONTIGUOUS, Access
from alkahest.backends.nvptx.block import TYPES, Block, Symbols
from alkahest.backends.nvptx.layout import Layout
from alkahest.backends.nvptx.lowerings import ROWS, Row
from alkahest.backends.nvptx.writer import Writer
from alkahest.program import Program
from alkahest.program.rare_code import RareCode
from alkahest.program.split_complex import SplitProgram, split


def kernel(
    program: Program, access: Access | None = None, mode: str = accuracy.DEFAULT
) -> emit.Kernel:
    """The kernel of a verified complex program; arguments and errors as :func:`emit.kernel`."""
    access = access or Access.plain(program, mode)
    found = split(program)
    found = attrs.evolve(found, program=arithmetic.prepared_parts(found.program, mode))
    symbols = Symbols()
    is_large = sizes.is_large(found.program, ROWS[mode])
    block = Block(found.program.dtype, symbols, label="body", out_of_line=is_large)
    layout = Layout(access, block)
    PairWriter(found, block, layout, ROWS[mode]).write_single()
    return emit.finished(found.program, layout, block, symbols)


class PairWriter(Writer):
    """Writes the real program of a complex one."""

    def __init__(
        self, found: SplitProgram, block: Block, layout: Layout, rows: Mapping[str, Row]
    ) -> None:
        super().__init__(found.program, block, layout, rows)
        self._outputs = found.outputs
        self._rare = RareCode(found.program)

    def write_single(self) -> None:
        """One point: every column that is used, the computation, every output."""
        program, layout, block = self._program, self._layout, self._block
        used = {a for _, args, _ in program.code for a in args} | set(program.outputs)
        columns: dict[int, str] = {}
        for position in range(len(program.inputs) // 2):
            if not used.isdisjoint((2 * position, 2 * position + 1)):
                columns[2 * position], columns[2 * position + 1] = layout.pair(position)
        values = list(self._values(columns.__getitem__))
        size = TYPES[program.dtype][2]
        for place, source in enumerate(layout.access.sources):
            numbers = [program.outputs[k] for k in self._outputs[source]]
            results = [self._operand(n, columns.__getitem__, values) for n in numbers]
            position = len(program.inputs) // 2 + place
            if len(results) == 1:
                self._store(position, *self._stored(numbers[0], results[0]))
                continue
            kind = f"<2 x {block.type}>"
            vector = "poison"
            for lane, result in enumerate(results):
                vector = block.emit(
                    f"insertelement {kind} {vector}, {block.type} {result}, i32 {lane}"
                )
            address = layout.address(position, kind)
            align = 2 * size if layout.access.outputs[place] == CONTIGUOUS else size
            block.line(f"  store {kind} {vector}, ptr addrspace(1) {address}, align {align}")

    def _values(self, column: Callable[[int], str]) -> Iterator[str]:
        """As of every program, but for rare instructions: their value is "" here."""
        values: list[str] = []
        pairs: dict[int, str] = {}
        first, rare = self._program.first_instruction, self._rare
        chosen: dict[int, str] = {}
        for number, instruction in enumerate(self._program.code, first):
            if number in rare.instructions:
                values.append("")
            elif number in chosen:
                values.append(chosen[number])
            elif number in rare.selects:
                together = rare.selects[number]
                results = self._branch(together, column, values, pairs)
                chosen.update(zip(together, results, strict=True))
                values.append(chosen[number])
            else:
                operands = [self._operand(a, column, values) for a in instruction.args]
                values.append(self._computed(number, instruction, operands, pairs))
            yield values[-1]

    def _branch(
        self,
        selects: tuple[int, ...],
        column: Callable[[int], str],
        values: list[str],
        pairs: dict[int, str],
    ) -> list[str]:
        """Several selects of one condition as a branch around what they alone need."""
        block, program, first = self._block, self._program, self._program.first_instruction
        code = [program.code[number - first] for number in selects]
        condition = self._operand(code[0].args[0], column, values)
        usual = [self._operand(select.args[2], column, values) for select in code]
        name, before = f"rare{selects[0]}", block.label
        block.split(condition, name, f"{name}.end")
        block.start(name)
        # What is computed in here does not exist outside.
        within, pairs = [*values], dict(pairs)
        within += [""] * (selects[0] - first - len(within))
        for number in self._rare.needed(select.args[1] for select in code):
            instruction = program.code[number - first]
            operands = [self._operand(a, column, within) for a in instruction.args]
            within[number - first] = self._computed(number, instruction, operands, pairs)
        fixed = [self._operand(select.args[1], column, within) for select in code]
        last = block.label
        block.jump(f"{name}.end")
        block.start(f"{name}.end")
        return [
            block.emit(f"phi {block.type} [ {a}, %{last} ], [ {b}, %{before} ]")
            for a, b in zip(fixed, usual, strict=True)
        ]


__all__ = ["PairWriter", "kernel"]
