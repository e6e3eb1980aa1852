"""A backend of a few lines and a way to run the command line inside the test's process."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from alkahest.cli import main
from alkahest.ops import DTYPES
from alkahest.plugin import Artifact, Batch, Evaluator, Outcome, Support, hookimpl
from alkahest.program import Program
from alkahest.testing.plugins import NullPlugin, isolated_plugins

LOWERINGS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "lt": np.less,
    "select": np.where,
    "complex": lambda re, im: re + 1j * im,
}


@attrs.frozen
class ArithmeticEvaluator:
    """Evaluates a program one operation after the other."""

    program: Program

    def evaluate(self, batch: Batch) -> Outcome:
        values: list[Any] = [*batch.columns, *self.program.constants]
        for op, args, parameter in self.program.code:
            operands = [values[a] for a in args]
            values.append(operands[0] ** parameter if op == "powi" else LOWERINGS[op](*operands))
        outputs: list[NDArray[Any]] = []
        for place, dtype in zip(self.program.outputs, self.program.output_dtypes, strict=True):
            outputs.append(np.broadcast_to(values[place], (batch.n,)).astype(dtype))
        return Outcome(outputs=tuple(outputs))


@attrs.frozen(kw_only=True)
class ArithmeticPlugin(NullPlugin):
    """A backend that adds, multiplies and little else."""

    backend: str = "arithmetic"

    def _support(self) -> Support:
        return Support(lowers=dict.fromkeys([*LOWERINGS, "powi"], frozenset(DTYPES)))

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> Evaluator:
        return ArithmeticEvaluator(artifact.program)


@attrs.frozen
class Run:
    """What one command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """Run ``alkahest ARGUMENTS...`` with whatever plugins the test has."""

    def call(*arguments: object) -> Run:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Run(code, *capsys.readouterr())

    return call


@pytest.fixture
def backend() -> Iterator[str]:
    """Have one backend that knows a handful of operations, and no other plugin."""
    with isolated_plugins(ArithmeticPlugin()):
        yield "arithmetic"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file of that name and text, as it is, and return its path."""

    def call(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return call
