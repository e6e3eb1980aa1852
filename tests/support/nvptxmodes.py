"""What the conformance kit asks of the nvptx backend in each accuracy mode."""

from __future__ import annotations

import math
from typing import Any

from alkahest.backends.nvptx.accuracy import DEFAULT
from alkahest.backends.nvptx.bounds import parts, promised
from alkahest.ops import OPS, Op
from alkahest.testing.special import Case


class Promises:
    """The bounds of one accuracy mode; stands before a class of the kit.

    Attributes:
        mode: the accuracy mode.
    """

    mode = DEFAULT

    def allowed(
        self, row: Op, dtype: str, point: Any, parameter: int | None
    ) -> tuple[float, float]:
        """The bound of the part of the domain that the point is in."""
        part = next(p for p in parts(row.name, dtype) if p.contains(parameter, *point))
        bound = promised(row.name, dtype, self.mode, part.text, parameter)
        return (math.inf, 0.0) if bound is None else (bound.of(parameter), bound.scale)

    def keeps(self, case: Case) -> bool:
        """All special values, but where the mode promises nothing."""
        return self.allowed(OPS[case.op], "float64", case.operands, case.parameter)[0] < math.inf
