"""Cheaper arithmetic for the same program: multiply-adds, and division by constants.

Each pass takes a verified program and returns one with other instructions and the same outputs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import attrs

from alkahest.backends.nvptx.accuracy import FAST, STRICT
from alkahest.backends.nvptx.division import reciprocal
from alkahest.program import Instruction, Program
from alkahest.program.rewrites import factor_sums, share_reciprocals


@lru_cache(maxsize=4)
def prepared(program: Program, mode: str) -> Program:
    """What a real program becomes in an accuracy mode."""
    if mode == STRICT:
        return program
    program = with_known_values(factor_sums(program))
    if mode == FAST:
        program = share_reciprocals(program)
    return contracted(with_constant_divisors(program))


def prepared_parts(program: Program, mode: str) -> Program:
    """What a real program of the parts of complex numbers becomes in an accuracy mode.

    Its sums of products are complex products: nested they would lose their infinities, and with
    ``fma`` the imaginary part of z times its conjugate, which is 0, so that only ``fast`` has them.
    """
    if mode == STRICT:
        return program
    program = with_constant_divisors(program)
    return contracted(program) if mode == FAST else program


def contracted(program: Program) -> Program:
    """``a*b + c`` as one ``fma`` wherever that makes the product itself unnecessary.

    Of two products that are added, the right one is taken, so that a sum of products becomes one
    product and a chain of ``fma``.
    """
    first = program.first_instruction
    products = _absorbed_products(program)
    gone = set(products.values())
    copy = _Copy(program)
    for number, (op, args, parameter) in enumerate(program.code, first):
        product = products.get(number)
        if product is None:
            copy.values.append(-1 if number in gone else copy.same(op, args, parameter))
            continue
        x, y = (copy.values[a] for a in program.code[product - first].args)
        other = copy.values[args[0] if product == args[1] else args[1]]
        if op == "sub" and product == args[1]:
            x = copy.apply("neg", x)
        elif op == "sub":
            other = copy.apply("neg", other)
        copy.values.append(copy.apply("fma", x, y, other))
    return copy.finish() if gone else program


def _absorbed_products(program: Program) -> dict[int, int]:
    """Sum or difference -> the product in it that becomes a part of an ``fma``.

    First come products that are used once, then those that nothing but sums uses, none of which
    has a product already.
    """
    first = program.first_instruction
    users: dict[int, list[int]] = {}
    for number, (_, args, _) in enumerate(program.code, first):
        for operand in args:
            users.setdefault(operand, []).append(number)
    for output in program.outputs:
        users.setdefault(output, []).append(-1)

    def is_sum(number: int) -> bool:
        return number >= first and program.code[number - first].op in ("add", "sub")

    def is_product(number: int) -> bool:
        return number >= first and program.code[number - first].op == "mul"

    chosen: dict[int, int] = {}
    for number, (_, args, _) in enumerate(program.code, first):
        if is_sum(number):
            once = [a for a in args if is_product(a) and len(users[a]) == 1]
            if once:
                chosen[number] = once[-1]
    for product, sums in users.items():
        each_once = len(sums) == len(set(sums)) > 1
        if is_product(product) and each_once and all(is_sum(n) and n not in chosen for n in sums):
            chosen.update(dict.fromkeys(sums, product))
    return chosen


def with_known_values(program: Program) -> Program:
    """What double precision arithmetic makes of constants alone, as a constant."""
    if program.dtype != "float64":
        return program
    inputs, first = len(program.inputs), program.first_instruction
    known: dict[int, float] = {
        number: value
        for number, value in enumerate(program.constants, inputs)
        if type(value) is float
    }
    copy = _Copy(program)
    for number, (op, args, parameter) in enumerate(program.code, first):
        value = _value(op, [known[a] for a in args]) if known.keys() >= set(args) else None
        if value is None:
            copy.values.append(copy.same(op, args, parameter))
        else:
            known[number] = value
            copy.values.append(copy.constant(value))
    return copy.finish() if len(known) > len(program.constants) else program


def _value(op: str, operands: list[float]) -> float | None:
    """A correctly rounded operation on numbers; None where Python has none or refuses."""
    if op not in _ROUNDED:
        return None
    try:
        result: float = _ROUNDED[op](*operands)
    except (ArithmeticError, ValueError):
        return None
    return result


_ROUNDED: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "sqrt": math.sqrt,
}


def with_constant_divisors(program: Program) -> Program:
    """Quotients by a constant as two multiplications.

    See :func:`alkahest.backends.nvptx.division.reciprocal`. Powers of two are left to LLVM.
    """
    if program.dtype != "float64" or "div" not in program.ops_used:
        return program
    inputs, first = len(program.inputs), program.first_instruction
    copy = _Copy(program)
    for op, args, parameter in program.code:
        is_by_constant = op == "div" and inputs <= args[1] < first
        divisor = program.constants[args[1] - inputs] if is_by_constant else None
        pair = reciprocal(divisor) if isinstance(divisor, float) else None
        if pair is None or not pair[1]:
            copy.values.append(copy.same(op, args, parameter))
            continue
        x, high, low = copy.values[args[0]], *map(copy.constant, pair)
        copy.values.append(copy.apply("fma", x, high, copy.apply("mul", x, low)))
    return copy.finish()


class _Copy:
    """A program under construction from another one.

    Attributes:
        values: for every value of the old program so far, that of the new one: constants are
            numbered downward from -2, everything else upward as if there were no constants.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._constants: list[float | complex | bool] = list(program.constants)
        self._code: list[Instruction] = []
        self._inputs = len(program.inputs)
        self.values = [*range(self._inputs), *(-2 - k for k in range(len(self._constants)))]

    def constant(self, value: float) -> int:
        """A further constant."""
        self._constants.append(value)
        return -1 - len(self._constants)

    def apply(self, op: str, *args: int, parameter: int | None = None) -> int:
        """A further instruction on values of the new program."""
        self._code.append(Instruction(op, args, parameter))
        return self._inputs + len(self._code) - 1

    def same(self, op: str, args: tuple[int, ...], parameter: int | None) -> int:
        """An instruction of the old program on what its operands have become."""
        return self.apply(op, *[self.values[a] for a in args], parameter=parameter)

    def finish(self) -> Program:
        """The new program; constants that nothing uses may stay."""
        inputs, shift = self._inputs, len(self._constants)

        def final(value: int) -> int:
            if value < 0:
                return inputs - 2 - value
            return value if value < inputs else value + shift

        return attrs.evolve(
            self._program,
            constants=tuple(self._constants),
            code=tuple([Instruction(op, tuple(map(final, args)), p) for op, args, p in self._code]),
            outputs=tuple(final(self.values[o]) for o in self._program.outputs),
        ).verify()
