"""How batches are cut, and where their columns lie in a block."""

from __future__ import annotations

import itertools

import pytest

from alkahest.backends.nvptx import chunks
from alkahest.backends.nvptx.chunks import ALIGNMENT, Manifest, Place, Track
from alkahest.errors import InputError

MIXED = (
    Track(8),
    Track(8, Place.LOCKED),
    Track(8, Place.SPREAD),
    Track(8),
    Track(1, is_output=True),
    Track(8, Place.LOCKED, is_output=True),
    Track(8, is_output=True),
)


@pytest.mark.parametrize("with_table", [False, True])
@pytest.mark.parametrize("points", [1, 31, 32, 33, 1000])
def test_columns_in_a_block_are_aligned_and_do_not_overlap(points: int, with_table: bool) -> None:
    layout = Manifest(MIXED, with_table).layout(points)
    ranges = sorted(
        (offset, offset + track.itemsize * points)
        for offset, track in zip(layout.offsets, MIXED, strict=True)
        if offset is not None
    )
    assert layout.offsets.count(None) == 1
    assert all(start % ALIGNMENT == 0 for start, _ in ranges)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
    assert ranges[0][0] == (ALIGNMENT if with_table else 0)
    assert ranges[-1][1] <= layout.end


def test_one_transfer_each_way_holds_what_the_host_copies_and_nothing_else() -> None:
    manifest = Manifest(MIXED, with_table=True)
    layout = manifest.layout(100)
    for place, outputs in itertools.product(Place, (False, True)):
        for k in manifest.positions(place, outputs=outputs):
            offset = layout.offsets[k]
            if offset is None:
                continue
            goes_up = offset < layout.up
            comes_down = layout.down <= offset < layout.end
            assert goes_up == (place is Place.STAGED and not outputs)
            assert comes_down == (place is Place.STAGED and outputs)


def test_nothing_goes_up_or_down_where_nothing_is_staged() -> None:
    layout = Manifest((Track(8, Place.LOCKED), Track(8, Place.LOCKED, is_output=True))).layout(7)
    assert layout.up == 0
    assert layout.down == layout.end
    layout = Manifest((Track(8, Place.SPREAD), Track(8, is_output=True))).layout(7)
    assert (layout.up, layout.down, layout.offsets) == (0, 0, (None, 0))


@pytest.mark.parametrize("size", [1 << 12, 10_000, 1 << 20, (4 << 20) + 1])
@pytest.mark.parametrize("with_table", [False, True])
def test_the_most_points_fit(size: int, with_table: bool) -> None:
    manifest = Manifest(MIXED, with_table)
    points = manifest.most_points(size)
    assert manifest.layout(points).end <= size
    assert points >= (size - 3000) // 49 - 512


def test_a_point_larger_than_the_block_is_a_chunk_all_the_same() -> None:
    assert Manifest((Track(8),) * 100, with_table=True).most_points(1000) == 1


def test_points_are_counted_in_more_than_32_bits() -> None:
    assert Manifest((Track(1), Track(1, is_output=True))).most_points(2**34) > 2**32
    assert chunks.rounded(2**33 + 1) == 2**33 + 512


@pytest.mark.parametrize("text", ["0", "-1", "1e6", "all", "1.5"])
def test_a_limit_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(chunks.CHUNK_VARIABLE, text)
    with pytest.raises(InputError, match="ALKAHEST_CUDA_CHUNK=") as caught:
        chunks.limit_of_environment()
    assert caught.value.code == "E-INPUT-011"
    assert caught.value.remediation is not None
    assert "largest number of points" in caught.value.remediation


@pytest.mark.parametrize(("text", "limit"), [("", None), ("  ", None), (" 7 ", 7)])
def test_the_limit_is_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, text: str, limit: int | None
) -> None:
    monkeypatch.setenv(chunks.CHUNK_VARIABLE, text)
    assert chunks.limit_of_environment() == limit
    monkeypatch.delenv(chunks.CHUNK_VARIABLE)
    assert chunks.limit_of_environment() is None
