"""Polynomials that a basis gets as rows of a matrix."""

from __future__ import annotations

import numpy as np
import pytest

from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.packing import Layout, layout
from alkahest.groebner.engine.records import MonomialOrder
from alkahest.groebner.engine.reduction import DenseTerms


@pytest.fixture
def two_words() -> Layout:
    found = layout(MonomialOrder.grevlex(9), 8)
    assert found.words == 2
    return found


def rows_of(random: np.random.Generator, count: int, columns: int, *, full: bool) -> DenseTerms:
    """Rows with many zeros, of which none or some are empty."""
    dense = random.integers(1, 2**31, (count, columns), dtype=np.uint32)
    dense[random.random(dense.shape) < 0.3] = 0
    dense[:, 0] = 1 if full else 0
    if not full:
        dense[-1] = 0
    return DenseTerms.of(dense)


SHAPES = pytest.mark.parametrize(("count", "columns"), [(1, 1), (7, 40), (120, 900)])
THREADS = pytest.mark.parametrize("threads", [1, 3])


@SHAPES
@THREADS
def test_rows_become_polynomials(two_words: Layout, threads: int, count: int, columns: int) -> None:
    random = np.random.default_rng(count)
    monomials = two_words.pack(random.integers(0, 9, (columns, 9), dtype=np.uint32))
    rows = rows_of(random, count, columns, full=True)
    basis = Basis.empty(two_words)
    basis.append(monomials[:1], np.ones(1, np.uint32), np.ones(1, np.int64))

    first = basis.append_rows(monomials, rows, 5, threads)

    end = basis.terms
    assert (first, basis.count, end) == (1, count + 1, len(rows.values) + 1)
    assert np.array_equal(basis.words[:1], monomials[:1])
    assert np.array_equal(basis.words[1:end], monomials[rows.columns])
    assert np.array_equal(basis.coefficients[1:end], rows.values)
    assert np.array_equal(basis.lengths()[1:], rows.sizes)
    assert np.array_equal(basis.leads[: count + 1], basis.words[basis.offsets[: count + 1]])
    assert (basis.sugar[1 : count + 1] >= 5).all()


@SHAPES
@THREADS
def test_leading_monomials_get_other_tails(
    two_words: Layout, threads: int, count: int, columns: int
) -> None:
    random = np.random.default_rng(count)
    leads, monomials = (
        two_words.pack(random.integers(0, 9, (size, 9), dtype=np.uint32))
        for size in (count + 3, columns)
    )
    basis = Basis.empty(two_words)
    basis.append(leads, np.ones(len(leads), np.uint32), np.ones(len(leads), np.int64))
    chosen = random.permutation(len(leads))[:count].astype(np.int32)
    tails = rows_of(random, count, columns, full=False)

    offsets, words, values = basis.with_tails(chosen, monomials, tails, threads)

    assert np.array_equal(np.diff(offsets), tails.sizes + 1)
    at = 0
    for k, size in enumerate(tails.sizes):
        start, stop = offsets[k], offsets[k + 1]
        assert np.array_equal(words[start], leads[chosen[k]])
        assert values[start] == 1
        assert np.array_equal(words[start + 1 : stop], monomials[tails.columns[at : at + size]])
        assert np.array_equal(values[start + 1 : stop], tails.values[at : at + size])
        at += size
