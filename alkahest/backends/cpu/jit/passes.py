"""What an accuracy mode changes about the arithmetic of a program, before code is written.

=========== ==================================================================================
mode        what it does
=========== ==================================================================================
``strict``  every operation as it stands, in order; functions within an ulp
``default`` arithmetic on constants is done once; sums of products are nested; a product that is
            added to something is not rounded in between; division by a constant is two
            multiplications, correctly rounded; quotients by a reciprocal where that is faster; a
            product of exponentials is one of an exact sum; integer powers by compensated
            multiplications
``fast``    besides: integer powers by plain multiplications, one reciprocal for all quotients by
            one divisor whatever that is
=========== ==================================================================================

Each pass takes a verified program and returns one with other instructions and the same outputs.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, isfinite

from alkahest.backends.cpu.jit.options import FAST, STRICT
from alkahest.program import Program, arithmetic
from alkahest.program.arithmetic import (
    ProgramCopy,
    with_folded_constants,
    with_fused_products,
    with_multiplied_quotients,
)
from alkahest.program.rewrites import factor_sums, share_reciprocals


@lru_cache(maxsize=4)
def prepared(program: Program, mode: str) -> Program:
    """What a real program becomes in an accuracy mode."""
    if mode == STRICT:
        return program
    program = factor_sums(with_roots(with_folded_constants(program)))
    if mode == FAST:
        program = share_reciprocals(program)
    return contracted(with_constant_divisors(program))


@lru_cache(maxsize=4)
def prepared_parts(program: Program, mode: str) -> Program:
    """What a real program of the parts of complex numbers becomes in an accuracy mode.

    Its sums of products are complex products: nested they would lose their infinities, and with
    ``fma`` the imaginary part of z times its conjugate, which is 0, so that only ``fast`` has them.
    """
    if mode == STRICT:
        return program
    program = with_constant_divisors(program)
    return contracted(program) if mode == FAST else program


def with_roots(program: Program) -> Program:
    """``x**1.5`` as ``x*sqrt(x)``, and infinite at minus infinity as pow is."""
    constants = dict(enumerate(program.constants, len(program.inputs)))
    if not any(i.op == "pow" and constants.get(i.args[1]) == 1.5 for i in program.code):
        return program
    copy = ProgramCopy(program)
    low, high = copy.constant(-inf), copy.constant(inf)
    for op, args, parameter in program.code:
        if op == "pow" and constants.get(args[1]) == 1.5:
            x = copy.values[args[0]]
            product = copy.apply("mul", x, copy.apply("sqrt", x))
            copy.values.append(copy.apply("select", copy.apply("eq", x, low), high, product))
        else:
            copy.values.append(copy.same(op, args, parameter))
    return copy.finish()


# Multiply-adds


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
    first, code = program.first_instruction, program.code
    users: list[list[int]] = [[] for _ in range(first + len(code))]
    for number, (_, args, _) in enumerate(code, first):
        for operand in args:
            users[operand].append(number)
    for output in program.outputs:
        users[output].append(-1)
    sums = {n for n, i in enumerate(code, first) if i.op in ("add", "sub")}
    products = [n for n, i in enumerate(code, first) if i.op == "mul"]
    once = {n for n in products if len(users[n]) == 1}
    chosen: dict[int, int] = {}
    for number in sums:
        found = [a for a in code[number - first].args if a in once]
        if found:
            chosen[number] = found[-1]
    for product in products:
        using = users[product]
        each_once = len(using) == len(set(using)) > 1
        if each_once and all(n in sums and n not in chosen for n in using):
            chosen.update(dict.fromkeys(using, product))
    return chosen


# Division by constants

_SIGNIFICANT = 40
"""Bits, at most, of a divisor's significand without its trailing zeros."""


def with_constant_divisors(program: Program) -> Program:
    """Quotients by a constant as products, where they are correctly rounded so.

    A power of two becomes its reciprocal; other divisors see :func:`reciprocal`.
    """
    return with_multiplied_quotients(program, reciprocal)


def reciprocal(divisor: float) -> tuple[float, float] | None:
    """The reciprocal as :func:`alkahest.program.arithmetic.reciprocal` gives it.

    None where a quotient might be rounded wrongly: what is rounded is off by 2**-50 of the distance
    of two doubles at most, which is too much for divisors of more than ``2**40`` as odd integers.
    """
    if not isfinite(divisor):
        return None
    numerator, _ = divisor.as_integer_ratio()
    odd = abs(numerator) // (numerator & -numerator) if numerator else 0
    return arithmetic.reciprocal(divisor) if odd.bit_length() <= _SIGNIFICANT else None
