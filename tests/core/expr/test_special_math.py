"""Special functions beyond the ranges in which every backend is compared."""

import math
import random

import mpmath
import pytest

from alkahest.expr.special_math import digamma, erfinv, j0, j1, y0, y1

INF, NAN = math.inf, math.nan


def draw(low: float, high: float, count: int = 80, *, seed: int = 3) -> list[float]:
    generator = random.Random(seed)
    return [generator.uniform(low, high) for _ in range(count)]


def spread(low: float, high: float, count: int = 60) -> list[float]:
    return [math.exp(v) for v in draw(math.log(low), math.log(high), count)]


def test_erfinv_is_accurate_up_to_the_last_float_before_one():
    points = [*draw(-1, 1), *spread(1e-300, 1.0), *(1 - 2.0**-k for k in range(1, 54)), 0.5]
    with mpmath.workdps(40):
        for y in points:
            want = mpmath.erfinv(mpmath.mpf(y))
            assert abs(erfinv(y) - want) <= 4 * math.ulp(abs(float(want))), y


def test_erfinv_at_the_edges():
    assert (erfinv(1.0), erfinv(-1.0)) == (INF, -INF)
    assert math.isnan(erfinv(1.5))
    assert math.isnan(erfinv(NAN))
    assert math.copysign(1, erfinv(-0.0)) == -1
    assert erfinv(5e-324) == 5e-324


def test_digamma_is_accurate_on_both_sides_of_zero():
    with mpmath.workdps(40):
        for x in [*draw(-30, 30), *spread(1e-300, 1e300), *(-v for v in spread(1e-5, 1)), 1.4616]:
            want = mpmath.digamma(mpmath.mpf(x))
            scale = max(
                abs(float(want)), abs(math.pi / math.tan(math.pi * x)) if x < 0 else 1.0, 1.0
            )
            assert abs(digamma(x) - want) <= 8 * math.ulp(scale), x


def test_digamma_at_the_edges():
    assert (digamma(0.0), digamma(-0.0), digamma(INF)) == (-INF, INF, INF)
    assert all(math.isnan(digamma(x)) for x in (-1.0, -2.0, -1e300, -INF, NAN))


@pytest.mark.parametrize(
    ("function", "exact", "odd"),
    [
        pytest.param(j0, mpmath.j0, 1, id="j0"),
        pytest.param(j1, mpmath.j1, -1, id="j1"),
        pytest.param(y0, lambda x: mpmath.bessely(0, x), 0, id="y0"),
        pytest.param(y1, lambda x: mpmath.bessely(1, x), 0, id="y1"),
    ],
)
def test_bessel_functions_are_accurate_from_tiny_to_large_arguments(function, exact, odd):
    with mpmath.workdps(40):
        for x in [*draw(0, 60), *spread(1e-12, 1e5), 1.0, 25.0, 24.999999999999996]:
            want = exact(mpmath.mpf(x))
            # Near zeros the error counts against the size of the oscillation.
            scale = max(abs(float(want)), min(1.0, math.sqrt(2 / (math.pi * x))))
            assert abs(function(x) - want) <= 8 * math.ulp(scale), x
            if odd:
                assert function(-x) == odd * function(x)
            else:
                assert math.isnan(function(-x))


def test_bessel_functions_at_the_edges():
    assert (j0(0.0), j1(0.0), y0(0.0), y1(0.0)) == (1.0, 0.0, -INF, -INF)
    assert math.copysign(1, j1(-0.0)) == -1
    assert [f(INF) for f in (j0, j1, y0, y1)] == [0.0] * 4
    assert all(math.isnan(f(NAN)) for f in (j0, j1, y0, y1))
    assert y1(5e-324) == -INF
    assert j1(5e-324) in (0.0, 5e-324)
