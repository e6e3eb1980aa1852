"""Chunks through the machine code of the copy threads, with a device made of Python."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from convoybench import POINTS, Bench, ProductAndSum

import alkahest as ak
from alkahest.backends.nvptx import convoy
from alkahest.backends.nvptx.chunks import Cut, Place
from alkahest.errors import CudaError
from alkahest.program import lower

X, Y = ak.symbols("x y")

SIZES = (1, 2, POINTS - 1, POINTS, POINTS + 1, 2 * POINTS - 1, 2 * POINTS, 2 * POINTS + 1, 1000)


@pytest.fixture(scope="module")
def two() -> Iterator[Bench]:
    """``x - 2*y`` and ``x < y`` of float64."""
    bench = Bench(lower([X - 2 * Y, ak.Lt(X, Y)], [X, Y]))
    yield bench
    bench.close()


@pytest.fixture
def bench(two: Bench) -> Bench:
    two.driver.calls.clear()
    two.driver.failing.clear()
    two.driver.grids.clear()
    two.driver.copied = {"upload": [], "download": []}
    return two


def columns_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    xs, ys = np.random.default_rng(n).normal(size=(2, n))
    return xs, ys


def check(xs: np.ndarray, ys: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
    assert np.array_equal(outputs[0], xs - 2 * ys)
    assert np.array_equal(outputs[1], xs < ys)


# Right values


@pytest.mark.parametrize("around_caches", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_every_size_around_the_borders_of_chunks_is_right(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, n: int, around_caches: bool
) -> None:
    monkeypatch.setattr(convoy, "AROUND_CACHES", around_caches)
    xs, ys = columns_of(n)
    values, less = np.full(n + 2, -7.0), np.zeros(n + 2, bool)
    bench.run([xs, ys], [values[1:-1], less[1:-1]])
    check(xs, ys, [values[1:-1], less[1:-1]])
    assert values[[0, -1]].tolist() == [-7.0, -7.0]
    assert not less[[0, -1]].any()
    assert bench.driver.calls["launch"] == -(-n // POINTS)
    assert bench.driver.calls["upload"] == bench.driver.calls["download"] == -(-n // POINTS)


LAYOUTS = {
    "contiguous": lambda n: (np.empty(n), slice(None)),
    "every other": lambda n: (np.empty(2 * n), slice(None, None, 2)),
    "every fifth": lambda n: (np.empty(5 * n), slice(2, None, 5)),
    "backwards": lambda n: (np.empty(n), slice(None, None, -1)),
    "backwards, every third": lambda n: (np.empty(3 * n), slice(None, None, -3)),
    "unaligned": lambda n: (np.empty(8 * n + 3, np.uint8)[3:].view(float), slice(None)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_and_results_of_any_stride_are_right(bench: Bench, layout: str) -> None:
    n = 3 * POINTS + 5
    xs, ys = columns_of(n)
    memory, part = LAYOUTS[layout](n)
    memory[part] = xs
    column = memory[part]
    column.flags.writeable = False
    target, part = LAYOUTS[layout](n)
    target[:] = 5
    rest = np.ones(len(target), bool)
    rest[part] = False
    values, less = target[part], np.zeros(4 * n, bool)
    bench.run([column, ys], [values, less[::4]])
    check(xs, ys, [values, less[::4]])
    assert (target[rest] == 5).all()
    assert less.sum() == less[::4].sum()


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("step", [1, 3])
def test_columns_of_every_dtype_are_right(dtype: str, step: int) -> None:
    bench = Bench(lower([X * Y, X + Y], [X, Y], dtype), device=ProductAndSum)
    n = 2 * POINTS + 3
    memory = np.arange(2 * n * step).astype(dtype)
    xs, ys = memory[: n * step : step], memory[n * step :: step]
    outputs = [np.empty(n * step, dtype)[::step] for _ in range(2)]
    bench.run([xs, ys], outputs)
    assert np.array_equal(outputs[0], xs * ys)
    assert np.array_equal(outputs[1], xs + ys)
    bench.close()


def test_a_spread_value_is_not_uploaded(bench: Bench) -> None:
    n = 5 * POINTS + 1
    xs, _ = columns_of(n)
    values, less = np.empty(n), np.empty(n, bool)
    places = [Place.STAGED, Place.SPREAD, Place.STAGED, Place.STAGED]
    bench.run([xs, np.broadcast_to(0.25, n)], [values, less], places)
    check(xs, np.full(n, 0.25), [values, less])
    assert bench.driver.copied["upload"] == [8 * POINTS] * 6


def test_page_locked_columns_are_copied_by_the_device_and_not_by_the_host(bench: Bench) -> None:
    n = 5 * POINTS + 1
    xs, ys = columns_of(n)
    values, less = np.empty(n), np.empty(n, bool)
    locked, staged = Place.LOCKED, Place.STAGED
    bench.run([xs, ys], [values, less], [locked, locked, locked, locked])
    check(xs, ys, [values, less])
    assert sorted(bench.driver.copied["upload"]) == [8, 8] + [8 * POINTS] * 10
    assert sum(bench.driver.copied["download"]) == 9 * n
    for places in ([locked, staged, staged, locked], [staged, locked, locked, staged]):
        values[:], less[:] = 0, False
        bench.run([xs, ys], [values, less], places)
        check(xs, ys, [values, less])


@pytest.mark.parametrize("copied", [0, 2])
def test_a_kernel_can_work_on_the_memory_of_the_host(bench: Bench, copied: int) -> None:
    for n in SIZES:
        xs, ys = columns_of(n)
        values, less = np.empty(n), np.empty(n, bool)
        bench.run([xs, ys], [values, less], copied=copied)
        check(xs, ys, [values, less])
    chunks = sum(-(-n // POINTS) for n in SIZES)
    assert bench.driver.calls["launch"] == chunks
    assert bench.driver.calls["upload"] == (chunks if copied else 0)
    assert bench.driver.calls["download"] == 0


def test_a_column_may_be_the_output(bench: Bench) -> None:
    n = 7 * POINTS + 1
    xs, ys = columns_of(n)
    for place in (Place.STAGED, Place.LOCKED):
        both, less = xs.copy(), np.empty(n, bool)
        bench.run([both, ys], [both, less], [place, Place.STAGED, place, Place.STAGED])
        check(xs, ys, [both, less])


def test_programs_without_columns_have_results_of_every_chunk() -> None:
    bench = Bench(lower([ak.ExprPool().rational(5, 2)], []))
    out = np.zeros(3 * POINTS + 1)
    bench.run([], [out])
    assert (out == 2.5).all()
    assert bench.driver.calls["upload"] == 0
    bench.close()


def test_many_outputs_and_a_table_of_addresses_are_right() -> None:
    bench = Bench(lower([X * 2**k + Y for k in range(12)], [X, Y]), with_table=True)
    n = 9 * POINTS + 2
    xs, ys = columns_of(n)
    outputs = [np.empty(n) for _ in range(12)]
    bench.run([xs, ys], outputs)
    for k, output in enumerate(outputs):
        assert np.array_equal(output, xs * 2**k + ys)
    bench.close()


def test_the_same_lanes_serve_programs_with_any_number_of_columns(bench: Bench) -> None:
    n = 5 * POINTS + 2
    xs, ys = columns_of(n)
    others = [Bench(lower([X * 2**k for k in range(count)], [X])) for count in (1, 4)]
    others.append(Bench(lower([X + k for k in range(6)], [X]), with_table=True))
    for _ in range(2):
        for other in others:
            outputs = [np.empty(n) for _ in other.program.outputs]
            assert other.run_on(bench, other.convoy([xs], outputs))
            steps = range(len(outputs))
            want = [xs + k if other.with_table else xs * 2**k for k in steps]
            assert all(np.array_equal(outputs[k], want[k]) for k in steps)
        outputs = [np.empty(n), np.empty(n, bool)]
        bench.run([xs, ys], outputs)
        check(xs, ys, outputs)


def test_the_last_chunk_has_its_own_grid(bench: Bench) -> None:
    for n, grids in ((2 * POINTS, [7, 7]), (2 * POINTS + 1, [5, 7, 7]), (3, [6])):
        bench.driver.grids.clear()
        xs, ys = columns_of(n)
        bench.run([xs, ys], [np.empty(n), np.empty(n, bool)], points=POINTS)
        assert sorted(bench.driver.grids) == grids


@pytest.mark.parametrize("n", [1, 8, 9, 9 + POINTS - 1, 9 + POINTS, 9 + POINTS + 1, 1000])
def test_the_first_chunk_may_be_smaller_than_the_others(bench: Bench, n: int) -> None:
    xs, ys = columns_of(n)
    values, less = np.full(n + 1, -7.0), np.zeros(n + 1, bool)
    bench.run([xs, ys], [values[:-1], less[:-1]], cut=Cut(n, POINTS, 9))
    check(xs, ys, [values[:-1], less[:-1]])
    assert values[-1] == -7
    whole, rest = divmod(max(0, n - 9), POINTS)
    assert Counter(bench.driver.grids) == Counter({6: 1, 7: whole, 5: rest > 0}) - Counter()


def test_times_are_taken_of_each_phase(bench: Bench) -> None:
    n = 40 * POINTS
    xs, ys = columns_of(n)
    made = bench.run([xs, ys], [np.empty(n), np.empty(n, bool)])
    seconds = made.seconds()
    assert all(0 < value < 10 for value in seconds), seconds


# Failures


STEPS = {
    "upload": ("E-CUDA-006", "copying columns to device 3, Bench: cuMemcpyHtoDAsync"),
    "launch": ("E-CUDA-006", "running a kernel on device 3, Bench: cuLaunchKernel"),
    "download": ("E-CUDA-006", "copying results from device 3, Bench: cuMemcpyDtoHAsync"),
    "record": ("E-CUDA-006", "copying results from device 3, Bench: cuMemcpyDtoHAsync"),
    "wait": ("E-CUDA-006", "running a kernel on device 3, Bench: cuEventSynchronize"),
}


@pytest.mark.parametrize("at_call", [1, 2, 7, 20])
@pytest.mark.parametrize("step", STEPS)
def test_a_failing_step_is_reported_and_leaves_nothing_in_flight(
    bench: Bench, step: str, at_call: int
) -> None:
    n = 20 * POINTS
    xs, ys = columns_of(n)
    outputs = [np.empty(n), np.empty(n, bool)]
    bench.driver.failing = {step: at_call}
    code, text = STEPS[step]
    with pytest.raises(CudaError, match=text) as caught:
        bench.run([xs, ys], outputs)
    assert caught.value.code == code
    assert "CUDA_ERROR_LAUNCH_FAILED (719)" in caught.value.message
    settled = bench.driver.calls["settle"]
    assert settled >= 1
    assert bench.driver.calls["record"] - bench.driver.calls["wait"] <= settled
    bench.driver.failing = {}
    bench.run([xs, ys], outputs)
    check(xs, ys, outputs)


def test_a_refused_copy_is_no_failed_kernel(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fakelink.FAILED", 1)
    xs, ys = columns_of(100)
    for step in ("upload", "download"):
        bench.driver.failing = {step: bench.driver.calls[step] + 1}
        with pytest.raises(CudaError, match=r"CUDA_ERROR_INVALID_VALUE \(1\)") as caught:
            bench.run([xs, ys], [np.empty(100), np.empty(100, bool)])
        assert caught.value.code == "E-CUDA-003"


# Several callers


def test_eight_threads_share_the_lanes_and_get_their_own_results(bench: Bench) -> None:
    def work(seed: int) -> None:
        n = 10 * POINTS + seed
        xs, ys = columns_of(n)
        outputs = [np.empty(n), np.empty(n, bool)]
        for _ in range(4):
            outputs[0][:] = 0
            bench.run([xs, ys], outputs)
            right.append(
                np.array_equal(outputs[0], xs - 2 * ys) and np.array_equal(outputs[1], xs < ys)
            )

    right: list[bool] = []
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 32
    assert len(bench.lanes) <= 6
