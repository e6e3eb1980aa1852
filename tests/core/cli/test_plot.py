"""``alkahest plot``: what is refused before anything is drawn. ``tests/pictures`` looks at pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture
def matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of that name which does nothing: nothing may be drawn."""
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))


def test_without_matplotlib_the_error_says_what_to_install(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("plot", "sin(x)", "--grid", "x=0:1:5", "-o", tmp_path / "out.png")
    assert done.code == 1
    assert "[E-IO-006] pictures need the package matplotlib" in done.err
    assert "alkahest[plot]" in done.err


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["x", "--grid", "x=0:1:5", "-o", "out.gif"], 1, "[E-IO-003] 'out.gif'"),
        (["x", "--grid", "x=0:1:5", "-o", "-"], 1, "[E-IO-003]"),
        (["x", "--grid", "x=0:1:5", "-o", "nowhere/out.png"], 1, "[E-IO-002]"),
        (["x", "--grid", "x=0:1", "-o", "out.png"], 2, "[E-INPUT-011] --grid x=0:1:"),
        (["x + z", "--grid", "x=0:1:5", "-o", "out.png"], 1, "[E-IO-004] the grid has no column"),
        (["x + (", "--grid", "x=0:1:5", "-o", "out.png"], 2, "[E-PARSE-001]"),
        (["x", "--grid", "x=0:1:5", "--kind", "heat", "-o", "out.png"], 2, "needs two axes"),
        (
            ["x", "--grid", "x=0:1:5", "--grid", "y=0:1:5", "--kind", "line", "-o", "out.png"],
            2,
            "needs one axis",
        ),
        (["x"] + 3 * ["--grid", "x=0:1:5"] + ["-o", "out.png"], 2, "needs two axes"),
        (
            ["x", "--grid", "x=0:1:1", "--grid", "y=0:1:5", "--kind", "contour", "-o", "out.png"],
            2,
            "two points or more",
        ),
        (["x", "--grid", "x=0:1:5", "--size", "5", "-o", "out.png"], 2, "WIDTH,HEIGHT"),
        (["x", "--grid", "x=0:1:5", "--dpi", "0", "-o", "out.png"], 2, "dpi"),
        (
            ["x*I", "--grid", "x=0:1:5", "--dtype", "complex128", "-o", "out.png"],
            2,
            "'x*I' is complex",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_written(
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    shown: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("plot", *arguments)
    assert shown in done.err
    assert done.code == code
    assert not list(tmp_path.iterdir())
