"""Bases over prime fields and the rationals against references and an independent algorithm."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from buchberger import Arithmetic
from polysystems import DATA, dictionaries, named, random_ideal, reference, system

from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.records import MonomialOrder, PolynomialSystem

P = 2**31 - 1
REFERENCES = sorted(path.stem for path in DATA.glob("*_*.json"))
OURS = [name for name in REFERENCES if name.split("-")[0] in ("katsura", "cyclic", "noon", "eco")]

ORDERS = {
    "grevlex": MonomialOrder.grevlex(3),
    "lex": MonomialOrder.lex(3),
    "grlex": MonomialOrder.grlex(3),
    "elimination": MonomialOrder.blocks((1, 2)),
    "weighted": MonomialOrder.weighted((3, 1, 2)),
    "mixed signs": MonomialOrder(name="m", weights=[[1, 0, 2], [0, 1, -3], [-1, 0, 0]]),
}


def modp(polynomials, nvars, prime, order=None, **options):
    order = order or MonomialOrder.grevlex(nvars)
    return dictionaries(groebner_modp(system(polynomials, nvars), prime, order, **options)[0])


def rational(polynomials, nvars, order=None, **options):
    order = order or MonomialOrder.grevlex(nvars)
    return dictionaries(groebner_rational(system(polynomials, nvars), order, **options)[0])


def test_there_are_references_to_compare_with():
    assert len(OURS) >= 10


@pytest.mark.parametrize("name", OURS)
def test_a_basis_equals_the_one_that_other_programs_agree_on(name):
    characteristic, nvars, expected = reference(name)
    polynomials, _ = named(name.split("_")[0])
    if characteristic:
        assert modp(polynomials, nvars, characteristic, seed=3) == expected
    else:
        assert rational(polynomials, nvars, seed=3) == expected


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("prime", [2, 3, 5, 65521, P])
def test_random_ideals_over_prime_fields_agree_with_buchbergers_algorithm(prime, order):
    rng = random.Random(f"{prime} {order}")
    arithmetic = Arithmetic(ORDERS[order].weights, prime)
    for _ in range(20):
        polynomials = random_ideal(rng, 3, prime)
        expected = arithmetic.groebner(polynomials)
        assert modp(polynomials, 3, prime, ORDERS[order]) == expected, polynomials


@pytest.mark.parametrize("order", ORDERS)
def test_random_ideals_over_the_rationals_agree_with_buchbergers_algorithm(order):
    rng = random.Random(order)
    arithmetic = Arithmetic(ORDERS[order].weights)
    for _ in range(12):
        polynomials = random_ideal(rng, 3)
        expected = arithmetic.groebner(polynomials)
        assert rational(polynomials, 3, ORDERS[order]) == expected, polynomials


@pytest.mark.parametrize("prime", [7, 113, 131, 257, 65521, 1048583, P])
def test_a_larger_system_over_any_field_is_the_rational_basis_modulo_the_prime(prime):
    polynomials, nvars = named("katsura-6") if prime > 7 else named("cyclic-5")
    # Lucky primes all of them: no denominator of the rational basis is divisible.
    expected = [
        {m: c.numerator * pow(c.denominator, -1, prime) % prime for m, c in f.items()}
        for f in rational(polynomials, nvars)
    ]
    found = modp(polynomials, nvars, prime)
    assert found == [{m: c for m, c in f.items() if c} for f in expected]


def test_the_zero_ideal_has_an_empty_basis():
    assert modp([], 2, 7) == []
    assert modp([{}, {}], 2, 7) == []
    assert modp([{(1, 0): 7, (0, 2): 14}], 2, 7) == []
    assert rational([{}], 2) == []
    assert rational([{(1, 0): 1}, {(1, 0): -1}], 2) == [{(1, 0): 1}]


def test_a_constant_makes_the_unit_ideal():
    assert modp([{(0, 0): 3}, {(1, 1): 1}], 2, 7) == [{(0, 0): 1}]
    assert rational([{(0, 0): 3}, {(1, 1): 1}], 2) == [{(0, 0): 1}]
    assert rational([{(1, 0): 1}, {(1, 0): 1, (0, 0): 2}], 2) == [{(0, 0): 1}]


def test_a_ring_without_variables_has_two_ideals():
    assert modp([{(): 3}], 0, 7) == [{(): 1}]
    assert modp([{(): 7}], 0, 7) == []


def test_the_unit_ideal_is_found_over_the_smallest_field():
    polynomials = [
        {(2, 0, 0): 1, (0, 0, 0): 1},
        {(1, 1, 0): 1},
        {(0, 1, 1): 1, (0, 0, 0): 1},
    ]
    assert modp(polynomials, 3, 2) == [{(0, 0, 0): 1}]


def test_zeros_among_the_generators_change_nothing():
    # Several programs returned a wrong basis, or never returned, for this one.
    rest = [
        {(2, 0, 0): 1, (0, 2, 0): 1, (0, 0, 2): 1},
        {(1, 0, 0): 1, (0, 1, 0): 1, (0, 0, 1): 1},
        {(1, 0, 0): 1, (0, 1, 1): 1},
    ]
    expected = [
        {(0, 0, 3): 1, (0, 1, 0): 1, (0, 0, 1): 1},
        {(0, 2, 0): 1, (0, 0, 2): 1, (0, 1, 0): 1, (0, 0, 1): 1},
        {(0, 1, 1): 1, (0, 1, 0): 256, (0, 0, 1): 256},
        {(1, 0, 0): 1, (0, 1, 0): 1, (0, 0, 1): 1},
    ]
    assert modp(rest, 3, 257) == expected
    assert modp([{}, {}, {}, *rest], 3, 257) == expected


def test_equal_monomials_of_one_polynomial_are_added():
    given = PolynomialSystem(
        exponents=np.array([[1, 0], [0, 1], [1, 0]], np.uint32),
        coefficients=[1, 1, 4],
        offsets=np.array([0, 3]),
    )
    order = MonomialOrder.lex(2)
    assert dictionaries(groebner_modp(given, 7, order)[0]) == [{(1, 0): 1, (0, 1): 3}]
    assert dictionaries(groebner_modp(given, 5, order)[0]) == [{(0, 1): 1}]


def test_residues_may_come_as_an_array():
    given = PolynomialSystem(
        exponents=np.array([[1], [0]], np.uint32),
        coefficients=np.array([2, 2**40], np.uint64),
        offsets=np.array([0, 2]),
    )
    (found,) = dictionaries(groebner_modp(given, 101, MonomialOrder.lex(1))[0])
    assert found == {(1,): 1, (0,): 2**40 * pow(2, -1, 101) % 101}


@pytest.mark.parametrize("degree", [100, 20_000, 248_832])
def test_exponents_of_any_size_widen_the_fields(degree):
    # x^n - y and x - y give y^n - y; every power of x between is a column.
    found = modp([{(degree, 0): 1, (0, 1): 100}, {(1, 0): 1, (0, 1): 100}], 2, 101)
    assert found == [{(0, degree): 1, (0, 1): 100}, {(1, 0): 1, (0, 1): 100}]


def test_exponents_that_overflow_every_smaller_field_are_held():
    large = 3_000_000_000
    polynomials = [{(large, 0): 1, (0, 1): 1}, {(1, 1): 1}]
    expected = [{(large, 0): 1, (0, 1): 1}, {(1, 1): 1}, {(0, 2): 1}]
    assert modp(polynomials, 2, 101) == expected
    assert rational(polynomials, 2) == expected


def test_the_result_does_not_depend_on_the_seed():
    polynomials, nvars = named("cyclic-5")
    assert modp(polynomials, nvars, P, seed=1) == modp(polynomials, nvars, P, seed=2)
    assert rational(polynomials, nvars, seed=1) == rational(polynomials, nvars, seed=2)


def test_coefficients_of_any_size_are_lifted():
    # 300-bit numbers: more primes than any fixed list would have.
    for bits in (1, 31, 80, 300, 1200):
        number = 2**bits + 12345
        assert rational([{(1, 0): 1, (0, 0): -number}], 2) == [{(1, 0): 1, (0, 0): -number}]
        (found,) = rational([{(0, 1): number, (0, 0): 3 ** (bits // 2)}], 2)
        assert found[(0, 0)] * number == 3 ** (bits // 2)


def test_primes_that_divide_a_leading_coefficient_are_not_used():
    order = MonomialOrder.grevlex(2)
    polynomials = [{(1, 1): 2147483647 * 2147483629, (0, 0): 1}, {(2, 0): 1, (0, 1): 2147483587}]
    basis, report = groebner_rational(system(polynomials, 2), order)
    assert not {2147483647, 2147483629} & set(report.primes)
    assert dictionaries(basis) == Arithmetic(order.weights).groebner(polynomials)


def test_a_prime_that_loses_a_solution_is_dropped():
    # Modulo any of the first primes of the search, x = y + p gives x = y.
    from alkahest.groebner.engine.primes import primes_below

    primes = primes_below(P, [1])
    unlucky = prod(next(primes) for _ in range(3))
    polynomials = [{(1, 1): 1}, {(1, 0): 1, (0, 1): -1, (0, 0): -unlucky}]
    order = MonomialOrder.lex(2)
    basis, report = groebner_rational(system(polynomials, 2), order, seed=None)
    assert dictionaries(basis) == Arithmetic(order.weights).groebner(polynomials)
    assert all(unlucky % p for p in report.primes)


def test_the_report_says_how_sure_the_result_is_and_what_was_done():
    polynomials, nvars = named("katsura-4")
    order = MonomialOrder.grevlex(nvars)
    _, small, _ = groebner_modp(system(polynomials, nvars), 101, order)
    assert small.certainty == "exact"
    assert small.primes == (101,)
    assert [r.degree for r in small.rounds][-1] == -1
    assert sum(r.new for r in small.rounds) >= 10
    assert all(r.rows <= r.nonzeros and r.columns <= r.nonzeros for r in small.rounds[:-1])
    _, lifted = groebner_rational(system(polynomials, nvars), order)
    assert lifted.certainty == "probabilistic"
    assert lifted.reductions_on_gpu == lifted.reductions_on_cpu == 0
    assert set(lifted.seconds) == {"learn", "replay", "confirm", "lift"}
