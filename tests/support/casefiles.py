"""The right values in ``tests/data``: read, turned into columns, and compared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import alkahest
from alkahest import Expr, ExprPool

DATA = Path(__file__).parents[1] / "data"


def number(value: Any) -> float:
    """A number of the files, where infinities and nan are texts."""
    return float(value)


@attrs.frozen
class EvalCase:
    """One formula with columns and the values that every backend gives."""

    id: str
    text: str
    inputs: dict[str, list[float]]
    expected: list[float] | None
    tol: float = 0.0
    atol: float = 0.0
    ulp: int = 0
    check_zero_sign: bool = False
    dtypes: dict[str, str] = attrs.field(factory=dict)
    raw: dict[str, list[str]] = attrs.field(factory=dict)
    scalar_columns: tuple[str, ...] = ()
    layout: str = ""
    accept_refusal: bool = False
    api_only: bool = False
    program: bool = False

    def __str__(self) -> str:
        return self.id

    def expression(self, pool: ExprPool) -> tuple[Expr, list[Expr]]:
        """The formula and its input symbols, in the order of the columns."""
        symbols = [pool.symbol(name) for name in self.inputs]
        if self.program:  # the only one: e = x, then 10,000 times e = e/2 + 1
            value = symbols[0]
            for _ in range(10_000):
                value = value / 2 + 1
            return value, symbols
        if self.api_only:  # symbols named like functions, which the text could not tell apart
            sin, exp, n, i, tid, out = symbols
            return sin + 2 * exp - n * i + tid / out, symbols
        return alkahest.parse(self.text, pool, symbols=symbols), symbols

    def columns(self) -> list[Any]:
        """The columns with the dtype and memory layout that the case is about."""
        return [self._column(name, values) for name, values in self.inputs.items()]

    def _column(self, name: str, values: list[float]) -> Any:
        if name in self.raw:
            return np.array([int(v) for v in self.raw[name]], dtype=self.dtypes[name])
        column = np.array(values).astype(self.dtypes.get(name, "f8"))
        if name in self.scalar_columns:
            return float(column[0])
        if "negative stride" in self.layout:
            table = np.zeros((len(column), 2))
            table[::-1, 1] = column
            return table[::-1, 1]
        if "C-order" in self.layout:
            table = np.full((len(column), 2), math.nan)
            table[:, 0] = column
            return table[:, 0]
        if "read-only" in self.layout:
            column.flags.writeable = False
        return column

    def wrong(self, got: Any) -> str | None:
        """What is wrong with a result, or None."""
        assert self.expected is not None
        got = np.asarray(got)
        if got.shape != (len(self.expected),):
            return f"shape {got.shape}, not ({len(self.expected)},)"
        for row, (have, want) in enumerate(zip(got.tolist(), self.expected, strict=True)):
            if not self._close(have, want):
                return f"row {row}: {have!r}, not {want!r}"
        return None

    def _close(self, have: float, want: float) -> bool:
        if math.isnan(want) or math.isnan(have):
            return math.isnan(want) and math.isnan(have)
        if have == want:
            same_sign = math.copysign(1, have) == math.copysign(1, want)
            return same_sign or not self.check_zero_sign
        if math.isinf(want) or math.isinf(have):
            return False
        allowed = max(self.tol * abs(want), self.atol, self.ulp * math.ulp(want))
        return abs(have - want) <= allowed


def semantics_cases() -> list[EvalCase]:
    """The numerical rules, one point each; ``expected`` is None where building must fail."""
    rows = json.loads((DATA / "semantics_cases.json").read_text())
    return [
        EvalCase(
            id=f"{row['expr']} at {', '.join(f'{k}={v}' for k, v in row['inputs'].items())}",
            text=row["expr"],
            inputs={name: [number(v)] for name, v in row["inputs"].items()},
            expected=None if row["expected"] == "error" else [number(row["expected"])],
            ulp=row["ulp"],
            check_zero_sign=True,
        )
        for row in rows
    ]


def open_cases() -> list[EvalCase]:
    """Faults found in other libraries, as inputs with right values."""
    rows = json.loads((DATA / "cases_open.json").read_text())
    return [_open_case(row) for row in rows if row["form"] == "eval"]


def _open_case(row: dict[str, Any]) -> EvalCase:
    return EvalCase(
        id=row["id"],
        text=row["expr"],
        inputs={name: [number(v) for v in values] for name, values in row["inputs"].items()},
        expected=[number(v) for v in row["expected"]],
        tol=row["tol"],
        atol=row["atol"],
        check_zero_sign=row.get("check_zero_sign", False),
        dtypes=row.get("dtype", {}),
        raw=row.get("raw", {}),
        scalar_columns=tuple(row.get("scalar_columns", ())),
        layout=row.get("layout", ""),
        accept_refusal=row.get("accept_refusal", False),
        api_only=row.get("api_only", False),
        program=row.get("program", False),
    )


@attrs.frozen
class Workload:
    """A published set of formulae over shared columns, with values in fifty digits, rounded."""

    name: str
    inputs: list[str]
    points: dict[str, list[float]]
    outputs: list[dict[str, Any]]

    def __str__(self) -> str:
        return self.name

    def expressions(self, pool: ExprPool) -> tuple[list[Expr], list[Expr]]:
        """Every output's formula, and the input symbols."""
        symbols = [pool.symbol(name) for name in self.inputs]
        return [alkahest.parse(o["expr"], pool, symbols=symbols) for o in self.outputs], symbols

    def columns(self) -> list[Any]:
        """One float64 column per input."""
        return [np.array(self.points[name]) for name in self.inputs]

    def wrong(self, got: Any) -> list[str]:
        """Outputs that leave their absolute tolerance anywhere."""
        faults = []
        for output, values in zip(self.outputs, got, strict=True):
            want = np.array([number(v) for v in output["expected"]])
            allowed = np.array([number(v) for v in output["abs_tol"]])
            both_nan = np.isnan(want) & np.isnan(values)
            far = ~(both_nan | (values == want) | (np.abs(values - want) <= allowed))
            if far.any():
                row = int(np.argmax(far))
                faults.append(f"{output['name']} row {row}: {values[row]!r}, not {want[row]!r}")
        return faults


def workloads() -> list[Workload]:
    """The published formula sets."""
    return [
        Workload(document["name"], document["inputs"], document["points"], document["outputs"])
        for path in sorted((DATA / "workloads").glob("*.json"))
        for document in [json.loads(path.read_text())]
    ]
