"""From input polynomials to sorted terms and their residues."""

from __future__ import annotations

from fractions import Fraction

import pytest
from polysystems import system

from alkahest.groebner.engine.packing import layout
from alkahest.groebner.engine.prepare import generators
from alkahest.groebner.engine.records import MonomialOrder

PRIMES = [2147483647, 65521, 7]


def given(polynomials):
    return generators(system(polynomials, 2), layout(MonomialOrder.grevlex(2), 8))


@pytest.mark.parametrize("large", [1, 10**40], ids=["words", "longer than words"])
def test_residues_are_those_of_the_monic_polynomials(large):
    found = given([{(2, 0): -3 * large, (1, 1): 5, (0, 0): -(2**40)}, {(0, 1): 4, (0, 0): -9}])
    assert found.sizes.tolist() == [2, 3]
    monic = [Fraction(c) for c in (1, Fraction(-9, 4), 1, Fraction(-5, 3 * large))]
    monic.append(Fraction(2**40, 3 * large))
    primes = [p for p in PRIMES if 3 * large % p]
    expected = [[c.numerator * pow(c.denominator, -1, p) % p for p in primes] for c in monic]
    assert found.images(primes).tolist() == expected


def test_a_prime_that_divides_a_leading_coefficient_is_refused():
    found = given([{(1, 0): 14, (0, 0): 1}])
    with pytest.raises(ZeroDivisionError):
        found.images(PRIMES)
