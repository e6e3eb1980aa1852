"""Shared calls: every point once, from any thread, after a fork, as many threads as were asked for."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time
from typing import Any

import numpy as np
import pytest
from refusals import refused

from alkahest import ExprPool
from alkahest.backends.cpu.jit import call, threads, threads_code
from alkahest.backends.cpu.jit.runtime import runtime

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")

Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def ranges_of(n: int, chunk: int, count: int) -> tuple[list[tuple[int, int]], int]:
    """What a shared job was cut into, and the threads that took part."""
    seen: list[tuple[int, int]] = []

    @Body
    def body(data: int, scratch: int, begin: int, end: int) -> None:
        seen.append((begin, end))

    address = ctypes.cast(body, ctypes.c_void_p).value
    assert address is not None
    workers = runtime().pool
    used = workers.share(address, 0, 0, 0, n, chunk, workers.have(count))
    return sorted(seen), used


@pytest.mark.parametrize(("n", "chunk"), [(1, 1), (10, 3), (1000, 64), (64, 64), (65, 64)])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_point_is_computed_once(n: int, chunk: int, count: int) -> None:
    for _ in range(20):
        seen, used = ranges_of(n, chunk, count)
        assert seen == [(k, min(k + chunk, n)) for k in range(0, n, chunk)]
        assert 1 <= used <= count


def test_each_thread_has_scratch_memory_of_its_own() -> None:
    used: set[int] = set()
    inside = threading.Barrier(2, timeout=20)

    @Body
    def body(data: int, scratch: int, begin: int, end: int) -> None:
        used.add(scratch)
        inside.wait()

    address = ctypes.cast(body, ctypes.c_void_p).value
    assert address is not None
    workers = runtime().pool
    assert workers.have(2) == 2
    assert workers.share(address, 0, 4096, 128, 2, 1, 2) == 2
    assert used == {4096, 4096 + 128}


def test_a_caller_that_finds_the_workers_taken_works_alone() -> None:
    started, go_on = threading.Event(), threading.Event()

    @Body
    def slow(data: int, scratch: int, begin: int, end: int) -> None:
        started.set()
        go_on.wait(20)

    address = ctypes.cast(slow, ctypes.c_void_p).value
    assert address is not None
    workers = runtime().pool
    other = threading.Thread(target=workers.share, args=(address, 0, 0, 0, 1, 1, 2))
    other.start()
    assert started.wait(20)
    seen, used = ranges_of(10, 3, 2)
    go_on.set()
    other.join()
    assert (seen, used) == ([(0, 10)], 1)


def test_large_calls_are_shared_and_give_the_same_bits(compiled: Any) -> None:
    fn = compiled(pool.func("sin", [x]) * y, [x, y])
    a, b = np.random.default_rng(0).uniform(-9, 9, (2, 300_000))
    alone = fn.call_batch([a, b], threads=1)
    assert fn.report["threads"] == 1
    for count in (2, 3, 7) * 2:
        assert np.array_equal(fn.call_batch([a, b], threads=count), alone)
        assert 1 <= fn.report["threads"] <= count


def test_small_calls_are_not_shared_however_many_threads_are_allowed(compiled: Any) -> None:
    fn = compiled(x * y, [x, y])
    fn.call_batch([np.ones(100), np.ones(100)], threads=8)
    assert fn.report["threads"] == 1


def test_the_number_of_threads_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALKAHEST_NUM_THREADS", "3")
    assert threads.default_threads() == 3
    monkeypatch.setenv("ALKAHEST_NUM_THREADS", "100000")
    assert threads.default_threads() == threads.MOST_THREADS
    monkeypatch.delenv("ALKAHEST_NUM_THREADS")
    assert threads.default_threads() >= 1
    for wrong in ("0", "-1", "two"):
        monkeypatch.setenv("ALKAHEST_NUM_THREADS", wrong)
        with refused("E-INPUT-011", f"ALKAHEST_NUM_THREADS='{wrong}'"):
            threads.default_threads()


def test_one_thread_of_the_environment_keeps_large_calls_alone(
    monkeypatch: pytest.MonkeyPatch, compiled: Any
) -> None:
    monkeypatch.setenv("ALKAHEST_NUM_THREADS", "1")
    fn = compiled(x * y, [x, y])
    fn(np.ones(2_000_000), 2.0)
    assert fn.report["threads"] == 1


def test_apples_name_of_an_architecture_is_known() -> None:
    assert threads.code("arm64") == threads.code("aarch64") != threads.code("riscv64")


def test_without_posix_threads_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_threads_library", lambda: None)
    assert threads.code("x86_64") == threads_code.ALONE
    workers = threads.Pool(runtime().code.address)
    assert workers.have(4) == 1


def test_a_system_that_gives_no_more_threads_is_made_do_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = threads.Pool(runtime().code.address)
    monkeypatch.setattr(workers, "_start", lambda: False)
    assert workers.have(4) == 1
    assert workers.have(2) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_workers_of_its_own(compiled: Any) -> None:
    fn = compiled(pool.func("exp", [x]), [x])
    column = np.linspace(-1, 1, 400_000)
    want = fn.call_batch([column], threads=2)
    fast = fn.fast_call
    child = os.fork()
    if child == 0:
        ok = np.array_equal(fast(column), want)
        ok &= np.array_equal(fn.call_batch([column], threads=2), want)
        for _ in range(50):
            ok &= np.array_equal(fast(column), want)
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_chunks_hold_about_the_same_work_for_every_kernel() -> None:
    class Cheap:
        cost = 1.0

    class Dear:
        cost = 1000.0

    assert call.released_from(Cheap()) > 100 * call.released_from(Dear())  # type: ignore[arg-type]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs its counter")
def test_after_shared_calls_that_are_slower_than_one_thread_the_next_ones_are_not_shared() -> None:
    caller = threading.get_ident()
    slow = threading.Event()
    joined = threading.Event()

    @Body
    def body(data: int, scratch: int, begin: int, end: int) -> None:
        if threading.get_ident() != caller:
            joined.set()
            time.sleep(0.05)
        elif slow.is_set():
            joined.wait(20)

    address = ctypes.cast(body, ctypes.c_void_p).value
    assert address is not None
    workers = runtime().pool
    record = threads.record()

    def share() -> int:
        return workers.share(address, 0, 0, 0, 2, 1, workers.have(2), ctypes.addressof(record))

    assert share() == 1  # the first call finds out how long one thread takes
    assert record[0] > 0
    slow.set()
    assert share() == 2  # the caller waits for the worker, a thousand times as long
    slow.clear()
    assert [share() for _ in range(record[2])] == [1] * record[2]
    assert share() in (1, 2)


def test_calls_that_are_not_judged_are_always_shared(compiled: Any) -> None:
    fn = compiled(pool.func("sin", [x]) * pool.func("exp", [y]), [x, y])
    column = np.linspace(0, 1, 8_000_000)
    fn.call_batch([column, column], threads=2)
    assert fn.report["threads"] == 2
