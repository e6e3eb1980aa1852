"""Compiled code passes the kit that every backend passes, in every accuracy mode."""

from __future__ import annotations

from typing import Any, ClassVar

from alkahest.ops import Op
from alkahest.testing import (
    AccuracyConformance,
    BackendConformance,
    BatchConformance,
    oracle,
    special,
)


class Compiled:
    """A kernel from the first call on, in the mode that ``options`` name."""

    backend = "cpu-jit"
    plugin_module = "alkahest.backends.cpu.plugin"
    needs_modules = ("llvmlite",)


class TestStrict(Compiled, AccuracyConformance, BatchConformance):
    options: ClassVar[dict[str, Any]] = {"tier": "compiled", "accuracy": "strict"}


class TestDefault(Compiled, BackendConformance):
    options: ClassVar[dict[str, Any]] = {"tier": "compiled", "accuracy": "default"}


class TestFast(Compiled, AccuracyConformance, BatchConformance):
    """Integer powers are plain products here: an error for each factor, and nothing is promised
    where a part of the product leaves the range though the power does not."""

    options: ClassVar[dict[str, Any]] = {"tier": "compiled", "accuracy": "fast"}

    def _check(
        self, row: Op, dtype: str, point: oracle.Point, parameter: int | None, value: Any
    ) -> None:
        if row.name != "powi":
            super()._check(row, dtype, point, parameter, value)
            return
        assert parameter is not None
        want = oracle.exact(row.name, list(point), parameter)
        assert oracle.error_in_ulps(value, want, dtype) <= abs(parameter) + 4

    def keeps(self, case: special.Case) -> bool:
        return case.op != "powi" or (case.parameter or 0) > 0
