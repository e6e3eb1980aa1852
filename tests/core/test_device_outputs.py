"""Results on a device: ``out=``, and derivatives."""

from __future__ import annotations

import fakearrays
import numpy as np
import pytest
from devicebackend import Adder
from fakearrays import Interface, JaxArray, TorchTensor
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
XS, YS = np.arange(6.0), np.arange(6.0) + 0.5


@pytest.fixture
def weigh(plugin: Adder) -> CompiledFn:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y], backend="adder")


def pointers(plugin: Adder) -> list[int]:
    """Addresses that the last call gave to the backend: of columns, then of outputs."""
    batch = plugin.queued[-1]
    return [column.pointer for column in (*batch.columns, *batch.out)]


def address(values: np.ndarray) -> int:
    return values.ctypes.data


# Outputs


def test_results_go_to_out_without_a_copy(plugin, weigh, cupy, torch) -> None:
    xs = cupy.asarray(XS)
    for out in (cupy.empty(6), TorchTensor(np.empty(6)), Interface(np.empty(6))):
        assert weigh.call_batch([xs, 1.0], out=out) is out
        assert np.array_equal(out.values, XS + 2)
        assert plugin.queued[-1].out[0].pointer == address(out.values)


def test_out_may_be_strided_or_a_column(weigh, cupy) -> None:
    table = np.full((6, 3), -1.0)
    out = cupy.asarray(np.empty(0))
    out.values = table[:, 1]
    out.data.ptr = address(out.values)
    weigh.call_batch([cupy.asarray(XS), 1.0], out=out)
    assert np.array_equal(table[:, 1], XS + 2)
    assert (table[:, ::2] == -1).all()
    xs = cupy.asarray(XS)
    assert weigh.call_batch([xs, 1.0], out=xs) is xs
    assert np.array_equal(xs.values, XS + 2)


def test_out_tells_the_length_where_no_column_does(plugin, cupy) -> None:
    out = cupy.empty(4)
    assert compile_expr(x + 1, [x], backend="adder").call_batch([2.0], out=out) is out
    assert out.values.tolist() == [3.0] * 4
    compile_expr(2, [], backend="adder").call_batch([], out=out)
    assert out.values.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (lambda cupy: np.empty(6), "out array 0 is a numpy.ndarray in host memory, column 0"),
        (lambda cupy: cupy.empty(6, "f4"), "has dtype float32, the output is float64"),
        (lambda cupy: cupy.empty(5), "has shape (5,), the result has (6,)"),
        (lambda cupy: [cupy.empty(6)] * 2, "out has 2 arrays for 1 results"),
        (lambda cupy: [], "out has 0 arrays"),
        (lambda cupy: Interface(np.empty(6), data=(address(XS), True)), "is read-only"),
        (lambda cupy: Interface(np.empty(6), strides=(0,)), "repeats its memory"),
        (lambda cupy: Interface(np.empty(6), strides=(4,)), "is not aligned"),
        (lambda cupy: JaxArray(np.empty(6)), "is read-only"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(plugin, weigh, cupy, out, words: str) -> None:
    with fakearrays.installed(fakearrays.jax()), refused("E-INPUT-009", words):
        weigh.call_batch([cupy.asarray(XS), 1.0], out=out(cupy))
    assert plugin.queued == []


def test_an_output_whose_rows_overlap_is_refused(plugin, weigh, cupy) -> None:
    columns = [cupy.asarray(XS).reshaped(2, 3), 1.0]
    with refused("E-INPUT-009", "out array 0 repeats its memory: its strides are (8, 8)"):
        weigh(*columns, out=Interface(np.empty((2, 3)), strides=(8, 8)))
    assert plugin.queued == []
    apart = np.empty((2, 4))[:, 1:]
    weigh(*columns, out=Interface(apart))
    assert np.array_equal(apart, XS.reshape(2, 3) + 2)


def test_outputs_on_a_device_for_columns_that_are_not_are_refused(weigh, cupy) -> None:
    with refused("E-INPUT-009", "out array 0 is a cupy.ndarray on a device, column 0 ('x') is in"):
        weigh.call_batch([XS, YS], out=cupy.empty(6))


def test_outputs_on_another_device_are_refused(weigh, cupy) -> None:
    out = cupy.asarray(np.empty(6), device=1)
    with refused("E-INPUT-010", "out array 0 is on device 1, column 0 ('x') is on device 0"):
        weigh.call_batch([cupy.asarray(XS), 1.0], out=out)


def test_outputs_that_overlap_are_refused(plugin, weigh, cupy) -> None:
    memory = cupy.asarray(np.zeros(12))
    with refused("E-INPUT-009", "out array 0 shares memory with column 0 ('x') and is not it"):
        weigh.call_batch([memory[:6], 1.0], out=memory[1:7])
    assert weigh.call_batch([memory[::2], 1.0], out=memory[1::2]).shape == (6,)
    two = compile_expr([x, x + 1], [x], backend="adder")
    with refused("E-INPUT-009", "out array 1 shares memory with out array 0"):
        two.call_batch([cupy.asarray(XS)], out=[memory[:6], memory[5:11]])


# Derivatives


def test_derivatives_are_written_where_they_belong(plugin, cupy) -> None:
    fn = compile_expr(x * x * y, [x, y], backend="adder", derivatives=2)
    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
    value, gradient, hessian = fn.call_batch([xs, ys])
    assert np.array_equal(value.values, XS * XS * YS)
    assert np.array_equal(gradient.values, [2 * XS * YS, XS * XS])
    assert np.array_equal(hessian.values, [[2 * YS, 2 * XS], [2 * XS, 0 * XS]])
    assert type(hessian) is cupy.ndarray
    out = (cupy.empty((2, 3)), cupy.empty((2, 2, 3)), cupy.empty((2, 2, 2, 3)))
    value, gradient, hessian = fn(
        cupy.asarray(XS.reshape(2, 3)), cupy.asarray(YS.reshape(2, 3)), out=out
    )
    assert (value, gradient, hessian) == out
    assert np.array_equal(gradient.values[1], (XS * XS).reshape(2, 3))
    assert np.array_equal(hessian.values[1, 0], (2 * XS).reshape(2, 3))
    with refused("E-INPUT-009", "out has 1 arrays for 3 results"):
        fn(xs, ys, out=value)


def test_real_and_complex_derivatives_in_one_array_are_refused(plugin, cupy) -> None:
    # Of the second derivatives of x*x*y, that by y is a real 0.
    fn = compile_expr(x * x * y, [x, y], backend="adder", dtype="complex128", derivatives=2)
    with refused("E-INPUT-004", "some derivatives are real and others of the same array"):
        fn(cupy.asarray(XS + 1j), cupy.asarray(YS + 0j))
    assert plugin.queued == []
