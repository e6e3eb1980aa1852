"""Special values: one list of operations, operands and the result that every backend gives."""

from __future__ import annotations

import math

import attrs

from alkahest.ops import OPS
from alkahest.testing.oracle import to_float32

_INF, _NAN = math.inf, math.nan


@attrs.frozen
class Case:
    """``op`` of ``operands`` is ``value``, sign of zero included."""

    op: str
    operands: tuple[float, ...]
    value: float
    parameter: int | None = None

    def __str__(self) -> str:
        power = "" if self.parameter is None else f", n={self.parameter}"
        return f"{self.op}({', '.join(map(repr, self.operands))}{power})={self.value!r}"


def same(got: float, want: float) -> bool:
    """Equal as IEEE data: nan equals nan, zeros are told apart."""
    if math.isnan(got) or math.isnan(want):
        return math.isnan(got) and math.isnan(want)
    return got == want and math.copysign(1, got) == math.copysign(1, want)


def _is_narrow(value: float) -> bool:
    """Whether ``value`` is a number of float32."""
    return not math.isfinite(value) or (abs(value) < 3.5e38 and to_float32(value) == value)


def _cases(op: str, *rows: tuple[float, ...]) -> list[Case]:
    arity = OPS[op].arity
    return [Case(op, row[:arity], row[arity]) for row in rows]


def _powers(*rows: tuple[float, int, float]) -> list[Case]:
    return [Case("powi", (base,), value, n) for base, n, value in rows]


_ODD = 10**30 + 1

CASES: tuple[Case, ...] = (
    *_cases("add", (_INF, -_INF, _NAN), (-0.0, -0.0, -0.0), (1e308, 1e308, _INF)),
    *_cases(
        "sub",
        (_INF, _INF, _NAN),
        (0.0, 0.0, 0.0),
        (2.3e-308, 2.2250738585072014e-308, 7.49261414927985e-310),
    ),
    *_cases(
        "mul", (0.0, _INF, _NAN), (-0.0, 3.0, -0.0), (1e-160, 1e-160, 1e-320), (1e200, 1e200, _INF)
    ),
    *_cases("div", (1.0, -0.0, -_INF), (0.0, 0.0, _NAN), (5e-324, 2.0, 0.0), (2e-323, 4.0, 5e-324)),
    *_cases("neg", (0.0, -0.0), (_INF, -_INF)),
    *_cases("fma", (_INF, 0.0, 1.0, _NAN), (1 + 2**-52, 1 + 2**-52, -1.0, 2**-51 + 2**-104)),
    *_powers(
        (_NAN, 0, 1.0),
        (0.0, 0, 1.0),
        (-0.0, -2, _INF),
        (-0.0, -3, -_INF),
        (-0.0, 3, -0.0),
        (-_INF, 3, -_INF),
        (-_INF, 2, _INF),
        (-_INF, -3, -0.0),
        (2.0, -1074, 5e-324),
        (-2.0, 1025, -_INF),
        (-1.0, _ODD, -1.0),
        (-1.0, _ODD - 1, 1.0),
        (1.0, _ODD, 1.0),
        (-0.0, _ODD, -0.0),
        (-0.0, -_ODD, -_INF),
        (-_INF, _ODD, -_INF),
        (-0.5, _ODD, -0.0),
        (_NAN, 3, _NAN),
        (1e103, -3, 1e-309),
        (1e155, -2, 1e-310),
        (-1.0, 2**53 + 1, -1.0),
    ),
    *_cases(
        "pow",
        (0.0, 0.0, 1.0),
        (_NAN, 0.0, 1.0),
        (1.0, _NAN, 1.0),
        (-1.0, _INF, 1.0),
        (0.0, -1.0, _INF),
        (-0.0, -3.0, -_INF),
        (-_INF, 3.0, -_INF),
        (-_INF, 2.0, _INF),
        (-2.0, _INF, _INF),
        (0.5, -_INF, _INF),
        (0.5, _INF, 0.0),
        (-8.0, 1 / 3, _NAN),
        (-2.0, 3.0, -8.0),
        (2.0, 0.5, 2**0.5),
        (2.0, _NAN, _NAN),
        (-0.0, 0.5, 0.0),
    ),
    *_cases("lt", (_NAN, 1.0, 0.0), (-0.0, 0.0, 0.0), (-_INF, 0.0, 1.0)),
    *_cases("ge", (_NAN, 1.0, 0.0), (-0.0, 0.0, 1.0)),
    *_cases("eq", (_NAN, _NAN, 0.0), (-0.0, 0.0, 1.0)),
    *_cases("ne", (_NAN, _NAN, 1.0), (-0.0, 0.0, 0.0)),
    *_cases("select", (1.0, 2.0, _NAN, 2.0), (-1.0, _INF, 3.0, 3.0), (_NAN, 1.0, -0.0, -0.0)),
    *_cases("abs", (-0.0, 0.0), (-_INF, _INF), (_NAN, _NAN)),
    *_cases("sign", (-0.0, 0.0), (_NAN, _NAN), (-5e-324, -1.0), (_INF, 1.0)),
    *_cases(
        "min",
        (_NAN, 1.0, _NAN),
        (1.0, _NAN, _NAN),
        (0.0, -0.0, -0.0),
        (-0.0, 0.0, -0.0),
        (1.0, _INF, 1.0),
    ),
    *_cases(
        "max",
        (_NAN, 1.0, _NAN),
        (1.0, _NAN, _NAN),
        (0.0, -0.0, 0.0),
        (-0.0, 0.0, 0.0),
        (1.0, _INF, _INF),
    ),
    *_cases("floor", (-0.5, -1.0), (-0.0, -0.0), (1e300, 1e300), (_INF, _INF)),
    *_cases("ceil", (-0.5, -0.0), (0.5, 1.0)),
    *_cases(
        "round",
        (0.5, 0.0),
        (1.5, 2.0),
        (2.5, 2.0),
        (-0.5, -0.0),
        (-2.5, -2.0),
        (4503599627370497.5, 4503599627370498.0),
    ),
    *_cases("trunc", (-1.5, -1.0), (1.5, 1.0), (-0.5, -0.0)),
    *_cases(
        "mod",
        (5.0, 3.0, 2.0),
        (-5.0, 3.0, 1.0),
        (5.0, -3.0, -1.0),
        (-6.0, 3.0, 0.0),
        (6.0, -3.0, -0.0),
        (1.0, 0.0, _NAN),
        (_INF, 3.0, _NAN),
        (1.0, 0.25, 0.0),
        (5.0, _INF, 5.0),
        (-5.0, _INF, _INF),
    ),
    *_cases("exp", (710.0, _INF), (-_INF, 0.0), (0.0, 1.0), (_NAN, _NAN)),
    *_cases("exp2", (3.0, 8.0), (1024.0, _INF), (-1074.0, 5e-324)),
    *_cases("expm1", (-0.0, -0.0), (-_INF, -1.0), (-1e-300, -1e-300), (5e-17, 5e-17)),
    *_cases("log", (-1.0, _NAN), (-0.0, -_INF), (0.0, -_INF), (1.0, 0.0), (_INF, _INF)),
    *_cases("log2", (8.0, 3.0), (0.0, -_INF), (-1.0, _NAN)),
    *_cases("log10", (1000.0, 3.0), (0.0, -_INF), (-1.0, _NAN)),
    *_cases("log1p", (-1.0, -_INF), (-2.0, _NAN), (-0.0, -0.0), (5e-17, 5e-17)),
    *_cases(
        "sqrt",
        (-0.0, -0.0),
        (-1.0, _NAN),
        (5e-324, 2.2227587494850775e-162),
        (-_INF, _NAN),
        (_INF, _INF),
    ),
    *_cases("rsqrt", (0.0, _INF), (_INF, 0.0), (-1.0, _NAN), (4.0, 0.5)),
    *_cases("cbrt", (-8.0, -2.0), (-0.0, -0.0), (-_INF, -_INF)),
    *_cases("hypot", (3.0, 4.0, 5.0), (_INF, _NAN, _INF), (_NAN, 1.0, _NAN), (1e200, 0.0, 1e200)),
    *_cases("sin", (-0.0, -0.0), (_INF, _NAN)),
    *_cases("cos", (0.0, 1.0), (-_INF, _NAN)),
    *_cases("tan", (-0.0, -0.0), (_INF, _NAN)),
    *_cases("asin", (-0.0, -0.0), (1.0000000000000002, _NAN), (1.0, math.pi / 2)),
    *_cases("acos", (1.0, 0.0), (-1.0, math.pi), (-1.0000000000000002, _NAN)),
    *_cases("atan", (-0.0, -0.0), (_INF, math.pi / 2)),
    *_cases(
        "atan2",
        (0.0, -0.0, math.pi),
        (-0.0, -0.0, -math.pi),
        (0.0, 0.0, 0.0),
        (-0.0, 1.0, -0.0),
        (1.0, 0.0, math.pi / 2),
        (_INF, -_INF, 3 * math.pi / 4),
        (_NAN, 1.0, _NAN),
    ),
    *_cases("sinh", (-0.0, -0.0), (-_INF, -_INF), (711.0, _INF)),
    *_cases("cosh", (0.0, 1.0), (-_INF, _INF)),
    *_cases("tanh", (-0.0, -0.0), (_INF, 1.0), (-400.0, -1.0)),
    *_cases("asinh", (-0.0, -0.0), (-_INF, -_INF)),
    *_cases("acosh", (1.0, 0.0), (0.5, _NAN), (_INF, _INF)),
    *_cases("atanh", (1.0, _INF), (-1.0, -_INF), (-0.0, -0.0), (1.5, _NAN)),
    *_cases("erf", (-0.0, -0.0), (_INF, 1.0), (-7.0, -1.0)),
    *_cases("erfc", (_INF, 0.0), (-_INF, 2.0), (0.0, 1.0)),
    *_cases("erfinv", (1.0, _INF), (-1.0, -_INF), (1.5, _NAN), (-0.0, -0.0)),
    *_cases(
        "gamma",
        (0.0, _INF),
        (-0.0, -_INF),
        (-1.0, _NAN),
        (5.0, 24.0),
        (172.0, _INF),
        (_INF, _INF),
        (-_INF, _NAN),
    ),
    *_cases("lgamma", (1.0, 0.0), (2.0, 0.0), (0.0, _INF), (-3.0, _INF), (_INF, _INF)),
    *_cases("digamma", (-1.0, _NAN), (_INF, _INF)),
    *_cases("j0", (0.0, 1.0)),
    *_cases("j1", (0.0, 0.0)),
    *_cases("y0", (0.0, -_INF), (-1.0, _NAN)),
    *_cases("y1", (0.0, -_INF), (-1.0, _NAN)),
)
"""What IEEE 754, C99 Annex F and the conventions of the op table say, in float64."""

_NARROW: tuple[Case, ...] = (
    *_cases("add", (3e38, 3e38, _INF)),
    *_cases("sub", (1.5 * 2.0**-126, 2.0**-126, 2.0**-127)),
    *_cases("mul", (2.0**-100, 2.0**-40, 2.0**-140), (2.0**100, 2.0**100, _INF)),
    *_cases("div", (2.0**-149, 2.0, 0.0), (2.0**-147, 4.0, 2.0**-149)),
    *_powers((2.0, -149, 2.0**-149), (-2.0, 129, -_INF)),
    *_cases("exp", (89.0, _INF), (-104.0, 0.0)),
    *_cases("exp2", (128.0, _INF), (-149.0, 2.0**-149)),
    *_cases("sign", (-(2.0**-149), -1.0)),
    *_cases("hypot", (2.0**127, 0.0, 2.0**127)),
    *_cases("round", (8388609.0, 8388609.0)),
    *_cases("gamma", (36.0, _INF)),
)


def cases(op: str, dtype: str) -> list[Case]:
    """Those of one operation; in float32 its own, and the ones of float64 that are numbers of it."""
    if dtype == "float64":
        return [case for case in CASES if case.op == op]
    narrow = [case for case in CASES if all(map(_is_narrow, (*case.operands, case.value)))]
    return [case for case in (*narrow, *_NARROW) if case.op == op]
