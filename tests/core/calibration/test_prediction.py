"""What a call is predicted to cost, and why nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import pytest

from alkahest.calibration import Calibration, devices_changed, objection, predict
from alkahest.errors import PluginError
from alkahest.expr import ExprPool
from alkahest.plugin import Estimate, hookimpl
from alkahest.program import Program, lower
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Keep = Callable[..., Calibration]

pool = ExprPool()
x = pool.symbol("x")
SUM = lower([x + 1], [x])


@attrs.frozen(kw_only=True, eq=False)
class Oracle(NullPlugin):
    """A backend that knows what it costs."""

    answer: object = None

    @hookimpl
    def alkahest_estimate(
        self, backend: str, program: Program, n: int, placement: str
    ) -> Estimate | None:
        return self.answer(n) if callable(self.answer) else self.answer


@pytest.fixture
def two() -> Iterator[None]:
    with isolated_plugins(
        NullPlugin(backend="plain"), NullPlugin(backend="gpu", placement="cuda", priority=100)
    ):
        yield


@pytest.mark.usefixtures("two")
class TestModels:
    def test_the_stored_model_predicts(self, keep: Keep) -> None:
        keep(plain=5e-9)
        estimate = predict("plain", SUM, 1000)
        assert estimate is not None
        assert estimate.seconds == pytest.approx(1e-6 + 1000 * (8e-9 + 8e-9 + 5e-9))
        assert estimate.reason == "calibration"

    def test_columns_on_the_device_are_not_moved(self, keep: Keep) -> None:
        keep(plain=5e-9, gpu=5e-9)
        estimate = predict("gpu", SUM, 1000, "cuda")
        assert estimate is not None
        assert estimate.seconds == pytest.approx(1e-6 + 1000 * 5e-9)
        assert predict("plain", SUM, 1000, "cuda") is None

    def test_without_a_calibration_nothing_is_predicted(self, place: object) -> None:
        assert predict("plain", SUM, 1000) is None
        assert objection("plain", "float64") == "no calibration"

    def test_what_was_not_measured_is_not_predicted(self, keep: Keep) -> None:
        keep(plain=5e-9)
        assert predict("gpu", SUM, 1000) is None
        assert objection("gpu", "float64") == "the calibration lacks gpu"
        assert predict("plain", lower([x + 1], [x], "float32"), 1000) is None
        assert objection("plain", "float32") == "the calibration lacks float32 on plain"
        assert objection("plain", "float64") == ""

    def test_another_version_of_the_plugin_is_not_predicted(self, keep: Keep) -> None:
        keep(plugin="alkahest-cpu 0.0.1", plain=5e-9)
        assert predict("plain", SUM, 1000) is None
        assert objection("plain", "float64") == (
            "the calibration of plain is of alkahest-cpu 0.0.1, here is registered by the application"
        )

    def test_other_devices_are_noticed(self, keep: Keep) -> None:
        keep(plain=5e-9, gpu=1e-12, devices={"gpu": ("Abacus 3000",)})
        assert devices_changed("plain") == ""
        assert devices_changed("gpu") == "the calibration is of other devices of gpu: Abacus 3000"


def test_the_backends_own_estimate_goes_first(keep: Keep) -> None:
    keep(plain=5e-9)
    own = Estimate(seconds=3.0, reason="I know")
    with isolated_plugins(Oracle(backend="plain", answer=own)):
        assert predict("plain", SUM, 1000) is own
    with isolated_plugins(Oracle(backend="plain", answer=None)):
        estimate = predict("plain", SUM, 1000)
        assert estimate is not None
        assert estimate.reason == "calibration"


def test_an_estimate_that_is_none_is_the_plugins_fault(place: object) -> None:
    with (
        isolated_plugins(Oracle(backend="plain", answer=3.0)),
        pytest.raises(PluginError, match=r"alkahest_estimate returned 3\.0") as caught,
    ):
        predict("plain", SUM, 1000)
    assert caught.value.code == "E-PLUGIN-003"
