"""Memory of large results is taken over when they are gone, and only then."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from alkahest.backends.cpu.jit import memory

LARGE = memory.SMALLEST // 8
DOUBLE = np.dtype("float64")

pytestmark = pytest.mark.skipif(memory.limit() == 0, reason="no memory is kept on this system")


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    memory._spare.clear()
    memory._lent.clear()
    yield
    memory._spare.clear()
    memory._lent.clear()


def address(array: Any) -> int:
    return int(array.ctypes.data)


def test_small_results_are_ordinary_arrays() -> None:
    assert memory.column(LARGE - 1, DOUBLE).flags.owndata


def test_a_large_result_takes_the_place_of_one_that_is_gone() -> None:
    first = memory.column(LARGE, DOUBLE)
    first[:] = 1.0
    place = address(first)
    assert first.flags.writeable
    assert first.flags.aligned
    del first
    assert address(memory.column(LARGE, DOUBLE)) == place


def test_results_that_are_alive_share_nothing() -> None:
    a, b = memory.outputs_for(LARGE, (DOUBLE, DOUBLE))
    assert not np.may_share_memory(a, b)
    a[:], b[:] = 1.0, 2.0
    assert a.sum() == LARGE


def test_several_results_take_over_memory_when_they_are_large_together() -> None:
    dtypes = (DOUBLE,) * 5
    n = memory.ordinary(dtypes)
    assert all(array.flags.owndata for array in memory.outputs_for(n, dtypes))
    several = memory.outputs_for(n + 1, dtypes)
    assert not any(array.flags.owndata for array in several)
    places = {address(array) for array in several}
    kept = several[2]
    kept[:] = 3.0
    del several
    again = memory.outputs_for(n + 1, dtypes)
    assert len(places & {address(array) for array in again}) == 4  # one is alive
    assert kept.sum() == 3.0 * (n + 1)


FAULTS_OF_CALLS = """
import resource

import numpy as np

from alkahest import ExprPool, compile_expr

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
fn = compile_expr([x + k * y for k in range(11)], [x, y], backend="cpu-jit", tier="compiled")
columns = np.ones(20_000), np.ones(20_000)
for call in (fn, fn.fast_call):
    for _ in range(5):
        call(*columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        call(*columns)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 50)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library's memory")
def test_several_results_are_not_in_new_pages_at_every_call(tmp_path: Path) -> None:
    script = tmp_path / "faults.py"
    script.write_text(FAULTS_OF_CALLS)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True
    )
    pages = 11 * 20_000 * 8 // 4096
    assert all(float(line) < pages / 10 for line in run.stdout.splitlines()), run.stdout
    assert len(run.stdout.splitlines()) == 2


def test_a_view_keeps_the_memory_of_its_array() -> None:
    whole = memory.column(LARGE, DOUBLE)
    whole[:] = np.arange(LARGE)
    view = whole[10:20:2]
    del whole
    other = memory.column(LARGE, DOUBLE)
    other[:] = -1.0
    assert view.tolist() == [10, 12, 14, 16, 18]
    del view
    assert len(memory._spare) == 1


def test_memory_that_is_much_too_large_is_left_for_others() -> None:
    large = memory.column(8 * LARGE, DOUBLE)
    place = address(large)
    del large
    small = memory.column(LARGE, DOUBLE)
    assert address(small) != place
    assert address(memory.column(8 * LARGE - 5, DOUBLE)) == place


def test_other_dtypes_take_the_same_memory() -> None:
    real = memory.column(LARGE, DOUBLE)
    place = address(real)
    del real
    pairs = memory.column(LARGE // 2, np.dtype("complex128"))
    assert address(pairs) == place
    assert pairs.dtype == np.complex128


def test_no_more_is_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "limit", lambda: 3 * memory.SMALLEST)
    columns = [memory.column(LARGE, DOUBLE) for _ in range(6)]
    places = [address(column) for column in columns]
    while columns:
        columns.pop(0)
    assert sum(block.size for block in memory._spare) <= 3 * memory.SMALLEST
    assert memory._spare[-1].address == places[-1]


def test_what_was_used_last_stays_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    lent = []
    monkeypatch.setattr(memory, "_AT_HAND", 2 * memory.SMALLEST)
    monkeypatch.setattr(memory._Block, "lend_back", lambda block: lent.append(block.address))
    columns = [memory.column(LARGE, DOUBLE) for _ in range(4)]
    places = [address(column) for column in columns]
    while columns:
        columns.pop(0)
    assert lent == places[:2]
    assert [block.address for block in memory._spare] == places[2:]
    for _ in range(5):  # as a function that is called again and again does
        again = memory.column(LARGE, DOUBLE)
        assert address(again) == places[3]
        del again
    assert lent == places[:2]
    assert {address(memory.column(LARGE, DOUBLE)) for _ in range(4)} == {places[3]}
    everything = [memory.column(LARGE, DOUBLE) for _ in range(4)]
    assert {address(column) for column in everything} == set(places)


def test_what_is_lent_counts_even_where_all_the_rest_is_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_AT_HAND", 2 * memory.SMALLEST)
    monkeypatch.setattr(memory, "limit", lambda: 3 * memory.SMALLEST)
    columns = [memory.column(size * LARGE, DOUBLE) for size in (3, 1, 1)]
    places = [address(column) for column in columns]
    columns.pop(0)
    assert [block.address for block in memory._lent] == places[:1]
    while columns:
        columns.pop(0)
    assert [block.address for block in memory._spare] == places[1:]
    assert not memory._lent


def test_garbage_is_collected_while_a_result_is_made() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself, self.array = self, memory.column(LARGE // 16, DOUBLE, 1)

    kept = [memory.column(LARGE // 16, DOUBLE, 1) for _ in range(40)]
    del kept
    threshold = gc.get_threshold()
    try:
        for count in range(1, 24):  # so that the collector runs at every step once
            gc.disable()
            gc.collect()
            Cycle()
            gc.set_threshold(count, *threshold[1:])
            gc.enable()
            assert len(memory.column(LARGE // 16, DOUBLE, 1)) == LARGE // 16
    finally:
        gc.set_threshold(*threshold)
        gc.enable()


def test_threads_make_and_drop_results_at_once() -> None:
    faults: list[str] = []

    def work(number: float) -> None:
        for _ in range(30):
            mine = memory.column(LARGE, DOUBLE)
            mine[::512] = number
            if not (mine[::512] == number).all():
                faults.append("somebody else wrote here")

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    original = memory.limit.__wrapped__
    monkeypatch.setenv("ALKAHEST_KEPT_MEMORY", "0")
    assert original() == 0
    monkeypatch.setenv("ALKAHEST_KEPT_MEMORY", "12345678")
    assert original() == 12345678
    monkeypatch.setenv("ALKAHEST_KEPT_MEMORY", "much")
    with refused("E-INPUT-011", "ALKAHEST_KEPT_MEMORY='much'"):
        original()
    monkeypatch.delenv("ALKAHEST_KEPT_MEMORY")
    monkeypatch.setattr(memory.sys, "platform", "plan9")
    assert original() == 0
