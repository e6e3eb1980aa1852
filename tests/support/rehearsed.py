"""What the process of a rehearsal calls in tests: importable there by its name."""

from __future__ import annotations

import os
import time


def work(kind: str = "") -> None:
    """Take long, fail, die, or do nothing."""
    if kind == "sleep":
        time.sleep(60)
    if kind == "fail":
        raise ValueError("no such row")
    if kind == "die":
        os._exit(3)
