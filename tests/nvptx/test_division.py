"""Division by constants: quotients are those of IEEE division, nearly always bit by bit."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from alkahest.program.arithmetic import reciprocal

DIVISORS = [100.0, 3.0, -7.0, 10.0, 0.75, 1e6, 2.0**-400 * 5, 999_999_999_989.0, 1 / 1024, -6e5]


def _fma(x: float, y: float, z: float) -> float:
    return float(Fraction(x) * Fraction(y) + Fraction(z))


def _quotient(x: float, divisor: float) -> float:
    pair = reciprocal(divisor)
    assert pair is not None
    high, low = pair
    return _fma(x, high, x * low)


@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_are_correctly_rounded(divisor: float) -> None:
    rng = random.Random(1)
    for _ in range(500):
        x = math.ldexp(rng.uniform(-2, 2), rng.randrange(-500, 500))
        assert _quotient(x, divisor) == x / divisor


@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_nearest_to_the_middle_of_two_doubles_are_correctly_rounded(
    divisor: float,
) -> None:
    odd = Fraction(divisor).numerator
    rng = random.Random(2)
    for _ in range(500):
        middle = (rng.randrange(2**52, 2**53) * 2 + 1) * odd
        shift = max(middle.bit_length() - 53, 0)
        for x in ((middle >> shift) + k for k in (-1, 0, 1, 2)):
            assert _quotient(float(x), divisor) == float(x) / divisor


def test_the_low_part_has_the_sign_of_the_high_part() -> None:
    for divisor in DIVISORS:
        high, low = reciprocal(divisor) or (math.nan, math.nan)
        assert math.copysign(1, high) == math.copysign(1, divisor)
        assert low * high >= 0


def test_zeros_infinities_and_nan_divide_as_usual() -> None:
    high, low = reciprocal(100.0) or (math.nan, math.nan)
    for x in (0.0, -0.0):
        assert math.copysign(1, x * low) == math.copysign(1, x * high) == math.copysign(1, x)
    assert math.inf * high + math.inf * low == math.inf
    assert -math.inf * high - math.inf * low == -math.inf
    assert math.isnan(math.nan * high)


def test_a_power_of_two_has_an_exact_reciprocal() -> None:
    assert reciprocal(-0.25) == (-4.0, 0.0)


def test_tiny_quotients_are_off_by_one_ulp_at_most() -> None:
    rng = random.Random(3)
    for _ in range(500):
        x = math.ldexp(rng.uniform(-2, 2), rng.randrange(-1073, -950))
        assert abs(_quotient(x, 100.0) - x / 100.0) <= math.ulp(x / 100.0)


@pytest.mark.parametrize("divisor", [math.pi, 0.1, math.sqrt(2), -1 / 3])
def test_quotients_by_long_divisors_are_off_by_hardly_more_than_half_an_ulp(divisor: float) -> None:
    rng = random.Random(4)
    for _ in range(500):
        x = math.ldexp(rng.uniform(-2, 2), rng.randrange(-400, 400))
        got = _quotient(x, divisor)
        error = abs(Fraction(got) - Fraction(x) / Fraction(divisor))
        assert error / Fraction(math.ulp(got)) < Fraction(1, 2) + Fraction(1, 2**40)


@pytest.mark.parametrize("divisor", [0.0, 5e-324, 2.0**600, math.inf, math.nan])
def test_divisors_out_of_range_are_refused(divisor: float) -> None:
    assert reciprocal(divisor) is None
