"""Points that near functions get wrong are computed again, in kernels of every shape."""

import math
import re

import attrs
import numpy as np
import pytest

import alkahest as ak
from alkahest.backends.nvptx import arithmetic, emit, module, parts, sizes
from alkahest.backends.nvptx.access import STRIDED, Access
from alkahest.backends.nvptx.accuracy import DEFAULT, STRICT
from alkahest.backends.nvptx.doubts import guards
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.backends.nvptx.lowerings import ROWS
from alkahest.plugin import Batch, DeviceBatch, DeviceColumn
from alkahest.program import lower
from alkahest.testing import special

X, Y, Z = SYMBOLS = ak.symbols("x y z")
INF, NAN = math.inf, math.nan

FAR = {
    "sin": [2.0**31, -1e22, 1e300, INF, NAN],
    "cos": [2.0**31, -1e22, 1e300, INF, NAN],
    "exp": [709.0, 1e5, -710.0, -745.0, INF, -INF, NAN],
    "log": [0.0, -0.0, -1.0, 5e-324, INF, NAN],
    "sqrt": [-0.0, 5e-324, -1.0, INF, NAN],
}


def evaluate(program, *columns, mode=DEFAULT, out=None):
    arrays = tuple(np.array(c, np.float64) for c in columns)
    batch = Batch(columns=arrays, n=len(arrays[0]), out=out)
    return EmulatedEvaluator(program, mode=mode).evaluate(batch).outputs


def same(got, want, ulps=4):
    """Equal up to a few units in the last place, and exactly where there is no number."""
    got, want = np.asarray(got), np.asarray(want)
    with np.errstate(all="ignore"):
        close = np.abs(got - want) <= ulps * np.spacing(np.maximum(np.abs(want), 5e-324))
    exact = np.array([special.same(a, b) for a, b in zip(got.tolist(), want.tolist(), strict=True)])
    return bool((close | exact).all())


@pytest.mark.parametrize("op", FAR)
@pytest.mark.parametrize("n", [1, 2, 65])
def test_a_far_point_among_near_ones_is_right_and_its_neighbours_too(op, n):
    program = lower([getattr(ak, op)(X) * Y], SYMBOLS[:2])
    ys = np.full(n, 0.25)
    for far in FAR[op]:
        for place in {0, n // 2, n - 1}:
            xs = np.linspace(0.5, 3.0, n)
            xs[place] = far
            with np.errstate(all="ignore"):
                assert same(evaluate(program, xs, ys)[0], getattr(np, op)(xs) * ys), (far, place)


def test_a_quotient_in_doubt_is_computed_again():
    ends = [0.0, -0.0, 5e-324, 1e-300, 1.0, 1e300, INF, NAN]
    xs, ys = np.array([(x, y) for x in ends for y in ends]).T
    with np.errstate(all="ignore"):
        assert same(evaluate(lower([X / Y], SYMBOLS[:2]), xs, ys)[0], xs / ys, ulps=0)


WIDE = [ak.sin(X) * Y, X < Y]
NARROW = [ak.sin(X + k) * ak.exp(Y) + Z / (X - k) for k in range(8)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("expressions", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_output_of_a_far_point_is_right(expressions, dtype):
    program = lower(expressions, SYMBOLS, dtype)
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 33):
        columns = [rng.uniform(-3, 3, n).astype(dtype) for _ in range(3)]
        columns[0][rng.integers(n)] = 1e30
        columns[1][rng.integers(n)] = -INF
        batch = Batch(columns=tuple(columns), n=n)
        with np.errstate(all="ignore"):
            got = EmulatedEvaluator(program).evaluate(batch).outputs
            want = EmulatedEvaluator(program, mode=STRICT).evaluate(batch).outputs
        for a, b in zip(got, want, strict=True):
            if a.dtype == bool:
                assert a.tolist() == b.tolist()
            else:
                np.testing.assert_allclose(a, b, rtol=4e-15 if dtype == "float64" else 1e-5)


def test_columns_that_are_overwritten_are_read_before():
    # Each output goes into the column that the other one is computed from, or is.
    program = lower([Y, ak.sin(X), X / Z], SYMBOLS)
    xs, ys, zs = np.array([1.0, 1e30, 2.0]), np.array([5.0, 6.0, 7.0]), np.array([2.0, 3.0, 0.0])
    want = [ys.copy(), np.sin(xs), np.array([0.5, 1e30 / 3.0, INF])]
    batch = Batch(columns=(xs, ys, zs), n=3, out=(xs, ys, zs))
    EmulatedEvaluator(program).evaluate(batch)
    assert all(same(a, b) for a, b in zip((xs, ys, zs), want, strict=True))


def test_strided_columns_and_outputs_are_found_again():
    program = lower([ak.sin(X) / Y], SYMBOLS[:2])
    device = EmulatedEvaluator(program)
    xs, ys = np.arange(24.0).reshape(4, 6), np.arange(24.0).reshape(4, 6) + 1
    xs[1, 2], ys[3, 4], out = 1e18, 0.0, np.empty((6, 4)).T
    columns = [
        DeviceColumn(
            pointer=a.ctypes.data, dtype="float64", shape=a.shape, strides=a.strides, device=0
        )
        for a in (xs[:, ::2], ys[:, ::2], out[:, ::2])
    ]
    batch = DeviceBatch(
        columns=tuple(columns[:2]),
        shape=(4, 3),
        out=(columns[2],),
        sources=(0,),
        stream=1,
        device=0,
    )
    assert STRIDED in device.evaluate_on_device(batch)["access"]
    with np.errstate(all="ignore"):
        assert same(out[:, ::2].ravel(), (np.sin(xs) / ys)[:, ::2].ravel())


def test_a_kernel_with_a_table_of_parameters_computes_again_too():
    symbols = ak.symbols(" ".join(f"c{k}" for k in range(600)))
    program = lower([ak.sin(symbols[0]) + ak.sqrt(symbols[599])], symbols)
    assert emit.kernel(program).abi == "table"
    columns = [[1.0, 1e25, 2.0], *[[0.0] * 3] * 598, [4.0, 9.0, INF]]
    assert same(evaluate(program, *columns)[0], [math.sin(1) + 2, math.sin(1e25) + 3, INF])


def test_a_point_is_computed_again_by_calls_that_need_no_further_registers():
    text = emit.kernel(lower([ak.sin(X) * ak.exp(Y)], SYMBOLS[:2])).text
    careful = text[text.index("careful:") :]
    assert "@alkahest_call_ak_sin(" in careful
    assert "@ak.sin" not in careful
    assert "load volatile double, ptr addrspace(1)" in careful


# What does not matter


def choose(condition, value, otherwise):
    return ak.piecewise((value, condition), default=otherwise)


def test_only_doubts_about_what_is_chosen_count():
    program = lower([choose(X > 0, ak.log(X), Y) + ak.exp(Y)], SYMBOLS[:2])
    found = {program.code[v - program.first_instruction].op for v in guards(program) if v > 2}
    assert "log" in found
    assert "exp" not in found
    text = emit.kernel(program).text
    assert text.count("call i1 @ak.log.is_far") == text.count("call i1 @ak.exp.is_far") > 0
    xs, ys = [-1.0, 0.0, 1.0, 5e-324, -INF, NAN], [0.5] * 6
    want = [0.5, 0.5, 0.0, math.log(5e-324), 0.5, 0.5]
    assert same(evaluate(program, xs, ys)[0], np.array(want) + math.exp(0.5))


def test_a_value_under_nested_conditions_counts_where_all_of_them_choose_it():
    inner = choose(Y > 0, ak.log(Y), -1)
    program = lower([choose(X > 0, inner + ak.sqrt(X), -2)], SYMBOLS[:2])
    xs, ys = [1.0, 1.0, -1.0, -1.0, INF], [1.0, -1.0, 1.0, -1.0, INF]
    assert same(evaluate(program, xs, ys)[0], [1.0, 0.0, -2.0, -2.0, INF])


def test_a_value_that_two_branches_need_is_always_in_doubt():
    shared = ak.log(X)
    program = lower([choose(Y > 0, shared, -shared)], SYMBOLS[:2])
    logs = [n for n, i in enumerate(program.code, program.first_instruction) if i.op == "log"]
    assert not set(logs) & guards(program).keys()


# Large programs


def repeated(count):
    value = X
    for _ in range(count):
        value = ak.sin(value) * Y + ak.piecewise((X, value < Y), default=Y)
    return lower([value, value > X, X, 3.0 * Y], SYMBOLS[:2])


def expected(count, x, y):
    value = x
    for _ in range(count):
        value = math.sin(value) * y + (x if value < y else y)
    return value


def test_functions_of_a_large_program_are_called_and_nothing_is_in_doubt():
    value = X
    for _ in range(800):
        value = ak.sin(ak.sqrt(value) + Y)
    program = lower([value], SYMBOLS[:2])
    assert sizes.is_large(arithmetic.prepared(program, DEFAULT), ROWS[DEFAULT])
    built = emit.kernel(program)
    assert not built.inlined
    assert "careful" not in built.text
    artifact = module.generate(program, "sm_90", {})
    assert artifact.code.count("call.uni") < 2 * 800 + 20


@pytest.mark.parametrize("mode", [DEFAULT, STRICT])
def test_a_very_large_program_is_computed_in_parts(mode):
    count = 600
    program = repeated(count)
    assert len(arithmetic.prepared(program, mode).code) > parts.LARGEST_WHOLE
    text = emit.kernel(program, mode=mode).text
    assert text.count("define internal void @alkahest_part_") > 3
    xs, ys = np.array([0.5, 1.25, -0.75]), np.array([0.25, 0.5, 0.125])
    got = evaluate(program, xs, ys, mode=mode)
    want = [expected(count, x, y) for x, y in zip(xs, ys, strict=True)]
    np.testing.assert_allclose(got[0], want, rtol=1e-12)
    assert got[1].tolist() == (np.array(want) > xs).tolist()
    assert got[2].tolist() == xs.tolist()
    assert got[3].tolist() == (3 * ys).tolist()


def test_parts_hand_on_little():
    # Every value is used by the next one only, but for the two columns.
    text = emit.kernel(repeated(600)).text
    assert int(re.search(r"alloca \[(\d+) x double\]", text)[1]) <= 8


def test_parts_read_all_columns_before_outputs_overwrite_them():
    program = repeated(600)
    xs, ys = np.array([0.5, 1.25]), np.array([0.25, 0.5])
    want = evaluate(program, xs, ys)
    spare = np.empty(2), np.empty(2, bool)
    batch = Batch(columns=(xs, ys), n=2, out=(ys, spare[1], spare[0], xs))
    EmulatedEvaluator(program).evaluate(batch)
    for a, b in zip((ys, spare[1], spare[0], xs), want, strict=True):
        assert a.tolist() == b.tolist()


def test_a_kernel_of_any_access_has_careful_code_once():
    program = lower([ak.exp(X) * Y], SYMBOLS[:2])
    plain = Access.plain(program)
    for access in (plain, attrs.evolve(plain, points=1), attrs.evolve(plain, in_place=True)):
        assert emit.kernel(program, access).text.count("careful:") == 1
