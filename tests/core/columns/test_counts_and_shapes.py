"""How many columns a call takes, and of which lengths and shapes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import InputError
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


# The number of columns


def test_a_missing_column_is_refused_with_the_names_of_the_inputs(weigh: CompiledFn) -> None:
    with refused("E-INPUT-001", "expected 2 columns (x, y), got 1"):
        weigh.call_batch([[1.0]])
    with refused("E-INPUT-001", "got 3"):
        weigh(1.0, 2.0, 3.0)


def test_columns_passed_in_one_list_are_told_to_be_unpacked(weigh: CompiledFn) -> None:
    with pytest.raises(InputError) as caught:
        weigh([[1.0, 2.0], [3.0, 4.0]])
    assert "fn(*columns)" in caught.value.remediation


@pytest.mark.parametrize("columns", [{0: [1.0]}, {1.0}, iter([[1.0]]), np.ones(3), "ab", None, 3])
def test_a_batch_that_is_no_list_of_columns_is_refused(weigh: CompiledFn, columns: Any) -> None:
    with refused("E-INPUT-008", "call_batch needs a list of columns"):
        weigh.call_batch(columns)


def test_rows_of_a_two_dimensional_array_are_columns(weigh: CompiledFn) -> None:
    table = np.arange(6.0).reshape(2, 3)
    assert weigh.call_batch(table).tolist() == [6.0, 9.0, 12.0]
    assert weigh.call_batch(table.T[:, :2].T).tolist() == [6.0, 9.0, 12.0]


# Lengths and shapes


def test_ragged_columns_are_refused_by_name(weigh: CompiledFn) -> None:
    with refused("E-INPUT-002", "column 1 ('y') has 2 rows", "column 0 ('x') has 3"):
        weigh.call_batch([[1.0, 2.0, 3.0], [1.0, 2.0]])


def test_a_column_of_length_one_is_not_spread_in_a_batch(weigh: CompiledFn) -> None:
    with refused("E-INPUT-002", "column 1 ('y') has 1 rows"):
        weigh.call_batch([np.ones(5), np.ones(1)])


def test_scalars_of_every_kind_are_spread_over_the_batch(
    weigh: CompiledFn, arithmetic: Arithmetic
) -> None:
    for scalar in (
        10.0,
        10,
        np.float64(10),
        np.array(10.0),
        Fraction(10),
        Decimal(10),
        np.int8(10),
    ):
        assert weigh.call_batch([np.ones(5), scalar]).tolist() == [21.0] * 5
    assert arithmetic.batches[-1].columns[1].strides == (0,)


def test_a_two_dimensional_column_is_refused_in_a_batch(weigh: CompiledFn) -> None:
    with refused("E-INPUT-005", "column 1 ('y') has shape (2, 2)"):
        weigh.call_batch([np.ones(2), np.ones((2, 2))])


def test_a_call_broadcasts_like_a_ufunc(weigh: CompiledFn) -> None:
    a, b = np.arange(3.0).reshape(3, 1), np.arange(4.0)
    np.testing.assert_array_equal(weigh(a, b), a + 2 * b)
    np.testing.assert_array_equal(weigh(np.ones(1), b), 1 + 2 * b)
    np.testing.assert_array_equal(
        weigh(a.T, np.asfortranarray(np.ones((2, 3)))), a.T + np.full((2, 3), 2)
    )


def test_a_call_with_scalars_gives_a_scalar(weigh: CompiledFn) -> None:
    result = weigh(1, 2)
    assert type(result) is np.float64
    assert result == 5.0


def test_shapes_that_do_not_broadcast_are_refused_by_name(weigh: CompiledFn) -> None:
    with refused("E-INPUT-002", "column 0 ('x') (3,)", "column 1 ('y') (2,)"):
        weigh(np.ones(3), np.ones(2))


def test_an_empty_batch_gives_empty_results(weigh: CompiledFn) -> None:
    assert weigh.call_batch([np.zeros(0), np.empty(0)]).shape == (0,)
    assert weigh.call_batch([[], []]) == []
    assert weigh(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_constants_keep_the_shape_of_the_batch(arithmetic: Arithmetic) -> None:
    two = compile_expr(pool.integer(2), [x])
    assert two.call_batch([np.arange(4.0)]).tolist() == [2.0] * 4
    assert two(np.ones((2, 3))).tolist() == [[2.0] * 3] * 2


def test_the_batch_length_is_given_where_no_column_tells_it(
    arithmetic: Arithmetic, weigh: CompiledFn
) -> None:
    three = compile_expr(pool.integer(3), [])
    assert three.call_batch([], n=4).tolist() == [3.0] * 4
    assert three(n=2).tolist() == [3.0, 3.0]
    assert three().shape == ()
    assert three.call_batch([], out=np.zeros(3)).tolist() == [3.0] * 3
    assert weigh.call_batch([1.0, 2.0], n=3).tolist() == [5.0] * 3
    assert weigh(1.0, 2.0, n=3).tolist() == [5.0] * 3
    with refused("E-INPUT-006", "no column tells the number of points"):
        three.call_batch([])


def test_a_batch_length_that_contradicts_the_columns_is_refused(weigh: CompiledFn) -> None:
    with refused("E-INPUT-006", "column 0 ('x') has 2 rows, n=3"):
        weigh.call_batch([np.ones(2), 1.0], n=3)
    with refused("E-INPUT-006", "shape (2,), n=3"):
        weigh(np.ones(2), 1.0, n=3)
    for call in (weigh, weigh.call_batch):
        with pytest.raises(InputError) as caught:
            call(np.ones(2), 1.0, n=3) if call is weigh else call([np.ones(2), 1.0], n=3)
        assert caught.value.remediation.startswith("Leave out n=")


@pytest.mark.parametrize("options", [{"n": -1}, {"n": 2.5}, {"n": True}, {"threads": 0}])
def test_counts_that_are_no_counts_are_refused(weigh: CompiledFn, options: Any) -> None:
    with refused("E-INPUT-011", next(iter(options))):
        weigh.call_batch([1.0, 2.0], **options)
