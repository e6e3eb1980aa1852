"""Accuracy modes: what each computes, the bound that it states, and what it gives up."""

import math
import random
import re
from functools import cache

import attrs
import mpmath
import numpy as np
import pytest

import alkahest as ak
from alkahest.backends.nvptx.access import Access
from alkahest.backends.nvptx.accuracy import DEFAULT, FAST, MODES, STRICT, mode_of
from alkahest.backends.nvptx.arithmetic import contracted, with_constant_divisors, with_known_values
from alkahest.backends.nvptx.bounds import BOUNDS
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.backends.nvptx.lowerings import LOWERINGS, ROWS
from alkahest.backends.nvptx.module import generate
from alkahest.errors import InputError
from alkahest.plugin import Batch
from alkahest.program import lower
from alkahest.testing import oracle, special
from alkahest.testing.programs import single

X, Y, Z = ak.symbols("x y z")
INF, NAN = math.inf, math.nan
POINTS = 60


@cache
def evaluator(op, mode, dtype="float64", parameter=None):
    return EmulatedEvaluator(single(op, dtype, parameter), mode=mode)


def run(op, mode, *columns, dtype="float64", parameter=None):
    arrays = tuple(np.array(c, dtype) for c in columns)
    found = evaluator(op, mode, dtype, parameter)
    return found.evaluate(Batch(columns=arrays, n=len(arrays[0]))).outputs[0]


def evaluate(expressions, mode, *columns):
    program = lower(expressions, [X, Y, Z])
    arrays = tuple(np.array(c, np.float64) for c in columns)
    return EmulatedEvaluator(program, mode=mode).evaluate(Batch(columns=arrays, n=1)).outputs


def worst(op, mode, points, dtype="float64", parameter=None):
    values = run(op, mode, *zip(*points, strict=True), dtype=dtype, parameter=parameter)
    return max(
        oracle.error_in_ulps(float(value), oracle.exact(op, list(point), parameter), dtype)
        for value, point in zip(values, points, strict=True)
    )


def drawn(op, seed, low=-20, high=20, count=POINTS):
    rng = random.Random(f"{op} {seed}")
    size = 2 if op == "div" else 1
    signs = (1.0,) if op in ("log", "sqrt") else (1.0, -1.0)
    return [
        tuple(
            rng.choice(signs) * math.ldexp(rng.uniform(1, 2), rng.randrange(low, high))
            for _ in range(size)
        )
        for _ in range(count)
    ]


# The option


def test_the_mode_is_an_option_and_part_of_the_artifact():
    for mode in MODES:
        fn = ak.compile_expr(X * Y, [X, Y], backend="nvptx", accuracy=mode)
        assert fn.artifact.metadata["accuracy"] == mode
    assert ak.compile_cuda(X * Y, [X, Y]).artifact.metadata["accuracy"] == DEFAULT
    assert ak.compile_cuda(X, [X], accuracy="fast").artifact.metadata["accuracy"] == FAST


@pytest.mark.parametrize("value", ["exact", "", None, 1, "FAST"])
def test_an_unknown_mode_is_refused(value):
    with pytest.raises(InputError, match=r"accuracy=.* is not a mode") as caught:
        ak.compile_expr(X, [X], backend="nvptx", accuracy=value)
    assert caught.value.code == "E-INPUT-011"
    assert "'strict', 'default', 'fast'" in caught.value.remediation


def test_an_unknown_option_is_refused():
    with pytest.raises(InputError, match="no option 'unroll'") as caught:
        mode_of({"unroll": 2})
    assert caught.value.code == "E-INPUT-011"


def test_every_operation_that_depends_on_the_mode_has_a_bound():
    changed = {op for op in LOWERINGS for mode in MODES if ROWS[mode][op] != LOWERINGS[op]}
    assert changed == BOUNDS.keys()
    assert all(set(bounds) == set(MODES) for bounds in BOUNDS.values())


def test_the_default_mode_costs_at_most_two_ulps():
    for bounds in BOUNDS.values():
        assert bounds[DEFAULT].ulp <= bounds[STRICT].ulp + 2


# Bounds

FUNCTIONS = ("sin", "cos", "exp", "exp2", "log", "sqrt")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_are_within_their_bound(op, mode):
    points = drawn(op, 1, high=9 if op in ("exp", "exp2") else 31)
    with mpmath.workprec(1200):
        assert worst(op, mode, points) <= BOUNDS[op][mode].ulp


@pytest.mark.parametrize("mode", MODES)
def test_quotients_are_within_their_bound(mode):
    for exponents in ((-20, 20), (-500, 500), (-1070, 1000)):
        points = drawn("div", 2, *exponents)
        assert worst("div", mode, points) <= BOUNDS["div"][mode].ulp


EXPONENTS = (*range(-12, 13), 13, 15, 16, 17, 31, 32, 33, 63, 64, -15, -31, -63, -64, 65, 100, -65)


@pytest.mark.parametrize("n", EXPONENTS)
@pytest.mark.parametrize("mode", [DEFAULT, FAST])
def test_integer_powers_are_within_their_bound(n, mode):
    rng = random.Random(n)
    edge = 1000 / max(abs(n), 1)
    points = [(rng.choice((-1, 1)) * 2 ** rng.uniform(-edge, edge),) for _ in range(POINTS)]
    points += [(rng.uniform(0.5, 2.0),) for _ in range(POINTS)]
    bound = BOUNDS["powi"][mode].of(n)
    if mode == DEFAULT and 4 < abs(n) <= 64:
        bound = 2.0
    assert worst("powi", mode, points, parameter=n) <= max(bound, 0.5)


@pytest.mark.parametrize("n", [5, 6, 7, 8, 31, 33, 64, -5, -8, -33])
def test_integer_powers_in_single_precision_are_compensated_too(n):
    rng = random.Random(n)
    edge = 120 / abs(n)
    points = [(float(np.float32(2 ** rng.uniform(-edge, edge))),) for _ in range(POINTS)]
    assert worst("powi", DEFAULT, points, dtype="float32", parameter=n) <= 2.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [-2, -3, -5, -8, -33, -64, -1000])
def test_negative_powers_of_the_fast_mode_end_where_exact_ones_do(n, dtype):
    """Where the positive power overflows or is subnormal, its reciprocal may be a number."""
    rng = random.Random(n)
    least, most = (-1074, 1024) if dtype == "float64" else (-149, 128)

    def with_results(low: float, high: float) -> list[float]:
        sizes = np.array([2 ** (rng.uniform(low, high) / n) for _ in range(POINTS)])
        return (sizes * rng.choice((-1, 1))).astype(dtype).tolist()

    for low, high in ((least + 1, least + 60), (most - 60, most - 1)):
        points = [(x,) for x in with_results(low, high) if 0 < abs(x) < INF]
        assert worst("powi", FAST, points, dtype=dtype, parameter=n) <= abs(n)
    for low, high, size in ((most + 1, most + 40, INF), (least - 40, least - 2, 0.0)):
        xs = [x for x in with_results(low, high) if 0 < abs(x) < INF]
        got = run("powi", FAST, xs, dtype=dtype, parameter=n)
        assert np.array_equal(np.abs(got), np.full(len(xs), size))
        assert np.array_equal(np.signbit(got), np.signbit(xs) & bool(n % 2))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [*range(5, 65), -5, -6, -7, -8, -9, -33, -63, -64])
def test_integer_powers_overflow_and_vanish_as_exact_ones_do(n, dtype):
    largest = 1023 if dtype == "float64" else 127
    sizes = [2.0**k for k in range(-largest, largest + 1, 7 if dtype == "float64" else 1)]
    xs = [s * x for x in (*sizes, INF, 0.0) for s in (1.0, -1.0)]
    got = run("powi", DEFAULT, xs, dtype=dtype, parameter=n)
    for x, value in zip(xs, got.tolist(), strict=True):
        size = abs(x)
        if size in (0.0, INF):
            want = INF if (size == INF) == (n > 0) else 0.0
        else:
            exponent = n * round(math.log2(size))
            least = -1074 if dtype == "float64" else -149
            want = INF if exponent > largest else 2.0**exponent if exponent >= least else 0.0
        want = math.copysign(want, x) if n % 2 else want
        assert special.same(value, want), (x, value, want)


@pytest.mark.parametrize("mode", [STRICT, DEFAULT])
@pytest.mark.parametrize("case", [c for c in special.CASES if c.op in BOUNDS], ids=str)
def test_special_values_are_kept(case, mode):
    got = float(run(case.op, mode, *([x] for x in case.operands), parameter=case.parameter)[0])
    assert special.same(got, case.value), got


ENDS = (0.0, 5e-324, 2.0**-1023, 2.0**-1022, 2.0**-969, 1.5, 2.0**1017, 2.0**1023, INF, NAN)
ENDS = (*ENDS, *(-x for x in ENDS))


@pytest.mark.parametrize("mode", [DEFAULT, FAST])
def test_quotients_and_roots_at_the_ends_of_the_range_are_those_of_ieee(mode):
    pairs = [(x, y) for x in ENDS for y in ENDS]
    with np.errstate(all="ignore"):
        want = np.divide(*np.array(pairs).T).tolist()
        roots = np.sqrt(np.array(ENDS)).tolist()
    got = run("div", mode, *zip(*pairs, strict=True)).tolist()
    for pair, value, exact in zip(pairs, got, want, strict=True):
        assert special.same(value, exact), (pair, value, exact)
    assert all(map(special.same, run("sqrt", mode, ENDS).tolist(), roots))


def test_roots_of_squares_and_quotients_of_multiples_are_exact():
    whole = np.arange(1.0, 400.0)
    assert (run("sqrt", DEFAULT, whole * whole) == whole).all()
    assert (run("div", DEFAULT, whole * 49.0, np.full_like(whole, 49.0)) == whole).all()
    assert (run("div", DEFAULT, whole, whole) == 1.0).all()


# What is rewritten


def test_a_product_that_is_added_is_not_rounded():
    x = 1 + 2.0**-30
    product = x * x
    (exact,) = evaluate([X * Y - Z], DEFAULT, [x], [x], [product])
    (rounded,) = evaluate([X * Y - Z], STRICT, [x], [x], [product])
    assert (exact, rounded) == (2.0**-60, 0.0)


def ops(program):
    return sorted(op for op, _, _ in program.code)


def test_sums_of_products_become_one_product_and_multiply_adds():
    program = lower([X * X + Y * Y + Z * Z, 1 - X * (Y + 1), X * (Z + 2) - Y], [X, Y, Z])
    assert ops(contracted(program)) == [
        "add",
        "add",
        "fma",
        "fma",
        "fma",
        "fma",
        "mul",
        "neg",
        "neg",
    ]


def test_a_product_that_only_sums_use_is_a_part_of_each():
    assert ops(contracted(lower([X * Y + 1, X * Y - Z], [X, Y, Z]))) == ["fma", "fma", "neg"]


def test_a_product_that_something_else_uses_stays():
    for expressions in ([X * Y + 1, ak.sin(X * Y)], [X * Y + Z, X * Y]):
        program = lower(expressions, [X, Y, Z])
        assert contracted(program) is program


def test_a_program_without_sums_of_products_stays():
    program = lower([X + Y, ak.sin(X * Y)], [X, Y])
    assert contracted(program) is program


def test_quotients_by_constants_are_products_with_the_same_bits():
    expressions = [X / 100, X / 3, (X + Y) / 7, X / 10]
    program = with_constant_divisors(lower(expressions, [X, Y, Z]))
    assert "div" not in {op for op, _, _ in program.code}
    rng = random.Random(3)
    columns = [[math.ldexp(rng.uniform(-2, 2), rng.randrange(-300, 300))] for _ in range(3)]
    assert evaluate(expressions, DEFAULT, *columns) == evaluate(expressions, STRICT, *columns)


def test_quotients_by_powers_of_two_stay():
    program = lower([X / 4], [X])
    assert with_constant_divisors(program).code == program.code


def test_arithmetic_on_constants_is_done_beforehand():
    root = ak.sqrt(X.pool.float(2.0) * math.pi)
    program = lower([X / root, X / (root * Y) + ak.sin(root)], [X, Y])
    known = with_known_values(program)
    assert ops(known) == ["add", "div", "div", "mul", "sin"]
    assert math.sqrt(2 * math.pi) in known.constants
    assert ops(with_constant_divisors(known)) == ["add", "div", "fma", "mul", "mul", "sin"]


def test_sine_and_cosine_of_one_argument_are_one_computation():
    fp64 = re.compile(r"^\s(?:fma\.rn|add|sub|mul)(?:\.rn)?\.f64", re.MULTILINE)

    def count(expressions):
        program = lower(expressions, [X])
        one_point = attrs.evolve(Access.plain(program, FAST), points=1)
        return len(fp64.findall(generate(program, "sm_90", {"accuracy": FAST}, one_point).code))

    assert count([ak.sin(X), ak.cos(X)]) == 20
    assert count([ak.sin(X)]) == count([ak.cos(X)]) == 15


def test_no_mode_but_the_strict_one_calls_libdevice_for_the_common_functions():
    expressions = [ak.sin(X) * ak.exp(Y) + ak.log(X) + X**7]
    for mode in (DEFAULT, FAST):
        artifact = ak.compile_cuda(expressions, [X, Y], accuracy=mode).artifact
        assert artifact.metadata["libdevice"] is None
    assert ak.compile_cuda(expressions, [X, Y], accuracy=STRICT).artifact.metadata["libdevice"]


# Kernels of every shape


SHAPES = [X * Y + ak.sin(Z), X < Y, Z]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_aligned_and_unaligned_columns_give_the_same_bits(dtype, mode):
    program = lower(SHAPES, [X, Y, Z], dtype)
    device = EmulatedEvaluator(program, mode=mode)
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 257):
        columns = [rng.uniform(-3, 3, n + 1).astype(dtype) for _ in range(3)]
        shifted = tuple(c[1:] for c in columns)
        aligned = tuple(c.copy() for c in shifted)
        want = device.evaluate(Batch(columns=aligned, n=n)).outputs
        got = device.evaluate(Batch(columns=shifted, n=n)).outputs
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
        assert want[1].tolist() == (aligned[0] < aligned[1]).tolist()
        np.testing.assert_array_equal(want[2], aligned[2])


@pytest.mark.parametrize("count", [3, 30, 300])
def test_columns_may_be_overwritten_by_outputs(count):
    symbols = [X, Y, Z]
    expressions = [symbols[k % 3] + symbols[(k + 1) % 3] + k for k in range(count)]
    device = EmulatedEvaluator(lower(expressions, symbols))
    columns = tuple(np.arange(9.0) * k for k in range(1, 4))
    want = device.evaluate(Batch(columns=columns, n=9)).outputs
    copies = tuple(c.copy() for c in columns)
    out = (*copies, *(np.empty(9) for _ in range(count - 3)))
    device.evaluate(Batch(columns=copies, n=9, out=out))
    for a, b in zip(out, want, strict=True):
        np.testing.assert_array_equal(a, b)
