"""The programs that are timed."""

from __future__ import annotations

import pytest

from alkahest.calibration.experiments import QUICK, experiments
from alkahest.calibration.model import Work
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import Support

EVERYTHING = Support(lowers=dict.fromkeys(OPS, frozenset(DTYPES)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_with_a_meaning_is_measured(dtype: str) -> None:
    measured = {op for e in experiments(EVERYTHING, dtype) for op in e.program.ops_used}
    # In real programs nothing makes a complex value.
    assert measured == set(OPS) - (set() if dtype.startswith("complex") else {"complex"})


def test_a_quick_run_has_an_operation_of_every_class() -> None:
    quick = experiments(EVERYTHING, "float64", quick=True)
    assert len(quick) < len(experiments(EVERYTHING, "float64")) / 3
    assert {op for e in quick for op in e.program.ops_used} >= set(QUICK)


def test_only_what_the_backend_lowers_is_asked_of_it() -> None:
    support = Support(lowers=dict.fromkeys(("add", "mul", "sin", "select"), frozenset(["float32"])))
    found = experiments(support, "float32")
    # select needs a comparison, which this backend does not have
    assert {op for e in found for op in e.program.ops_used} == {"add", "mul", "sin"}
    assert experiments(support, "float64") == []


def test_a_backend_that_does_not_add_and_multiply_is_not_measured() -> None:
    assert experiments(Support(lowers={"sin": frozenset(["float64"])}), "float64") == []


def test_columns_and_operations_are_told_apart() -> None:
    moving = [Work.of(e.program) for e in experiments(EVERYTHING, "float64") if e.moves]
    assert {(w.columns_in, w.columns_out) for w in moving} == {(1, 1), (8, 1), (8, 8)}
    assert max(sum(w.ops.values()) for w in moving) == 8


def test_values_stay_where_the_operation_is_defined() -> None:
    domains = {
        op: e.domain
        for e in experiments(EVERYTHING, "float64")
        for op in e.program.ops_used & {"acosh", "atanh", "log"}
    }
    assert domains["acosh"][0] > 1
    assert 0 < domains["atanh"][0] < domains["atanh"][1] < 1
    assert domains["log"][0] > 0
