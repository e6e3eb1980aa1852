"""Processes of executors and clusters, in which our plugins are there as they are in the tests."""

from __future__ import annotations

import importlib
import os
import time
from importlib.metadata import entry_points
from typing import Any


def prepare() -> None:
    """Register the CPU backends where nothing is installed and the tree is tested."""
    import alkahest

    module = "alkahest.backends.cpu.plugin"
    installed = {point.value for point in entry_points(group="alkahest.backends")}
    if os.environ.get("ALKAHEST_INSTALLED") != "1" and module not in installed:
        alkahest.register(importlib.import_module(module))


def arrivals() -> tuple[int, int]:
    """This process, and how many functions have been compiled in it on arrival."""
    from alkahest import arrivals

    return os.getpid(), len(arrivals._kept)


def delayed(block: Any) -> Any:
    """The block, after as long as it takes to kill somebody."""
    time.sleep(0.05)
    return block
