"""``alkahest calibrate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alkahest._plugins import calls
from alkahest.calibration import Calibration, Cost, Model, Work, current, measuring
from alkahest.cli.calibrate import FORMULAE, crossover
from alkahest.compiled import compile_expr
from alkahest.errors import CudaError
from alkahest.expr import ExprPool
from alkahest.plugin import Probe, Tuned
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Run = Callable[..., Any]
Keep = Callable[..., Calibration]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Few points, since what is measured here gives zeros; a line for everything."""
    monkeypatch.setattr(measuring, "LARGE", {"host": 128, "cuda": 128})
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def backends() -> Iterator[None]:
    """Two that can be measured, one without a device, and one that is out of order."""
    with isolated_plugins(
        NullPlugin(backend="plain", dtypes=("float64", "float32")),
        NullPlugin(backend="gpu", placement="cuda", priority=100, dtypes=("float64",)),
        NullPlugin(backend="idle", devices=0),
        NullPlugin(backend="broken", probe=lambda: Probe(ok=False, detail="out of order")),
    ):
        yield


@pytest.mark.usefixtures("backends")
class TestMeasuring:
    def test_it_measures_what_is_here_stores_and_prints_it(self, run: Run, place: Path) -> None:
        result = run("calibrate", "--quick")
        assert result.code == 0
        assert result.err == (
            "alkahest: not measured: broken: out of order\n"
            "alkahest: not measured: idle: no device here\n"
        )
        lines = result.out.splitlines()
        assert "gpu on gpu 0" in lines
        assert "plain on plain 0" in lines
        assert [line.split()[0] for line in lines if line.startswith("  float")] == [
            "float64",
            "float64",
            "float32",
        ]
        assert all(any(formula in line for line in lines) for formula in FORMULAE)
        assert lines[-1].endswith(f"kept in {place}")
        calibration = current().calibration
        assert calibration is not None
        assert calibration.backends.keys() == {"plain", "gpu"}

    def test_backends_that_tune_themselves_say_what_they_found(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = (
            Tuned(device="Abacus", case="sums", settings={"beads": 7, "rods": 2}, gain=1.254),
            Tuned(device="Abacus", case="products"),
        )
        monkeypatch.setattr(calls, "tune", lambda name, *, quick: found if name == "gpu" else ())
        lines = run("calibrate", "--quick").out.splitlines()
        start = lines.index("gpu tuned on Abacus")
        assert [line.split("  ")[-1] for line in lines[start + 1 : start + 3]] == [
            "beads 7, rods 2: 25 % faster",
            "as it chooses itself",
        ]
        assert lines == run("calibrate", "--show").out.splitlines()

    def test_tuning_that_fails_is_told_and_the_rest_is_kept(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(name: str, *, quick: bool) -> None:
            raise CudaError("E-CUDA-006", "the device fell off the bus")

        monkeypatch.setattr(calls, "tune", fail)
        result = run("calibrate", "--quick", "--backend", "gpu")
        assert result.code == 0
        assert "alkahest: not tuned: gpu: " in result.err
        assert "fell off the bus" in result.err
        assert current().calibration is not None

    def test_json_holds_every_cost(self, run: Run, place: Path) -> None:
        found = json.loads(run("calibrate", "--quick", "--json").out)
        assert found["path"] == str(place)
        assert found["calibration"] == json.loads(place.read_text())
        assert [entry["formula"] for entry in found["crossovers"]] == list(FORMULAE)
        assert {entry["other"] for entry in found["crossovers"]} == {"gpu"}

    def test_one_backend_is_measured_and_the_others_are_kept(self, run: Run, keep: Keep) -> None:
        before = keep(plain=1e-9, gpu=1e-12)
        assert run("calibrate", "--quick", "--backend", "plain").code == 0
        after = current().calibration
        assert after is not None
        assert after.backends["gpu"] == before.backends["gpu"]
        assert after.backends["plain"] != before.backends["plain"]

    def test_a_backend_that_cannot_be_measured_is_an_error(self, run: Run, place: Path) -> None:
        result = run("calibrate", "--backend", "idle")
        assert result.code == 1
        assert "[E-JIT-004] no backend can be measured here (idle: no device here)" in result.err
        result = run("calibrate", "--backend", "abacus")
        assert result.code == 2
        assert "[E-JIT-009] no backend 'abacus'" in result.err
        assert not place.exists()

    def test_without_a_place_it_measures_and_warns(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ALKAHEST_CALIBRATION", "off")
        result = run("calibrate", "--quick", "--backend", "plain")
        assert result.code == 0
        assert "plain on plain 0" in result.out
        assert "kept in" not in result.out
        assert "warning: the calibration is not stored, since it is switched off" in result.err

    def test_a_place_that_cannot_be_written_is_an_error(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("ALKAHEST_CALIBRATION", str(tmp_path / "file" / "calibration.json"))
        result = run("calibrate", "--quick", "--backend", "plain")
        assert result.code == 1
        assert "[E-IO-002]" in result.err

    def test_functions_compiled_afterwards_use_it(self, run: Run) -> None:
        pool = ExprPool()
        x = pool.symbol("x")
        fn = compile_expr(x + 1, [x])
        fn(np.zeros(100))
        assert fn.report["reason"] == "host columns, no calibration"
        run("calibrate", "--quick")
        fn = compile_expr(x + 1, [x])
        fn(np.zeros(100))
        assert "predicted " in fn.report["reason"]


class TestShowing:
    def test_it_prints_what_is_stored_and_measures_nothing(
        self, run: Run, keep: Keep, place: Path
    ) -> None:
        keep(plain=5e-9, gpu=1e-12)
        with isolated_plugins(
            NullPlugin(backend="plain"), NullPlugin(backend="gpu", placement="cuda")
        ):
            lines = run("calibrate", "--show").out.splitlines()
        assert lines[0] == "plain on plain 0"
        assert lines[2].split() == (
            ["float64", "1", "µs", "1", "GB/s", "1", "GB/s", "5", "ns", "--", "--"]
        )
        assert lines[-1] == f"measured 2026-01-01T00:00:00+00:00, kept in {place}"

    def test_without_a_calibration_it_says_how_to_make_one(self, run: Run, place: Path) -> None:
        result = run("calibrate", "--show")
        assert (result.code, result.err) == (0, "")
        assert result.out == "no calibration; `alkahest calibrate` measures this machine\n"
        assert json.loads(run("calibrate", "--show", "--json").out) == {
            "path": str(place),
            "reason": "no calibration",
        }


def test_nothing_to_measure_is_an_error(run: Run) -> None:
    with isolated_plugins():
        result = run("calibrate")
    assert result.code == 1
    assert "[E-JIT-004] no backend can be measured here (none is loaded)" in result.err


def model(call: float, point: float) -> Model:
    return Model(call=call, read=Cost(), write=Cost(), ops={"add": Cost(0.0, point)})


@pytest.mark.parametrize(
    ("host", "other", "points"),
    [
        ((0.0, 2.0), (100.0, 1.0), 123),  # 2 n > 1.1 (100 + n) from 122.2 on
        ((0.0, 1.0), (100.0, 1.0), None),
        ((1000.0, 1.0), (1.0, 0.5), 1),
        ((1000.0, 1.0), (1.0, 2.0), None),
        ((0.0, 1e308), (0.0, 1e308), None),
        ((1e308, 1e308), (1e308, 1.0), 1),
    ],
    ids=["later", "never", "at once", "only short ones", "overflow", "overflow on one side"],
)
def test_the_crossover_is_where_the_margin_is_reached(
    host: tuple[float, float], other: tuple[float, float], points: int | None
) -> None:
    work = Work(columns_in=1, bytes_in=8, columns_out=1, bytes_out=8, ops={"add": 1})
    assert crossover(work, model(*host), model(*other)) == points
