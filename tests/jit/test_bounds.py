"""Every function against arbitrary precision, in the regimes where vector functions go wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels import Array, build

from alkahest.backends.cpu.jit.bounds import BOUNDS
from alkahest.backends.cpu.jit.rows import LOWERINGS, ROWS
from alkahest.ops import OPS
from alkahest.testing import oracle
from alkahest.testing.programs import single

POINTS = 48
"""For each regime; the bounds themselves come from thousands."""

Interval = tuple[float, float]

ORDINARY, WHOLE, HUGE = (-10.0, 10.0), (1e-300, 1e300), (1e9, 1e300)

# Operation -> regimes, one interval for each operand; drawn logarithmically where it is wide.
REGIMES: dict[str, tuple[tuple[Interval, ...], ...]] = {
    "exp": (((-1.0, 1.0),), ((-745.0, 709.7),), ((1e-300, 1e-5),)),
    "exp2": (((-1.0, 1.0),), ((-1074.0, 1023.9),)),
    "expm1": (((-2.0, 2.0),), ((1e-300, 700.0),), ((-40.0, -1e-10),)),
    "log": (((0.5, 2.0),), ((0.999, 1.001),), ((1e-320, 1e308),)),
    "log2": (((0.5, 2.0),), ((0.999, 1.001),), ((1e-320, 1e308),)),
    "log10": (((0.5, 2.0),), ((0.999, 1.001),), ((1e-320, 1e308),)),
    "log1p": (((-0.9, 1.0),), ((1e-320, 1e308),), ((-0.9999, -0.9),)),
    "sqrt": (((0.5, 2.0),), ((1e-320, 1e308),)),
    "rsqrt": (((0.5, 2.0),), ((1e-320, 1e308),)),
    "cbrt": ((ORDINARY,), ((1e-320, 1e308),)),
    "sin": ((ORDINARY,), ((3.14159, 3.1416),), ((-1e5, 1e5),), (HUGE,), ((1e-300, 1.0),)),
    "cos": ((ORDINARY,), ((1.5707, 1.5708),), ((-1e5, 1e5),), (HUGE,), ((1e-300, 1.0),)),
    "tan": ((ORDINARY,), ((1.5707, 1.5708),), ((-1e5, 1e5),), (HUGE,), ((1e-300, 1.0),)),
    "asin": (((-1.0, 1.0),), ((0.499, 0.501),), ((1e-300, 1.0),)),
    "acos": (((-1.0, 1.0),), ((0.9999, 1.0),), ((1e-300, 1.0),)),
    "atan": (((-3.0, 3.0),), (WHOLE,)),
    "atan2": ((ORDINARY, ORDINARY), (WHOLE, WHOLE)),
    "hypot": ((ORDINARY, ORDINARY), (WHOLE, WHOLE)),
    "sinh": (((-2.0, 2.0),), ((-710.4, 710.4),), ((1e-310, 1.0),)),
    "cosh": (((-2.0, 2.0),), ((-710.4, 710.4),)),
    "tanh": (((-3.0, 3.0),), ((1e-310, 20.0),)),
    "asinh": (((-3.0, 3.0),), (WHOLE,)),
    "acosh": (((1.0, 3.0),), ((1.0, 1.0001),), ((1.0, 1e308),)),
    "atanh": (((-1.0, 1.0),), ((1e-310, 0.99999),)),
    "erf": (((-1.0, 1.0),), ((-6.0, 6.0),), ((1e-300, 6.0),)),
    "erfc": (((-1.0, 1.0),), ((-6.0, 6.0),), ((1.0, 26.5),)),
    "erfinv": (((-1.0, 1.0),), ((0.99, 1.0),), ((1e-300, 1.0),)),
    "gamma": (((-20.0, 20.0),), ((20.0, 171.6),), ((-169.9, -0.1),)),
    "lgamma": (((0.1, 10.0),), ((1e-300, 1e300),), ((-200.3, -0.1),)),
    "digamma": (((0.1, 10.0),), ((1e-300, 1e300),), ((-64.001, -63.999),), ((-300.3, -0.1),)),
    "j0": (((-20.0, 20.0),), ((20.0, 1e15),)),
    "j1": (((-20.0, 20.0),), ((20.0, 1e15),), ((1e-300, 1.0),)),
    "y0": (((0.1, 20.0),), ((20.0, 1e15),), ((1e-300, 1.0),)),
    "y1": (((0.1, 20.0),), ((20.0, 1e15),), ((1e-300, 1.0),)),
    "pow": (((0.01, 10.0), (-20.0, 20.0)), ((0.9, 1.1), (-5e3, 5e3)), (WHOLE, (-0.9, 0.9))),
    "powi": (((0.5, 2.0),), ((-3.0, 3.0),)),
    "div": ((ORDINARY, ORDINARY), (WHOLE, (1e-5, 1e5))),
    "mod": ((ORDINARY, (-3.0, 3.0)), ((-1e10, 1e10), (0.1, 3.0))),
}

EXPONENTS = {"powi": (-1074, -7, -3, 2, 3, 4, 5, 16, 33, 100)}


# Operation -> intervals around the arguments where its formula changes, saturates or cancels.
THRESHOLDS: dict[str, tuple[Interval, ...]] = {
    "exp": ((707.9, 708.1), (-708.5, -707.5), (-745.1, -744.0)),
    "exp2": ((1020.9, 1023.999), (-1022.1, -1020.9), (-1074.9, -1070.0)),
    "expm1": ((36.0, 39.0), (-38.0, -36.0), (-61.0, -59.0), (0.33, 0.37), (8e-19, 9e-19)),
    "log1p": ((-1.0, -1.0 + 1e-12), (-1e-15, 1e-15), (2.0**52, 2.0**54), (2.0**499, 2.0**501)),
    "tan": ((0.77, 0.7854), (2.356, 2.37), (3.92, 3.94)),
    "asin": ((0.49, 0.53),),
    "acos": ((0.49, 0.53), (-0.51, -0.49), (-1e-16, 1e-16)),
    "atan": ((0.97, 1.03), (2.0**52, 2.0**55), (1e300, 1.7e308)),
    "sinh": ((18.3, 19.1), (0.34, 0.36), (8.6e-19, 8.8e-19), (709.0, 710.47)),
    "cosh": ((18.3, 19.1), (0.34, 0.36), (709.0, 710.47)),
    "tanh": ((18.3687, 18.7146), (18.3, 19.1), (21.9, 22.1), (0.33, 0.37), (8.6e-19, 8.8e-19)),
    "asinh": ((2.0**26, 2.0**28), (2.0**499, 2.0**501), (0.99, 1.01)),
    "acosh": ((1.0, 1.0 + 1e-12), (2.0**26, 2.0**28), (2.0**499, 2.0**501)),
    "atanh": ((8e-19, 9e-19), (1.0 - 1e-12, 1.0), (0.49, 0.51)),
    "erf": ((5.7, 6.0), (5.86, 5.93), (-0.2021, -0.2015)),
    "lgamma": ((2.0**999, 2.0**1001), (2.4e305, 2.559e305), (2.5595e305, 2.56e305)),
    "erfc": ((0.88, 0.92), (-0.92, -0.88), (-6.0, -5.7), (26.0, 27.3)),
}


def drawn(generator: np.random.Generator, interval: Interval) -> Array:
    low, high = interval
    if low > 0 and high / low > 1e3:
        spread = generator.uniform(math.log(low), math.log(high), POINTS)
        return np.clip(np.exp(spread), low, high)
    return generator.uniform(low, high, POINTS)


@pytest.mark.parametrize("op", REGIMES)
def test_errors_stay_within_the_published_bounds(op: str, accuracy: str) -> None:
    scale = oracle.scale(OPS[op])
    for exponent in EXPONENTS.get(op, (None,)):
        kernel = build(single(op, parameter=exponent), accuracy=accuracy)
        bound = BOUNDS[op][accuracy].of(exponent)
        for regime in REGIMES[op]:
            generator = np.random.default_rng(7)
            columns = [drawn(generator, interval) for interval in regime]
            (found,) = kernel(*columns)
            for point, value in zip(zip(*columns, strict=True), found, strict=True):
                want = oracle.exact(op, [float(x) for x in point], exponent)
                error = oracle.error_in_ulps(float(value), want, scale=scale)
                assert error <= bound, (op, exponent, point)


TINY = sorted(op for op, regimes in REGIMES.items() if len(regimes[0]) == 1)
TINY = [op for op in TINY if op not in ("acosh", "powi")]


@pytest.mark.parametrize("op", TINY)
def test_errors_stay_within_the_bounds_at_tiny_arguments(op: str, accuracy: str) -> None:
    kernel = build(single(op), accuracy=accuracy)
    points = np.concatenate([drawn(np.random.default_rng(5), (1e-322, 1e-307)), [5e-324, 5.6e-309]])
    (found,) = kernel(points)
    for point, value in zip(points, found, strict=True):
        want = oracle.exact(op, [float(point)])
        error = oracle.error_in_ulps(float(value), want, scale=oracle.scale(OPS[op]))
        assert error <= BOUNDS[op][accuracy].ulp, (op, point)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", THRESHOLDS)
def test_errors_stay_within_the_bounds_around_thresholds(
    op: str, dtype: str, accuracy: str
) -> None:
    kernel = build(single(op, dtype), accuracy=accuracy)
    bound = BOUNDS[op][accuracy].ulp if dtype == "float64" else 0.51
    generator = np.random.default_rng(11)
    for low, high in THRESHOLDS[op]:
        drawn_points = generator.uniform(low, high, POINTS)
        points = drawn_points[np.abs(drawn_points) < np.finfo(dtype).max].astype(dtype)
        (found,) = kernel(points)
        for point, value in zip(points, found, strict=True):
            want = oracle.exact(op, [float(point)])
            if abs(want) > np.finfo(dtype).max:
                assert np.isinf(value)
                continue
            assert oracle.error_in_ulps(float(value), want, dtype) <= bound, point


@pytest.mark.parametrize(
    ("op", "point"),
    [
        ("tanh", 18.4),
        ("tanh", -18.3687),
        ("tanh", 18.375712806100786),
        ("tanh", 18.3684023611861),
        ("sinh", 18.417964684974887),
        ("cosh", 18.43525368976136),
        ("expm1", 37.1200732454743),
        ("expm1", 0.3366518670060666),
        ("expm1", 0.3482501099946398),
        ("expm1", -0.06431680870207113),
        ("expm1", 708.0517015354059),
        ("tan", 0.7823479031165764),
        ("tan", 2.3575794674102304),
        ("atan", 1.0039495341191627),
    ],
)
def test_points_that_lose_an_ulp_where_small_terms_are_left_out(op: str, point: float) -> None:
    (found,) = build(single(op), accuracy="strict")(np.array([point]))
    error = oracle.error_in_ulps(float(found[0]), oracle.exact(op, [point]))
    assert error <= BOUNDS[op]["strict"].ulp


@pytest.mark.parametrize("exponent", [-2, -3, -5, -7, -64, -100, -1024])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_negative_powers_are_numbers_down_to_the_smallest(
    exponent: int, dtype: str, accuracy: str
) -> None:
    least = 1060 if dtype == "float64" else 140
    base = 2.0 ** (least // -exponent)
    kernel = build(single("powi", dtype, parameter=exponent), accuracy=accuracy)
    points = np.array([base, -base, 1 / base, -1 / base, base**1.01, 3.0, 0.7], dtype=dtype)
    (found,) = kernel(points)
    bound = BOUNDS["powi"][accuracy].of(exponent)
    for point, value in zip(points, found, strict=True):
        want = oracle.exact("powi", [float(point)], exponent)
        if want > np.finfo(dtype).max:
            assert np.isinf(value)
            continue
        assert oracle.error_in_ulps(float(value), want, dtype) <= bound, point


def test_every_function_has_a_bound_and_regimes() -> None:
    inexact = {op for op, row in OPS.items() if row.ulp} - {"complex", "arg"}
    assert inexact <= BOUNDS.keys()
    assert BOUNDS.keys() == REGIMES.keys()
    assert BOUNDS.keys() <= LOWERINGS.keys()
    assert all(rows.keys() == LOWERINGS.keys() for rows in ROWS.values())


def test_strict_functions_are_within_an_ulp() -> None:
    by_table = {"powi", "erfinv", "gamma", "lgamma", "digamma", "j0", "j1", "y0", "y1"}
    assert all(BOUNDS[op]["strict"].ulp <= 1 for op in BOUNDS.keys() - by_table)


def test_default_functions_are_within_four_ulps() -> None:
    by_table = {"gamma", "lgamma", "digamma", "j0", "j1", "y0", "y1"}
    assert all(BOUNDS[op]["default"].ulp <= 4 for op in BOUNDS.keys() - by_table)


def test_bounds_are_never_looser_than_those_of_the_table_of_operations() -> None:
    loose = {
        op
        for op in BOUNDS
        if OPS[op].ulp and any(BOUNDS[op][m].ulp > OPS[op].ulp for m in ("strict", "default"))
    }
    assert loose <= {"sin", "cos"}


def test_bounds_are_shown_with_what_they_depend_on() -> None:
    assert BOUNDS["powi"]["fast"].text == "1 ulp times the exponent; up to exponents of 1024"
    assert BOUNDS["exp"]["strict"].text == "0.9 ulp"
