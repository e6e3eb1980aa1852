"""Every row of the table gives the right numbers; the emulated device executes what a GPU would.

The kit of every backend (``test_conformance``) samples ordinary operands; here are the extreme
ones: arguments that need exact reduction, neighbourhoods of roots and poles, subnormal numbers.
"""

import math
import random
from functools import cache

import numpy as np
import pytest

from alkahest.backends.nvptx import libdevice
from alkahest.backends.nvptx.accuracy import DEFAULT, STRICT
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.backends.nvptx.lowerings import (
    DTYPES,
    LOWERINGS,
    REFUSED,
    ROWS,
    SPLIT,
    SUPPORT,
    Library,
)
from alkahest.ops import DTYPES as ALL_DTYPES
from alkahest.ops import OPS
from alkahest.plugin import Batch
from alkahest.testing import oracle
from alkahest.testing.programs import single

COUNT = 24
FLOAT32_ULP = 4  # libdevice documents up to 4 ulps for single precision functions


MODES = (STRICT, DEFAULT)  # the fast mode promises less


@cache
def compiled(op, dtype, parameter, mode):
    return EmulatedEvaluator(single(op, dtype, parameter), mode=mode)


def run(op, *columns, dtype="float64", parameter=None, mode=STRICT):
    arrays = np.broadcast_arrays(*[np.asarray(c, dtype) for c in columns])
    batch = Batch(columns=tuple(a.ravel() for a in arrays), n=arrays[0].size)
    (values,) = compiled(op, dtype, parameter, mode).evaluate(batch).outputs
    return values


def test_the_tables_cover_the_operations_exactly():
    assert LOWERINGS.keys() | SPLIT | REFUSED.keys() == OPS.keys()
    assert not LOWERINGS.keys() & (SPLIT | REFUSED.keys())
    assert SUPPORT.lowers.keys() == LOWERINGS.keys() | SPLIT
    assert {SUPPORT.lowers[op] for op in LOWERINGS} == {frozenset(ALL_DTYPES)}
    assert {SUPPORT.lowers[op] for op in SPLIT} == {frozenset(ALL_DTYPES) - DTYPES}
    assert SUPPORT.refuses == REFUSED


def test_libdevice_has_every_function_of_the_table_in_both_precisions():
    symbols = [
        row.name + f
        for row in LOWERINGS.values()
        if isinstance(row, Library)
        for f in "f ".split(" ")
    ]
    extract = libdevice.load().extract(symbols, "sm_75")
    assert all(f"@{symbol}(" in extract.definitions for symbol in symbols)


# Extreme operands: (operation, smallest, largest, signs). Magnitudes are drawn logarithmically.
MAGNITUDES = [
    ("exp", 1e-300, 700.0, "+-"),
    ("exp2", 1e-300, 1020.0, "+-"),
    ("expm1", 1e-300, 700.0, "+-"),
    ("log", 5e-324, 1.7e308, "+"),
    ("log2", 5e-324, 1.7e308, "+"),
    ("log10", 5e-324, 1.7e308, "+"),
    ("log1p", 1e-300, 1e300, "+"),
    ("log1p", 1e-18, 0.9999, "-"),
    ("sqrt", 5e-324, 1.7e308, "+"),
    ("rsqrt", 5e-324, 1.7e308, "+"),
    ("cbrt", 5e-324, 1.7e308, "+-"),
    ("sin", 1e-300, 1.7e308, "+-"),
    ("cos", 1e-300, 1.7e308, "+-"),
    ("tan", 1e-300, 1.7e308, "+-"),
    ("asin", 1e-300, 1.0, "+-"),
    ("acos", 1e-300, 1.0, "+-"),
    ("atan", 1e-300, 1e300, "+-"),
    ("sinh", 1e-300, 710.0, "+-"),
    ("cosh", 1e-300, 710.0, "+-"),
    ("tanh", 1e-300, 700.0, "+-"),
    ("asinh", 1e-300, 1e300, "+-"),
    ("acosh", 1.0, 1e300, "+"),
    ("atanh", 1e-300, 0.9999, "+-"),
    ("erf", 1e-300, 6.0, "+-"),
    ("erfc", 1e-3, 26.0, "+"),
    ("erfinv", 1e-300, 0.9999, "+-"),
    ("gamma", 1e-300, 170.0, "+"),
    ("gamma", 1e-10, 20.0, "-"),
    ("lgamma", 1e-300, 1e300, "+"),
    ("lgamma", 1e-10, 40.0, "-"),
    ("digamma", 1e-300, 1e300, "+"),
    ("digamma", 1e-300, 1e3, "-"),
    ("j0", 1e-10, 1e7, "+-"),
    ("j1", 1e-10, 1e7, "+-"),
    ("y0", 1e-10, 1e7, "+"),
    ("y1", 1e-10, 1e7, "+"),
]


def magnitudes(op, low, high, signs, dtype):
    generator = random.Random(f"{op} {signs}")
    if dtype == "float32":
        low, high = max(low, 1e-37), min(high, 3e38)
    drawn = [math.exp(generator.uniform(math.log(low), math.log(high))) for _ in range(COUNT)]
    values = [(1 if generator.choice(signs) == "+" else -1) * x for x in drawn]
    return np.array(values).astype(dtype).tolist()


def worst(op, points, dtype="float64"):
    """(ulps, point, mode) of the largest error at ``points``, each a tuple of operands."""
    scale = oracle.scale(OPS[op])
    exact = [oracle.exact(op, point) for point in points]
    errors = []
    for mode in MODES[: 1 + (ROWS[DEFAULT][op] != ROWS[STRICT][op])]:
        got = run(op, *zip(*points, strict=True), dtype=dtype, mode=mode).tolist()
        errors += [
            (oracle.error_in_ulps(value, want, dtype, scale), point, mode)
            for value, want, point in zip(got, exact, points, strict=True)
        ]
    return max(errors)


def allowed(op, dtype):
    bound = oracle.bound(OPS[op])
    return bound if dtype == "float64" or bound <= 0.5 else max(bound, FLOAT32_ULP)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize(("op", "low", "high", "signs"), MAGNITUDES)
def test_extreme_operands_are_within_the_bound(op, low, high, signs, dtype):
    points = [(x,) for x in magnitudes(op, low, high, signs, dtype)]
    error, *where = worst(op, points, dtype)
    assert error <= allowed(op, dtype), where


NEAR = [
    ("log", 1.0),
    ("log2", 1.0),
    ("log10", 1.0),
    ("asin", 0.99),
    ("acos", 0.99),
    ("acosh", 1.001),
    ("tan", 1.5707963267948966),
    ("sin", 3.141592653589793),
    ("lgamma", 1.0),
    ("lgamma", 2.0),
    ("lgamma", -2.457024738220801),  # a root
    ("gamma", -1.001),
    ("digamma", 1.4616321449683622),  # the positive root
    ("digamma", -0.5040830082644554),  # the first negative root
    ("digamma", 10.0),  # where the recurrence ends
    ("digamma", -3.001),
    ("j0", 2.404825557695773),
    ("j0", 14.0),  # where the asymptotic form begins
    ("j0", 24.0),  # and in single precision
    ("j1", 14.0),
    ("j1", -24.0),
    ("y0", 14.0),
    ("y0", 24.0),
    ("y1", 14.0),
    ("y1", 24.0),
]


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize(("op", "centre"), NEAR)
def test_operands_near_roots_poles_and_seams_are_within_the_bound(op, centre, dtype):
    steps = np.array([-1e5, -1e3, -10, -2, -1, 0, 1, 2, 10, 1e3, 1e5])
    centre = np.dtype(dtype).type(centre)
    points = [(float(x),) for x in (centre + steps * np.spacing(centre)).astype(dtype)]
    error, *where = worst(op, points, dtype)
    assert error <= allowed(op, dtype), where


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_powers_with_exponents_around_one_and_large_results_are_within_the_bound(dtype):
    generator = random.Random(3)
    if dtype == "float64":
        points = [
            (1 + generator.uniform(-1e-3, 1e-3), generator.uniform(-5e5, 5e5)) for _ in range(COUNT)
        ]
    else:
        points = [
            (1 + generator.uniform(-1e-2, 1e-2), generator.uniform(-5e3, 5e3)) for _ in range(COUNT)
        ]
    points = [tuple(np.array(p).astype(dtype).tolist()) for p in points]
    error, *where = worst("pow", points, dtype)
    assert error <= allowed("pow", dtype), where


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("n", [5, 7, 16, 17, 63, 64, 65, 1000, -5, -16, -63, -64, -999])
def test_integer_powers_are_within_the_bound_up_to_overflow_and_underflow(n, dtype):
    generator = random.Random(n)
    least, most = (-1070, 1023) if dtype == "float64" else (-147, 127)
    xs = [2 ** (generator.uniform(least, most) / n) for _ in range(COUNT)]
    xs = (np.array(xs) * generator.choice([1, -1])).astype(dtype).tolist()
    for mode in MODES:
        got = run("powi", xs, dtype=dtype, parameter=n, mode=mode).tolist()
        for x, value in zip(xs, got, strict=True):
            error = oracle.error_in_ulps(value, oracle.exact("powi", (x,), n), dtype)
            assert error <= OPS["powi"].ulp, (x, mode)


@pytest.mark.parametrize("n", [-4, -3, -2, -1, 1, 2, 3, 4])
def test_small_powers_are_products_and_quotients_bit_for_bit(n):
    xs = np.array([1.1, -0.7, 3e77, -2e-81, 5e-324, -0.0, math.inf, -math.inf])
    with np.errstate(all="ignore"):
        want = xs if n > 0 else 1 / xs
        for _ in range(abs(n) - 1):
            want = want * xs if n > 0 else want / xs
    np.testing.assert_array_equal(run("powi", xs, parameter=n), want)


HUGE = {"2**53 + 1": 2**53 + 1, "10**30 + 1": 10**30 + 1, "10**400 + 1": 10**400 + 1}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("exponent", HUGE)
def test_odd_powers_beyond_a_double_keep_the_sign(exponent, sign, dtype, mode):
    n = sign * HUGE[exponent]
    got = run("powi", [-1.0, 1.0, -0.0, -math.inf, -2.0], dtype=dtype, parameter=n, mode=mode)
    large, small = (math.inf, 0.0) if n > 0 else (0.0, math.inf)
    assert got.tolist() == [-1.0, 1.0, -small, -large, -large]
    assert np.signbit(got).tolist() == [True, False, True, True, True]


@pytest.mark.parametrize("exponent", [2.0**53, 2.0**63, 2.0**64, 1e300, 1.7976931348623157e308])
def test_large_exponents_are_even_whatever_their_size(exponent):
    bases = [-2.0, -0.5, -1.0, -0.0, -math.inf]
    got = run("pow", bases * 2, [exponent] * 5 + [-exponent] * 5)
    large, small = math.inf, 0.0
    want = [large, small, 1.0, small, large, small, large, 1.0, large, small]
    assert got.tolist() == want
    assert not np.signbit(got).any()


def test_single_precision_powers_do_not_round_their_exponent():
    n = 16_777_217  # not a float32
    x = np.float32(1 + 2**-23)
    want = oracle.exact("powi", (float(x),), n)
    (got,) = run("powi", [x], dtype="float32", parameter=n)
    assert oracle.error_in_ulps(float(got), want, "float32") <= 1


def test_mod_is_that_of_python_bit_for_bit():
    generator = random.Random(5)
    xs = [generator.uniform(-1, 1) * 10.0 ** generator.randint(-300, 300) for _ in range(300)]
    ys = [generator.uniform(-1, 1) * 10.0 ** generator.randint(-20, 20) for _ in range(300)]
    xs += [5.0, -5.0, 6.0, -6.0, 0.0, -0.0, 5.0, -5.0, 5e-324, 1e308]
    ys += [3.0, 3.0, -3.0, 3.0, -3.0, 3.0, math.inf, math.inf, 3.0, 5e-324]
    want = [x % y for x, y in zip(xs, ys, strict=True)]
    got = run("mod", xs, ys)
    assert got.tolist() == want
    assert np.signbit(got).tolist() == np.signbit(want).tolist()


NAN, INF = math.nan, math.inf
AT_LIMITS = [
    ("j0", INF, 0.0),
    ("j0", -INF, 0.0),
    ("j1", INF, 0.0),
    ("j1", -INF, -0.0),
    ("j1", -0.0, -0.0),
    ("y0", INF, 0.0),
    ("y1", INF, 0.0),
    ("y0", 0.0, -INF),
    ("y1", 0.0, -INF),
    ("y0", -0.0, -INF),
    ("y1", -1.0, NAN),
    ("y0", -20.0, NAN),
    ("y1", -INF, NAN),
    ("j0", NAN, NAN),
    ("digamma", 0.0, -INF),
    ("digamma", -0.0, INF),
    ("digamma", -3.0, NAN),
    ("digamma", -1e30, NAN),
    ("digamma", INF, INF),
    ("digamma", -INF, NAN),
    ("digamma", NAN, NAN),
    ("gamma", 0.0, INF),
    ("gamma", -0.0, -INF),
    ("gamma", -2.0, NAN),
    ("gamma", INF, INF),
    ("gamma", -INF, NAN),
    ("lgamma", -3.0, INF),
    ("lgamma", 0.0, INF),
    ("lgamma", -INF, INF),
    ("erfinv", 1.0, INF),
    ("erfinv", -1.0, -INF),
    ("erfinv", 1.5, NAN),
    ("arg", -0.0, math.pi),
    ("arg", 0.0, 0.0),
    ("arg", -INF, math.pi),
    ("arg", NAN, NAN),
    ("im", NAN, 0.0),
    ("re", -0.0, -0.0),
    ("conjugate", -0.0, -0.0),
    ("sign", -0.0, 0.0),
    ("sign", -INF, -1.0),
    ("sign", NAN, NAN),
    ("rsqrt", 0.0, INF),
    ("rsqrt", -0.0, -INF),
    ("sinh", 711.0, INF),
]


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize(("op", "x", "want"), AT_LIMITS)
def test_limits_poles_and_signed_zeros(op, x, want, dtype):
    (got,) = run(op, [x], dtype=dtype)
    np.testing.assert_array_equal(got, np.dtype(dtype).type(want))
    if not math.isnan(want):
        assert np.signbit(got) == np.signbit(want)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize(("op", "want"), [("min", -0.0), ("max", 0.0)])
def test_extremes_order_the_zeros_and_pass_nan_on(op, want, dtype):
    zeros = run(op, [0.0, -0.0], [-0.0, 0.0], dtype=dtype)
    assert np.signbit(zeros).tolist() == [np.signbit(want)] * 2
    assert np.isnan(run(op, [NAN, 1.0, NAN], [1.0, NAN, INF], dtype=dtype)).all()


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_arithmetic_is_that_of_ieee_bit_for_bit(dtype):
    generator = np.random.default_rng(7)
    info = np.finfo(dtype)
    exponents = generator.integers(info.minexp - info.nmant, info.maxexp - 1, (2, 4000))
    a, b = np.ldexp(generator.uniform(-1, 1, (2, 4000)), exponents).astype(dtype)
    with np.errstate(all="ignore"):
        for op, ufunc in (
            ("add", np.add),
            ("sub", np.subtract),
            ("mul", np.multiply),
            ("div", np.divide),
        ):
            np.testing.assert_array_equal(run(op, a, b, dtype=dtype), ufunc(a, b))
        np.testing.assert_array_equal(run("sqrt", a, dtype=dtype), np.sqrt(a))
        for op, ufunc in (
            ("round", np.rint),
            ("floor", np.floor),
            ("ceil", np.ceil),
            ("trunc", np.trunc),
        ):
            np.testing.assert_array_equal(run(op, a, dtype=dtype), ufunc(a))
