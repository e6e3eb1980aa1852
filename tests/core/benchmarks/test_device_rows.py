"""Nobody is timed who was not checked, and one that fails does not end the others' run."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any

import attrs
import numpy as np
import pytest
from gpu_benchmark import contenders, device_rows, formulae, timing
from gpu_benchmark.contenders import Contender, Problem
from gpu_benchmark.device_rows import Plan, measure
from gpu_benchmark.timing import DeviceClock

pytestmark = pytest.mark.usefixtures("cupy", "backend")

PLAN = Plan(
    peers=[],
    points=3000,
    divisor=1,
    repeats=4,
    compile_limit=30.0,
    kernel_only=False,
    options={},
)


def row(name: str) -> formulae.Row:
    (found,) = formulae.select([name])
    return found


def measured(
    make: Any, monkeypatch: pytest.MonkeyPatch, name: str = "waves_gradient", **changes: Any
) -> tuple[dict[str, Any], list[str]]:
    """The record of a row in which ``make`` is the only peer, and what was said."""
    peer = contenders.Peer("numpy", "numpy", make)
    monkeypatch.setattr(device_rows, "PEERS", {"peer": peer})
    said: list[str] = []
    plan = attrs.evolve(PLAN, peers=["peer"], **changes)
    return measure(row(name), plan, DeviceClock(), said.append), said


def writing(change: Any) -> Any:
    """A peer that computes the right values, and then ``change(outputs)``."""

    def make(problem: Problem) -> Contender:
        right = contenders.alkahest_arrays(problem)

        def run() -> object:
            right.run()
            change(problem.outputs)
            return None

        return Contender(run=run, results=lambda _: problem.outputs)

    return make


def test_a_row_has_everybodys_times_and_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    record, said = measured(contenders.cupy_elementwise, monkeypatch)
    assert not said
    assert record["bytes"] == 8 * 3000 * 5
    assert record["floor_ms"] == pytest.approx(record["bytes"] / record["copy_gb_per_s"] / 1e6)
    for name in ("alkahest", "peer"):
        contender = record["contenders"][name]
        assert contender["clock"] == "device"
        assert len(contender["samples"]) == 4
        assert contender["ms"] > 0
    assert record["contenders"]["alkahest"]["facts"] == {"device_name": "pretended"}


def test_a_point_that_is_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(problem: Problem) -> Contender:
        right = contenders.cupy_elementwise(problem)
        scratch = [np.empty_like(output) for output in problem.outputs]

        def run() -> object:
            contenders.cupy_elementwise(attrs.evolve(problem, outputs=scratch)).run()
            for output, values in zip(problem.outputs, scratch, strict=True):
                output[:-1] = values[:-1]
            return None

        return attrs.evolve(right, run=run)

    record, said = measured(make, monkeypatch)
    assert said == ["  peer: Wrong: output 0: 1 points are nan or were not written"]
    assert "ms" in record["contenders"]["alkahest"]
    assert record["contenders"]["peer"] == {
        "error": "Wrong: output 0: 1 points are nan or were not written"
    }


def test_a_wrong_value_in_the_sample_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(outputs: Any) -> None:
        outputs[1][0] += 1e-3

    record, _ = measured(writing(change), monkeypatch)
    error = record["contenders"]["peer"]["error"]
    assert error.startswith("Wrong: output 1: 1 values differ, the first of the sample:")
    assert "the CPU reference has" in error


def test_a_wrong_value_outside_the_sample_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(outputs: Any) -> None:
        outputs[2][1500] = -9.0

    monkeypatch.setattr(device_rows, "_SAMPLE", 0)
    record, _ = measured(writing(change), monkeypatch, compile_limit=30.0)
    error = record["contenders"]["peer"]["error"]
    assert error.startswith("Wrong: output 2: 1 values differ, the first at point 1500: -9.0,")


def test_too_few_outputs_or_another_dtype_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def single(problem: Problem) -> Contender:
        right = contenders.alkahest_arrays(problem)
        return attrs.evolve(
            right, results=lambda _: [output.astype("f4") for output in problem.outputs]
        )

    record, _ = measured(single, monkeypatch)
    assert record["contenders"]["peer"]["error"] == "Wrong: output 0 is float32 of shape (3000,)"


def test_an_error_is_noted_and_the_others_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(problem: Problem) -> Contender:
        raise RuntimeError("no such instruction\nand a long log")

    record, said = measured(make, monkeypatch)
    assert said == ["  peer: RuntimeError: no such instruction"]
    assert "ms" in record["contenders"]["alkahest"]


def test_who_compiles_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(problem: Problem) -> Contender:
        with contextlib.suppress(Exception):  # as compilers do that fall back to something slower
            time.sleep(20)
        raise AssertionError("not reached")

    record, _ = measured(make, monkeypatch, name="product", compile_limit=0.3)
    assert record["contenders"]["peer"] == {"error": "not compiled and checked within 0.3 s"}


def test_points_are_halved_into_the_memory_that_is_there(cupy: Any) -> None:
    cupy.cuda.runtime.memGetInfo = lambda: (1 << 20, 1 << 20)
    record = measure(row("rosenbrock"), attrs.evolve(PLAN, points=None), DeviceClock(), print)
    assert 0 < record["points"] * 8 * (10 + 9 * 11) <= 0.8 * (1 << 20)


def test_a_column_that_nobody_reads_does_not_count() -> None:
    record = measure(row("robot_jacobian"), PLAN, DeviceClock(), print)
    assert record["inputs"] == 6  # the last joint turns the tool in place
    assert record["bytes"] == 8 * 3000 * (5 + 14)


def test_samples_are_taken_in_turns() -> None:
    order: list[str] = []

    def clock(name: str) -> Any:
        return lambda: order.append(name) or float(len(order))

    first, second = timing.interleaved([clock("a"), clock("b")], repeats=2)
    assert order == ["a", "b"] * (timing.WARM_UPS + 2)
    assert first.milliseconds == (7.0, 9.0)
    assert second.median == 9.0


def test_the_spread_is_half_the_distance_of_the_quartiles() -> None:
    sample = timing.Sample((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0))
    assert sample.median == 4.0
    assert sample.spread == pytest.approx((6.0 - 2.0) / 2 / 4.0)
    assert math.isnan(timing.Sample((1.0, 2.0)).spread)


def test_a_wall_time_is_shared_by_the_calls_that_were_queued(cupy: Any) -> None:
    calls: list[str] = []
    clock = DeviceClock()
    taken = clock.wall_time(lambda: calls.append("run"), lambda last: calls.append("wait"))
    assert calls == ["run"] * 4 + ["wait"]
    assert 0 <= taken < 1000


def test_a_deadline_that_is_kept_leaves_nothing_behind() -> None:
    with timing.deadline(0.05):
        pass
    time.sleep(0.1)


def test_the_polynomial_is_dense_and_the_chain_is_deep() -> None:
    polynomial, chain = row("polynomial").program, row("chain").program
    assert sum(i.op == "add" for i in polynomial.code) == 164
    steps = [i.op for i in chain.code if i.op in ("sin", "div", "sqrt")]
    assert steps == ["sin", "div", "sqrt"] * 50


def test_rows_are_chosen_by_name_pattern_and_group() -> None:
    assert [r.name for r in formulae.select(["waves*"])] == ["waves", "waves_gradient"]
    assert len(formulae.select(["heavy"])) == len(formulae.select(["small"])) == 6
    assert len(formulae.select([])) == 12
    with pytest.raises(ValueError, match="no row 'wave'; there are product, waves"):
        formulae.select(["wave"])
