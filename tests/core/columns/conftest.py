"""A backend for host columns, and two functions that it evaluates."""

from __future__ import annotations

import pytest
from arithmetic import Arithmetic

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


@pytest.fixture
def weigh(arithmetic: Arithmetic) -> CompiledFn:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y])


@pytest.fixture
def twice(arithmetic: Arithmetic) -> CompiledFn:
    """``2*x``."""
    return compile_expr(2 * x, [x])
