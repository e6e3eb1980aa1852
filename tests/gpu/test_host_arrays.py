"""Large host arrays: right whatever their size, layout and memory, whoever calls."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from childprocess import Child
from cuda.bindings import driver

import alkahest as ak
from alkahest.backends.nvptx import device as device_module
from alkahest.backends.nvptx import hostbatch, hostlink

N = 3_000_001


@pytest.fixture(scope="module")
def columns() -> tuple[np.ndarray, np.ndarray]:
    xs, ys = np.random.default_rng(5).normal(size=(2, N))
    return xs, ys


@pytest.fixture
def fn() -> ak.CompiledFn:
    x, y = ak.symbols("x y")
    return ak.compile_cuda([x - 2 * y, ak.Lt(x, y)], [x, y])


def check(columns: tuple[np.ndarray, np.ndarray], outputs: tuple[np.ndarray, np.ndarray]) -> None:
    xs, ys = columns
    assert np.array_equal(outputs[0], xs - 2 * ys)
    assert np.array_equal(outputs[1], xs < ys)


@pytest.fixture
def locked() -> Iterator[list[np.ndarray]]:
    """Arrays that are page-locked while the test runs, registered by :func:`lock`."""
    arrays: list[np.ndarray] = []
    with device_module.open_device(0).current():
        yield arrays
        for array in arrays:
            assert int(driver.cuMemHostUnregister(array.ctypes.data)[0]) == 0


def lock(array: np.ndarray, arrays: list[np.ndarray]) -> np.ndarray:
    assert int(driver.cuMemHostRegister(array.ctypes.data, array.nbytes, 0)[0]) == 0
    arrays.append(array)
    return array


# Sizes and layouts


@pytest.mark.sanitize
@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("size", [hostlink.SMALL_BYTES, 4 * hostlink.LANE_BYTES])
def test_sizes_around_the_borders_of_chunks_and_ways_are_right(fn, size: int, step: int) -> None:
    n = size // 25 + step  # two columns, a result and a truth value per point
    xs, ys = np.random.default_rng(n).normal(size=(2, n))
    values, less = np.full(n + 64, -7.0), np.zeros(n + 64, bool)
    fn.call_batch([xs, ys], out=[values[32:-32], less[32:-32]])
    check((xs, ys), (values[32:-32], less[32:-32]))
    assert (values[:32] == -7).all()
    assert (values[-32:] == -7).all()
    assert not less[:32].any()
    assert not less[-32:].any()


@pytest.mark.parametrize("points", [1000, 4096, 77_777])
def test_chunks_of_any_size_give_the_same_bits(
    fn, columns, monkeypatch: pytest.MonkeyPatch, points: int
) -> None:
    monkeypatch.setenv("ALKAHEST_CUDA_CHUNK", str(points))
    check(columns, fn.call_batch(list(columns)))
    assert fn.report["chunks"] >= -(-N // points)


LAYOUTS = {
    "every other": lambda v: np.repeat(v, 2)[::2],
    "backwards": lambda v: v[::-1].copy()[::-1],
    "of a table": lambda v: np.array([v, v, v]).T[:, 1],
    "read-only": lambda v: np.frombuffer(v.tobytes()),
    "unaligned": lambda v: np.frombuffer(b"?" + v.tobytes(), offset=1),
}


@pytest.mark.sanitize
@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_columns_of_any_layout_are_right(fn, columns, layout: str) -> None:
    xs, ys = columns
    n = 500_003
    table, less = np.full((n, 3), -1.0), np.zeros(2 * n, bool)
    fn.call_batch([LAYOUTS[layout](xs[:n]), ys[:n]], out=[table[:, 1], less[::2]])
    check((xs[:n], ys[:n]), (table[:, 1], less[::2]))
    assert (table[:, [0, 2]] == -1).all()
    assert not less[1::2].any()


def test_one_value_is_uploaded_once(fn, columns) -> None:
    xs, _ = columns
    check((xs, np.full(N, 0.25)), fn.call_batch([xs, 0.25]))
    assert fn.report["bytes_up"] <= 8 * (N + 65_536)


def test_a_column_may_be_the_output(columns) -> None:
    x, y = ak.symbols("x y")
    xs, ys = columns[0].copy(), columns[1]
    ak.compile_cuda(x - 2 * y, [x, y]).call_batch([xs, ys], out=xs)
    assert np.array_equal(xs, columns[0] - 2 * ys)


@pytest.mark.sanitize
def test_many_columns_and_a_table_of_addresses_are_right() -> None:
    symbols = [ak.symbols(f"x{k}")[0] for k in range(600)]
    fn = ak.compile_cuda([symbols[0].pool.add(symbols), symbols[599] - symbols[0]], symbols)
    columns = [np.arange(5000.0) + k for k in range(600)]
    total, difference = fn.call_batch(columns)
    assert fn.report["chunks"] > 1
    assert np.array_equal(total, np.arange(5000.0) * 600 + 599 * 600 // 2)
    assert (difference == 599).all()


# Memory


def test_the_device_holds_a_few_chunks_and_not_the_batch(fn) -> None:
    device = device_module.open_device(0)
    xs, ys = np.ones((2, 1 << 26))
    with device.current():
        before = device.free_bytes()
        check((xs, ys), fn.call_batch([xs, ys]))
        used = before - device.free_bytes()
    link = hostlink.link_to(device)
    most = link.crew.threads * link.crew.depth * link.lane_bytes
    assert used <= most + (64 << 20)
    assert most < (xs.nbytes + ys.nbytes) / 2


@pytest.mark.sanitize
@pytest.mark.parametrize("which", ["columns", "outputs", "everything"])
def test_page_locked_arrays_are_recognised_and_right(fn, columns, locked, which: str) -> None:
    xs, ys = (column.copy() for column in columns)
    values, less = np.zeros(N), np.zeros(N, bool)
    for array in {"columns": [xs, ys], "outputs": [values, less]}.get(
        which, [xs, ys, values, less]
    ):
        lock(array, locked)
    fn.call_batch([xs, ys], out=[values, less])
    check(columns, (values, less))
    assert fn.report["staging"] == ("direct" if which == "everything" else "pinned")


def test_memory_that_is_page_locked_in_part_is_staged(fn, columns, locked) -> None:
    xs, ys = (column.copy() for column in columns)
    lock(xs[: N // 2], locked)
    check(columns, fn.call_batch([xs, ys]))


def test_memory_from_the_driver_is_used_as_it_is() -> None:
    import cupy

    x = ak.symbols("x")[0]
    memory = cupy.cuda.alloc_pinned_memory(2 * 8 * N)
    both = np.frombuffer(memory, float, 2 * N)
    xs, out = both[:N], both[N:]
    xs[:] = np.arange(N)
    fn = ak.compile_cuda(2 * x, [x])
    fn.call_batch([xs], out=out)
    assert fn.report["staging"] == "direct"
    assert np.array_equal(out, 2.0 * np.arange(N))


# Callers, streams, interruptions


def test_small_batches_are_right_both_ways(monkeypatch: pytest.MonkeyPatch, fn, columns) -> None:
    part = tuple(column[:10_000] for column in columns)
    for size in (hostlink.SMALL_BYTES, 0):
        monkeypatch.setattr(hostbatch, "MAPPED_BYTES", size)
        check(part, fn.call_batch(list(part)))


def test_eight_threads_at_once_get_their_own_results(fn, columns) -> None:
    def work(seed: int) -> bool:
        part = slice(seed, N - 1000 * seed)
        xs, ys = columns[0][part] + seed, columns[1][part]
        values, less = fn.call_batch([xs, ys])
        return bool((values == xs - 2 * ys).all() and (less == (xs < ys)).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


def test_work_begins_after_what_the_callers_stream_has_to_do() -> None:
    x = ak.symbols("x")[0]
    fn = ak.compile_cuda(2 * x, [x])
    device = device_module.open_device(0)
    n = 1 << 24
    source, xs = np.full(n, 3.0), np.zeros(n)
    with device.current() as stream:
        address = device.allocate(source.nbytes, stream)
        stream.sync()
        mine = device.core.create_stream()
        driver.cuMemcpyHtoDAsync(address, source.ctypes.data, source.nbytes, mine.handle)
        driver.cuMemHostRegister(xs.ctypes.data, xs.nbytes, 0)
        try:
            driver.cuMemcpyDtoHAsync(xs.ctypes.data, address, xs.nbytes, mine.handle)
            got = fn.call_batch([xs], stream=mine)
        finally:
            driver.cuMemHostUnregister(xs.ctypes.data)
            device.release(address, mine)
            mine.close()
    assert (got == 6).all()


def test_an_interrupted_call_leaves_a_usable_function(fn) -> None:
    xs, ys = np.ones((2, 1 << 26))
    fn.call_batch([xs, ys])
    values, less = np.zeros(1 << 26), np.zeros(1 << 26, bool)
    main = threading.main_thread().ident
    assert main is not None
    interrupted = 0
    for delay in (0.002, 0.005, 0.01):
        timer = threading.Timer(delay, signal.pthread_kill, (main, signal.SIGINT))
        try:
            timer.start()
            fn.call_batch([xs, ys], out=[values, less])
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            interrupted += 1
        done = np.count_nonzero(values)
        time.sleep(0.01)
        assert np.count_nonzero(values) == done
        values[:] = 0
    assert interrupted == 3
    check((xs, ys), fn.call_batch([xs, ys]))


def test_a_kernel_that_fails_among_many_chunks_is_reported(child: Child) -> None:
    code = """
import numpy as np
from alkahest.backends.nvptx.convoy import Convoy
x = ak.symbols("x")[0]
fn = ak.compile_cuda(x + 1, [x])
xs = np.ones(1 << 22)
fn.call_batch([xs])
Convoy._addresses = lambda self, lane: [1 << 12, 1 << 12]
found = []
for _ in range(2):
    try:
        fn.call_batch([xs])
    except ak.CudaError as error:
        found.append([error.code, error.message, error.remediation])
result = found
"""
    for number, message, remedy in child.ask(code):
        assert number == "E-CUDA-006"
        assert "(700)" in message
        assert "start a new process" in remedy


@pytest.fixture
def child(tmp_path) -> Iterator[Child]:
    """A process of its own."""
    with Child(tmp_path) as process:
        yield process
