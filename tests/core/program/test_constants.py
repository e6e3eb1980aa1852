"""Exact constants are rounded once, correctly, to either real format."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkahest.program.constants import FORMATS, Exact, named, nearest


@given(st.fractions())
def test_nearest_float64_is_what_exact_division_of_integers_gives(value):
    assert nearest(value, FORMATS["float64"]) == value.numerator / value.denominator


@given(st.floats(width=64, allow_nan=False, allow_infinity=False))
def test_nearest_float32_of_a_double_is_numpys_conversion(value):
    with np.errstate(over="ignore"):
        assert nearest(Fraction(value), FORMATS["float32"]) == float(np.float32(value))


def test_nearest_float32_rounds_once_where_going_through_float64_rounds_twice():
    just_above_a_tie = Fraction(1) + Fraction(1, 2**24) + Fraction(1, 2**60)
    assert nearest(just_above_a_tie, FORMATS["float32"]) == 1 + 2**-23
    assert float(np.float32(float(just_above_a_tie))) == 1.0


def test_ties_go_to_even_and_the_ends_of_the_range_are_exact():
    double = FORMATS["float64"]
    assert nearest(Fraction(2**53 + 1), double) == 2.0**53
    assert nearest(Fraction(1, 2**1075), double) == 0.0
    assert nearest(Fraction(3, 2**1076), double) == 5e-324
    assert nearest(Fraction(2**1024 - 2**970), double) == float("inf")
    assert nearest(Fraction(2**1024 - 2**970 - 1), double) == 1.7976931348623157e308


@pytest.mark.parametrize(("name", "value"), [("pi", mpmath.pi), ("E", mpmath.e)])
def test_named_constants_are_enclosed_to_hundreds_of_bits(name, value):
    with mpmath.workprec(1000):
        low, high = (
            mpmath.mpf(q.numerator) / q.denominator for q in (named(name).low, named(name).high)
        )
        assert low < +value < high
        assert high - low < mpmath.mpf(2) ** -310


@given(st.integers(-30, 30), st.fractions(min_value=-100, max_value=100, max_denominator=50))
def test_expressions_of_pi_round_to_the_nearest_double(n, shift):
    got = (named("pi").power(n) + Exact.rational(shift)).nearest("float64")
    with mpmath.workprec(400):
        want = mpmath.pi**n + mpmath.mpf(shift.numerator) / shift.denominator
        assert got == float(mpmath.mpf(want))


def test_a_difference_that_is_exactly_zero_is_zero():
    assert (named("pi") + -named("pi")).nearest("float64") == 0.0


@pytest.mark.parametrize("base", [Fraction(10), Fraction(1, 10), Fraction(4, 3), named("pi").low])
def test_powers_beyond_every_format_overflow_quickly(base):
    with pytest.raises(OverflowError):
        Exact.rational(base).power(10**9)


def test_powers_of_minus_one_keep_the_parity_of_huge_exponents():
    assert Exact.rational(-1).power(10**30 + 1).fraction == -1
    assert Exact.rational(-1).power(10**30).fraction == 1


def test_a_power_with_a_long_base_and_exponent_stays_accurate():
    base = 1 + Fraction(1, 2**60)
    with mpmath.workprec(500):
        want = float((1 + mpmath.mpf(2) ** -60) ** (10**12))
    assert Exact.rational(base).power(10**12).nearest("float64") == want
