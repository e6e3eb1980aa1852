"""The scalar operations against exact values, and at the edges of their domains."""

import math
import random
from fractions import Fraction

import pytest

from alkahest.expr.real_math import REAL
from alkahest.ops import OPS, Signature
from alkahest.testing import oracle

INF, NAN = math.inf, math.nan
NUMERIC = [n for n, op in OPS.items() if op.signature in (Signature.NUMERIC, Signature.REAL)]


def same(got: float, want: float) -> bool:
    if math.isnan(want):
        return math.isnan(got)
    return got == want and math.copysign(1, got) == math.copysign(1, want)


def test_every_operation_is_there():
    assert REAL.keys() == OPS.keys()


@pytest.mark.parametrize("name", NUMERIC)
def test_values_are_as_close_to_the_exact_ones_as_the_table_promises(name):

    op = OPS[name]
    draw = random.Random(name)
    for point in oracle.samples(name, 60, seed=7):
        parameter = draw.choice([-100, -5, -3, -1, 2, 3, 4, 7, 20]) if op.has_parameter else None
        extra = () if parameter is None else (parameter,)
        want = oracle.exact(name, point, parameter)
        got = REAL[name](*point, *extra)
        error = oracle.error_in_ulps(got, want, scale=oracle.scale(op))
        assert error <= oracle.bound(op), (point, parameter, got)


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("div", (1.0, 0.0), INF),
        ("div", (-1.0, 0.0), -INF),
        ("div", (1.0, -0.0), -INF),
        ("div", (0.0, 0.0), NAN),
        ("div", (NAN, 0.0), NAN),
        ("pow", (NAN, 0.0), 1.0),
        ("pow", (1.0, NAN), 1.0),
        ("pow", (0.0, -1.0), INF),
        ("pow", (-0.0, -3.0), -INF),
        ("pow", (-0.0, -2.0), INF),
        ("pow", (-INF, 3.0), -INF),
        ("pow", (-8.0, 1 / 3), NAN),
        ("pow", (-2.0, 1025.0), -INF),
        ("pow", (10.0, 400.0), INF),
        ("powi", (0.0, -1), INF),
        ("powi", (-0.0, -3), -INF),
        ("powi", (NAN, 0), 1.0),
        ("powi", (2.0, -1074), 5e-324),
        ("powi", (-1.0, 10**30 + 1), -1.0),
        ("powi", (-1.0, 10**30), 1.0),
        ("powi", (-1.0, 2**53 + 1), -1.0),
        ("powi", (-INF, 10**400 + 1), -INF),
        ("powi", (-0.0, -(10**400) - 1), -INF),
        ("powi", (0.5, 10**400), 0.0),
        ("sign", (-0.0,), 0.0),
        ("sign", (NAN,), NAN),
        ("sign", (-3.0,), -1.0),
        ("min", (-0.0, 0.0), -0.0),
        ("min", (0.0, -0.0), -0.0),
        ("min", (1.0, NAN), NAN),
        ("max", (-0.0, 0.0), 0.0),
        ("max", (0.0, -0.0), 0.0),
        ("max", (NAN, 1.0), NAN),
        ("floor", (-0.0,), -0.0),
        ("floor", (1e300,), 1e300),
        ("ceil", (-0.5,), -0.0),
        ("round", (2.5,), 2.0),
        ("round", (-0.5,), -0.0),
        ("round", (3.5,), 4.0),
        ("trunc", (-0.5,), -0.0),
        ("trunc", (-INF,), -INF),
        ("round", (NAN,), NAN),
        ("mod", (5.0, 0.0), NAN),
        ("mod", (-1.0, 3.0), 2.0),
        ("mod", (1.0, -3.0), -2.0),
        ("mod", (INF, 2.0), NAN),
        ("mod", (1.0, INF), 1.0),
        ("exp", (710.0,), INF),
        ("exp2", (1024.0,), INF),
        ("expm1", (1e-300,), 1e-300),
        ("log", (0.0,), -INF),
        ("log", (-0.0,), -INF),
        ("log", (-1.0,), NAN),
        ("log", (INF,), INF),
        ("log2", (0.0,), -INF),
        ("log10", (1000.0,), 3.0),
        ("log1p", (-1.0,), -INF),
        ("log1p", (-2.0,), NAN),
        ("sqrt", (-0.0,), -0.0),
        ("sqrt", (-1.0,), NAN),
        ("rsqrt", (0.0,), INF),
        ("rsqrt", (-1.0,), NAN),
        ("rsqrt", (INF,), 0.0),
        ("cbrt", (-8.0,), -2.0),
        ("cbrt", (-0.0,), -0.0),
        ("cbrt", (INF,), INF),
        ("hypot", (INF, NAN), INF),
        ("sin", (INF,), NAN),
        ("sin", (-0.0,), -0.0),
        ("asin", (1.0000000000000002,), NAN),
        ("atan2", (0.0, -0.0), math.pi),
        ("sinh", (-711.0,), -INF),
        ("cosh", (-711.0,), INF),
        ("acosh", (0.5,), NAN),
        ("atanh", (-1.0,), -INF),
        ("atanh", (1.5,), NAN),
        ("gamma", (0.0,), INF),
        ("gamma", (-0.0,), -INF),
        ("gamma", (-2.0,), NAN),
        ("gamma", (172.0,), INF),
        ("gamma", (5.0,), 24.0),
        ("gamma", (-INF,), NAN),
        ("lgamma", (0.0,), INF),
        ("lgamma", (-3.0,), INF),
        ("lgamma", (-INF,), INF),
        ("lgamma", (1e308,), INF),
        ("abs", (-0.0,), 0.0),
        ("im", (3.0,), 0.0),
        ("arg", (-2.0,), math.pi),
    ],
)
def test_results_at_the_edges(name, args, want):
    got = REAL[name](*args)
    assert same(got, want), got


def test_fma_rounds_once():
    draw = random.Random(5)
    for _ in range(200):
        a, b = (draw.uniform(-2, 2) for _ in range(2))
        c = -a * b * (1 + draw.choice([0, 2**-52, 1e-5]))
        assert REAL["fma"](a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ((1e200, 1e200, -INF), -INF),
        ((INF, 0.0, 1.0), NAN),
        ((INF, 1.0, -INF), NAN),
        ((1e200, 1e200, 1.0), INF),
        ((-1e200, 1e200, 1.0), -INF),
        ((1e200, 1e200, NAN), NAN),
        ((1.0, -0.0, -0.0), -0.0),
        ((1.0, 1.0, -1.0), 0.0),
        ((5e-324, 0.5, 0.0), 0.0),
        ((1e308, 10.0, -1.7e308), INF),
        ((1e308, 2.0, -1.7e308), 3e307),
    ],
)
def test_fma_at_the_edges(args, want):
    got = REAL["fma"](*args)
    assert same(got, want) or got == pytest.approx(want, rel=1e-15)
