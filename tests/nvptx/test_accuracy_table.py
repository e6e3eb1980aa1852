"""``benchmarks/accuracy.py``: its references, what it finds, and its table."""

from __future__ import annotations

import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import accuracy  # noqa: E402 - needs the path
import pages  # noqa: E402
from accuracy_measure import draws, measuring, points, promises, reference, report  # noqa: E402
from gpu_benchmark import results  # noqa: E402

from alkahest.backends.nvptx.lowerings import LOWERINGS  # noqa: E402
from alkahest.ops import OPS, Signature  # noqa: E402
from alkahest.testing import oracle  # noqa: E402

SMOOTH = [op for op in LOWERINGS if OPS[op].ulp and not OPS[op].has_parameter]
NVPTX = promises.of("nvptx")


@pytest.mark.parametrize("op", SMOOTH)
def test_the_extended_reference_is_within_a_fiftieth_of_an_ulp(op: str) -> None:
    sample = oracle.samples(op, 40, seed=3)
    columns = [np.array(column, reference.EXTENDED) for column in zip(*sample, strict=True)]
    for value, point in zip(reference.values(op, columns), sample, strict=True):
        want = oracle.exact(op, point)
        high = float(value)
        with mpmath.workdps(oracle.DIGITS):
            off = mpmath.mpf(high) + mpmath.mpf(float(value - high)) - want
            unit = oracle.ulp(max(abs(want), oracle.scale(OPS[op])))
            assert abs(off) <= unit / 50, (point, float(off / unit))


@pytest.mark.parametrize("dtype", draws.FORMATS)
@pytest.mark.parametrize("op", [*LOWERINGS])
def test_every_operation_has_points_of_its_dtype_from_several_strata(op: str, dtype: str) -> None:
    parameter = 3 if OPS[op].has_parameter else None
    names = []
    total = 0
    for name, columns in points.blocks(op, dtype, 2000, parameter):
        names.append(name)
        total += len(columns[0])
        assert len(columns) == OPS[op].arity
        assert all(column.dtype == dtype and len(column) == len(columns[0]) for column in columns)
    assert len(set(names)) >= 4
    assert {"edges", "all numbers"} <= set(names)
    assert total >= 2000


def test_far_points_are_those_of_their_strata_and_edges() -> None:
    def names(op: str, **options: tuple[str, ...]) -> set[str]:
        return {name for name, _ in points.blocks(op, "float64", 2000, None, **options)}

    assert names("sin", only=points.FAR) == {
        *("edges", "all numbers", "subnormal", "from 2**31", "near large multiples of pi/2")
    }
    everywhere = set().union(*(names(op) for op in SMOOTH))
    assert set(points.FAR) <= everywhere
    for op in SMOOTH:
        assert len(names(op, only=points.FAR)) >= 2


def test_points_include_huge_and_subnormal_operands_and_are_the_same_every_time() -> None:
    first, second = (
        [columns[0] for _, columns in points.blocks("sin", "float64", 2000, None)] for _ in range(2)
    )
    sizes = np.abs(np.concatenate(first))
    assert (sizes > 1e300).sum() > 10
    assert ((sizes > 0) & (sizes < 2.0**-1022)).sum() > 10
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def measured(op: str, function: object) -> dict[str, object]:
    case = measuring.Case(op, "float64")
    (record,) = measuring.measure(case, {"": function}, 2000, promises.of("cpu-reference"))
    return record


def test_an_error_of_three_units_is_found_and_its_place_is_told() -> None:
    def off(columns: list[np.ndarray]) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            value = np.sqrt(columns[0])
        return np.where(columns[0] == 2.5, value + 3 * np.spacing(value), value)

    record = measured("sqrt", off)
    assert 2.5 <= record["ulp"] <= 3.5
    assert record["ulp_at"] == "2.5"
    assert record["wrong"] == 0


def test_a_nan_where_there_is_a_value_is_wrong() -> None:
    def gives_up(columns: list[np.ndarray]) -> np.ndarray:
        return np.where(columns[0] > 1e300, np.nan, np.floor(columns[0]))

    record = measured("floor", gives_up)
    assert record["wrong"] > 0
    assert record["wrong_at"].startswith("nan at ")
    judged = report.judge(record, promises.of("cpu-reference"))
    assert not judged.passed


def test_an_infinity_beside_the_largest_number_is_one_unit_off() -> None:
    largest = np.finfo(float).max

    def overflows(columns: list[np.ndarray]) -> np.ndarray:
        return np.where(columns[0] == largest, np.inf, columns[0])

    record = measured("trunc", lambda columns: overflows([np.trunc(columns[0])]))
    assert record["ulp"] == 1.0
    assert record["ulp_at"] == repr(float(largest))


def test_results_of_comparisons_are_right_or_wrong() -> None:
    assert measured("lt", lambda columns: columns[0] < columns[1])["wrong"] == 0
    assert measured("lt", lambda columns: columns[0] <= columns[1])["wrong"] > 0


def test_the_kernels_on_the_emulated_device_are_within_their_bounds(tmp_path: Path) -> None:
    target = tmp_path / "accuracy.json"
    command = "--backend emulated --points 2000 --quiet --ops add,exp,div,sqrt,lgamma,j0"
    assert accuracy.main([*command.split(), "--json", str(target)]) == 0
    document = results.read(target)
    assert {record["op"] for record in document["records"]} == {
        *"add exp div sqrt lgamma j0".split()
    }
    assert all(record["points"] for record in document["records"] if not record["part"])


def record(op: str, mode: str, ulp: float, **fields: object) -> dict[str, object]:
    return {
        "op": op,
        "dtype": "float64",
        "parameter": None,
        "mode": mode,
        "part": "",
        "points": 10,
        "wrong": 0,
        "wrong_at": "",
        "ulp": ulp,
        "ulp_at": "1.5",
        "scaled": 0.0,
        "scaled_at": "",
        **fields,
    }


def test_the_table_joins_operations_that_have_the_same_figures() -> None:
    records = [record(op, mode, 0.5) for op in ("add", "sub") for mode in NVPTX.modes]
    records += [record("tan", mode, 1.25) for mode in NVPTX.modes]
    lines = report.table(records, "float64", NVPTX).splitlines()
    assert lines[0] == "| operation | for | strict | default | fast | bound | libdevice's |"
    assert lines[2:] == [
        "| `add`, `sub` |  | 0.5 | 0.5 | 0.5 | 0.5 |  |",
        "| `tan` |  | 1.25 | 1.25 | 1.25 | 2.5 | 2 ulp |",
    ]
    assert report.failures(records, NVPTX) == []


def test_a_table_of_one_mode_has_its_column_only() -> None:
    lines = report.table([record("tan", "fast", 1.25)], "float64", NVPTX).splitlines()
    assert lines[0] == "| operation | for | fast | bound | libdevice's |"
    assert lines[2] == "| `tan` |  | 1.25 | 2.5 | 2 ulp |"


def test_what_is_above_its_bound_is_named_with_its_place() -> None:
    records = [record("tan", "fast", 2.75), record("add", "strict", 0.0, wrong=2, wrong_at="nan")]
    assert report.failures(records, NVPTX) == [
        "tan float64 fast: 2.75 ulp, 2.5 allowed, at 1.5",
        "add float64 strict: 2 wrong values, first nan",
    ]


def test_the_page_has_the_marks_that_the_command_writes_between() -> None:
    text = accuracy.PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- begin measured errors -->\n") == 1
    assert text.count("<!-- end measured errors -->") == 1
    assert accuracy.PAGE.parent == pages.DOCS


def test_truth_values_are_operands_of_logic_and_select() -> None:
    assert OPS["select"].signature is Signature.SELECT
    assert measured("select", lambda c: np.where(c[0] > 0, c[1], c[2]))["ulp"] == 0
    assert measured("and", lambda c: (c[0] > 0) & (c[1] > 0))["wrong"] == 0
