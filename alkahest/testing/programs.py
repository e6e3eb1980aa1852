"""Small programs that exercise a backend: one per operation, and a few whole formulae."""

from __future__ import annotations

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
