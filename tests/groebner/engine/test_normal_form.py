"""Division by a basis: exact remainders, whatever their size."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from buchberger import Arithmetic
from polysystems import dictionaries, named, random_ideal, system

from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.normal_form import reduce_modp, reduce_rational
from alkahest.groebner.engine.records import MonomialOrder


def _remainders(forms):
    found = []
    for i, denominator in enumerate(forms.denominators):
        part = slice(int(forms.offsets[i]), int(forms.offsets[i + 1]))
        numbers = [Fraction(n, denominator) for n in forms.numerators[part]]
        exponents = map(tuple, forms.exponents[part].tolist())
        found.append(dict(zip(exponents, numbers, strict=True)))
    return found


def _expected(arithmetic, polynomials, basis):
    pairs = [(arithmetic.lead(g), g) for g in basis]
    return [arithmetic.reduce(arithmetic.clean(f), pairs) for f in polynomials]


@pytest.mark.parametrize("prime", [2, 3, 65521, 2**31 - 1])
def test_remainders_over_prime_fields_are_those_of_plain_division(prime):
    rng = random.Random(prime)
    order = MonomialOrder.grevlex(3)
    arithmetic = Arithmetic(order.weights, prime)
    for _ in range(25):
        basis = groebner_modp(system(random_ideal(rng, 3, prime), 3), prime, order)[0]
        wanted = [f for _ in range(4) for f in random_ideal(rng, 3, prime)]
        found = _remainders(reduce_modp(system(wanted, 3), basis, prime, order))
        assert found == _expected(arithmetic, wanted, dictionaries(basis))


def test_remainders_over_the_rationals_are_those_of_plain_division():
    rng = random.Random(9)
    order = MonomialOrder.grevlex(3)
    arithmetic = Arithmetic(order.weights)
    for _ in range(20):
        basis = groebner_rational(system(random_ideal(rng, 3), 3), order)[0]
        wanted = [f for _ in range(4) for f in random_ideal(rng, 3)]
        found = _remainders(reduce_rational(system(wanted, 3), basis, order))
        assert found == _expected(arithmetic, wanted, dictionaries(basis))


def test_generators_reduce_to_zero_and_one_does_not():
    polynomials, nvars = named("katsura-5")
    order = MonomialOrder.grevlex(nvars)
    basis, _ = groebner_rational(system(polynomials, nvars), order)
    one = {(0,) * nvars: 3}
    forms = reduce_rational(system([*polynomials, {}, one], nvars), basis, order)
    assert _remainders(forms) == [{}] * (len(polynomials) + 1) + [one]


def test_nothing_to_divide_leaves_nothing():
    order = MonomialOrder.lex(2)
    basis, _ = groebner_rational(system([{(1, 0): 2, (0, 1): 3}], 2), order)
    assert _remainders(reduce_rational(system([{}, {}], 2), basis, order)) == [{}, {}]
    assert _remainders(reduce_rational(system([], 2), basis, order)) == []


def test_remainders_have_numerators_of_any_size():
    order = MonomialOrder.lex(2)
    basis, _ = groebner_rational(system([{(1, 0): 3, (0, 0): -(2**90 + 1)}], 2), order)
    (found,) = _remainders(reduce_rational(system([{(40, 1): 1}], 2), basis, order))
    assert found == {(0, 1): Fraction(2**90 + 1, 3) ** 40}


def test_exponents_that_overflow_widen_the_fields():
    order = MonomialOrder.grevlex(2)
    basis = groebner_modp(system([{(1, 0): 1, (0, 0): 5}], 2), 7, order)[0]
    (found,) = _remainders(reduce_modp(system([{(200, 300): 1}], 2), basis, 7, order))
    assert found == {(0, 300): pow(-5, 200, 7)}
