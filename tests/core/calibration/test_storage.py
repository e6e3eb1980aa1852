"""Where calibrations are kept, and when they no longer count."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from refusals import refused

from alkahest.calibration import Calibration, Stored, current, path, storage, store

Keep = Callable[..., Calibration]


def test_what_is_stored_is_read_again(keep: Keep) -> None:
    calibration = keep(plain=1e-9, gpu=1e-12)
    assert current() == Stored(calibration)


def test_without_a_file_there_is_no_calibration(place: Path) -> None:
    assert current() == Stored(None, "no calibration")


def test_a_new_calibration_replaces_the_old_one_at_once(keep: Keep, place: Path) -> None:
    keep(plain=1e-9)
    newer = keep(plain=2e-9, gpu=1e-12)
    assert current().calibration == newer
    assert os.listdir(place.parent) == [place.name]


def test_the_file_is_in_the_cache_folder_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(storage.VARIABLE, raising=False)
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path))
    found = path()
    assert found is not None
    assert found.parent == tmp_path
    assert found.name.startswith("calibration-")
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", "off")
    assert path() is None


def test_off_means_that_nothing_is_read_or_written(
    keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibration = keep(plain=1e-9)
    monkeypatch.setenv(storage.VARIABLE, "off")
    assert current() == Stored(None, "calibration is switched off")
    with refused("E-IO-002", "switched off"):
        store(calibration)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_file(
    keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibration = keep(plain=1e-9)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(storage.VARIABLE, str(tmp_path / "file" / "calibration.json"))
    with refused("E-IO-002", "calibration.json"):
        store(calibration)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data | {"version": 99},
        lambda data: data | {"backends": []},
        lambda data: data | {"machine": None},
        lambda data: {},
        lambda data: [],
        lambda data: _with_call(data, -1.0),
        lambda data: _with_call(data, float("nan")),
        lambda data: _with_call(data, "fast"),
    ],
    ids=["version", "backends", "machine", "empty", "list", "negative", "nan", "text"],
)
def test_a_file_that_is_no_calibration_is_ignored(
    keep: Keep, place: Path, change: Callable[[Any], Any]
) -> None:
    keep(plain=1e-9)
    data = json.loads(place.read_text())
    place.write_text(json.dumps(change(data)))
    calibration, reason = current()
    assert calibration is None
    assert reason == "the calibration file cannot be read; run `alkahest calibrate`"


def _with_call(data: Any, value: Any) -> Any:
    data["backends"]["plain"]["models"]["float64"]["call"] = value
    return data


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000], ids=["empty", "cut", "deep"])
def test_a_damaged_file_is_ignored(place: Path, text: str) -> None:
    place.write_text(text)
    assert current().calibration is None
    assert "cannot be read" in current().reason


def test_another_machine_is_named(keep: Keep) -> None:
    calibration = keep(plain=1e-9)
    other = {**calibration.machine, "processor": "Abacus 3000"}
    store(attrs.evolve(calibration, machine=other))
    found, reason = current()
    assert found is None
    assert reason.startswith("the calibration is of another machine: processor was Abacus 3000, is")


def test_another_version_of_alkahest_counts_as_another_machine(keep: Keep) -> None:
    calibration = keep(plain=1e-9)
    store(attrs.evolve(calibration, machine={**calibration.machine, "alkahest": "0.0.1"}))
    assert "alkahest was 0.0.1, is " in current().reason


def test_this_machine_has_a_name_and_cores() -> None:
    facts = storage.machine()
    assert set(facts) == {"system", "machine", "processor", "cores", "alkahest"}
    assert all(facts.values())
