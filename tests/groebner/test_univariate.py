"""Real roots of one polynomial."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import alkahest as ak
from alkahest import GF, GbPoly, InputError, SolverError, real_roots


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=7))
def test_there_are_as_many_roots_as_sturm_counts(coefficients):
    x = sympy.Symbol("x")
    poly = sympy.Poly(coefficients, x)
    if poly.is_zero:
        return
    roots = real_roots(poly, x)
    assert len(roots) == poly.count_roots()
    assert all(a.upper < b.lower for a, b in pairwise(roots))
    for root in roots:
        if root.rational is not None:
            assert poly.eval(sympy.Rational(root.lower.numerator, root.lower.denominator)) == 0
        else:
            assert (
                poly.count_roots(
                    *(sympy.Rational(e.numerator, e.denominator) for e in (root.lower, root.upper))
                )
                == 1
            )


def test_roots_ascend_with_multiplicities_and_exact_ends():
    pool = ak.ExprPool()
    x = pool.symbol("x")
    roots = real_roots((x - 1) ** 2 * (x**3 - 2), x, digits=30)
    assert [root.multiplicity for root in roots] == [2, 1]
    assert roots[0].rational == 1
    assert roots[0].exact(pool) is pool.integer(1)
    assert roots[1].exact(pool) is None
    assert roots[1].lower ** 3 < 2 < roots[1].upper ** 3
    assert roots[1].upper - roots[1].lower < Fraction(1, 10**30)
    assert float(roots[1]) == 2 ** (1 / 3)
    assert real_roots(5, "x") == []
    assert real_roots("x^2 + 1", "x") == []


@pytest.mark.parametrize("poly", ["sin(x)", "x + y", "1.5*x", GbPoly("x", "x", GF(7)), "x^-1"])
def test_what_is_no_rational_polynomial_in_one_variable_is_refused(poly):
    with pytest.raises(SolverError) as caught:
        real_roots(poly, "x")
    assert caught.value.code == "E-ROOT-001"


def test_zero_has_every_root():
    with pytest.raises(SolverError) as caught:
        real_roots("x - x", "x")
    assert caught.value.code == "E-ROOT-002"
    with pytest.raises(InputError):
        real_roots("x", "x", digits=0)
