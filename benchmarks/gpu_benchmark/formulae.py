"""What is evaluated: six small rows and six heavier ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from alkahest import Expr, ExprPool, cos, exp, gradient, parse, sin, sqrt
from alkahest.program import Program, lower

WORKLOADS = Path(__file__).resolve().parents[2] / "tests" / "data" / "workloads"

MANY_POINTS, FEWER_POINTS = 1 << 27, 1 << 24
"""Points of a row, and of one with many columns."""

QUICK_DIVISOR = 8
"""A quick run takes this much fewer points."""

Built = tuple[list[Expr], list[Expr]]


@attrs.frozen(kw_only=True)
class Row:
    """One benchmark.

    Attributes:
        name: short, for tables and ``--rows``.
        title: the formula, for people.
        group: ``"small"`` or ``"heavy"``; means are taken over a group.
        points: points of a full run.
        build: (outputs, inputs) in a pool.
        ranges: the interval that each input is drawn from, uniformly.
    """

    name: str
    title: str
    group: str
    points: int
    build: Callable[[ExprPool], Built]
    ranges: tuple[tuple[float, float], ...]

    @property
    def program(self) -> Program:
        """The float64 program, common subexpressions shared."""
        return lower(*self.build(ExprPool()))


def select(patterns: list[str]) -> list[Row]:
    """Rows whose name or group matches one of the patterns (``*`` and ``?``); all without any.

    Raises:
        ValueError: a pattern matches nothing.
    """
    if not patterns:
        return list(ROWS)
    for pattern in patterns:
        if not any(_matches(row, pattern) for row in ROWS):
            names = ", ".join(row.name for row in ROWS)
            raise ValueError(f"no row {pattern!r}; there are {names}, and the groups small, heavy")
    return [row for row in ROWS if any(_matches(row, pattern) for pattern in patterns)]


def _matches(row: Row, pattern: str) -> bool:
    return fnmatchcase(row.name, pattern) or row.group == pattern


def _xy(pool: ExprPool) -> tuple[Expr, Expr]:
    return pool.symbol("x"), pool.symbol("y")


def _product(pool: ExprPool) -> Built:
    x, y = _xy(pool)
    return [x * y], [x, y]


def _waves(pool: ExprPool) -> Built:
    x, y = _xy(pool)
    return [sin(x) * cos(y) + (x * x + y * y) / 100], [x, y]


def _cubic(pool: ExprPool) -> Built:
    x = pool.symbol("x")
    return [x**3 - 2 * x + 1], [x]


def _damped(pool: ExprPool) -> Built:
    x = pool.symbol("x")
    return [exp(-x / 4) * sin(x) + sqrt(x + 1)], [x]


def _horner(pool: ExprPool) -> Built:
    x, y = _xy(pool)
    value: Expr = x + pool.rational(1, 2)
    for k in range(1, 16):
        value = value * x + pool.rational(1, k + 2)
    return [value * y], [x, y]


def _waves_gradient(pool: ExprPool) -> Built:
    (value,), inputs = _waves(pool)
    return [value, *gradient(value, inputs)], inputs


def _workload(name: str, outputs: Callable[[str], bool]) -> Callable[[ExprPool], Built]:
    """Some outputs of a published formula set, exactly as its file writes them."""

    def build(pool: ExprPool) -> Built:
        document = _document(name)
        inputs = [pool.symbol(symbol) for symbol in document["inputs"]]
        texts = [o["expr"] for o in document["outputs"] if outputs(o["name"])]
        return [parse(text, pool, symbols=inputs) for text in texts], inputs

    return build


def _workload_ranges(name: str) -> tuple[tuple[float, float], ...]:
    document = _document(name)
    ranges = [document["ranges"][symbol] for symbol in document["inputs"]]
    return tuple((float(r["low"]), float(r["high"])) for r in ranges)


def _document(name: str) -> Mapping[str, Any]:
    text = (WORKLOADS / f"{name}.json").read_text(encoding="utf-8")
    document: Mapping[str, Any] = json.loads(text)
    return document


def _polynomial(pool: ExprPool) -> Built:
    """Every monomial of total degree up to 8 in three variables, coefficients from [-1, 1]."""
    x, y, z = (pool.symbol(name) for name in "xyz")
    draw = random.Random(8)
    terms = [
        pool.float(draw.uniform(-1.0, 1.0)) * x**i * y**j * z**k
        for i in range(9)
        for j in range(9 - i)
        for k in range(9 - i - j)
    ]
    return [pool.add(terms)], [x, y, z]


def _rosenbrock(pool: ExprPool) -> Built:
    v = [pool.symbol(f"v{i}") for i in range(10)]
    value = pool.add([100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(v)])
    return [value, *gradient(value, v)], v


def _chain(pool: ExprPool) -> Built:
    """Two hundred operations, each on the last one's result.

    No step stretches an error: the slopes are at most 1, 1/2, 1 and 1/2.
    """
    x, y = _xy(pool)
    value: Expr = x
    for k in range(50):
        value = sin(value)
        value = value * x / 4 + pool.rational(k + 1, 50)
        value = y / (value + 2)
        value = sqrt(value + 1)
    return [value], [x, y]


_PLAIN = (0.1, 6.0)

ROWS = (
    Row(
        name="product",
        title="x*y",
        group="small",
        points=MANY_POINTS,
        build=_product,
        ranges=(_PLAIN, _PLAIN),
    ),
    Row(
        name="waves",
        title="sin(x)*cos(y) + (x*x + y*y)/100",
        group="small",
        points=MANY_POINTS,
        build=_waves,
        ranges=(_PLAIN, _PLAIN),
    ),
    Row(
        name="cubic",
        title="x**3 - 2*x + 1",
        group="small",
        points=MANY_POINTS,
        build=_cubic,
        ranges=(_PLAIN,),
    ),
    Row(
        name="damped",
        title="exp(-x/4)*sin(x) + sqrt(x + 1)",
        group="small",
        points=MANY_POINTS,
        build=_damped,
        ranges=(_PLAIN,),
    ),
    Row(
        name="horner",
        title="Horner's scheme of degree 16, times y",
        group="small",
        points=MANY_POINTS,
        build=_horner,
        ranges=((0.1, 1.5), _PLAIN),
    ),
    Row(
        name="waves_gradient",
        title="row waves and its two partial derivatives",
        group="small",
        points=MANY_POINTS,
        build=_waves_gradient,
        ranges=(_PLAIN, _PLAIN),
    ),
    Row(
        name="black_scholes",
        title="option prices and Greeks, 9 outputs",
        group="heavy",
        points=FEWER_POINTS,
        build=_workload("black_scholes_greeks", lambda name: True),
        ranges=_workload_ranges("black_scholes_greeks"),
    ),
    Row(
        name="hodgkin_huxley",
        title="Hodgkin-Huxley equations with guards, 4 outputs",
        group="heavy",
        points=FEWER_POINTS,
        build=_workload("hodgkin_huxley", {"dV", "dm_guarded", "dh", "dn_guarded"}.__contains__),
        ranges=_workload_ranges("hodgkin_huxley"),
    ),
    Row(
        name="robot_jacobian",
        title="Jacobian of a UR5 arm, 14 outputs",
        group="heavy",
        points=FEWER_POINTS,
        build=_workload("ur5_kinematics", lambda name: name.startswith("J")),
        ranges=_workload_ranges("ur5_kinematics"),
    ),
    Row(
        name="polynomial",
        title="dense polynomial of degree 8 in 3 variables, 165 terms",
        group="heavy",
        points=MANY_POINTS,
        build=_polynomial,
        ranges=((-1.0, 1.0),) * 3,
    ),
    Row(
        name="rosenbrock",
        title="Rosenbrock's function of 10 variables and its gradient, 11 outputs",
        group="heavy",
        points=FEWER_POINTS,
        build=_rosenbrock,
        ranges=((-2.0, 2.0),) * 10,
    ),
    Row(
        name="chain",
        title="200 operations one after the other: sine, root, quotient, multiply-add",
        group="heavy",
        points=MANY_POINTS,
        build=_chain,
        ranges=((0.1, 2.0), (0.1, 2.0)),
    ),
)
"""Every row, in the order of the tables."""
