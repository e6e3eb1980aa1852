"""What backends measure about their own settings: asked for, kept, given back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from alkahest._plugins import calls
from alkahest.calibration import Calibration, current, store, tuned
from alkahest.calibration.tuning import with_tuning
from alkahest.errors import CudaError, PluginError
from alkahest.plugin import Tuned, hookimpl
from alkahest.testing.plugins import NullPlugin, isolated_plugins

Keep = Callable[..., Calibration]
Run = Callable[..., Any]

FOUND = (
    Tuned(device="Abacus", case="sums", settings={"beads": 7}, gain=1.254),
    Tuned(device="Abacus", case="products"),
)


@attrs.frozen(kw_only=True)
class Tuner(NullPlugin):
    """A backend ``gpu`` that measures its settings."""

    backend: str = "gpu"
    placement: str = "cuda"
    answer: Any = FOUND

    @hookimpl
    def alkahest_tune(self, backend: str, quick: bool) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_a_backend_is_asked_and_finds_its_answer_again(keep: Keep) -> None:
    with isolated_plugins(Tuner(), NullPlugin(backend="plain")):
        assert tuned("gpu") == ()
        calibration = with_tuning(keep(plain=1e-9, gpu=1e-12), failed=pytest.fail)
        store(calibration)
        assert current().calibration == calibration
        assert tuned("gpu") == FOUND
        assert tuned("plain") == tuned("abacus") == ()


def test_what_another_version_measured_does_not_count(keep: Keep) -> None:
    with isolated_plugins(Tuner()):
        store(with_tuning(keep(gpu=1e-12, plugin="registered by the application"), failed=print))
        assert tuned("gpu") == FOUND
        stored = current().calibration
        assert stored is not None
        older = attrs.evolve(stored.backends["gpu"], plugin="abacus 0.1")
        store(attrs.evolve(stored, backends={"gpu": older}))
        assert tuned("gpu") == ()


def test_a_file_of_before_there_was_tuning_is_read(keep: Keep, place: Path) -> None:
    calibration = keep(gpu=1e-12)
    data = json.loads(place.read_text())
    del data["backends"]["gpu"]["tuned"]
    place.write_text(json.dumps(data))
    assert current().calibration == calibration


@pytest.mark.parametrize(
    "change",
    [{"gain": "nan"}, {"settings": {"beads": "many"}}, {"settings": 5}, {"device": None}],
    ids=str,
)
def test_tuning_that_is_none_makes_the_file_unreadable(
    keep: Keep, place: Path, change: dict[str, Any]
) -> None:
    with isolated_plugins(Tuner()):
        store(with_tuning(keep(gpu=1e-12), failed=pytest.fail))
    data = json.loads(place.read_text())
    entry = data["backends"]["gpu"]["tuned"][0]
    entry.update(change)
    if change == {"device": None}:
        del entry["device"]
    place.write_text(json.dumps(data))
    assert "cannot be read" in current().reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (CudaError("E-CUDA-006", "the device fell off the bus"), "fell off the bus"),
        (ZeroDivisionError("division"), "ZeroDivisionError"),
        ([Tuned(device="", case="")], "alkahest_tune returned"),
        ((1, 2), "instead of a tuple of Tuned"),
    ],
    ids=["device", "bug", "list", "numbers"],
)
def test_a_backend_that_fails_goes_without(keep: Keep, answer: Any, reason: str) -> None:
    failures: list[tuple[str, str]] = []
    kept = keep(gpu=1e-12)
    with isolated_plugins(Tuner(answer=answer)):
        found = with_tuning(kept, failed=lambda name, why: failures.append((name, why)))
    assert found == kept
    ((name, why),) = failures
    assert name == "gpu"
    assert reason in why


def test_a_wrong_answer_names_the_plugin() -> None:
    with (
        isolated_plugins(("the tuner", Tuner(answer=(1,)))),
        pytest.raises(PluginError, match=r"the tuner.*alkahest_tune returned") as caught,
    ):
        calls.tune("gpu", quick=True)
    assert caught.value.code == "E-PLUGIN-003"


def test_ctrl_c_while_tuning_or_writing_leaves_the_old_calibration_and_nothing_else(
    keep: Keep, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(gpu=1e-12)
    with isolated_plugins(Tuner(answer=KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        with_tuning(kept, failed=pytest.fail)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store(attrs.evolve(kept, measured="later"))
    assert current().calibration == kept
    assert os.listdir(place.parent) == [place.name]
