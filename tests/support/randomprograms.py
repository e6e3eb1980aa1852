"""Random programs, and how far from the reference another evaluation may be.

The allowance of a value is carried along: each operation passes on the allowances of its operands as
its derivative does, and adds a few units in the last place of what it adds up. Sums count the sizes
of their terms, so that terms may be grouped in another way. Where nothing can be said, because a
condition is undecided or an operand may be zero, the allowance is infinite.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from alkahest.backends.cpu.reference import ReferenceEvaluator
from alkahest.plugin import Batch
from alkahest.program import Instruction, Program

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24}

MARGIN = 8.0
"""Allowances are this much larger than the estimate: several rewrites may meet in one value."""

Array = Any

UNARY = ("neg", "abs", "sin", "cos", "exp", "tanh", "atan", "erf", "sqrt", "powi", "floor")
BINARY = ("add", "sub", "mul", "div", "min", "max", "atan2", "hypot")
WEIGHTS = {"add": 6, "sub": 4, "mul": 8, "div": 2, "powi": 2, "floor": 0.3}


def random_program(seed: int, dtype: str = "float64") -> Program:
    """A program of three inputs, 4 to 30 operations and one to three outputs."""
    rng = random.Random(seed)
    constants = tuple(
        _rounded(rng.choice((0.5, 2.0, 1.0, 3.25, -1.5, rng.uniform(-4, 4))), dtype)
        for _ in range(3)
    )
    first = 6
    names = [*UNARY, *BINARY, "select"]
    weights = [WEIGHTS.get(name, 1.0) for name in names]
    code: list[Instruction] = []
    numbers = list(range(first))  # the values that are numbers
    for _ in range(rng.randint(4, 30)):
        (name,) = rng.choices(names, weights)
        recent = numbers[-8:] if rng.random() < 0.7 else numbers
        a, b = rng.choice(recent), rng.choice(numbers)
        if name == "select":
            code.append(Instruction("lt", (a, b)))
            args: tuple[int, ...] = (
                first + len(code) - 1,
                rng.choice(numbers),
                rng.choice(numbers),
            )
            code.append(Instruction("select", args))
        elif name == "powi":
            code.append(Instruction(name, (a,), rng.choice((2, 2, 3, 4, -1, -2, 5))))
        else:
            code.append(Instruction(name, (a,) if name in UNARY else (a, b)))
        numbers.append(first + len(code) - 1)
    outputs = (numbers[-1], *rng.sample(numbers, rng.randint(0, 2)))
    return Program(
        dtype=dtype,
        inputs=("x", "y", "z"),
        constants=constants,
        code=tuple(code),
        outputs=outputs,
    ).verify()


def points(seed: int, n: int, dtype: str) -> tuple[Array, ...]:
    """Three columns of mostly ordinary numbers."""
    generator = np.random.default_rng(seed)
    columns = generator.uniform(-3, 3, (3, n)) * 2.0 ** generator.integers(-3, 3, (3, n))
    return tuple(columns.astype(dtype))


def expected(
    program: Program, columns: tuple[Array, ...], function_ulp: float
) -> list[tuple[Array, Array]]:
    """For every output the reference's values and what another evaluation may be off.

    Args:
        program: as :func:`random_program` makes them.
        columns: the points.
        function_ulp: bound of the functions.
    """
    first, n = program.first_instruction, len(columns[0])
    everything = Program(
        dtype=program.dtype,
        inputs=program.inputs,
        constants=program.constants,
        code=program.code,
        outputs=tuple(range(first + len(program.code))),
    )
    values = ReferenceEvaluator(everything).evaluate(Batch(columns=columns, n=n)).outputs
    u = ROUNDOFF[program.dtype]
    allowed: list[Array] = [np.zeros(n) for _ in range(first)]
    undecided: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for number, (op, args, parameter) in enumerate(program.code, first):
            v = np.asarray(values[number], dtype=float)
            a = [np.asarray(values[k], dtype=float) for k in args]
            e = [allowed[k] for k in args]
            if op == "lt":
                undecided[number] = np.abs(a[0] - a[1]) <= MARGIN * (e[0] + e[1])
                allowed.append(np.zeros(n))
                continue
            if op == "select":
                chosen = np.where(values[args[0]], e[1], e[2])
                allowed.append(np.where(undecided[args[0]], np.inf, chosen))
                continue
            rule = _RULES[op]
            if parameter is not None:
                found = _power(v, a[0], e[0], parameter, u)
            else:
                found = rule(v, a, e, u, function_ulp)
            allowed.append(np.where(np.isnan(found), np.inf, found))
    return [(values[k], MARGIN * allowed[k]) for k in program.outputs]


def _rounded(value: float, dtype: str) -> float:
    return float(np.dtype(dtype).type(value))


Rule = Callable[[Array, list[Array], list[Array], float, float], Array]


def _sum(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    return e[0] + e[1] + u * (np.abs(a[0]) + np.abs(a[1]))


def _product(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    return np.abs(a[0]) * e[1] + np.abs(a[1]) * e[0] + e[0] * e[1] + 2 * u * np.abs(v)


def _quotient(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    least = np.abs(a[1]) - MARGIN * e[1]
    return np.where(least > 0, (e[0] + np.abs(v) * e[1]) / least, np.inf) + 3 * u * np.abs(v)


def _root(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    least = a[0] - MARGIN * e[0]
    sure = np.where(e[0] == 0, 0.0, np.where(least > 0, e[0] / (2 * np.sqrt(least)), np.inf))
    return sure + 2 * u * np.abs(v)


def _smooth(slope: float) -> Rule:
    """A function whose slope is at most this."""

    def rule(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
        return slope * e[0] + 2 * f * u * np.abs(v)

    return rule


def _exponential(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    return v * np.expm1(MARGIN * e[0]) + 2 * f * u * v


def _floor(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    away = np.minimum(a[0] - v, v + 1 - a[0])
    return np.where((e[0] == 0) | (away > MARGIN * e[0]), 0.0, np.inf)


def _angle(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    radius = np.hypot(a[0], a[1])
    near = np.where(e[0] + e[1] == 0, 0.0, (e[0] + e[1]) / (radius - MARGIN * (e[0] + e[1])))
    # On the cut, an operand that may be zero may jump by a whole turn.
    cut = (a[1] <= MARGIN * e[1]) & (np.abs(a[0]) <= MARGIN * e[0]) & (e[0] > 0)
    return np.where((near < 0) | cut, np.inf, near) + 2 * f * u * np.abs(v)


def _extreme(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    return np.maximum(e[0], e[1])


def _same(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    return e[0]


def _hypot(v: Array, a: list[Array], e: list[Array], u: float, f: float) -> Array:
    return e[0] + e[1] + 2 * f * u * np.abs(v)


def _power(v: Array, a: Array, e: Array, k: int, u: float) -> Array:
    least = np.abs(a) - MARGIN * e
    slope = (
        abs(k) * np.abs(v) / np.where(least > 0, least, np.nan)
        if k < 0
        else (k * (np.abs(a) + MARGIN * e) ** (k - 1))
    )
    return np.where(e == 0, 0.0, slope * e) + 2 * (abs(k) + 1) * u * np.abs(v)


_RULES: dict[str, Rule] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "div": _quotient,
    "neg": _same,
    "abs": _same,
    "min": _extreme,
    "max": _extreme,
    "sqrt": _root,
    "sin": _smooth(1.0),
    "cos": _smooth(1.0),
    "tanh": _smooth(1.0),
    "atan": _smooth(1.0),
    "erf": _smooth(1.13),
    "exp": _exponential,
    "floor": _floor,
    "atan2": _angle,
    "hypot": _hypot,
    "powi": _same,
}
