"""Hilbert series, dimension and degree of monomial ideals, against counting."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from alkahest.groebner.hilbert import dimension, hilbert_series

IDEALS = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=5)


def standard(ideal, degree):
    """Monomials of a degree that no generator divides."""
    return [
        m
        for m in product(range(degree + 1), repeat=3)
        if sum(m) == degree
        and not any(all(a <= b for a, b in zip(g, m, strict=True)) for g in ideal)
    ]


@given(IDEALS)
def test_coefficients_count_the_monomials_outside_the_ideal(ideal):
    series = hilbert_series(ideal, 3)
    assert [series.coefficient(k) for k in range(9)] == [len(standard(ideal, k)) for k in range(9)]


@given(IDEALS)
def test_the_dimension_is_that_of_the_largest_free_coordinate_space(ideal):
    free = [
        len(kept)
        for size in range(4)
        for kept in combinations(range(3), size)
        if all(any(e for i, e in enumerate(m) if i not in kept) for m in ideal)
    ]
    expected = max(free, default=-1)
    assert dimension(ideal, 3) == expected
    assert hilbert_series(ideal, 3).dimension == max(expected, 0)


def test_series_of_known_ideals():
    assert str(hilbert_series([], 3)) == "(1)/(1 - t)**3"
    assert str(hilbert_series([(2, 0), (0, 3)], 2)) == "1 + 2*t + 2*t**2 + t**3"
    assert str(hilbert_series([(1, 1, 0), (1, 0, 1)], 3)) == "(1 + t - t**2)/(1 - t)**2"
    assert str(hilbert_series([(0, 0)], 2)) == "0"
    assert hilbert_series([(0, 0)], 2).degree == 0
    twisted_cubic = hilbert_series([(0, 2, 0, 0), (0, 1, 1, 0), (0, 0, 2, 0)], 4)
    assert (twisted_cubic.dimension, twisted_cubic.degree) == (2, 3)
