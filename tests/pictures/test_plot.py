"""Pictures of expressions: what is on them, in the numbers and in the pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from alkahest.cli import main
from alkahest.cli.picture import COLOURS, Curve, Picture, visible_range

X = np.linspace(-5, 5, 1001)


def picture(kind: str, *values: Any, **options: Any) -> Any:
    """The figure of these values over one or two axes of fitting lengths."""
    names = ["x", "y"][: values[0].ndim]
    axes = [(n, np.linspace(-1, 1, k)) for n, k in zip(names, values[0].shape, strict=True)]
    curves = [Curve(f"f{k}", v) for k, v in enumerate(values)]
    return Picture(kind=kind, axes=axes, curves=curves, **options)._figure()


def test_lines_hold_the_values_and_the_legend_the_labels() -> None:
    figure = picture("line", np.sin(X), np.cos(X))
    (axes,) = figure.axes
    first, second = axes.lines
    np.testing.assert_array_equal(first.get_ydata(), np.sin(X))
    np.testing.assert_array_equal(second.get_ydata(), np.cos(X))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["f0", "f1"]
    assert axes.get_xlabel() == "x"


def test_one_line_has_its_label_at_the_axis() -> None:
    (axes,) = picture("line", X).axes
    assert (axes.get_ylabel(), axes.get_legend()) == ("f0", None)


def test_a_pole_neither_flattens_the_rest_nor_is_crossed() -> None:
    with np.errstate(divide="ignore"):
        values = np.tan(X)
    low, high = visible_range(values)
    assert -30 < low < -2 < 2 < high < 30
    (axes,) = picture("line", values).axes
    shown = axes.lines[0].get_ydata()
    assert np.isnan(shown).sum() == 4  # tan has four poles here
    assert axes.get_ylim()[1] < 40


def test_everything_is_shown_of_values_without_poles() -> None:
    for values in (np.sin(X), np.exp(X), X**3, np.abs(X)):
        assert visible_range(values) == (values.min(), values.max())
    assert visible_range(np.array([np.nan, np.inf, 2.0, 3.0])) == (2.0, 3.0)
    assert visible_range(np.array([np.nan])) == (0.0, 0.0)


def test_a_logarithmic_scale_leaves_out_what_has_no_logarithm() -> None:
    (axes,) = picture("line", X, log=True).axes
    assert axes.get_yscale() == "log"
    assert np.nanmin(axes.lines[0].get_ydata()) > 0


def test_the_first_axis_of_a_map_runs_to_the_right_and_the_second_upwards() -> None:
    values = np.arange(12.0).reshape(3, 4)
    figure = picture("heat", values)
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), values.T)
    assert axes.images[0].origin == "lower"
    assert axes.images[0].get_extent() == pytest.approx([-1.5, 1.5, -4 / 3, 4 / 3])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("x", "y", "f0")


@pytest.mark.parametrize("kind", ["heat", "contour"])
def test_colours_meet_at_zero_where_values_have_both_signs(kind: str) -> None:
    both = picture(kind, np.outer(X[::50], X[::50]) - 3).axes[0]
    one = picture(kind, np.exp(np.outer(X[::50], X[::50]) / 10)).axes[0]
    shown, other = ((a.images or a.collections)[0] for a in (both, one))
    assert shown.norm.vmin == -shown.norm.vmax
    assert (shown.get_cmap().name, other.get_cmap().name) == ("RdBu_r", "viridis")


@pytest.mark.parametrize("kind", ["heat", "contour"])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values",
    [np.zeros((5, 4)), np.full((5, 4), np.nan), np.ones((2, 2)), np.outer(X[:9], X[:5]) ** 9],
    ids=["zero", "nan", "one", "steep"],
)
def test_odd_maps_can_be_drawn(kind: str, log: bool, values: Any, tmp_path: Path) -> None:
    axes = [("x", np.linspace(0, 1, values.shape[0])), ("y", np.linspace(0, 1, values.shape[1]))]
    target = tmp_path / "out.png"
    Picture(kind=kind, axes=axes, curves=[Curve("f", values)], log=log).save(str(target), ".png")
    assert target.stat().st_size > 1000


def test_the_command_draws_a_line_in_its_colour(drawn: Callable[..., Any]) -> None:
    pixels = drawn("sin(x)", "--grid", "x=0:2*pi:200", "--size", "4,3", "--dpi", "100")
    assert pixels.shape[:2] == (300, 400)
    near = np.abs(pixels[..., :3] - to_rgb(COLOURS[0])).max(axis=-1) < 0.05
    rows, columns = np.nonzero(near)
    assert len(rows) > 300
    # A sine: the left half of the line is above the right half.
    middle = (columns.min() + columns.max()) / 2
    assert rows[columns < middle].mean() < 150 < rows[columns > middle].mean()


def test_the_command_draws_a_map(drawn: Callable[..., Any]) -> None:
    pixels = drawn("x", "--grid", "x=-1:1:50", "--grid", "y=-1:1:40", "--dpi", "50")
    centre = pixels[pixels.shape[0] // 2]
    blue, red = centre[:, 2] - centre[:, 0], centre[:, 0] - centre[:, 2]
    assert np.argmax(blue) < np.argmax(red)


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_command_writes_the_same_file(suffix: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        arguments = ["plot", "f=x", "2*x", "--grid", "x=0:1:5", "-o", f"{tmp_path}/{name}.{suffix}"]
        assert main(arguments) == 0
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
    assert first == second


def test_a_map_may_be_one_point_wide(drawn: Callable[..., Any]) -> None:
    assert drawn("x", "--grid", "x=0:1:1", "--grid", "y=0:1:1").size


def test_dollars_in_a_name_are_dollars(drawn: Callable[..., Any]) -> None:
    drawn("`cost $`=x", "`gain $`=x*2", "--grid", "x=0:1:5")
