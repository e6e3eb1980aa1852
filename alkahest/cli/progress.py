"""A progress bar for jobs that take a while and somebody is watching."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

PATIENCE = 2.0
"""Seconds before the bar appears."""


class Progress:
    """Shows how far a source has been read, on a terminal with tqdm installed; silent otherwise."""

    def __init__(self, total: int, unit: str) -> None:
        self._bar: Any = None
        if not sys.stderr.isatty():
            return
        try:
            tqdm = import_module("tqdm").tqdm
        except ImportError:
            return
        scale = {"unit_divisor": 1024} if unit == "B" else {}
        self._bar = tqdm(
            total=total or None,
            unit=unit if unit == "B" else f" {unit}",
            unit_scale=True,
            delay=PATIENCE,
            leave=False,
            file=sys.stderr,
            **scale,
        )

    def reached(self, position: int) -> None:
        """Move the bar to an absolute position."""
        if self._bar is not None:
            self._bar.update(position - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
