"""Whether a thread's results can be trusted: one answer for all near functions that it calls.

The near part of a function is wrong for far arguments, and says so. Instead of a branch at every
call, a thread collects what they say, and computes its points again, in a careful way, where any of
it matters. What does not matter are values that a ``select`` does not choose: a logarithm guarded
against negative numbers is no reason to do anything twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from alkahest.backends.nvptx.block import Block
    from alkahest.program import Program

Guard: TypeAlias = tuple[int, int]
"""A select, and which of its operands: 1 or 2."""


def guards(program: Program) -> dict[int, Guard]:
    """Values that nothing needs unless some select chooses them -> that operand of that select.

    Of nested selects it is the innermost one.
    """
    first = program.first_instruction
    found: dict[int, Guard | None] = dict.fromkeys(program.outputs)
    for number in range(first + len(program.code) - 1, first - 1, -1):
        op, args, _ = program.code[number - first]
        own = found.get(number)
        for place, value in enumerate(args):
            guard = (number, place) if op == "select" and place else own
            if found.setdefault(value, guard) != guard:
                found[value] = None
    return {value: guard for value, guard in found.items() if guard}


class Doubts:
    """Truth values of a kernel under construction that say whether a value is wrong."""

    def __init__(self, program: Program, block: Block) -> None:
        self._block = block
        self._guards = guards(program)
        self._any: dict[Guard | None, str] = {}

    def add(self, number: int, doubt: str) -> None:
        """``doubt`` holds where the value of this number is wrong."""
        self._join(self._guards.get(number), doubt)

    def choose(self, number: int, condition: str) -> None:
        """A select is about to be written: only doubts about what it chooses are kept."""
        for place in (1, 2):
            doubt = self._any.pop((number, place), None)
            if doubt is not None:
                chosen = condition if place == 1 else self._block.logic("xor", condition, "true")
                self.add(number, self._block.logic("and", chosen, doubt))

    @property
    def all(self) -> str | None:
        """Whether any output may be wrong; None where nothing is ever in doubt."""
        return self._any.get(None)

    def _join(self, guard: Guard | None, doubt: str) -> None:
        before = self._any.get(guard)
        self._any[guard] = self._block.logic("or", before, doubt) if before else doubt
