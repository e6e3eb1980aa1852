"""Arithmetic of a program in other instructions, for backends whose accuracy mode allows it.

Which products are absorbed, and which divisors are worth it, is the backend's choice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import attrs

from alkahest.program.records import Instruction, Program


def with_fused_products(program: Program, products: Mapping[int, int]) -> Program:
    """``a*b + c`` as one ``fma``; products that were absorbed are dropped.

    Args:
        program: verified, real.
        products: number of a sum or difference -> that of the product in it that becomes a part of
            the ``fma``. Nothing but these sums may use such a product.
    """
    first = program.first_instruction
    gone = set(products.values())
    copy = ProgramCopy(program)
    for number, (op, args, parameter) in enumerate(program.code, first):
        product = products.get(number)
        if product is None:
            copy.values.append(-1 if number in gone else copy.same(op, args, parameter))
            continue
        x, y = (copy.values[a] for a in program.code[product - first].args)
        other = copy.values[args[0] if product == args[1] else args[1]]
        if op == "sub" and product == args[1]:
            x, y = (x, copy.negated(y)) if copy.number(y) is not None else (copy.negated(x), y)
        elif op == "sub":
            other = copy.negated(other)
        copy.values.append(copy.apply("fma", x, y, other))
    return copy.finish() if gone else program


def with_multiplied_quotients(
    program: Program, pair_of: Callable[[float], tuple[float, float] | None]
) -> Program:
    """Quotients by a constant as products, in programs of float64.

    Args:
        program: verified, real.
        pair_of: what a divisor is multiplied by instead, as :func:`reciprocal` gives it; None
            keeps the division. With a low part of 0 one multiplication does.
    """
    if program.dtype != "float64" or "div" not in program.ops_used:
        return program
    inputs, first = len(program.inputs), program.first_instruction
    copy = ProgramCopy(program)
    for op, args, parameter in program.code:
        is_by_constant = op == "div" and inputs <= args[1] < first
        divisor = program.constants[args[1] - inputs] if is_by_constant else None
        pair = pair_of(divisor) if isinstance(divisor, float) else None
        if pair is None:
            copy.values.append(copy.same(op, args, parameter))
            continue
        x, (high, low) = copy.values[args[0]], map(copy.constant, pair)
        if pair[1]:
            copy.values.append(copy.apply("fma", x, high, copy.apply("mul", x, low)))
        else:
            copy.values.append(copy.apply("mul", x, high))
    return copy.finish()


_ROUNDED: Mapping[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "sqrt": math.sqrt,
}
"""Operations that are correctly rounded everywhere."""


def with_folded_constants(program: Program) -> Program:
    """Sums, products, quotients and square roots of constants as constants: the bits are the same.

    Only in real programs of float64, and where the result is finite.
    """
    first = program.first_instruction
    if program.dtype != "float64" or not any(
        op in _ROUNDED and all(len(program.inputs) <= a < first for a in args)
        for op, args, _ in program.code
    ):
        return program
    copy = ProgramCopy(program)
    for op, args, parameter in program.code:
        operands = [copy.number(copy.values[a]) for a in args]
        folded = _rounded(op, operands)
        copy.values.append(
            copy.same(op, args, parameter) if folded is None else copy.constant(folded)
        )
    return copy.finish()


def _rounded(op: str, operands: Sequence[float | None]) -> float | None:
    if op not in _ROUNDED or None in operands:
        return None
    try:
        result = _ROUNDED[op](*operands)
    except (ZeroDivisionError, ValueError):
        return None
    return result if math.isfinite(result) else None


def reciprocal(divisor: float) -> tuple[float, float] | None:
    """Doubles (high, low) with ``fma(x, high, x * low)`` the rounded ``x / divisor``.

    ``high + low`` is the reciprocal up to 2**-105 of it, low having the sign of high, so that an
    infinite x gives no nan. What is rounded at the end is off by 2**-50 of the distance of two
    neighbouring doubles at most. With ``divisor = D * 2**j`` for an odd integer D, no quotient lies
    closer to the middle of two than ``1 / (2*D)`` of that: up to ``D = 2**48`` quotients are
    correctly rounded.

    This fails where ``x * low`` is subnormal and the result below 2**-966: there the neighbour of
    the correctly rounded double may come out.

    Args:
        divisor: finite, of magnitude 2**-500 to 2**500.

    Returns:
        None for a divisor that is too large or too small. A power of two gives a low of 0;
        multiplying by high alone is right then.
    """
    if not 2.0**-500 <= abs(divisor) <= 2.0**500:
        return None
    exact = 1 / Fraction(divisor)
    high = float(exact)
    if abs(Fraction(high)) > abs(exact):
        high = math.nextafter(high, 0.0)
    return high, float(exact - Fraction(high))


class ProgramCopy:
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

    def number(self, value: int) -> float | None:
        """What a value of the new program is, if it is a constant real number."""
        constant = self._constants[-2 - value] if value < 0 else None
        return constant if isinstance(constant, float) else None

    def negated(self, value: int) -> int:
        """A value of the new program with the other sign; of a constant, another constant."""
        number = self.number(value)
        return self.apply("neg", value) if number is None else self.constant(-number)

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
