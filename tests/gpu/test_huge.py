"""Batches whose number of points does not fit 31 bits; about 35 GB of host memory at a time."""

from __future__ import annotations

import numpy as np
import pytest

import alkahest as ak

pytestmark = pytest.mark.huge

N = 2**31 + 9


@pytest.fixture(scope="module")
def columns() -> tuple[np.ndarray, np.ndarray]:
    """``i mod 1024`` and a result, float64."""
    xs = np.empty(N)
    rows = N // 1024
    xs[: rows * 1024].reshape(rows, 1024)[:] = np.arange(1024.0)
    xs[rows * 1024 :] = np.arange(N % 1024)
    return xs, np.full(N, -1.0)


def check(out: np.ndarray) -> None:
    for i in (0, 2**29, 2**31 - 1, 2**31, N - 1):
        assert out[i] == 2 * (i % 1024) + 1, i
    rows = N // 1024
    assert (out[: rows * 1024].reshape(rows, 1024) == 2 * np.arange(1024.0) + 1).all()
    assert (out[rows * 1024 :] == 2 * np.arange(N % 1024) + 1).all()


def test_more_than_two_to_the_31_points_are_right(columns) -> None:
    xs, out = columns
    x = ak.symbols("x")[0]
    fn = ak.compile_cuda(2 * x + 1, [x])
    fn.call_batch([xs], out=out)
    check(out)
    assert fn.report["bytes_up"] == fn.report["bytes_down"] == 8 * N


def test_the_same_in_chunks_of_an_odd_size(columns, monkeypatch: pytest.MonkeyPatch) -> None:
    xs, out = columns
    out[:] = -1
    monkeypatch.setenv("ALKAHEST_CUDA_CHUNK", "99991")
    x = ak.symbols("x")[0]
    fn = ak.compile_cuda(2 * x + 1, [x])
    fn.call_batch([xs], out=out)
    check(out)
    assert fn.report["chunks"] == -(-N // 99991)


def test_more_than_two_to_the_32_points_are_right() -> None:
    n = 2**32 + 3
    x = ak.symbols("x")[0]
    out = np.zeros(n, bool)
    fn = ak.compile_cuda(ak.Lt(x, 1), [x], dtype="float32")
    fn.call_batch([np.float32(0.5)], out=out, n=n)
    assert out[0]
    assert out[2**32 - 1]
    assert out[n - 1]
    assert out.all()
