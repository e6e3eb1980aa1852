"""Dask arrays in, Dask arrays out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import sympy
from refusals import refused

import alkahest as ak
from alkahest.compiled import CompiledFn

X, Y = ak.symbols("x y")

# Compiled from the first call on: what is put off until there is more to do has other last bits.
compiled = partial(ak.compile_expr, tier="compiled")
POINTS = np.linspace(-2.0, 2.0, 1001)
OTHERS = np.linspace(0.0, 1.0, 1001)
XS, YS = da.from_array(POINTS, chunks=300), da.from_array(OTHERS, chunks=400)


@pytest.fixture
def fn() -> CompiledFn:
    return compiled(ak.sin(X) * Y, [X, Y])


@pytest.fixture(autouse=True)
def nothing_early(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Until the fixture's value is called, evaluating is an error; then it computes."""
    from alkahest.evaluation import Evaluation

    original = Evaluation.run

    def refuse(*_: Any) -> Any:
        raise AssertionError("something was evaluated early")

    monkeypatch.setattr(Evaluation, "run", refuse)

    def compute(*lazy: Any) -> Any:
        monkeypatch.setattr(Evaluation, "run", original)
        results = dask.compute(*lazy, scheduler="threads")
        return results[0] if len(lazy) == 1 else results

    return compute


def test_blocks_of_different_lengths_are_aligned(
    fn: CompiledFn, nothing_early: Callable[..., Any]
) -> None:
    result = fn(XS, YS)
    assert isinstance(result, da.Array)
    assert (result.shape, result.dtype) == ((1001,), np.float64)
    assert result.chunks == ((300, 100, 200, 200, 100, 101),)
    np.testing.assert_array_equal(nothing_early(result), fn(POINTS, OTHERS))


def test_a_batch_gives_the_same(fn: CompiledFn, nothing_early: Callable[..., Any]) -> None:
    result = fn.call_batch([XS, YS])
    stacked = fn.call_batch(da.stack([XS, YS]))
    np.testing.assert_array_equal(nothing_early(result), fn(POINTS, OTHERS))
    np.testing.assert_array_equal(nothing_early(stacked), fn(POINTS, OTHERS))


def test_numbers_and_numpy_arrays_may_stand_beside_them(
    fn: CompiledFn, nothing_early: Callable[..., Any]
) -> None:
    number, array, small = fn(XS, 2), fn(XS, OTHERS), fn(da.from_array(np.array(1.5)), YS)
    np.testing.assert_array_equal(nothing_early(number), fn(POINTS, 2))
    np.testing.assert_array_equal(nothing_early(array), fn(POINTS, OTHERS))
    np.testing.assert_array_equal(nothing_early(small), fn(1.5, OTHERS))


def test_shapes_broadcast(fn: CompiledFn, nothing_early: Callable[..., Any]) -> None:
    result = fn(XS[:, None], np.arange(4.0))
    outer = fn(XS[:, None], YS[None, :])
    assert (result.shape, outer.shape) == ((1001, 4), (1001, 1001))
    np.testing.assert_array_equal(nothing_early(result), fn(POINTS[:, None], np.arange(4.0)))
    np.testing.assert_array_equal(nothing_early(outer[7]), fn(POINTS[7], OTHERS))


def test_several_results_have_their_dtypes_and_share_one_evaluation(
    nothing_early: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fn = compiled([X + Y, X < Y, X * Y], [X, Y])
    total, smaller, product = fn(XS, YS)
    assert [r.dtype for r in (total, smaller, product)] == [np.float64, np.bool_, np.float64]
    calls: list[int] = []
    found = nothing_early(total, smaller, product)
    for result, expected in zip(found, fn(POINTS, OTHERS), strict=True):
        np.testing.assert_array_equal(result, expected)
    original = CompiledFn.__call__

    def counted(self: CompiledFn, *columns: Any, **options: Any) -> Any:
        calls.append(1)
        return original(self, *columns, **options)

    monkeypatch.setattr(CompiledFn, "__call__", counted)
    nothing_early(total, smaller, product)
    assert len(calls) == total.npartitions


def test_derivatives_have_axes_before_those_of_the_points(
    nothing_early: Callable[..., Any],
) -> None:
    fn = compiled([ak.exp(X) * Y], [X, Y], derivatives=2)
    lazy = fn(XS, YS)
    assert [r.shape for r in lazy] == [(1, 1001), (1, 2, 1001), (1, 2, 2, 1001)]
    for result, expected in zip(nothing_early(*lazy), fn(POINTS, OTHERS), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_matrix_of_sympy_stays_lazy(nothing_early: Callable[..., Any]) -> None:
    x, y = sympy.symbols("x y")
    fn = ak.lambdify([x, y], sympy.Matrix([[x, 1], [y, x * y]]), tier="compiled")
    lazy = fn(XS, YS)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == ((2, 2, 1001), np.float64)
    np.testing.assert_array_equal(nothing_early(lazy), fn(POINTS, OTHERS))


def test_where_is_mapped_too(fn: CompiledFn, nothing_early: Callable[..., Any]) -> None:
    result = fn(XS, 1.0, where=XS > 0)
    with refused("E-INPUT-003", "not bool"):
        fn(XS, 1.0, where=XS)
    with refused("E-INPUT-002", "where has shape (5,)"):
        fn(XS, 1.0, where=np.ones(5, bool))
    np.testing.assert_array_equal(nothing_early(result), fn(POINTS, 1.0, where=POINTS > 0))


def test_chunks_of_unknown_length_pass(fn: CompiledFn, nothing_early: Callable[..., Any]) -> None:
    result = fn(XS[XS > 0], 3.0)
    np.testing.assert_array_equal(nothing_early(result), fn(POINTS[POINTS > 0], 3.0))


def test_equal_calls_have_equal_names(fn: CompiledFn) -> None:
    again = compiled(ak.sin(X) * Y, [X, Y])
    assert fn(XS, YS).name == again(XS, YS).name
    assert fn(XS, YS).name != compiled(ak.cos(X) * Y, [X, Y])(XS, YS).name


def test_narrow_programs_have_narrow_results(nothing_early: Callable[..., Any]) -> None:
    fn = compiled(X * 2, [X], dtype="float32")
    narrow = fn(XS.astype("float32"))
    assert narrow.dtype == np.float32
    assert nothing_early(narrow).dtype == np.float32


def test_what_does_not_fit_is_refused_at_once(fn: CompiledFn) -> None:
    with refused("E-INPUT-001", "expected 2 columns"):
        fn(XS)
    with refused("E-INPUT-002", "column 0 ('x') (1001,), column 1 ('y') (3,)"):
        fn(XS, np.zeros(3))
    with refused("E-INPUT-002", "column 1 ('y') has 3 rows"):
        fn.call_batch([XS, np.zeros(3)])
    with refused("E-INPUT-005", "column 0 ('x') has shape (1, 1001)"):
        fn.call_batch([XS[None], 1.0])
    with refused("E-INPUT-004", "float64, wider than float32"):
        compiled(X, [X], dtype="float32")(XS)
    with refused("E-INPUT-003", "which holds no numbers"):
        fn(XS.astype("datetime64[s]"), 1.0)
    with refused("E-INPUT-009", "Dask"):
        fn(XS, YS, out=np.zeros(1001))


@pytest.mark.parametrize(
    "options", [{"executor": ThreadPoolExecutor(1)}, {"threads": 2}, {"n": 1001}, {"device": 0}]
)
def test_options_that_dask_s_scheduler_decides_are_refused(
    fn: CompiledFn, options: dict[str, Any]
) -> None:
    with refused("E-INPUT-011", f"{next(iter(options))}= has no meaning", "Dask's scheduler"):
        fn.call_batch([XS, YS], **options)
