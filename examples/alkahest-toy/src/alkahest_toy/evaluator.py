"""The operation table and the loop over points."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from alkahest.errors import InputError
from alkahest.plugin import Batch, Outcome
from alkahest.program import Program


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _quiet(function: Callable[..., float]) -> Callable[..., float]:
    """IEEE instead of exceptions: out of the domain is nan, too large is infinity."""

    def call(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _log(a: float) -> float:
    return -math.inf if a == 0 else math.log(a)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": operator.not_,
    "select": lambda a, b, c: b if a else c,
    "abs": abs,
    "sqrt": _quiet(math.sqrt),
    "exp": _quiet(math.exp),
    "log": _quiet(_log),
    "sin": _quiet(math.sin),
    "cos": _quiet(math.cos),
    "tan": _quiet(math.tan),
    "atan": math.atan,
}

REFUSED = {"powi": "the toy has no powers", "pow": "the toy has no powers"}
"""Reasons worth giving; operations in neither table are refused by alkahest itself."""


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse every option, since the toy has none."""
    if options:
        raise InputError("E-INPUT-011", f"toy has no option {sorted(options)[0]!r}")


class ToyEvaluator:
    """Walks the program once per point."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate point by point; see :class:`alkahest.plugin.Evaluator`."""
        import numpy as np

        program = self._program
        outputs = batch.out or tuple(
            np.empty(batch.n, dtype=dtype) for dtype in program.output_dtypes
        )
        for row in range(batch.n):
            values: list[Any] = [float(column[row]) for column in batch.columns]
            values += program.constants
            for op, args, _ in program.code:
                values.append(OPERATIONS[op](*[values[a] for a in args]))
            for output, value in zip(outputs, program.outputs, strict=True):
                output[row] = values[value]
        return Outcome(outputs=outputs, report={"interpreter": "python"})
