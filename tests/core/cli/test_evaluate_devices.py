"""``alkahest eval --device``; the devices are one processor that stands for several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from arithmetic import Arithmetic

from alkahest.testing.plugins import isolated_plugins

Run = Callable[..., Any]


@pytest.fixture
def two() -> Iterator[Arithmetic]:
    """The only plugin, with a backend of two devices, which notes its batches."""
    plugin = Arithmetic()
    with isolated_plugins(plugin):
        yield plugin


def test_all_devices_share_the_rows(run: Run, two: Arithmetic, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    result = run("eval", "x + x", "--grid", "x=0:4:5", "--device", "all", "-o", out, "--json")
    assert result.code == 0, result.err
    assert out.read_text().split() == ["f0", "0.0", "2.0", "4.0", "6.0", "8.0"]
    report = json.loads(result.out)
    assert (report["device"], report["rows"]) == ("all", 5)
    assert sorted(batch.n for batch in two.batches if batch.n) == [2, 3]


def test_every_chunk_is_shared(run: Run, two: Arithmetic) -> None:
    result = run("eval", "x - 1", "--grid", "x=1:5:5", "--device", "all", "--chunk", 4)
    assert result.out.split() == ["f0", "0.0", "1.0", "2.0", "3.0", "4.0"]
    assert sorted(batch.n for batch in two.batches if batch.n) == [1, 2, 2]


def test_one_device_has_all_rows(run: Run, two: Arithmetic) -> None:
    assert run("eval", "x - 1", "--grid", "x=1:5:5", "--device", 1).code == 0
    assert [batch.n for batch in two.batches if batch.n] == [5]


def test_a_device_that_there_is_not_is_refused_before_rows_are_read(
    run: Run, two: Arithmetic
) -> None:
    result = run("eval", "x", "--grid", "x=0:1:2", "--device", 2)
    assert result.code == 2
    assert "no device 2" in result.err
    assert not any(batch.n for batch in two.batches)


@pytest.mark.parametrize("text", ["ALL", "every", "0,1"])
def test_what_is_no_device_is_a_mistake_in_the_command(
    run: Run, two: Arithmetic, text: str
) -> None:
    result = run("eval", "x", "--grid", "x=0:1:2", "--device", text)
    assert result.code == 2
    assert f"{text!r} is neither a whole number from 0 on nor 'all'" in result.err
