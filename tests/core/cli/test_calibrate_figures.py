"""Backends that evaluate no programs measure a model of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alkahest.calibration import current
from alkahest.errors import PluginError
from alkahest.plugin import BackendInfo, DeviceInfo, Feature, Probe, calibrated, hookimpl
from alkahest.testing.plugins import isolated_plugins

Run = Callable[..., Any]


class Solver:
    """A plugin of one backend that solves something on a device."""

    ALKAHEST_PLUGIN_API = 2

    def __init__(self, figures: Any, devices: tuple[str, ...] = ("Some GPU",)) -> None:
        self.figures = figures
        self.devices = devices
        self.asked: list[bool] = []

    @hookimpl
    def alkahest_register_backends(self) -> tuple[BackendInfo, ...]:
        feature = Feature(name="solver.works", probe=lambda: Probe(ok=True))
        return (BackendInfo(name="solver", features=(feature,), placement="cuda"),)

    @hookimpl
    def alkahest_devices(self, backend: str) -> tuple[DeviceInfo, ...]:
        return tuple(DeviceInfo(ordinal=i, name=name) for i, name in enumerate(self.devices))

    @hookimpl
    def alkahest_calibrate(self, backend: str, quick: bool) -> Any:
        self.asked.append(quick)
        return self.figures


def test_figures_are_measured_kept_shown_and_found_again(run: Run, place: Path) -> None:
    plugin = Solver({"step": 2e-6, "product": 1.5e-12})
    with isolated_plugins(plugin):
        assert calibrated("solver") == ({}, "no calibration")
        result = run("calibrate", "--quick", "--backend", "solver")
        assert result.code == 0, result.err
        assert "solver on Some GPU" in result.out
        assert "1.5e-12" in result.out
        assert plugin.asked == [True]
        assert calibrated("solver") == ({"step": 2e-6, "product": 1.5e-12}, "")
        stored = json.loads(place.read_text())
        assert stored["figures"]["solver"]["devices"] == ["Some GPU"]
        plugin.devices = ("Another GPU",)
        assert calibrated("solver") == ({}, "the calibration is of other devices of solver")


def test_a_backend_without_figures_or_without_a_device_has_none(run: Run, place: Path) -> None:
    with isolated_plugins(Solver(None)):
        assert run("calibrate", "--backend", "solver").code == 0
        assert calibrated("solver") == ({}, "the calibration lacks solver")
    with isolated_plugins(Solver({"step": 1.0}, devices=())):
        assert run("calibrate", "--backend", "solver").code != 0


@pytest.mark.parametrize("wrong", [{"step": 0.0}, {"step": "slow"}, {"step": float("nan")}, 3])
def test_what_is_no_positive_number_is_refused(wrong: Any) -> None:
    from alkahest._plugins import calls

    with isolated_plugins(Solver(wrong)), pytest.raises(PluginError) as caught:
        calls.calibrate("solver", quick=True)
    assert caught.value.code == "E-PLUGIN-003"


@pytest.mark.parametrize("value", [-1.0, 0.0, "x", None])
def test_a_file_with_other_figures_counts_as_unreadable(run: Run, place: Path, value: Any) -> None:
    with isolated_plugins(Solver({"step": 1.0})):
        run("calibrate", "--backend", "solver")
        data = json.loads(place.read_text())
        data["figures"]["solver"]["values"]["step"] = value
        place.write_text(json.dumps(data))
        assert current().calibration is None
        assert "cannot be read" in calibrated("solver")[1]
