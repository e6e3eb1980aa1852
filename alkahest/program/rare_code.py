"""What a program hardly ever needs: code behind nan tests, for backends that branch around it.

Complex programs that were split have much of it; see :func:`alkahest.program.parts.rarely`.
"""

from __future__ import annotations

from collections.abc import Iterable

from alkahest.program.records import Program


class RareCode:
    """Which instructions of a program are needed only where a nan test holds.

    Attributes:
        instructions: their numbers.
        selects: the first of several selects on one nan test -> all of them. What they choose
            otherwise is known by then.
    """

    def __init__(self, program: Program) -> None:
        self._code, self._first = program.code, program.first_instruction
        tests = self._nan_tests()
        rare_selects = [
            number
            for number, (op, args, _) in enumerate(program.code, self._first)
            if op == "select" and args[0] in tests
        ]
        self.instructions = self._only_for(rare_selects, set(program.outputs))
        self.selects: dict[int, tuple[int, ...]] = {}
        groups: dict[int, list[int]] = {}
        for number in rare_selects:
            if number in self.instructions:
                continue
            condition, _, usual = self._code[number - self._first].args
            group = groups.get(condition)
            if group is None or usual >= group[0]:
                group = groups[condition] = []
            group.append(number)
            self.selects[group[0]] = tuple(group)

    def _nan_tests(self) -> set[int]:
        """Truth values that hold where a number is nan, or several are, or one of several."""
        tests: set[int] = set()
        for number, (op, args, _) in enumerate(self._code, self._first):
            if (op == "ne" and args[0] == args[1]) or (
                op in ("and", "or") and tests.issuperset(args)
            ):
                tests.add(number)
        return tests

    def _only_for(self, selects: list[int], wanted: set[int]) -> frozenset[int]:
        """Instructions whose results nothing but the first alternatives of ``selects`` needs."""
        chosen = set(selects)
        usual = set(wanted)
        for number in range(self._first + len(self._code) - 1, self._first - 1, -1):
            if number not in usual:
                continue
            args = self._code[number - self._first].args
            usual.update((args[0], args[2]) if number in chosen else args)
        everything = range(self._first, self._first + len(self._code))
        return frozenset(number for number in everything if number not in usual)

    def needed(self, values: Iterable[int]) -> list[int]:
        """The rare instructions behind ``values``, in order."""
        found: set[int] = set()
        stack = [value for value in values if value in self.instructions]
        while stack:
            value = stack.pop()
            if value not in found:
                found.add(value)
                args = self._code[value - self._first].args
                stack += [a for a in args if a in self.instructions]
        return sorted(found)
