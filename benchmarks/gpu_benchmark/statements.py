"""A program as source text for other compilers, statement by statement.

Everybody gets the very statements of our program: common subexpressions are already shared and
nothing is written in a worse form than what we compile ourselves. Two things are even made easier
for the others: what depends on constants only is computed beforehand, and integer powers are
written as repeated squaring, while we keep to the accuracy that :mod:`alkahest.ops` promises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import attrs

from alkahest.program import Instruction, Program


class Unprintable(Exception):
    """An operation that a language has no text for."""


class Texts(NamedTuple):
    """One operation in every language, with operands ``{0} {1} {2}``.

    ``c`` is CUDA C++, ``python`` is the ``math`` module's vocabulary, ``array`` that of NumPy, JAX
    and Torch under the name ``m``.
    """

    c: str
    python: str
    array: str


def _infix(symbol: str) -> Texts:
    return Texts(*[f"{{0}} {symbol} {{1}}"] * 3)


def _function(name: str, array: str = "") -> Texts:
    return Texts(f"{name}({{0}})", f"math.{name}({{0}})", f"m.{array or name}({{0}})")


OPERATIONS: Mapping[str, Texts] = {
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _infix("/"),
    "neg": Texts("-{0}", "-{0}", "-{0}"),
    "lt": _infix("<"),
    "le": _infix("<="),
    "gt": _infix(">"),
    "ge": _infix(">="),
    "eq": _infix("=="),
    "ne": _infix("!="),
    "and": Texts("{0} && {1}", "{0} and {1}", "{0} & {1}"),
    "or": Texts("{0} || {1}", "{0} or {1}", "{0} | {1}"),
    "not": Texts("!{0}", "not {0}", "~{0}"),
    "select": Texts("{0} ? {1} : {2}", "{1} if {0} else {2}", "m.where({0}, {1}, {2})"),
    "abs": Texts("fabs({0})", "abs({0})", "m.abs({0})"),
    "floor": _function("floor"),
    "ceil": _function("ceil"),
    "exp": _function("exp"),
    "expm1": _function("expm1"),
    "log": _function("log"),
    "log1p": _function("log1p"),
    "sqrt": _function("sqrt"),
    "sin": _function("sin"),
    "cos": _function("cos"),
    "tan": _function("tan"),
    "asin": _function("asin", "arcsin"),
    "acos": _function("acos", "arccos"),
    "atan": _function("atan", "arctan"),
    "sinh": _function("sinh"),
    "cosh": _function("cosh"),
    "tanh": _function("tanh"),
    "erf": _function("erf"),
    "erfc": _function("erfc"),
}
"""Text of every operation that a row may hold; ``powi`` is written out."""


@attrs.frozen
class Language:
    """How statements look.

    Attributes:
        column: which of :class:`Texts`.
        statement: one assignment, with ``{type}``, ``{name}`` and ``{value}``.
        types: of a number and of a truth value, where the language wants them.
        special: nan and infinity.
    """

    column: Callable[[Texts], str]
    statement: str
    types: tuple[str, str] = ("", "")
    special: tuple[str, str] = ("math.nan", "math.inf")

    def literal(self, value: float | complex | bool) -> str:
        """A constant, which every language reads back as the same double."""
        if isinstance(value, (bool, complex)):
            raise Unprintable(f"the constant {value!r}")
        if math.isnan(value):
            return self.special[0]
        text = self.special[1] if math.isinf(value) else repr(abs(value))
        return f"(-{text})" if math.copysign(1.0, value) < 0 else text


C = Language(
    lambda t: t.c, "{type} {name} = {value};", ("double", "bool"), ('nan("")', "(1.0 / 0.0)")
)
SCALAR = Language(lambda t: t.python, "{name} = {value}")
ARRAYS = Language(lambda t: t.array, "{name} = {value}")

_LARGEST_POWER = 64
_TRUTH = frozenset("lt le gt ge eq ne and or not".split())


class Body(NamedTuple):
    """A program in some language.

    Attributes:
        lines: the assignments, in order; inputs are called ``x0``, ``x1``...
        outputs: one name or literal per output.
    """

    lines: list[str]
    outputs: list[str]


def body(program: Program, language: Language) -> Body:
    """The statements of a real program.

    Raises:
        Unprintable: naming an operation or constant without a text.
    """
    names = [f"x{i}" for i in range(len(program.inputs))]
    names += [language.literal(value) for value in program.constants]
    known: dict[int, float] = {
        number: value
        for number, value in enumerate(program.constants, len(program.inputs))
        if isinstance(value, float) and not isinstance(value, bool)
    }
    lines: list[str] = []
    for number, instruction in enumerate(program.code, program.first_instruction):
        if instruction.op not in _TRUTH and all(a in known for a in instruction.args):
            known[number] = _computed(instruction, [known[a] for a in instruction.args])
            names.append(language.literal(known[number]))
            continue
        for name, value in _values(f"v{number}", instruction, names, language):
            kind = language.types[instruction.op in _TRUTH]
            lines.append(language.statement.format(type=kind, name=name, value=value))
        names.append(f"v{number}")
    return Body(lines, [names[output] for output in program.outputs])


def _values(
    name: str, instruction: Instruction, names: list[str], language: Language
) -> list[tuple[str, str]]:
    """(name, expression) pairs, of which the last is the instruction's value."""
    operands = [names[a] for a in instruction.args]
    if instruction.op == "powi" and instruction.parameter is not None:
        return _power(name, operands[0], instruction.parameter)
    if instruction.op not in OPERATIONS:
        raise Unprintable(f"the operation {instruction.op}")
    return [(name, language.column(OPERATIONS[instruction.op]).format(*operands))]


def _power(name: str, base: str, exponent: int) -> list[tuple[str, str]]:
    """Repeated squaring, from the highest bit of the exponent down."""
    if exponent == 0 or abs(exponent) > _LARGEST_POWER:
        raise Unprintable(f"the power {exponent}")
    values = [base]
    pairs: list[tuple[str, str]] = []
    for position, bit in enumerate(f"{abs(exponent):b}"[1:]):
        square = f"{values[-1]} * {values[-1]}"
        pairs.append((f"{name}_{position}", f"{square} * {base}" if bit == "1" else square))
        values.append(pairs[-1][0])
    if exponent < 0 or not pairs:
        return [*pairs, (name, f"1.0 / {values[-1]}" if exponent < 0 else base)]
    return [*pairs[:-1], (name, pairs[-1][1])]


def _computed(instruction: Instruction, values: list[float]) -> float:
    """An instruction on constants."""
    if instruction.parameter is not None:
        return float(values[0] ** instruction.parameter)
    if instruction.op not in OPERATIONS:
        raise Unprintable(f"the operation {instruction.op}")
    text = OPERATIONS[instruction.op].python.format(*(f"({value!r})" for value in values))
    return float(eval(text, {"math": math}))


def cuda_body(program: Program) -> str:
    """Statements of CUDA C++ that read ``x0``... and write ``o0``...: an elementwise kernel."""
    lines, outputs = body(program, C)
    stores = [f"o{i} = {value};" for i, value in enumerate(outputs)]
    return "\n".join([*lines, *stores])


def scalar_kernel(program: Program) -> str:
    """Python source of ``kernel(x0, ..., o0, ...)``, one point a thread, for numba.

    It wants ``math`` and ``cuda`` among its names, and takes 1-D arrays.
    """
    lines, outputs = body(program, SCALAR)
    inputs = [f"x{i}" for i in range(len(program.inputs))]
    arguments = [f"X{i}" for i in range(len(inputs))] + [f"O{i}" for i in range(len(outputs))]
    block = [
        *(f"{name} = X{i}[t]" for i, name in enumerate(inputs)),
        *lines,
        *(f"O{i}[t] = {value}" for i, value in enumerate(outputs)),
    ]
    return "\n".join(
        [
            f"def kernel({', '.join(arguments)}):",
            "    t = cuda.grid(1)",
            "    if t < X0.shape[0]:",
            *(f"        {line}" for line in block),
        ]
    )


def array_function(program: Program) -> str:
    """Python source of ``function(x0, ...)``, arrays in and a tuple of arrays out.

    It wants ``math`` and ``m``, a namespace with NumPy's names and ``erf`` and ``erfc``.
    """
    lines, outputs = body(program, ARRAYS)
    inputs = ", ".join(f"x{i}" for i in range(len(program.inputs)))
    result = "".join(f"{value}, " for value in outputs)
    return "\n".join(
        [f"def function({inputs}):", *(f"    {line}" for line in lines), f"    return ({result})"]
    )
