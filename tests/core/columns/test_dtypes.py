"""Which dtypes a column may have, and what becomes of its numbers."""

from __future__ import annotations

import array
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4"])
def test_narrower_dtypes_widen(twice: CompiledFn, dtype: str) -> None:
    result = twice(np.array([1, 0, 1]).astype(dtype))
    assert result.dtype == np.float64
    assert result.tolist() == [2.0, 0.0, 2.0]


def test_large_integers_round_to_the_nearest_double(twice: CompiledFn) -> None:
    assert twice(np.array([2**53 + 1]))[0] == 2.0**54
    assert twice(np.array([2**64 - 1], dtype=np.uint64))[0] == 2.0**65
    assert twice.call_batch([[2**53 + 1, 2**70]]) == [2.0**54, 2.0**71]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, 2.0], dtype=object),
        np.array(["1", "2"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([1], dtype="m8[s]"),
        np.zeros(2, dtype=[("a", "f8")]),
        np.array([b"ab"]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_dtypes_without_numbers_are_refused_by_name(twice: CompiledFn, column: Any) -> None:
    with refused("E-INPUT-003", "column 0 ('x') has dtype"):
        twice(column)


@pytest.mark.skipif(np.dtype("longdouble").itemsize == 8, reason="longdouble is double here")
def test_extended_precision_is_wider_than_a_float64_program(arithmetic: Arithmetic) -> None:
    column = np.array([1.5], dtype=np.longdouble)
    with refused("E-INPUT-004", "column 0 ('x') has dtype", "wider than float64"):
        compile_expr(2 * x, [x])(column)
    assert compile_expr(2 * x, [x], casting="same_kind")(column).tolist() == [3.0]


def test_float64_into_a_float32_program_needs_same_kind(arithmetic: Arithmetic) -> None:
    column = np.array([0.1, 1e300])
    with refused("E-INPUT-004", "column 0 ('x') has dtype float64, wider than float32"):
        compile_expr(2 * x, [x], dtype="float32")(column)
    result = compile_expr(2 * x, [x], dtype="float32", casting="same_kind")(column)
    assert result.dtype == np.float32
    assert result.tolist() == [np.float32(0.1) * 2, np.inf]


def test_python_numbers_and_lists_always_convert(arithmetic: Arithmetic) -> None:
    fn = compile_expr(x + 2 * y, [x, y], dtype="float32")
    assert fn.call_batch([[0.5, 1, True], np.float64(0.25)]).tolist() == [1.0, 1.5, 1.5]
    assert fn(0.1, 0).dtype == np.float32


def test_complex_into_a_real_program_keeps_the_imaginary_part_or_is_refused(
    arithmetic: Arithmetic,
) -> None:
    column = np.array([1 + 0j, 2 + 1j])
    fn = compile_expr(2 * x, [x])
    same_kind = compile_expr(2 * x, [x], casting="same_kind")
    with refused("E-INPUT-004", "column 0 ('x') has dtype complex128", "float64 is real"):
        fn(column)
    with refused("E-INPUT-004", "column 0 ('x'), row 1", "imaginary part"):
        same_kind(column)
    assert same_kind(column[:1]).tolist() == [2.0]
    with refused("E-INPUT-004", "row 1: 2j is complex"):
        fn.call_batch([[1.0, 2j]])
    with refused("E-INPUT-004", "is complex"):
        fn(1j)


def test_real_columns_widen_into_a_complex_program(arithmetic: Arithmetic) -> None:
    fn = compile_expr(x + 2 * y, [x, y], dtype="complex128")
    assert fn.call_batch([[1, 2j], np.array([0.5, 0.5])]).tolist() == [2.0, 1 + 2j]


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i2", "<f8"])
def test_every_byte_order_is_read_as_the_numbers_it_means(twice: CompiledFn, dtype: str) -> None:
    assert twice(np.array([1.0, 2.5, -3.0]).astype(dtype)).tolist()[2] == -6.0


def test_masked_arrays_are_refused_by_name(twice: CompiledFn) -> None:
    with refused("E-INPUT-003", "column 0 ('x') is a masked array"):
        twice(np.ma.array([1.0, 2.0], mask=[False, True]))


@pytest.mark.parametrize("bad", ["2", None, [1.0], object(), b"2", Ellipsis])
def test_a_list_with_something_else_than_numbers_names_the_row(twice: CompiledFn, bad: Any) -> None:
    with refused("E-INPUT-003", "column 0 ('x'), row 1"):
        twice.call_batch([[1.0, bad]])


def test_a_list_of_numeric_text_is_no_list_of_numbers(twice: CompiledFn) -> None:
    with refused("E-INPUT-003", "row 0: '1' is not a number"):
        twice.call_batch([["1", "2"]])


def test_exact_numbers_in_lists_convert(twice: CompiledFn) -> None:
    assert twice.call_batch([[Fraction(1, 4), Decimal("0.5"), 10**20]]) == [0.5, 1.0, 2e20]
    with refused("E-INPUT-004", "row 1", "too large"):
        twice.call_batch([[1, 10**400]])


@pytest.mark.parametrize("column", [{1.0}, {1: 2}, (v for v in [1.0]), "12", None, lambda: 1])
def test_things_that_hold_no_numbers_are_refused_by_type(twice: CompiledFn, column: Any) -> None:
    with refused("E-INPUT-003", "column 0 ('x') holds no numbers", type(column).__name__):
        twice(column)


@pytest.mark.parametrize(
    "column", [range(1, 4), array.array("d", [1, 2, 3]), memoryview(np.arange(1.0, 4.0))]
)
def test_sequences_and_buffers_are_read(twice: CompiledFn, column: Any) -> None:
    result = twice.call_batch([column])
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [2.0, 4.0, 6.0]
