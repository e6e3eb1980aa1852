"""Cheaper arithmetic for the same program: multiply-adds, and division by constants.

Each pass takes a verified program and returns one with other instructions and the same outputs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from alkahest.backends.nvptx.accuracy import FAST, STRICT
from alkahest.program import Program
from alkahest.program.arithmetic import (
    ProgramCopy,
    reciprocal,
    with_fused_products,
    with_multiplied_quotients,
)
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
    return with_fused_products(program, _absorbed_products(program))


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
    copy = ProgramCopy(program)
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
    """Quotients by a constant as two multiplications."""
    return with_multiplied_quotients(program, _two_factors)


def _two_factors(divisor: float) -> tuple[float, float] | None:
    """The reciprocal in two parts; None for powers of two, which are left to LLVM."""
    pair = reciprocal(divisor)
    return pair if pair and pair[1] else None
