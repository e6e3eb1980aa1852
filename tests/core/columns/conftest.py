"""A backend for host columns, and two functions that it evaluates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from arithmetic import Arithmetic

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.expr import ExprPool
from alkahest.testing.plugins import isolated_plugins

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


@pytest.fixture
def plugin() -> Iterator[Arithmetic]:
    """The only plugin."""
    plugin = Arithmetic()
    with isolated_plugins(plugin):
        yield plugin


@pytest.fixture
def weigh(plugin: Arithmetic) -> CompiledFn:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y])


@pytest.fixture
def twice(plugin: Arithmetic) -> CompiledFn:
    """``2*x``."""
    return compile_expr(2 * x, [x])
