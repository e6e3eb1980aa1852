"""Small programs that exercise a backend: one per operation, and a few whole formulae."""

from __future__ import annotations

import math

from alkahest.ops import OPS, Op, Signature
from alkahest.program import Instruction, Program

POWERS = (-1074, -7, -3, -2, 2, 3, 4, 5, 16, 100, 10**30 + 1)
"""Exponents that a backend must get right: by multiplication, by pow, and past a double."""


def single(op: str, dtype: str = "float64", parameter: int | None = None) -> Program:
    """The program that applies ``op`` to its inputs, one column per operand.

    Truth values are not columns: where an operand is one, it is ``input > 0``. An operation on
    complex numbers in a real program, or the reverse, is not built.

    Raises:
        CodegenError: E-JIT-010 when ``op`` has no meaning for inputs of ``dtype``.
    """
    row = OPS[op]
    if row.has_parameter and parameter is None:
        parameter = 3
    inputs = tuple(f"a{i}" for i in range(row.arity))
    truths = _truth_operands(row)
    code = [Instruction("gt", (i, row.arity)) for i in truths]
    constants = (0.0,) if truths else ()
    first = row.arity + len(constants)
    where = {i: first + k for k, i in enumerate(truths)}
    args = tuple(where.get(i, i) for i in range(row.arity))
    code.append(Instruction(op, args, parameter))
    return Program(
        dtype=dtype,
        inputs=inputs,
        constants=constants,
        code=tuple(code),
        outputs=(first + len(code) - 1,),
    ).verify()


def _truth_operands(row: Op) -> tuple[int, ...]:
    if row.signature is Signature.LOGIC:
        return tuple(range(row.arity))
    return (0,) if row.signature is Signature.SELECT else ()


def chain(length: int, dtype: str = "float64") -> Program:
    """``x -> x/2 + 1`` applied ``length`` times; its value tends to 2 from any start."""
    code: list[Instruction] = []
    value = 0
    for _ in range(length):
        code.append(Instruction("div", (value, 2)))
        code.append(Instruction("add", (2 + len(code), 1)))
        value = 2 + len(code)
    return Program(
        dtype=dtype, inputs=("x",), constants=(1.0, 2.0), code=tuple(code), outputs=(value,)
    ).verify()


def increment() -> Program:
    """``x + 1``."""
    return Program(
        dtype="float64",
        inputs=("x",),
        constants=(1.0,),
        code=(Instruction("add", (0, 1)),),
        outputs=(2,),
    ).verify()


def products(dtype: str) -> Program:
    """``x*y`` and ``x + y``."""
    return Program(
        dtype=dtype,
        inputs=("x", "y"),
        constants=(),
        code=(Instruction("mul", (0, 1)), Instruction("add", (0, 1))),
        outputs=(2, 3),
    ).verify()


def several(dtype: str) -> Program:
    """Outputs of every origin: a function's value, sums, an input, a constant, a truth value."""
    return Program(
        dtype=dtype,
        inputs=("x", "y"),
        constants=(0.25,),
        code=(
            Instruction("mul", (0, 1)),  # 3
            Instruction("exp", (1,)),
            Instruction("add", (3, 4)),
            Instruction("sin", (5,)),
            Instruction("ne", (0, 1)),
        ),
        outputs=(6, 5, 5, 0, 2, 7),
    ).verify()


def constants(dtype: str) -> Program:
    """No inputs, and constants whose bits get lost easily."""
    largest, least = (1.7976931348623157e308, 5e-324)
    if dtype in ("float32", "complex64"):
        largest, least = (3.4028234663852886e38, 2.0**-149)
    values: list[float | complex | bool] = [0.0, -0.0, math.inf, -math.inf, math.nan]
    values += [largest, -least, 1 + 2.0**-23, True, False]
    if dtype.startswith("complex"):
        values += [complex(-0.0, 2.5), complex(math.inf, -0.0), complex(1.5, math.nan)]
    if dtype in ("float64", "complex128"):
        values += [0.1, 1 / 3, 2.0**-1022]
    return Program(
        dtype=dtype, inputs=(), constants=tuple(values), code=(), outputs=tuple(range(len(values)))
    ).verify()


FORMULAE = {
    "cubic": "x**3 - 2*x + 1",
    "seed": "sin(x)*cos(y) + (x*x + y*y)/100",
    "damped": "exp(-x/4)*sin(x) + sqrt(abs(x) + 1)",
    "guarded": "Piecewise((1/x, x < -1), (y, x <= 1), (log(x), True))",
    "rational": "(x**2 - y)/(x**2 + y**2 + 1)",
    "logistic": "1/(1 + exp(-x))",
    "special": "erf(x)*atan2(y, x) + Max(x, y, 1/2)",
}
"""Formulae over ``x`` and ``y`` whose plain evaluation is well conditioned on [-5, 5]."""
