"""Memory of large results is taken over when they are gone, and only then."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from refusals import refused

from alkahest import result_memory

LARGE = result_memory.SMALLEST // 8
DOUBLE = np.dtype("float64")

pytestmark = pytest.mark.skipif(
    result_memory.limit() == 0, reason="no memory is kept on this system"
)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    result_memory._spare.clear()
    result_memory._lent.clear()
    yield
    result_memory._spare.clear()
    result_memory._lent.clear()


def address(array: Any) -> int:
    return int(array.ctypes.data)


def test_small_results_are_ordinary_arrays() -> None:
    assert result_memory.column(LARGE - 1, DOUBLE).flags.owndata


def test_a_large_result_takes_the_place_of_one_that_is_gone() -> None:
    first = result_memory.column(LARGE, DOUBLE)
    first[:] = 1.0
    place = address(first)
    assert first.flags.writeable
    assert first.flags.aligned
    del first
    assert address(result_memory.column(LARGE, DOUBLE)) == place


def test_results_that_are_alive_share_nothing() -> None:
    a, b = result_memory.outputs_for(LARGE, (DOUBLE, DOUBLE))
    assert not np.may_share_memory(a, b)
    a[:], b[:] = 1.0, 2.0
    assert a.sum() == LARGE


def test_several_results_take_over_memory_when_they_are_large_together() -> None:
    dtypes = (DOUBLE,) * 5
    n = result_memory.ordinary(dtypes)
    assert all(array.flags.owndata for array in result_memory.outputs_for(n, dtypes))
    several = result_memory.outputs_for(n + 1, dtypes)
    assert not any(array.flags.owndata for array in several)
    places = {address(array) for array in several}
    kept = several[2]
    kept[:] = 3.0
    del several
    again = result_memory.outputs_for(n + 1, dtypes)
    assert len(places & {address(array) for array in again}) == 4  # one is alive
    assert kept.sum() == 3.0 * (n + 1)


def test_a_view_keeps_the_memory_of_its_array() -> None:
    whole = result_memory.column(LARGE, DOUBLE)
    whole[:] = np.arange(LARGE)
    view = whole[10:20:2]
    del whole
    other = result_memory.column(LARGE, DOUBLE)
    other[:] = -1.0
    assert view.tolist() == [10, 12, 14, 16, 18]
    del view
    assert len(result_memory._spare) == 1


def test_memory_that_is_much_too_large_is_left_for_others() -> None:
    large = result_memory.column(8 * LARGE, DOUBLE)
    place = address(large)
    del large
    small = result_memory.column(LARGE, DOUBLE)
    assert address(small) != place
    assert address(result_memory.column(8 * LARGE - 5, DOUBLE)) == place


def test_other_dtypes_take_the_same_memory() -> None:
    real = result_memory.column(LARGE, DOUBLE)
    place = address(real)
    del real
    pairs = result_memory.column(LARGE // 2, np.dtype("complex128"))
    assert address(pairs) == place
    assert pairs.dtype == np.complex128


def test_no_more_is_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_memory, "limit", lambda: 3 * result_memory.SMALLEST)
    columns = [result_memory.column(LARGE, DOUBLE) for _ in range(6)]
    places = [address(column) for column in columns]
    while columns:
        columns.pop(0)
    assert sum(block.size for block in result_memory._spare) <= 3 * result_memory.SMALLEST
    assert result_memory._spare[-1].address == places[-1]


def test_what_was_used_last_stays_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    lent = []
    monkeypatch.setattr(result_memory, "_AT_HAND", 2 * result_memory.SMALLEST)
    monkeypatch.setattr(result_memory._Block, "lend_back", lambda block: lent.append(block.address))
    columns = [result_memory.column(LARGE, DOUBLE) for _ in range(4)]
    places = [address(column) for column in columns]
    while columns:
        columns.pop(0)
    assert lent == places[:2]
    assert [block.address for block in result_memory._spare] == places[2:]
    for _ in range(5):  # as a function that is called again and again does
        again = result_memory.column(LARGE, DOUBLE)
        assert address(again) == places[3]
        del again
    assert lent == places[:2]
    assert {address(result_memory.column(LARGE, DOUBLE)) for _ in range(4)} == {places[3]}
    everything = [result_memory.column(LARGE, DOUBLE) for _ in range(4)]
    assert {address(column) for column in everything} == set(places)


def test_what_is_lent_counts_even_where_all_the_rest_is_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(result_memory, "_AT_HAND", 2 * result_memory.SMALLEST)
    monkeypatch.setattr(result_memory, "limit", lambda: 3 * result_memory.SMALLEST)
    columns = [result_memory.column(size * LARGE, DOUBLE) for size in (3, 1, 1)]
    places = [address(column) for column in columns]
    columns.pop(0)
    assert [block.address for block in result_memory._lent] == places[:1]
    while columns:
        columns.pop(0)
    assert [block.address for block in result_memory._spare] == places[1:]
    assert not result_memory._lent


def test_garbage_is_collected_while_a_result_is_made() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself, self.array = self, result_memory.column(LARGE // 16, DOUBLE, 1)

    kept = [result_memory.column(LARGE // 16, DOUBLE, 1) for _ in range(40)]
    del kept
    threshold = gc.get_threshold()
    try:
        for count in range(1, 24):  # so that the collector runs at every step once
            gc.disable()
            gc.collect()
            Cycle()
            gc.set_threshold(count, *threshold[1:])
            gc.enable()
            assert len(result_memory.column(LARGE // 16, DOUBLE, 1)) == LARGE // 16
    finally:
        gc.set_threshold(*threshold)
        gc.enable()


def test_threads_make_and_drop_results_at_once() -> None:
    faults: list[str] = []

    def work(number: float) -> None:
        for _ in range(30):
            mine = result_memory.column(LARGE, DOUBLE)
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
    original = result_memory.limit.__wrapped__
    monkeypatch.setenv("ALKAHEST_KEPT_MEMORY", "0")
    assert original() == 0
    monkeypatch.setenv("ALKAHEST_KEPT_MEMORY", "12345678")
    assert original() == 12345678
    monkeypatch.setenv("ALKAHEST_KEPT_MEMORY", "much")
    with refused("E-INPUT-011", "ALKAHEST_KEPT_MEMORY='much'"):
        original()
    monkeypatch.delenv("ALKAHEST_KEPT_MEMORY")
    monkeypatch.setattr(result_memory.sys, "platform", "plan9")
    assert original() == 0
