"""Computing a point again, right for all arguments, where a kernel's near functions were not.

Hardly any thread ever does it, besides the last one of a kernel with several points a thread. But
every thread of a kernel has as many registers as the greediest part of its code needs. So this
code is frugal instead of fast: functions are called, values wait in local memory, even the number
of the point, and columns are loaded whenever they are needed. Only where there are no functions to
call, everything is as usual.
"""

from __future__ import annotations

from collections import defaultdict

from alkahest.backends.nvptx.block import Block
from alkahest.backends.nvptx.writer import Writer
from alkahest.ops import Kind


class CarefulWriter(Writer):
    """Writes a basic block ``careful`` and its successors, which end at ``exit``."""

    def write(self, points: int, *, frugal: bool) -> None:
        """Compute and store every point of the thread.

        Args:
            points: how many there are at most.
            frugal: whether values wait in local memory.
        """
        block = self._block
        self._kept: type[_Values] = _Slots if frugal else _Values
        block.start("careful")
        if points == 1:
            self._write_point("%i")
            return
        if not frugal:
            self._write_fewer(points)
            return
        block.jump("careful.next")
        block.start("careful.next")
        block.line("  %careful.i = phi i64 [ %i, %careful ], [ %careful.after, %careful.end ]")
        self._write_point("%careful.i")
        block.jump("careful.end")
        block.start("careful.end")
        block.line("  %careful.after = add nuw i64 %careful.i, 1")
        done = block.emit("sub nuw i64 %careful.after, %i")
        mine = block.emit(f"icmp ult i64 {done}, {points}")
        exists = block.emit("icmp ult i64 %careful.after, %n")
        block.split(block.logic("and", mine, exists), "careful.next", "careful.done")
        block.start("careful.done")

    def _write_fewer(self, points: int) -> None:
        """The points of a thread that has not all of them, one after the other, without a loop."""
        block = self._block
        self._write_point("%i")
        for point in range(1, points - 1):
            index = block.emit(f"add nuw i64 %i, {point}")
            block.split(block.emit(f"icmp ult i64 {index}, %n"), f"careful.{point}", "exit")
            block.start(f"careful.{point}")
            self._write_point(index)

    def _write_point(self, index: str) -> None:
        """Everything is computed, then stored, since outputs may overwrite columns."""
        program, layout, first = self._program, self._layout, self._program.first_instruction
        values = self._kept(self, first)
        values.keep(_POINT, index)
        last_use = {a: n for n, (_, args, _) in enumerate(program.code, first) for a in args}
        wanted = self._wanted()

        def column(number: int) -> str:
            return layout.converted(number, layout.load(number, values.of(_POINT)))

        for number, instruction in enumerate(program.code, first):
            operands = [self._operand(a, column, values) for a in instruction.args]
            result = self._instruction(number, instruction, operands)
            for operand in set(instruction.args):
                if last_use[operand] == number and operand not in wanted:
                    values.release(operand)
            values.keep(number, result)
        for number in wanted:
            if number < first:
                values.keep(number, self._operand(number, column, values))
        for number, positions in wanted.items():
            for position in positions:
                kind, value = self._stored(number, values.of(number))
                self._store(position, kind, value, index=values.of(_POINT))

    def kind(self, number: int) -> str:
        """LLVM's type of a value."""
        if number == _POINT:
            return "i64"
        return "i1" if self._program.kinds[number] is Kind.BOOL else self._block.type

    @property
    def block(self) -> Block:
        """What is written into."""
        return self._block


_POINT = -1
"""The number of the point, among the numbers of values."""


class _Values:
    """Values of a point, by number. Indexed like a list of instructions' values."""

    def __init__(self, writer: CarefulWriter, first: int) -> None:
        self._writer = writer
        self._first = first
        self._places: dict[int, str] = {}

    def __getitem__(self, position: int) -> str:
        return self.of(self._first + position)

    def of(self, number: int) -> str:
        """The value as an operand."""
        return self._places[number]

    def keep(self, number: int, value: str) -> None:
        """It has been computed."""
        self._places[number] = value

    def release(self, number: int) -> None:
        """Nothing needs it any more."""


class _Slots(_Values):
    """The same in local memory; places are used again."""

    def __init__(self, writer: CarefulWriter, first: int) -> None:
        super().__init__(writer, first)
        self._free: defaultdict[str, list[str]] = defaultdict(list)

    def of(self, number: int) -> str:
        kind = self._writer.kind(number)
        return self._writer.block.emit(f"load volatile {kind}, ptr {self._places[number]}")

    def keep(self, number: int, value: str) -> None:
        block, kind = self._writer.block, self._writer.kind(number)
        free = self._free[kind]
        self._places[number] = place = free.pop() if free else block.allocate(kind)
        block.line(f"  store volatile {kind} {value}, ptr {place}")

    def release(self, number: int) -> None:
        place = self._places.pop(number, None)
        if place is not None:
            self._free[self._writer.kind(number)].append(place)
