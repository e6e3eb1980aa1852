"""Fixtures of several modules of this tier: a backend, calibrations, and columns on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import fakearrays
import pytest
from arithmetic import Arithmetic
from devicebackend import Adder

from alkahest import calibration
from alkahest.calibration import BackendModel, Calibration, Cost, Model, storage
from alkahest.testing.plugins import isolated_plugins


@pytest.fixture
def arithmetic() -> Iterator[Arithmetic]:
    """The only plugin, whose backend adds and multiplies."""
    plugin = Arithmetic()
    with isolated_plugins(plugin):
        yield plugin


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the calibration of this test is kept; nothing is there yet."""
    path = tmp_path / "calibration.json"
    monkeypatch.setenv(calibration.VARIABLE, str(path))
    return path


@pytest.fixture
def keep(place: Path) -> Callable[..., Calibration]:
    """Stores a calibration: ``keep(plain=5e-9)`` for 5 ns per point of an addition on ``plain``.

    A call costs 1 µs on every backend, columns 1 ns per byte. ``plugin`` says what brings the
    backends, ``devices`` what their devices are called.
    """

    def store(
        plugin: str = "registered by the application",
        devices: Mapping[str, tuple[str, ...]] | None = None,
        **points: float,
    ) -> Calibration:
        names = devices or {}
        kept = Calibration(
            machine=storage.machine(),
            measured="2026-01-01T00:00:00+00:00",
            backends={
                backend: BackendModel(
                    plugin=plugin,
                    devices=names.get(backend, (f"{backend} 0",)),
                    placement="cuda" if backend == "gpu" else "host",
                    models={"float64": _model(point)},
                )
                for backend, point in points.items()
            },
        )
        calibration.store(kept)
        return kept

    return store


def _model(point: float) -> Model:
    moved = Cost(0.0, 1e-9)
    return Model(call=1e-6, read=moved, write=moved, ops={"add": Cost(0.0, point)})


@pytest.fixture
def plugin() -> Iterator[Adder]:
    """The only plugin, with a backend ``adder`` that takes columns on a device."""
    plugin = Adder()
    with isolated_plugins(plugin):
        yield plugin


@pytest.fixture
def cupy() -> Iterator[ModuleType]:
    """A stand-in for CuPy, imported."""
    module = fakearrays.cupy()
    with fakearrays.installed(module):
        yield module


@pytest.fixture
def torch() -> Iterator[ModuleType]:
    """A stand-in for PyTorch, imported."""
    module = fakearrays.torch()
    with fakearrays.installed(module):
        yield module
