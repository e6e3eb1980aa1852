"""Complex programs as real ones, for backends that lower only operations on real numbers.

Every complex value becomes two real ones, and every operation on complex numbers its formula in
real ones, with the conventions of C99 Annex G. The result is an ordinary program: what its parts
share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs

from alkahest.program import complex_arithmetic as arithmetic
from alkahest.program import complex_exponentials as exponentials
from alkahest.program import complex_inverses as inverses
from alkahest.program.builder import Builder
from alkahest.program.parts import Node, Parts, choose
from alkahest.program.records import REAL_DTYPE, Program

Part = Node | Parts


@attrs.frozen(kw_only=True)
class SplitProgram:
    """A real program that computes what a complex one does.

    Attributes:
        program: of dtype float64 or float32. Its inputs are the real and the imaginary part of
            every input of the complex program, in order.
        inputs: for every input of the complex program, the positions of its parts among those.
        outputs: for every output of the complex program, the position of its value among the
            outputs of ``program``, or where it is complex the positions of its two parts.
    """

    program: Program
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]


def split(program: Program) -> SplitProgram:
    """The real program of a verified complex one; a real one is its own.

    Norm-wise errors grow by the formulae: a function of one argument is within 8 units in the last
    place of the result's magnitude if the real functions are within 2, but for powers with complex
    exponents, ``exp(w*log(z))``, whose error grows with ``|w*log(z)|``.
    """
    if not program.is_complex:
        return SplitProgram(
            program=program,
            inputs=tuple((i,) for i in range(len(program.inputs))),
            outputs=tuple((i,) for i in range(len(program.outputs))),
        )
    names = (f"{part}({name})" for name in program.inputs for part in ("re", "im"))
    builder = Builder(REAL_DTYPE[program.dtype], tuple(names))
    values: list[Part] = []
    for i in range(len(program.inputs)):
        values.append(Parts(*(Node(builder, builder.input(k)) for k in (2 * i, 2 * i + 1))))
    values += [_constant(builder, value) for value in program.constants]
    for op, args, parameter in program.code:
        values.append(_applied(op, [values[a] for a in args], parameter))
    outputs: list[Node] = []
    positions = []
    for number in program.outputs:
        parts = _parts(values[number])
        positions.append(tuple(range(len(outputs), len(outputs) + len(parts))))
        outputs += parts
    return SplitProgram(
        program=builder.finish(tuple(node.value for node in outputs)),
        inputs=tuple((2 * i, 2 * i + 1) for i in range(len(program.inputs))),
        outputs=tuple(positions),
    )


def _parts(value: Part) -> tuple[Node, ...]:
    return tuple(value) if isinstance(value, Parts) else (value,)


def _constant(builder: Builder, value: float | complex | bool) -> Part:
    if isinstance(value, complex):
        return Parts(*(Node(builder, builder.constant(x)) for x in (value.real, value.imag)))
    return Node(builder, builder.constant(value))


def _applied(op: str, operands: list[Part], parameter: int | None) -> Part:
    if op == "complex" or any(isinstance(value, Parts) for value in operands):
        extra = () if parameter is None else (parameter,)
        return FORMULAE[op](*operands, *extra)
    first, *others = (value for value in operands if isinstance(value, Node))
    return first.apply(op, *others, parameter=parameter)


FORMULAE: Mapping[str, Callable[..., Part]] = MappingProxyType(
    {
        "add": lambda z, w: Parts(z.re + w.re, z.im + w.im),
        "sub": lambda z, w: Parts(z.re - w.re, z.im - w.im),
        "mul": arithmetic.product,
        "div": arithmetic.quotient,
        "neg": lambda z: -z,
        "powi": arithmetic.integer_power,
        "pow": exponentials.power,
        "eq": lambda z, w: z.re.equals(w.re) & z.im.equals(w.im),
        "ne": lambda z, w: z.re.apply("ne", w.re) | z.im.apply("ne", w.im),
        "select": choose,
        "abs": lambda z: z.re.apply("hypot", z.im),
        "exp": exponentials.exp,
        "log": exponentials.log_,
        "sqrt": exponentials.sqrt,
        "sin": exponentials.sin,
        "cos": exponentials.cos,
        "tan": exponentials.tan,
        "asin": inverses.asin,
        "acos": inverses.acos,
        "atan": inverses.atan,
        "sinh": exponentials.sinh,
        "cosh": exponentials.cosh,
        "tanh": exponentials.tanh,
        "asinh": inverses.asinh,
        "acosh": inverses.acosh,
        "atanh": inverses.atanh,
        "complex": Parts,
        "re": lambda z: z.re,
        "im": lambda z: z.im,
        "conjugate": lambda z: Parts(z.re, -z.im),
        "arg": lambda z: z.im.apply("atan2", z.re),
    }
)
"""Operation -> its result for complex operands, as formulae of their parts."""


__all__ = ["FORMULAE", "SplitProgram", "split"]
