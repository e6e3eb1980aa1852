"""Grids."""

from __future__ import annotations

import numpy as np
import pytest

from alkahest.cli.grid import Axis, GridSource, parse_axis
from alkahest.errors import InputError


def points(*axes: str, rows: int = 4) -> dict[str, list[float]]:
    source = GridSource([parse_axis(text) for text in axes])
    gathered: dict[str, list[float]] = {name: [] for name in source.columns}
    for chunk in source.chunks(source.columns, (), rows):
        assert chunk.rows <= rows
        for name, values in chunk.numbers.items():
            gathered[name] += values.tolist()
    return gathered


def test_both_ends_are_included() -> None:
    assert points("x=0:1:5") == {"x": [0.0, 0.25, 0.5, 0.75, 1.0]}


def test_an_axis_may_fall_or_be_a_single_point() -> None:
    assert points("x=1:-1:3") == {"x": [1.0, 0.0, -1.0]}
    assert points("x=2:5:1") == {"x": [2.0]}


def test_the_last_axis_varies_fastest_across_chunks() -> None:
    grid = points("x=0:1:2", "y=0:2:3", "z=5:6:2", rows=5)
    x, y, z = np.meshgrid([0.0, 1.0], [0.0, 1.0, 2.0], [5.0, 6.0], indexing="ij")
    assert grid == {"x": x.ravel().tolist(), "y": y.ravel().tolist(), "z": z.ravel().tolist()}


@pytest.mark.parametrize(
    ("start", "stop", "count"), [(0, 1, 7), (-0.1, 0.3, 1001), (1e-3, 1e9, 33)]
)
def test_values_are_those_of_linspace_to_the_bit(start: float, stop: float, count: int) -> None:
    axis = Axis(name="x", start=start, stop=stop, count=count)
    values = axis.values(np.arange(count))
    np.testing.assert_array_equal(values, np.linspace(start, stop, count))


def test_bounds_may_be_constant_expressions() -> None:
    assert points("t=-pi/2:2**3:2") == {"t": [-np.pi / 2, 8.0]}


def test_a_grid_larger_than_memory_is_described_without_being_made() -> None:
    source = GridSource([parse_axis("x=0:1:1000000000"), parse_axis("y=0:1:1000000000")])
    assert source.total == 10**18
    chunk = next(source.chunks(["x", "y"], (), 2))
    assert chunk.numbers["y"].tolist() == [0.0, 1 / 999999999]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", "not of the form"),
        ("=0:1:2", "not of the form"),
        ("x=0:1", "not of the form"),
        ("x=0:1:2:3", "not of the form"),
        ("x=0:1:0", "the count '0'"),
        ("x=0:1:-3", "the count '-3'"),
        ("x=0:1:2.5", "the count '2.5'"),
        ("x=0:1:1_000", "the count '1_000'"),
        ("x=a:1:2", "'a' is not a number"),
        ("x=:1:2", "'' is not a number"),
        ("x=0:oo:2", "not a finite real number"),
        ("x=-1e308:1e308:3", "longer than the largest float64"),
    ],
)
def test_a_malformed_axis_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_axis(text)
    assert caught.value.code == "E-INPUT-011"
    assert caught.value.message.startswith(f"--grid {text}: ")
    assert reason in caught.value.message


def test_an_axis_named_twice_and_too_many_points_are_refused() -> None:
    with pytest.raises(InputError, match="the axis 'x' more than once"):
        GridSource([parse_axis("x=0:1:2"), parse_axis("x=0:1:3")])
    big = [Axis(name=name, start=0.0, stop=1.0, count=2**32) for name in "xy"]
    with pytest.raises(InputError, match="asks for 18446744073709551616 points"):
        GridSource(big)
