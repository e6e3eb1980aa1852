"""Columns that take calls over by NumPy's ufunc protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import refused

from alkahest.compiled import compile_expr, numpy_eval
from alkahest.expr import ExprPool

pytestmark = pytest.mark.usefixtures("arithmetic")

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


class Labelled:
    """Numbers with a label, which calls of ufuncs keep."""

    def __init__(self, values: Any, label: str) -> None:
        self.values, self.label = np.asarray(values), label

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        assert ufunc.signature is None
        assert len(inputs) == ufunc.nin
        plain = [i.values if isinstance(i, Labelled) else i for i in inputs]
        results = getattr(ufunc, method)(*plain, **options)
        if ufunc.nout == 1:
            return Labelled(results, self.label)
        return tuple(Labelled(result, self.label) for result in results)


class Declining(Labelled):
    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        return NotImplemented


class Taking(Labelled):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return Labelled([0.0], self.label)


class Quantity(np.ndarray):
    """An array with a unit that only its library understands."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("unknown unit")


def test_a_function_has_the_attributes_of_a_ufunc() -> None:
    fn = compile_expr(x + y, [x, y])
    assert (fn.nin, fn.nout, fn.signature, fn.types) == (2, 1, None, ["dd->d"])
    several = compile_expr([x, x < y], [x, y], dtype="float32")
    assert (several.nin, several.nout, several.types) == (2, 2, ["ff->f?"])
    assert compile_expr(x * x, [x], derivatives=2).nout == 3
    assert isinstance(fn.__name__, str)


def test_the_protocol_decides_what_comes_out() -> None:
    result = compile_expr(x + 2 * y, [x, y])(1.0, Labelled([1.0, 2.0], "metres"))
    assert isinstance(result, Labelled)
    assert (result.label, result.values.tolist()) == ("metres", [3.0, 5.0])


def test_several_results_are_wrapped_each() -> None:
    first, second = compile_expr([x, x > 1], [x])(Labelled([1.0, 2.0], "a"))
    assert first.label == second.label == "a"
    assert second.values.tolist() == [False, True]


def test_options_reach_the_function() -> None:
    out = np.zeros(2)
    result = compile_expr(x * 3, [x])(
        Labelled([1.0, 2.0], "a"), out=out, where=np.array([False, True]), threads=1
    )
    assert result.values is out
    assert out.tolist() == [0.0, 6.0]


def test_the_next_column_is_asked_where_the_first_declines() -> None:
    fn = compile_expr(x + y, [x, y])
    assert fn(Declining([1.0], "a"), Taking([2.0], "b")).label == "b"
    with refused("E-INPUT-003", "Declining", "declines"):
        fn(Declining([1.0], "a"), 2.0)


def test_units_are_not_dropped_in_silence() -> None:
    with pytest.raises(TypeError, match="unknown unit"):
        compile_expr(x, [x])(np.ones(2).view(Quantity))


def test_a_batch_and_numpy_eval_read_the_numbers() -> None:
    fn = compile_expr(x * 2, [x])
    assert fn.call_batch([Labelled([1.0, 2.0], "a")]).tolist() == [2.0, 4.0]
    assert numpy_eval(fn, Labelled(np.array([1.0]), "a")).tolist() == [2.0]


def test_derivatives_and_lists_of_one_read_the_numbers() -> None:
    given = Labelled([1.0, 2.0], "a")
    value, gradient = compile_expr(x * x, [x], derivatives=1)(given)
    assert (value.tolist(), gradient.tolist()) == ([1.0, 4.0], [[2.0, 4.0]])
    (only,) = compile_expr([x], [x])(given)
    assert only.tolist() == [1.0, 2.0]


def test_the_dtype_of_a_call_is_that_of_the_results() -> None:
    fn = compile_expr(x * 2, [x], dtype="float32")
    assert fn(1.5, dtype="f").tolist() == 3.0
    with refused("E-INPUT-011", "results are float32, not float64"):
        fn(1.5, dtype=np.float64)
