"""The order of instructions in which few values wait to be used, so that they stay in registers."""

from __future__ import annotations

import attrs

from alkahest.program import Instruction, Program


def ordered(program: Program) -> Program:
    """The same instructions, but for unused ones, in another order: bits are the same.

    Outputs come one after the other, and of an instruction's operands the one first that needs most
    registers (Sethi and Ullman 1970); a value that several instructions share is computed for the
    first of them.
    """
    first, code = program.first_instruction, program.code
    needs = [0] * first
    operands: list[list[int]] = []
    for _, args, _ in code:
        found = sorted({a for a in args if a >= first}, key=lambda a: (-needs[a], a))
        needs.append(max([1, *(needs[a] + k for k, a in enumerate(found))]))
        operands.append(found)
    numbers = list(range(first)) + [0] * len(code)
    new: list[Instruction] = []
    stack = [output for output in reversed(program.outputs) if output >= first]
    while stack:
        number = stack[-1]
        missing = [a for a in operands[number - first] if not numbers[a]]
        if missing and not numbers[number]:
            stack += reversed(missing)
            continue
        stack.pop()
        if not numbers[number]:
            op, args, parameter = code[number - first]
            numbers[number] = first + len(new)
            new.append(Instruction(op, tuple([numbers[a] for a in args]), parameter))
    outputs = tuple(numbers[output] for output in program.outputs)
    return attrs.evolve(program, code=tuple(new), outputs=outputs)
