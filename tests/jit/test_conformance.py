"""Compiled code passes the kit that every backend passes, in every accuracy mode."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from alkahest._plugins import calls
from alkahest.ops import Op
from alkahest.plugin import Evaluator
from alkahest.program import Program
from alkahest.testing import BackendConformance, oracle, special


class CompiledConformance(BackendConformance):
    """The kit with a kernel from the first call on.

    Attributes:
        accuracy: the mode.
    """

    backend = "cpu-jit"
    plugin_module = "alkahest.backends.cpu.plugin"
    accuracy: ClassVar[str]

    def evaluator(self, program: Program) -> Evaluator:
        options: dict[str, Any] = {"tier": "compiled", "accuracy": self.accuracy}
        artifact = calls.codegen(self.backend, program, None, options)
        return calls.make_evaluator(self.backend, artifact, None)


class TestStrict(CompiledConformance):
    accuracy = "strict"


class TestDefault(CompiledConformance):
    accuracy = "default"


class TestFast(CompiledConformance):
    """Integer powers are plain products here: an error for each factor, and nothing is promised
    where a part of the product leaves the range though the power does not."""

    accuracy = "fast"

    def _check(
        self, row: Op, dtype: str, point: oracle.Point, parameter: int | None, value: Any
    ) -> None:
        if row.name != "powi":
            super()._check(row, dtype, point, parameter, value)
            return
        assert parameter is not None
        want = oracle.exact(row.name, list(point), parameter)
        assert oracle.error_in_ulps(value, want, dtype) <= abs(parameter) + 4

    @pytest.mark.parametrize("case", special.CASES, ids=str)
    def test_special_values_are_those_of_the_standard(self, case: special.Case) -> None:
        if case.op != "powi" or (case.parameter or 0) > 0:
            super().test_special_values_are_those_of_the_standard(case)
