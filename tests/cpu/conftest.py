"""Fixtures of the CPU tier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from alkahest.plugin import Batch
from alkahest.program import Program

Run = Callable[..., tuple[NDArray[Any], ...]]


@pytest.fixture
def run() -> Run:
    """Runs a program on the reference: ``run(program, *columns, block=None)`` gives the outputs."""
    from alkahest.backends.cpu.reference import ReferenceEvaluator

    def run_program(
        program: Program, *columns: Any, block: int | None = None
    ) -> tuple[NDArray[Any], ...]:
        arrays = tuple(np.asarray(column, dtype=program.dtype) for column in columns)
        batch = Batch(columns=arrays, n=len(arrays[0]))
        return ReferenceEvaluator(program, block=block).evaluate(batch).outputs

    return run_program
