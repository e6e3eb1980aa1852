"""The example plugins are what a third party would ship: own project, own module, own tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The one that needs JAX is installed by the environment that tests it.
EXAMPLES = sorted(
    path.parent
    for path in ROOT.glob("examples/*/pyproject.toml")
    if path.parent.name != "alkahest-jax"
)


@pytest.mark.parametrize("folder", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_an_example_plugin_installs_beside_the_wheel_of_core_and_evaluates(
    folder: Path, wheel: Callable[[str], Path], new_environment: Callable[[], Any]
) -> None:
    environment = new_environment()
    environment.pip("install", "--quiet", wheel("alkahest"), folder)
    code = """
import alkahest
facts = alkahest.capabilities()
(x,) = alkahest.symbols("x")
fn = alkahest.compile_expr(x * x + alkahest.sin(x), [x])
answer = {
    "plugins": [(p["distribution"], p["status"]) for p in facts["plugins"]],
    "dotted": [bit for bit, on in facts["features"].items() if on],
    "backend": fn.backend,
    "values": fn.call_batch([[0.0, 2.0]]),
}
"""
    answer = environment.evaluate(code)
    assert answer["plugins"] == [[folder.name, "active"]]
    (bit,) = answer["dotted"]
    assert "." in bit
    assert bit.startswith(answer["backend"])
    assert answer["values"] == pytest.approx([0.0, 4.909297426825682], rel=1e-15)
