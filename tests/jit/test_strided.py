"""Columns of any layout: gathered and scattered block by block, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alkahest import ExprPool
from alkahest.backends.cpu.jit import strided
from alkahest.backends.cpu.jit.evaluator import JitEvaluator
from alkahest.backends.cpu.jit.options import COMPILED, Options
from alkahest.plugin import Batch
from alkahest.program import lower

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
DTYPES = ("float64", "float32", "complex128", "complex64")


def evaluator(dtype: str = "float64") -> JitEvaluator:
    return JitEvaluator(lower([x * y, x - y], [x, y], dtype), Options(tier=COMPILED))


LAYOUTS = {
    "contiguous": lambda a: a,
    "every second": lambda a: np.repeat(a, 2)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "a row of records": lambda a: np.stack([a, a, a], 1)[:, 1],
    "one value": lambda a: np.broadcast_to(a[:1], a.shape),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 64, 65, 1000, 5000])
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", ["contiguous", "reversed", "one value"])
def test_inputs_of_any_layout_give_the_values_of_contiguous_ones(
    first: str, second: str, n: int, dtype: str
) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n)).astype(dtype)
    if dtype.startswith("complex"):
        a, b = a + 1j * b, b - 2j * a
    a, b = LAYOUTS[first](a), LAYOUTS[second](b)
    run = evaluator(dtype)
    want = run.evaluate(Batch(columns=(a.copy(), b.copy()), n=n)).outputs
    got = run.evaluate(Batch(columns=(a, b), n=n)).outputs
    for g, w in zip(got, want, strict=True):
        assert np.array_equal(g, w)


@pytest.mark.parametrize("n", [1, 63, 64, 1025, 70_001])
def test_outputs_of_any_layout_are_written_and_nothing_beside_them(n: int) -> None:
    a, b = np.random.default_rng(1).normal(size=(2, n))
    table = np.full((n + 2, 3), 7.0)
    first, second = table[1 : n + 1, 0], table[n:0:-1, 2]
    evaluator().evaluate(Batch(columns=(a, b), n=n, out=(first, second)))
    assert np.array_equal(first, a * b)
    assert np.array_equal(second, a - b)
    assert (table[:, 1] == 7).all()
    assert (table[[0, -1]] == 7).all()


@pytest.mark.parametrize("stride", [1, 2, -1, -3])
def test_an_output_may_be_an_input_of_the_same_layout(stride: int) -> None:
    table = np.random.default_rng(2).normal(size=30_000)
    column = table[::stride]
    n = len(column)
    other = np.full(n, 3.0)
    want = column * 3.0, column - 3.0
    out = np.empty(n)
    evaluator().evaluate(Batch(columns=(column, other), n=n, out=(column, out)))
    assert np.array_equal(column, want[0])
    assert np.array_equal(out, want[1])


def test_conditions_are_bytes_in_any_layout() -> None:
    run = JitEvaluator(lower([pool.lt(x, y)], [x, y]), Options(tier=COMPILED))
    a, b = np.random.default_rng(3).normal(size=(2, 3001))
    flags = np.zeros((3001, 2), bool)
    run.evaluate(Batch(columns=(a[::-1], b), n=3001, out=(flags[:, 1],)))
    assert np.array_equal(flags[:, 1], a[::-1] < b)
    assert not flags[:, 0].any()


def test_strided_columns_are_shared_among_threads() -> None:
    a, b = np.random.default_rng(4).normal(size=(2, 600_000))
    out = tuple(np.empty(300_000) for _ in range(2))
    run = evaluator()
    outcome = run.evaluate(Batch(columns=(a[::2], b[1::2]), n=300_000, out=out, threads=3))
    assert np.array_equal(outcome.outputs[0], a[::2] * b[1::2])
    assert np.array_equal(outcome.outputs[1], a[::2] - b[1::2])


def test_buffers_stay_small_however_many_columns_there_are() -> None:
    few: Any = strided.plan(0, 0, 1, [(0, 16, 8), (0, 8, 8)])
    many: Any = strided.plan(0, 0, 300, [(0, 16, 8)] * 400)
    assert few.scratch < 2 * strided._BUFFERS
    assert many.scratch < 400 * 8 * strided._SMALLEST_BLOCK + 10_000
