"""What an accuracy mode changes about the arithmetic of a program, before code is written.

=========== ==================================================================================
mode        what it does
=========== ==================================================================================
``strict``  every operation as it stands, in order; functions within an ulp
``default`` sums of products are nested; a product that is added to something is not rounded in
            between; division by a constant is two multiplications, correctly rounded; quotients by
            a reciprocal where that is faster; a product of exponentials is one of an exact sum;
            integer powers by compensated multiplications
``fast``    besides: integer powers by plain multiplications, one reciprocal for all quotients by
            one divisor whatever that is
=========== ==================================================================================

Each pass takes a verified program and returns one with other instructions and the same outputs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import attrs

from alkahest.backends.cpu.jit.options import FAST, STRICT
from alkahest.program import Instruction, Program
from alkahest.program.rewrites import factor_sums, share_reciprocals


@lru_cache(maxsize=4)
def prepared(program: Program, mode: str) -> Program:
    """What a real program becomes in an accuracy mode."""
    if mode == STRICT:
        return program
    program = factor_sums(with_roots(program))
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
    copy = _Copy(program)
    low, high = copy.constant(-math.inf), copy.constant(math.inf)
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
    if program.dtype != "float64" or "div" not in program.ops_used:
        return program
    inputs, first = len(program.inputs), program.first_instruction
    copy = _Copy(program)
    for op, args, parameter in program.code:
        is_by_constant = op == "div" and inputs <= args[1] < first
        divisor = program.constants[args[1] - inputs] if is_by_constant else None
        pair = reciprocal(divisor) if isinstance(divisor, float) else None
        if pair is None:
            copy.values.append(copy.same(op, args, parameter))
            continue
        x, (high, low) = copy.values[args[0]], map(copy.constant, pair)
        if pair[1]:
            copy.values.append(copy.apply("fma", x, high, copy.apply("mul", x, low)))
        else:
            copy.values.append(copy.apply("mul", x, high))
    return copy.finish()


def reciprocal(divisor: float) -> tuple[float, float] | None:
    """Doubles (high, low) with ``fma(x, high, x * low)`` the correctly rounded ``x / divisor``.

    ``high + low`` is the reciprocal up to 2**-105 of it, low having the sign of high, so that an
    infinite x gives no nan. With ``divisor = D * 2**j`` for an odd integer D, no quotient lies
    closer to the middle of two neighbouring doubles than ``1 / (2*D)`` of their distance; what is
    rounded at the end is off by 2**-50 of it at most, and D is less than ``2**40``. Where
    ``x * low`` is subnormal, below 2**-966, the neighbour of that double may come out.

    Args:
        divisor: finite, of magnitude 2**-500 to 2**500.

    Returns:
        None where the quotient might be rounded wrongly: too many significant bits, too large or
        too small. A power of two gives a low of 0; multiplying by high alone is right then.
    """
    if not 2.0**-500 <= abs(divisor) <= 2.0**500:
        return None
    numerator, _ = divisor.as_integer_ratio()
    odd = abs(numerator) // (numerator & -numerator)
    if odd.bit_length() > _SIGNIFICANT:
        return None
    exact = 1 / Fraction(divisor)
    high = float(exact)
    if abs(Fraction(high)) > abs(exact):
        high = math.nextafter(high, 0.0)
    return high, float(exact - Fraction(high))


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
