"""The backend by its entry point where it is installed, else as it is in the tree."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from alkahest.testing import isolated_plugins

INSTALLED = os.environ.get("ALKAHEST_INSTALLED") == "1"
if not INSTALLED:
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))


@pytest.fixture(scope="module", autouse=True)
def jax_backend() -> Iterator[None]:
    """What the tests of this folder run with."""
    if INSTALLED:
        (point,) = entry_points(group="alkahest.backends", name="jax")
        assert point.dist is not None
        assert point.dist.name == "alkahest-jax"
        yield
        return
    import alkahest_jax.plugin

    with isolated_plugins(("jax", alkahest_jax.plugin)):
        yield
