"""Where the chunks of a large batch begin: even shares, and the pages of fresh results."""

from __future__ import annotations

import numpy as np
import pytest

from alkahest.backends.nvptx.chunks import Cut, Manifest, Track
from alkahest.backends.nvptx.hostbatch import CHUNKS_PER_THREAD, LEAST_CHUNK, PAGE_BYTES, _cut
from alkahest.backends.nvptx.hostlink import LANE_BYTES

TWO = Manifest((Track(8), Track(8), Track(8, is_output=True)))
ANY = 1 << 40


def starts(cut: Cut) -> list[int]:
    """The first point of every chunk, and the number of points."""
    found = [0, *range(cut.first, cut.n, cut.points), cut.n]
    assert len(found) == cut.chunks + 1
    return found


@pytest.mark.parametrize("n", [1, 2, 9, 10, 100, 101, 109, 110])
@pytest.mark.parametrize("first", [1, 9, 10])
def test_the_sizes_of_a_cut_are_those_of_its_chunks(n: int, first: int) -> None:
    cut = Cut(n, 10, first)
    sizes = np.diff(starts(cut)).tolist()
    assert sum(sizes) == n
    points, of_first, last = cut.sizes
    assert sizes[0] == of_first
    assert set(sizes[1:-1]) <= {points}
    if len(sizes) > 1:
        assert sizes[-1] == last


@pytest.mark.parametrize("hands", [1, 3, 16])
@pytest.mark.parametrize("power", [16, 18, 20, 22, 24, 27])
def test_every_thread_has_as_many_chunks_and_no_lane_is_exceeded(hands: int, power: int) -> None:
    cut = _cut(TWO, 1 << power, LANE_BYTES, hands, ANY, None)
    assert cut is not None
    assert TWO.layout(cut.points).end <= LANE_BYTES
    assert TWO.layout(cut.points).end >= 0.9 * min(LEAST_CHUNK, 24 << power)
    rounds = -(-cut.chunks // hands)
    assert cut.chunks > hands * (rounds - 1)
    if 24 << power > LEAST_CHUNK * hands * CHUNKS_PER_THREAD:
        assert cut.chunks >= hands * CHUNKS_PER_THREAD - hands // 2
        assert cut.chunks >= hands * (rounds - 0.5)


def test_lengths_of_powers_of_two_give_no_chunk_too_many() -> None:
    cut = _cut(TWO, 1 << 24, LANE_BYTES, 16, ANY, None)
    assert cut is not None
    assert cut.chunks == 96


@pytest.mark.parametrize("before", [0, 2, 8, 100_000, 262_143])
@pytest.mark.parametrize("itemsize", [4, 8, 16])
def test_chunks_of_fresh_results_begin_where_pages_do(itemsize: int, before: int) -> None:
    one = Manifest((Track(itemsize), Track(itemsize, is_output=True)))
    cut = _cut(one, 1 << 24, LANE_BYTES, 4, ANY, before)
    assert cut is not None
    assert itemsize * cut.points == PAGE_BYTES
    assert {itemsize * (start - before) % PAGE_BYTES for start in starts(cut)[1:-1]} == {0}


def test_pages_are_not_minded_by_small_batches_and_small_chunks() -> None:
    one = Manifest((Track(8), Track(8, is_output=True)))
    for manifest, n in ((one, 1 << 20), (TWO, 1 << 24)):
        cut = _cut(manifest, n, LANE_BYTES, 4, ANY, 77)
        assert cut == _cut(manifest, n, LANE_BYTES, 4, ANY, None)


def test_a_limit_holds_for_every_chunk() -> None:
    cut = _cut(TWO, 1 << 20, LANE_BYTES, 4, 1000, 77)
    assert cut == Cut.even(1 << 20, 1000)


def test_a_point_that_no_lane_holds_is_not_cut() -> None:
    wide = Manifest((*[Track(16)] * 300, Track(16, is_output=True)))
    assert _cut(wide, 100, 4096, 4, ANY, None) is None
