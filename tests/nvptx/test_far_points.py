"""Points beyond 2**32, on the emulated device: only the last blocks of a batch run.

A column's address is that of its first element, which is not there; what is there are the last
ones. An index that is cut to 32 bits anywhere reads or writes outside of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import alkahest as ak
from alkahest.backends.nvptx import accuracy, emit, parts, targets
from alkahest.backends.nvptx.access import Access, arguments
from alkahest.backends.nvptx.emulate import THREADS, _HostKernel
from alkahest.plugin import DeviceBatch, DeviceColumn
from alkahest.program import Program, lower

N = 2**33 + 5
x, y = ak.symbols("x y")


def far(array: np.ndarray, start: int, stride: int = 1) -> DeviceColumn:
    """A column of :data:`N` elements whose last ones, from ``start`` on, are in ``array``."""
    step = stride * array.itemsize
    return DeviceColumn(
        pointer=array.ctypes.data - start * step,
        dtype=array.dtype.name,
        shape=(N,),
        strides=(step,),
        device=0,
    )


def last_block(points: int) -> tuple[int, int]:
    """The last block but one of a grid over :data:`N` points, and its first point."""
    first = -(-N // (THREADS * points)) - 2
    return first, first * THREADS * points


def run(program: Program, make: Callable[[int], Any], points: int | None = None) -> Access:
    """Run the last two blocks; ``make`` gives columns, outputs and the shape, from a start on."""
    most = points or Access.plain(program).points
    first, start = last_block(most)
    columns, outputs, shape = make(start)
    sources = tuple(range(len(outputs)))
    batch = DeviceBatch(
        columns=columns, shape=shape, out=outputs, sources=sources, stream=1, device=0
    )
    called = arguments(program, batch, most)
    assert called.access.points == most
    kernel = _HostKernel(program, targets.resolve(None), called.access, accuracy.DEFAULT)
    kernel.run(called.slots, THREADS, first)
    return called.access


@pytest.mark.parametrize("points", [None, 1], ids=["wide", "narrow"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_contiguous_columns(dtype: str, points: int | None) -> None:
    _, start = last_block(points or Access.plain(lower([x], [x], dtype)).points)
    xs, ys = (np.arange(N - start, dtype=dtype) + k for k in (0, 7))
    out = np.full(N - start, -1, dtype)
    program = lower([x + 2 * y], [x, y], dtype)
    access = run(program, lambda s: ((far(xs, s), far(ys, s)), (far(out, s),), (N,)), points)
    assert "strided" not in access.modes
    assert np.array_equal(out, xs + 2 * ys)


@pytest.mark.parametrize("dtype", ["int8", "bool", "uint16", "float16", "float32", "int64"])
def test_columns_of_other_dtypes(dtype: str) -> None:
    _, start = last_block(2)
    xs = (np.arange(N - start) % 90).astype(dtype)
    out = np.full(N - start, -1.0)
    run(lower([x + 1], [x]), lambda s: ((far(xs, s),), (far(out, s),), (N,)))
    assert np.array_equal(out, xs + 1.0)


@pytest.mark.parametrize("step", [3, -2, 0])
def test_strided_columns_and_outputs(step: int) -> None:
    _, start = last_block(1)
    count = N - start
    frame, table = np.arange(3.0 * count), np.full((count, 2), -1.0)
    origin = frame if step >= 0 else frame[-1:]
    column = far(origin, start, step)
    run(lower([x + 1], [x]), lambda s: ((column,), (far(table[:, 0], s, 2),), (N,)), 1)
    chosen = np.array([frame[(step * k) % frame.size - (step < 0)] for k in range(count)])
    assert np.array_equal(table[:, 0], chosen + 1)
    assert (table[:, 1] == -1).all()


def test_several_dimensions() -> None:
    length = 5
    rows = -(-N // length)
    n = rows * length
    _, start = last_block(1)
    start -= start % length
    xs, ys, out = np.arange(n - start + 0.0), np.arange(5.0), np.full(n - start, -1.0)

    def make(first: int) -> Any:
        step = xs.itemsize
        shape, whole = (rows, length), (length * step, step)
        flat = {"dtype": "float64", "shape": shape, "device": 0}
        columns = (
            DeviceColumn(pointer=xs.ctypes.data - start * step, strides=whole, **flat),
            DeviceColumn(pointer=ys.ctypes.data, strides=(0, step), **flat),
        )
        target = DeviceColumn(pointer=out.ctypes.data - start * step, strides=whole, **flat)
        return columns, (target,), shape

    assert run(lower([x + 2 * y], [x, y]), make, 1).rank == 2
    _, first = last_block(1)
    want = xs + 2 * np.tile(ys, (n - start) // length)
    assert np.array_equal(out[first - start :], want[first - start :])


def test_kernels_that_take_a_table() -> None:
    symbols = [ak.symbols(f"x{k}")[0] for k in range(600)]
    program = lower([x.pool.add(symbols)], symbols)
    _, start = last_block(1)
    columns = np.arange(N - start) + 10.0 * np.arange(600)[:, None]
    out = np.full(N - start, -1.0)
    run(program, lambda s: (tuple(far(c, s) for c in columns), (far(out, s),), (N,)), 1)
    assert np.array_equal(out, columns.sum(axis=0))


def test_kernels_that_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "LARGEST_WHOLE", 20)
    monkeypatch.setattr(parts, "PART", 30)
    value = x
    for k in range(40):
        value = value * x - y * k
    _, start = last_block(1)
    xs, ys = np.linspace(-0.5, 0.5, N - start), np.linspace(1.0, 2.0, N - start)
    out = np.full(N - start, -1.0)
    run(lower([value], [x, y]), lambda s: ((far(xs, s), far(ys, s)), (far(out, s),), (N,)), 1)
    want = xs.copy()
    for k in range(40):
        want = want * xs - ys * k
    assert np.allclose(out, want, rtol=1e-13, atol=1e-13)
