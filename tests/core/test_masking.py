"""Calls with where=."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import compile_expr
from alkahest.expr import ExprPool

pytestmark = pytest.mark.usefixtures("arithmetic")

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
nan = np.nan


def test_only_the_chosen_points_are_evaluated(arithmetic: Arithmetic) -> None:
    result = compile_expr(x * y, [x, y])(np.arange(4.0), 10.0, where=[True, False, True, False])
    np.testing.assert_array_equal(result, [0.0, nan, 20.0, nan])
    assert arithmetic.batches[-1].n == 2


def test_elsewhere_out_keeps_its_values() -> None:
    out = np.full(3, -1.0)
    mask = np.array([False, True, True])
    assert compile_expr(x + 1, [x])(np.arange(3.0), out=out, where=mask) is out
    assert out.tolist() == [-1.0, 2.0, 3.0]


def test_columns_and_condition_broadcast() -> None:
    mask = np.array([[True], [False]])
    result = compile_expr(x + y, [x, y])(
        np.array([[1.0], [2.0]]), np.array([10.0, 20.0]), where=mask
    )
    np.testing.assert_array_equal(result, [[11.0, 21.0], [nan, nan]])


def test_a_number_gives_a_number() -> None:
    fn = compile_expr(x + 1, [x])
    assert fn(2.0, where=np.True_) == 3.0
    assert np.isnan(fn(2.0, where=False))
    assert type(fn(2.0, where=False)) is np.float64


def test_a_condition_is_false_where_nothing_was_evaluated() -> None:
    values, signs = compile_expr([x, x > 0], [x])(np.ones(2), where=np.array([True, False]))
    np.testing.assert_array_equal(values, [1.0, nan])
    assert signs.tolist() == [True, False]


def test_derivatives_have_their_axes_before_the_points() -> None:
    fn = compile_expr(x * x * y, [x, y], derivatives=2)
    mask = np.array([False, True])
    given = np.array([1.0, 3.0]), 2.0
    for whole, part in zip(fn(*given), fn(*given, where=mask), strict=True):
        np.testing.assert_array_equal(part[..., 1], whole[..., 1])
        assert np.isnan(part[..., 0]).all()
    out = tuple(np.zeros_like(array) for array in fn(*given))
    assert fn(*given, where=mask, out=out) == out
    assert out[1].tolist() == [[0.0, 12.0], [0.0, 9.0]]


def test_out_may_be_a_column() -> None:
    values = np.array([1.0, 2.0, 3.0])
    compile_expr(x * 10, [x])(values, out=values, where=values > 1)
    assert values.tolist() == [1.0, 20.0, 30.0]


@pytest.mark.parametrize(
    ("where", "code", "shown"),
    [
        (np.ones(3), "E-INPUT-003", "float64, not bool"),
        (1, "E-INPUT-003", "int64, not bool"),
        (np.ones(2, bool), "E-INPUT-002", "shape (2,), the result has (3,)"),
        (np.ones((2, 3), bool), "E-INPUT-002", "shape (2, 3), the result has (3,)"),
    ],
)
def test_conditions_that_do_not_fit_are_refused(where: Any, code: str, shown: str) -> None:
    with refused(code, shown):
        compile_expr(x, [x])(np.zeros(3), where=where)


def test_columns_and_out_are_checked_as_ever() -> None:
    fn = compile_expr(x + y, [x, y])
    with refused("E-INPUT-001"):
        fn(1.0, where=True and np.True_)
    with refused("E-INPUT-011", "takes no stream="):
        fn(np.zeros(3), 1.0, where=np.ones(3, bool), stream=7)
    with refused("E-INPUT-009", "shape (2,)"):
        fn(np.zeros(3), 1.0, where=np.ones(3, bool), out=np.zeros(2))
