"""Arrays of a device and the streams of their libraries: order, and memory until work is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpuarrays import jax_arrays

import alkahest as ak

LONG = 200_000_000
"""Clock cycles that no call takes: a tenth of a second."""

WARM_THEN_LONG = (1, LONG)
"""Twice the same: what loads code or allocates memory may wait, and does so the first time."""

x, y = ak.symbols("x y")


@pytest.fixture
def fn() -> ak.CompiledFn:
    return ak.compile_cuda(x + 2 * y, [x, y])


@pytest.fixture
def slow_fill(cupy) -> Callable[..., None]:
    """Fills an array with a number, after a tenth of a second, on the current stream."""
    kernel = cupy.RawKernel(
        r"""
        extern "C" __global__ void fill(double* x, long long n, double value, long long cycles) {
            long long start = clock64();
            while (clock64() - start < cycles) {}
            for (long long i = threadIdx.x; i < n; i += blockDim.x) x[i] = value;
        }
        """,
        "fill",
    )

    def fill(array: Any, value: float, cycles: int = LONG) -> None:
        kernel((1,), (256,), (array, np.int64(array.size), np.float64(value), np.int64(cycles)))

    return fill


def test_a_call_is_queued_behind_the_current_stream_and_returns_at_once(
    fn, cupy, slow_fill
) -> None:
    xs, ys, out = cupy.zeros(1000), cupy.zeros(1000), cupy.zeros(1000)
    stream = cupy.cuda.Stream(non_blocking=True)
    for cycles in WARM_THEN_LONG:
        xs.fill(0.0)
        cupy.cuda.Device().synchronize()
        with stream:
            slow_fill(xs, 7.0, cycles)
            fn(xs, ys, out=out)
            fresh = fn.call_batch([xs[::2], 0.5])
            event = stream.record()
            assert cycles < LONG or not event.done
        stream.synchronize()
        assert (cupy.asnumpy(out) == 7).all()
        assert (cupy.asnumpy(fresh) == 8).all()
        del fresh


def test_another_stream_waits_for_the_one_that_fills_the_columns(fn, cupy, slow_fill) -> None:
    xs, out = cupy.zeros(1000), cupy.zeros(1000)
    fills, works = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    for cycles in WARM_THEN_LONG:
        xs.fill(0.0)
        cupy.cuda.Device().synchronize()
        with fills:
            slow_fill(xs, 7.0, cycles)
            fn(xs, 1.0, out=out, stream=works)
            assert cycles < LONG or not works.done
        works.synchronize()
        assert (cupy.asnumpy(out) == 9).all()


class Interface:
    """An array known by the CUDA array interface alone."""

    def __init__(self, array: Any, stream: int | None) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream}


def test_the_stream_that_an_interface_names_is_waited_for(fn, cupy, slow_fill) -> None:
    fills, works = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    xs, ys = cupy.zeros(1000), cupy.zeros(1000)
    cupy.cuda.Device().synchronize()
    with fills:
        slow_fill(xs, 7.0)
    result = fn.call_batch([Interface(xs, fills.ptr), Interface(ys, None)], stream=works)
    # The consumer tells its stream to the result, which makes it wait.
    with cupy.cuda.Stream(non_blocking=True):
        assert (cupy.asnumpy(cupy.from_dlpack(result) + 0) == 7).all()


def test_tensors_follow_the_stream_of_torch(fn, torch) -> None:
    xs = torch.zeros(1000, dtype=torch.float64, device="cuda")
    ys, out = torch.zeros_like(xs), torch.zeros_like(xs)
    side, works = torch.cuda.Stream(), torch.cuda.Stream()
    for cycles in WARM_THEN_LONG:
        xs.fill_(0.0)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)
            xs.fill_(7.0)
            fn(xs, ys, out=out)
            fresh = fn.call_batch([xs, 0.5])
            after = out + 1
            other = fn(xs, 1.0, stream=works)
            assert cycles < LONG or not side.query()
        works.synchronize()
        assert (other == 9).all()
        side.synchronize()
        assert (out == 7).all()
        assert (fresh == 8).all()
        assert (after == 8).all()
        del fresh, after, other


def test_results_of_jax_are_waited_for_in_both_directions(fn) -> None:
    jax = jax_arrays().library

    @jax.jit
    def slow(values: Any) -> Any:
        return jax.lax.fori_loop(0, 2000, lambda _, v: jax.numpy.sin(v) + 1.0, values)

    xs = jax.device_put(np.linspace(0.0, 1.0, 1 << 22))
    want = np.asarray(slow(xs))
    for _ in range(3):
        result = fn(slow(xs), 1.0)
        after = jax.numpy.negative(result)
        assert np.array_equal(np.asarray(after), -(want + 2))


def test_memory_is_not_reused_before_another_stream_has_read_it(fn, cupy, slow_fill) -> None:
    works = cupy.cuda.Stream(non_blocking=True)
    blocker = cupy.zeros(1)
    fn(cupy.zeros(1 << 20), 1.0)
    cupy.cuda.Device().synchronize()
    for k in range(3):
        xs = cupy.full(1 << 20, float(k))
        with works:
            slow_fill(blocker, 0.0)
        out = fn(xs, 1.0, stream=works)
        where = xs.data.ptr
        del xs
        taken = [cupy.full(1 << 20, -1.0) for _ in range(2)]
        assert where not in [array.data.ptr for array in taken]
        works.synchronize()
        assert (cupy.asnumpy(out) == k + 2).all()


def test_graphs_replay_captured_calls(fn, cupy) -> None:
    xs, ys, out = cupy.ones(1000), cupy.ones(1000), cupy.zeros(1000)
    fn(xs, ys, out=out)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        fn(xs, ys, out=out)
        graph = stream.end_capture()
        xs.fill(5.0)
        graph.launch(stream)
    stream.synchronize()
    assert (cupy.asnumpy(out) == 7).all()
