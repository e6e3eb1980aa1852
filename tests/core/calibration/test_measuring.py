"""Measuring, with a backend whose times are known because it sleeps through none of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alkahest.calibration import measuring
from alkahest.calibration.measuring import measure, merged
from alkahest.calibration.storage import machine
from alkahest.selection import find
from alkahest.testing.plugins import NullPlugin, isolated_plugins


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two backends that give zeros, and a clock that moves on by a microsecond when asked."""
    monkeypatch.setattr(measuring, "LARGE", {"host": 128, "cuda": 256})
    ticks = iter(range(10**9))
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(ticks) * 1e-6)
    with isolated_plugins(
        NullPlugin(backend="plain", dtypes=("float64", "float32"), devices=2),
        NullPlugin(backend="gpu", placement="cuda", dtypes=("float64",)),
    ):
        yield


@pytest.mark.usefixtures("two")
class TestMeasuring:
    def test_every_backend_gets_a_model_for_every_dtype_that_it_has(self) -> None:
        calibration = measure([*find("plain"), *find("gpu")], quick=True)
        assert calibration.machine == machine()
        assert calibration.backends.keys() == {"plain", "gpu"}
        plain, gpu = calibration.backends["plain"], calibration.backends["gpu"]
        assert set(plain.models) == {"float64", "float32"}
        assert set(gpu.models) == {"float64"}
        assert (plain.devices, plain.placement) == (("plain 0", "plain 1"), "host")
        assert (gpu.devices, gpu.placement) == (("gpu 0",), "cuda")
        assert {"add", "exp", "gamma", "select"} <= plain.models["float32"].ops.keys()

    def test_a_tick_per_call_is_found_to_be_the_cost_of_a_call(self) -> None:
        calibration = measure(find("plain"), quick=True)
        model = calibration.backends["plain"].models["float64"]
        # Every call took one tick, repeated 64 times between two looks at the clock.
        assert model.call == pytest.approx(1e-6 / 64, rel=1e-3)
        assert model.read.unit == pytest.approx(0, abs=1e-15)

    def test_progress_ends_at_the_announced_total(self) -> None:
        seen: list[tuple[int, int]] = []
        measure(find("gpu"), quick=True, progress=lambda done, total: seen.append((done, total)))
        assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
        assert {total for _, total in seen} == {len(seen)}

    def test_what_was_known_of_other_backends_is_kept(self) -> None:
        first, second = measure(find("plain"), quick=True), measure(find("gpu"), quick=True)
        both = merged(first, second)
        assert both.backends == {**first.backends, **second.backends}
        assert both.measured == second.measured
        assert merged(None, second) is second
