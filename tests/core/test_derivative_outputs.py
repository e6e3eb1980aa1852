"""Value, gradient and Hessian from one program."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr, numpy_eval
from alkahest.derivative_outputs import Layout, with_derivatives
from alkahest.errors import DiffError
from alkahest.expr import ExprPool, diff

pytestmark = pytest.mark.usefixtures("arithmetic")

pool = ExprPool()
x, y, z = pool.symbol("x"), pool.symbol("y"), pool.symbol("z")
CUBIC = x * x * y + 3 * y  # gradient (2xy, x² + 3), Hessian ((2y, 2x), (2x, 0))
XS, YS = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
VALUE = XS * XS * YS + 3 * YS
GRADIENT = np.array([2 * XS * YS, XS * XS + 3])
HESSIAN = np.array([[2 * YS, 2 * XS], [2 * XS, 0 * XS]])


# Results


def test_one_derivative_gives_value_and_gradient() -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=1)
    value, gradient = fn(XS, YS)
    assert np.array_equal(value, VALUE)
    assert np.array_equal(gradient, GRADIENT)
    assert (fn.derivatives, fn.n_outputs) == (1, 3)


def test_two_derivatives_give_the_hessian_too() -> None:
    value, gradient, hessian = compile_expr(CUBIC, [x, y], derivatives=2)(XS, YS)
    assert np.array_equal(value, VALUE)
    assert np.array_equal(gradient, GRADIENT)
    assert np.array_equal(hessian, HESSIAN)


def test_a_list_of_expressions_gets_an_axis_of_its_own() -> None:
    fn = compile_expr([CUBIC, x * y], [x, y], derivatives=2)
    value, jacobian, hessians = fn(XS, YS)
    assert np.array_equal(value, [VALUE, XS * YS])
    assert np.array_equal(jacobian, [GRADIENT, [YS, XS]])
    one, zero = np.ones(3), np.zeros(3)
    assert np.array_equal(hessians, [HESSIAN, [[zero, one], [one, zero]]])
    shapes = [a.shape for a in compile_expr([CUBIC], [x, y], derivatives=2)(XS, YS)]
    assert shapes == [(1, 3), (1, 2, 3), (1, 2, 2, 3)]


def test_the_points_keep_their_shape() -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=2)
    value, gradient, hessian = fn(XS[:, None], YS[None, :2])
    assert (value.shape, gradient.shape, hessian.shape) == ((3, 2), (2, 3, 2), (2, 2, 3, 2))
    assert np.array_equal(gradient[0], 2 * XS[:, None] * YS[None, :2])
    value, gradient, hessian = fn(2.0, 10.0)
    assert (value, type(value)) == (70.0, np.float64)
    assert gradient.tolist() == [40.0, 7.0]
    assert hessian.tolist() == [[20.0, 4.0], [4.0, 0.0]]


def test_a_batch_of_lists_gives_nested_lists() -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=2)
    assert fn.call_batch([[1, 2], [10, 20]]) == (
        [40.0, 140.0],
        [[20.0, 80.0], [4.0, 7.0]],
        [[[20.0, 40.0], [2.0, 4.0]], [[2.0, 4.0], [0.0, 0.0]]],
    )


def test_an_empty_batch_gives_empty_arrays() -> None:
    shapes = [a.shape for a in compile_expr(CUBIC, [x, y], derivatives=2).call_batch([[], XS[:0]])]
    assert shapes == [(0,), (2, 0), (2, 2, 0)]


def test_only_some_inputs_may_be_variables() -> None:
    fn = compile_expr(CUBIC + z, [x, y, z], derivatives=2, wrt=[y, x])
    value, gradient, hessian = fn(XS, YS, 1.0)
    assert np.array_equal(value, VALUE + 1)
    assert np.array_equal(gradient, GRADIENT[::-1])
    assert np.array_equal(hessian, HESSIAN[::-1, ::-1])
    value, gradient = compile_expr(CUBIC, [x, y], derivatives=1, wrt=[])(XS, YS)
    assert np.array_equal(value, VALUE)
    assert gradient.shape == (0, 3)


def test_numpy_eval_and_no_inputs_work_as_elsewhere() -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=1)
    assert [a.tolist() for a in numpy_eval(fn, 1, 10)] == [40.0, [20.0, 4.0]]
    value, gradient = compile_expr(7, [], derivatives=1).call_batch([], n=2)
    assert value.tolist() == [7.0, 7.0]
    assert gradient.shape == (0, 2)


def test_zero_derivatives_are_an_ordinary_function() -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=0)
    assert fn.derivatives == 0
    assert np.array_equal(fn(XS, YS), VALUE)


def test_real_derivatives_of_complex_expressions_are_complex_numbers() -> None:
    fn = compile_expr(3 * x + x * y, [x, y], dtype="complex128", derivatives=2)
    value, gradient, hessian = fn(np.array([1j, 2]), np.array([3.0, 1j]))
    assert value.tolist() == [6j, 6 + 2j]
    assert gradient.tolist() == [[6, 3 + 1j], [1j, 2]]
    # Every second derivative is a real constant, and so is the array.
    assert hessian.dtype == np.float64
    assert hessian.tolist() == [[[0, 0], [1, 1]], [[1, 1], [0, 0]]]
    _, gradient = compile_expr(3 * x + y * y, [x, y], dtype="complex64", derivatives=1)(1j, 2j)
    assert gradient.dtype == np.complex64
    assert gradient.tolist() == [3, 4j]


# How they are computed


def test_the_rows_of_the_results_are_what_the_backend_writes(arithmetic: Arithmetic) -> None:
    value, gradient, hessian = compile_expr(CUBIC, [x, y], derivatives=2)(XS, YS)
    (batch,) = arithmetic.batches
    assert batch.out is not None
    assert [row.shape for row in batch.out] == [(3,)] * 6
    rows = [value, *gradient, hessian[0, 0], hessian[0, 1], hessian[1, 1]]
    for row, written in zip(rows, batch.out, strict=True):
        assert row.__array_interface__["data"] == written.__array_interface__["data"]
    assert gradient.flags.c_contiguous
    assert hessian.flags.c_contiguous


def test_common_parts_are_computed_once() -> None:
    inner = x * y + 1
    both = compile_expr(inner * inner * inner, [x, y], derivatives=2).program
    products = [i for i in both.code if i.op == "mul" and set(i.args) == {0, 1}]
    assert len(products) == 1


def test_the_outputs_are_values_then_gradients_then_upper_halves() -> None:
    exprs = with_derivatives([CUBIC, x * y], [x, y], 2)
    assert [str(e) for e in exprs[:2]] == [str(CUBIC), str(x * y)]
    expected = [diff(e, v) for e in (CUBIC, x * y) for v in (x, y)]
    expected += [diff(diff(e, a), b) for e in (CUBIC, x * y) for a, b in ((x, x), (x, y), (y, y))]
    points = {"x": 1.5, "y": -2.5}
    for got, want in zip(exprs[2:], expected, strict=True):
        assert _at(got, points) == pytest.approx(_at(want, points), abs=1e-12)
    assert Layout(2, 2, 2).places == [
        *[(0, (0,)), (0, (1,))],
        *[(1, (0, 0)), (1, (0, 1)), (1, (1, 0)), (1, (1, 1))],
        *[(2, (e, i, j)) for e in (0, 1) for i, j in ((0, 0), (0, 1), (1, 1))],
    ]


def _at(expr: Any, points: dict[str, float]) -> Any:
    from alkahest.expr import eval_expr

    return eval_expr(expr, points)


def test_a_split_batch_has_the_same_derivatives(arithmetic: Arithmetic) -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=2, device="all")
    value, gradient, hessian = fn(XS, YS)
    assert np.array_equal(value, VALUE)
    assert np.array_equal(gradient, GRADIENT)
    assert np.array_equal(hessian, HESSIAN)
    assert sorted(b.n for b in arithmetic.batches) == [1, 2]


# The caller's arrays


def test_results_land_in_out() -> None:
    fn = compile_expr(CUBIC, [x, y], derivatives=2)
    out = np.empty(3), np.empty((2, 3)), np.empty((2, 2, 6))[:, :, ::2]
    results = fn(XS, YS, out=out)
    assert all(a is b for a, b in zip(results, out, strict=True))
    assert np.array_equal(out[0], VALUE)
    assert np.array_equal(out[1], GRADIENT)
    assert np.array_equal(out[2], HESSIAN)


def test_real_derivatives_clear_the_imaginary_part_of_out() -> None:
    fn = compile_expr(3 * x + y * y, [x, y], dtype="complex128", derivatives=1)
    out = np.zeros(2, complex), np.full((2, 2), 9 + 9j)
    fn.call_batch([np.array([1j, 2]), np.array([3.0, 1j])], out=out)
    assert out[1].tolist() == [[3, 3], [6, 2j]]


@pytest.mark.parametrize(
    ("out", "shown"),
    [
        (np.zeros(3), "out has 1 arrays for value, gradient"),
        ((np.zeros(3),), "out has 1 arrays for value, gradient"),
        ((np.zeros(3), [[0.0] * 3] * 2), "out for the gradient is a list, not an array"),
        ((np.zeros(3), np.empty((3, 3))), "the gradient has shape (3, 3); its first axes are (2)"),
        ((np.zeros(3), np.empty((2, 4))), "has shape (4,), the result has (3,)"),
        ((np.zeros(3, np.float32), np.empty((2, 3))), "has dtype float32"),
    ],
    ids=["one", "tuple of one", "list", "rows", "points", "dtype"],
)
def test_arrays_that_do_not_fit_are_refused(out: Any, shown: str) -> None:
    with refused("E-INPUT-009", shown):
        compile_expr(CUBIC, [x, y], derivatives=1)(XS, YS, out=out)


def test_a_read_only_out_is_refused_before_anything_is_written() -> None:
    fn = compile_expr(3 * x + y * y, [x, y], dtype="complex128", derivatives=1)
    out = np.zeros(3, complex), np.ones((2, 3), complex)
    out[1].flags.writeable = False
    with refused("E-INPUT-009", "is read-only"):
        fn(XS, YS, out=out)
    assert out[0].tolist() == [0, 0, 0]


# Refusals, and the function


@pytest.mark.parametrize("derivatives", [3, -1, 1.0, "1", None])
def test_other_orders_are_refused(derivatives: Any) -> None:
    with refused("E-INPUT-011", f"derivatives {derivatives!r} is not one of 0, 1, 2"):
        compile_expr(x, [x], derivatives=derivatives)


def test_the_order_may_be_any_integer() -> None:
    assert compile_expr(x, [x], derivatives=np.int64(1)).derivatives == 1


def test_what_has_no_derivative_is_refused_by_name() -> None:
    for expr, name in ((x < y, "condition"), (pool.func("digamma", [x]), "digamma")):
        with pytest.raises(DiffError, match=name) as caught:
            compile_expr(expr, [x, y], derivatives=1)
        assert caught.value.code == "E-DIFF-001"


@pytest.mark.parametrize(
    ("wrt", "code", "shown"),
    [
        (x, "E-INPUT-007", "wrt must be a list or tuple of symbols, got alkahest.expr.nodes.Expr"),
        ([x, x], "E-INPUT-007", "wrt 1 repeats symbol 'x'"),
        ([x + y], "E-INPUT-007", "wrt 0 is not a symbol: x + y"),
        ([z], "E-INPUT-007", "wrt holds 'z', which is not one of inputs"),
        ([ExprPool().symbol("x")], "E-POOL-001", "wrt 'x' belongs to another pool"),
    ],
    ids=["symbol", "repeated", "sum", "other", "pool"],
)
def test_variables_that_are_no_inputs_are_refused(wrt: Any, code: str, shown: str) -> None:
    with refused(code, shown):
        compile_expr(CUBIC, [x, y], derivatives=1, wrt=wrt)


def test_variables_need_derivatives() -> None:
    with refused("E-INPUT-011", "wrt= was given, and no derivatives were asked for"):
        compile_expr(CUBIC, [x, y], wrt=[x])


@pytest.mark.parametrize("exprs", [CUBIC, [CUBIC, x]], ids=["one", "list"])
def test_a_function_with_derivatives_pickles(exprs: Any) -> None:
    fn = compile_expr(exprs, [x, y], derivatives=2, wrt=[y])
    again: CompiledFn = pickle.loads(pickle.dumps(fn))
    assert again.derivatives == 2
    for got, want in zip(again(XS, YS), fn(XS, YS), strict=True):
        assert np.array_equal(got, want)
