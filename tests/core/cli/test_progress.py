"""The progress bar."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from alkahest.cli.progress import PATIENCE, Progress


class Bar:
    """Stands in for tqdm and remembers what was asked of it."""

    made: Bar | None = None

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.n = 0
        self.closed = False
        Bar.made = self

    def update(self, step: int) -> None:
        self.n += step

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a terminal and the stand-in for tqdm."""
    Bar.made = None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    module = types.ModuleType("tqdm")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", module)


def test_a_terminal_gets_a_bar_that_waits_before_it_appears() -> None:
    progress = Progress(1000, "B")
    progress.reached(300)
    progress.reached(1000)
    progress.close()
    assert Bar.made is not None
    assert (Bar.made.n, Bar.made.closed) == (1000, True)
    assert Bar.made.options["total"] == 1000
    assert Bar.made.options["delay"] == PATIENCE == 2.0
    assert Bar.made.options["file"] is sys.stderr


def test_what_is_no_terminal_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    progress = Progress(10, "rows")
    progress.reached(10)
    progress.close()
    assert Bar.made is None


def test_without_tqdm_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    progress = Progress(10, "rows")
    progress.reached(10)
    progress.close()
    assert Bar.made is None


def test_the_real_tqdm_takes_these_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for unit in ("B", "rows"):
        progress = Progress(10, unit)
        progress.reached(10)
        progress.close()
    assert capsys.readouterr().err == ""
