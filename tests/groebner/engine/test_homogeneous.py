"""Orders that are not graded, by way of a basis that is."""

from __future__ import annotations

import random

import numpy as np
import pytest
from buchberger import Arithmetic
from polysystems import dictionaries, random_ideal, system

from alkahest import SolverError
from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.homogeneous import Target, homogenised
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.numerator import numerator
from alkahest.groebner.engine.records import MonomialOrder

P = 2**31 - 1
QUADRICS = [
    {(2, 0, 0, 0): 2, (1, 1, 0, 0): 1, (0, 0, 2, 0): 3, (0, 0, 0, 1): 4, (0, 0, 0, 0): 4},
    {(2, 0, 0, 0): 2, (1, 0, 0, 1): 3, (0, 2, 0, 0): 2, (0, 1, 1, 0): 3, (0, 0, 0, 2): 1},
    {(2, 0, 0, 0): 3, (1, 0, 1, 0): 1, (0, 2, 0, 0): 1, (0, 0, 1, 1): 4, (0, 1, 0, 0): 3},
]
"""A curve in four dimensions, of degree 8; going to its lex basis directly takes gigabytes."""


@pytest.mark.parametrize("order", [MonomialOrder.lex(4), MonomialOrder.blocks((2, 2))])
@pytest.mark.parametrize("prime", [0, 5, P])
def test_a_curve_has_the_basis_that_its_graded_one_generates(order, prime):
    given = system(QUADRICS, 4)
    graded_order = MonomialOrder.grevlex(4)
    if prime:
        basis = groebner_modp(given, prime, order, deadline=None)[0]
        graded = groebner_modp(given, prime, graded_order)[0]
    else:
        basis, report = groebner_rational(given, order, certify=True)
        assert report.certainty == "certified"
        graded = groebner_rational(given, graded_order)[0]
    # All elements lie in the ideal, and leading monomials leave a curve of the same degree.
    arithmetic = Arithmetic(graded_order.weights, prime)
    pairs = [(arithmetic.lead(p), p) for p in dictionaries(graded)]
    assert not any(arithmetic.reduce(p, pairs) for p in dictionaries(basis))
    homogeneous = groebner_modp(homogenised(graded), prime or P, Target.of(graded, order).run_order)
    series = [
        np.trim_zeros(numerator(one.leading_exponents().tolist()), "b")
        for one in (homogeneous[0], graded)
    ]
    assert series[0] == series[1]
    dehomogenised = {tuple(row) for row in homogeneous[0].leading_exponents()[:, :4].tolist()}
    minimal = {
        m
        for m in dehomogenised
        if not any(o != m and all(a <= b for a, b in zip(o, m, strict=True)) for o in dehomogenised)
    }
    assert {tuple(row) for row in basis.leading_exponents().tolist()} == minimal


@pytest.mark.parametrize("prime", [0, 2, 65521])
def test_a_graded_basis_that_is_known_is_started_from(prime):
    draw = random.Random(prime)
    for _ in range(10):
        given = system(random_ideal(draw, 3, prime), 3)
        order = draw.choice([MonomialOrder.lex(3), MonomialOrder.blocks((1, 2))])
        if prime:
            graded = groebner_modp(given, prime, MonomialOrder.grevlex(3))[0]
            found = groebner_modp(graded.as_system(), prime, order, graded=graded)[0]
            expected = groebner_modp(given, prime, order)[0]
        else:
            graded = groebner_rational(given, MonomialOrder.grevlex(3))[0]
            found = groebner_rational(graded.as_system(), order, graded=graded)[0]
            expected = groebner_rational(given, order)[0]
        assert dictionaries(found) == dictionaries(expected)


def test_elements_become_homogeneous_in_one_more_variable():
    graded = groebner_modp(
        system([{(2, 0): 1, (0, 1): 3, (0, 0): 5}], 2), 7, MonomialOrder.grevlex(2)
    )
    exponents = homogenised(graded[0]).exponents
    assert exponents.tolist() == [[2, 0, 0], [0, 1, 1], [0, 0, 2]]


def test_the_order_of_the_run_compares_degrees_first():
    target = Target(MonomialOrder.lex(2), (1,), ())
    assert np.array_equal(target.run_order.weights, [[1, 1, 1], [1, 0, 0], [0, 1, 0]])
    assert target.run_order.is_graded


@pytest.mark.parametrize("limit", [{"deadline": 0.0}, {"memory": 1}])
def test_limits_hold_while_a_matrix_is_set_up(limit):
    with pytest.raises(SolverError) as caught:
        groebner_modp(system(QUADRICS, 4), P, MonomialOrder.lex(4), **limit)
    assert caught.value.code == "E-SOLVE-012"
