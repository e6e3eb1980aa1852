"""Rational numbers from their images modulo primes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkahest import SolverError
from alkahest.groebner.lifting import lift

FRACTIONS = st.builds(Fraction, st.integers(-(10**40), 10**40), st.integers(1, 10**40))


def images(numbers):
    """The residues of numbers, or None modulo a prime that divides a denominator."""

    def image(prime):
        if any(n.denominator % prime == 0 for n in numbers):
            return None
        residues = [n.numerator * pow(n.denominator, -1, prime) % prime for n in numbers]
        return np.array(residues, np.uint64)

    return image


@given(st.lists(FRACTIONS, min_size=1, max_size=6), st.integers(0, 6))
def test_numbers_are_found_from_enough_images(numbers, split):
    groups = [min(split, len(numbers)), max(len(numbers) - split, 0)]
    found, primes = lift(images(numbers), groups)
    assert found == numbers
    assert len(set(primes)) == len(primes) >= 2


def test_a_number_whose_denominator_has_the_first_primes_is_found_from_others():
    number = Fraction(7, 2147483647 * 2147483629)
    found, primes = lift(images([number]), [1])
    assert found == [number]
    assert 2147483647 not in primes


def test_without_images_the_lift_is_given_up():
    with pytest.raises(SolverError) as caught:
        lift(lambda prime: None, [1])
    assert caught.value.code == "E-SOLVE-011"


def test_images_of_no_number_are_not_taken_for_one():
    rng = np.random.default_rng(1)

    def noise(prime):
        if prime < 2147480000:  # otherwise the search goes on for a billion primes
            return None
        return rng.integers(0, prime, 3).astype(np.uint64)

    with pytest.raises(SolverError, match="no rational numbers fit"):
        lift(noise, [3])
