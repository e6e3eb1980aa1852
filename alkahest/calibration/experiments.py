"""The small programs whose times tell what things cost.

A few have little to compute and many or few columns; then there is one per operation, which applies
it side by side to several columns, so that no value wanders off to where the operation is slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from alkahest.errors import CodegenError
from alkahest.ops import OPS, Kind, result_kind
from alkahest.plugin import Support
from alkahest.program import Instruction, Program

SMALL = 64
"""Points of the calls that tell what is spent once per call."""

WIDTH = 4
"""Columns of a program that measures an operation, and how often it occurs there."""

_WIDE = 8
_CHAIN = 48

DOMAIN = (0.1, 1.5)
"""Where the columns' values lie: every operation but those below is defined there.

Functions like erfc take several times longer beyond 1 than below; both should count.
"""

_BELOW_ONE = (0.1, 0.9)
DOMAINS = {
    "asin": _BELOW_ONE,
    "acos": _BELOW_ONE,
    "atanh": _BELOW_ONE,
    "erfinv": _BELOW_ONE,
    "acosh": (1.1, 2.9),
}

QUICK = ("add", "mul", "div", "sqrt", "select", "lt", "floor", "exp", "sin", "pow", "erf", "gamma")
"""The operations that stand for the others when there is little time."""


class Experiment(NamedTuple):
    """One program to time.

    Attributes:
        program: what runs.
        domain: bounds of the values in its columns.
        moves: whether it tells what columns cost rather than operations.
    """

    program: Program
    domain: tuple[float, float] = DOMAIN
    moves: bool = False


def experiments(support: Support, dtype: str, *, quick: bool = False) -> list[Experiment]:
    """What to time of a backend at ``dtype``; empty where it does not even add and multiply.

    Args:
        support: its operation tables, complete.
        dtype: of the programs.
        quick: one operation of each sort instead of all.
    """
    lowered = {op for op, dtypes in support.lowers.items() if dtype in dtypes}
    if not {"add", "mul"} <= lowered:
        return []
    found = list(_plain(dtype))
    for op in QUICK if quick else OPS:
        program = _of_operation(op, dtype)
        if program is not None and program.ops_used <= lowered:
            found.append(Experiment(program, DOMAINS.get(op, DOMAIN)))
    return found


def _plain(dtype: str) -> Iterator[Experiment]:
    """Long chains; one column copied, many columns in, and many out."""
    for op in ("add", "mul"):
        steps = [Instruction(op, (k, 0)) for k in range(_CHAIN)]
        yield Experiment(_program(dtype, 1, steps, [_CHAIN]))
    yield Experiment(_program(dtype, 1, [], [0]), moves=True)
    sums = [Instruction("add", (0, 1))]
    sums += [Instruction("add", (_WIDE + k, k + 2)) for k in range(_WIDE - 2)]
    yield Experiment(_program(dtype, _WIDE, sums, [2 * _WIDE - 2]), moves=True)
    products = [Instruction("mul", (k, (k + 1) % _WIDE)) for k in range(_WIDE)]
    outputs = list(range(_WIDE, 2 * _WIDE))
    yield Experiment(_program(dtype, _WIDE, products, outputs), moves=True)


def _of_operation(op: str, dtype: str) -> Program | None:
    """``op`` on each of some columns, the results added up; None where it has no meaning."""
    row = OPS[op]
    column = Kind.COMPLEX if dtype.startswith("complex") else Kind.REAL
    shapes = (
        (column,) * row.arity,
        (Kind.REAL,) * row.arity,
        (Kind.BOOL,) * row.arity,
        (Kind.BOOL, column, column),
    )
    kinds = next((kinds for kinds in shapes if result_kind(row, kinds) is not None), None)
    if kinds is None:
        return None
    code: list[Instruction] = []
    place = {column: list(range(WIDTH))}

    def add(name: str, args: tuple[int, ...], parameter: int | None = None) -> int:
        code.append(Instruction(name, args, parameter))
        return WIDTH + len(code) - 1

    if Kind.REAL in kinds and column is Kind.COMPLEX:
        place[Kind.REAL] = [add("re", (k,)) for k in range(WIDTH)]
    if Kind.BOOL in kinds:
        compare = "eq" if column is Kind.COMPLEX else "lt"
        place[Kind.BOOL] = [add(compare, (k, (k + 1) % WIDTH)) for k in range(WIDTH)]
    parameter = 3 if row.has_parameter else None
    results = [
        add(op, tuple(place[kind][(k + i) % WIDTH] for i, kind in enumerate(kinds)), parameter)
        for k in range(WIDTH)
    ]
    if result_kind(row, kinds) is not Kind.BOOL:
        total = results[0]
        for result in results[1:]:
            total = add("add", (total, result))
        results = [total]
    try:
        return _program(dtype, WIDTH, code, results)
    except CodegenError:
        return None  # complex values in a real program


def _program(dtype: str, inputs: int, code: list[Instruction], outputs: list[int]) -> Program:
    return Program(
        dtype=dtype,
        inputs=tuple(f"x{k}" for k in range(inputs)),
        constants=(),
        code=tuple(code),
        outputs=tuple(outputs),
    ).verify()


__all__ = ["DOMAIN", "QUICK", "SMALL", "Experiment", "experiments"]
