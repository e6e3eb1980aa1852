"""Batches on the device: the original's hardware tests, shapes, dtypes, sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import alkahest as ak

SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 65535, 65537, 1_000_003)


@pytest.fixture
def xy() -> list[ak.Expr]:
    return ak.symbols("x y")


def exact(expr: ak.Expr, symbols: list[ak.Expr], columns: list, rows: list[int]) -> list[float]:
    """Values of ``expr`` at some rows, by the interpreter."""
    points = ({s: c[row] for s, c in zip(symbols, columns, strict=True)} for row in rows)
    return [ak.eval_expr(expr, point) for point in points]


def near(got: list[float], want: list[float], tolerance: float) -> bool:
    return all(abs(g - w) <= tolerance * max(1.0, abs(w)) for g, w in zip(got, want, strict=True))


# What the original proved on hardware


@pytest.mark.sanitize
def test_a_cubic_over_65536_points_agrees_with_the_interpreter(xy) -> None:
    x = xy[0]
    expr = x**3 - 2 * x + 1
    xs = np.linspace(-3, 3, 65536).tolist()
    got = ak.compile_cuda(expr, [x]).call_batch([xs])
    assert type(got) is list
    rows = [*range(0, 65536, 997), 65535]
    assert near([got[r] for r in rows], exact(expr, [x], [xs], rows), 1e-12)


@pytest.mark.sanitize
def test_sines_and_a_quadratic_agree_with_the_interpreter(xy) -> None:
    x, y = xy
    expr = ak.sin(x) * ak.cos(y) + (x * x + y * y) * ak.ExprPool.rational(x.pool, 1, 100)
    xs, ys = np.linspace(-10, 10, 4096), np.linspace(5, -5, 4096)
    got = ak.compile_cuda(expr, xy).call_batch([xs, ys])
    rows = [*range(0, 4096, 37), 4095]
    assert near(got[rows].tolist(), exact(expr, xy, [xs.tolist(), ys.tolist()], rows), 1e-10)


def test_exponentials_and_roots_agree_with_compile_expr(xy) -> None:
    x = xy[0]
    expr = ak.exp(-x / 4) * ak.sin(x) + ak.sqrt(x + 1)
    xs = np.linspace(0, 30, 1024)
    got = ak.compile_cuda(expr, [x]).call_batch([xs])
    want = ak.compile_expr(expr, [x], backend="cpu-reference").call_batch([xs])
    assert np.allclose(got, want, rtol=1e-10, atol=1e-10)


def test_a_random_quadratic_agrees_with_numpy_eval_everywhere(xy) -> None:
    x, y = xy
    expr = x * x + 3 * x * y - y * y
    xs, ys = np.random.default_rng(0).normal(size=(2, 8192))
    got = ak.numpy_eval(ak.compile_cuda(expr, xy), xs, ys)
    want = ak.numpy_eval(ak.compile_expr(expr, xy, backend="cpu-reference"), xs, ys)
    assert np.allclose(got, want, rtol=1e-12, atol=1e-12)


def test_two_launches_give_the_same_bits_and_the_circle_is_round(xy) -> None:
    x = xy[0]
    xs = np.random.default_rng(1).uniform(-1e6, 1e6, 10_000)
    fn = ak.compile_cuda(ak.sin(x) ** 2 + ak.cos(x) ** 2, [x])
    first, second = fn.call_batch([xs]), fn.call_batch([xs])
    assert np.array_equal(first, second)
    assert np.abs(first - 1).max() <= 1e-12


def test_one_point_is_a_batch(xy) -> None:
    assert ak.compile_cuda(xy[0] * xy[1], xy).call_batch([[3.0], [4.0]]) == [12.0]


def test_a_million_points_of_polynomials_agree_with_numpy(xy) -> None:
    x = xy[0]
    xs = np.linspace(-2, 2, 1 << 20)
    square, quintic = ak.compile_cuda([x**2 + 1, x**5 - 3 * x**4 + x - 7], [x]).call_batch([xs])
    assert np.allclose(square, xs**2 + 1, rtol=1e-12, atol=0)
    assert np.allclose(quintic, xs**5 - 3 * xs**4 + xs - 7, rtol=1e-8, atol=1e-8)


def test_sixteen_million_points_are_all_computed(xy) -> None:
    x, y = xy
    xs, ys = np.random.default_rng(2).uniform(-9, 9, (2, 1 << 24))
    got = ak.compile_cuda(ak.sin(x) * ak.cos(y), xy).call_batch([xs, ys])
    assert np.abs(got - np.sin(xs) * np.cos(ys)).max() <= 1e-15 * 4


# Sizes and layouts


@pytest.mark.sanitize
@pytest.mark.parametrize("n", SIZES)
def test_every_length_is_computed_to_its_last_point_and_no_further(xy, n: int) -> None:
    x = xy[0]
    buffer = np.full(n + 32, -7.0)
    ak.compile_cuda(x + 1, [x]).call_batch([np.arange(n, dtype=float)], out=buffer[16 : n + 16])
    assert np.array_equal(buffer[16 : n + 16], np.arange(1, n + 1))
    assert (buffer[:16] == -7).all()
    assert (buffer[n + 16 :] == -7).all()


def test_an_empty_batch_gives_an_empty_result(xy) -> None:
    fn = ak.compile_cuda(xy[0] + xy[1], xy)
    assert fn.call_batch([[], []]) == []
    assert fn.call_batch([np.empty(0), np.empty(0)]).shape == (0,)


@pytest.mark.sanitize
@pytest.mark.parametrize("chunk", ["1000", "4096", "99999", "100000"])
def test_forced_chunks_give_the_same_bits(xy, monkeypatch: pytest.MonkeyPatch, chunk: str) -> None:
    fn = ak.compile_cuda(ak.exp(xy[0]) * xy[1], xy)
    xs = np.linspace(-5, 5, 200_000)[::2]
    whole = fn.call_batch([xs, 3.5])
    monkeypatch.setenv("ALKAHEST_CUDA_CHUNK", chunk)
    out = np.full((100_000, 2), -1.0)
    fn.call_batch([xs, 3.5], out=out[:, 0])
    assert fn.report["chunks"] >= -(-100_000 // int(chunk))
    assert np.array_equal(out[:, 0], whole)
    assert (out[:, 1] == -1).all()


def test_layouts_and_dtypes_of_columns_do_not_matter(xy) -> None:
    fn = ak.compile_cuda(xy[0] - 2 * xy[1], xy)
    ints = np.arange(1000)
    want = ints - 2.0 * ints[::-1]
    table = np.arange(2000.0).reshape(1000, 2) // 2
    for column in (ints, ints.astype("f4"), table[:, 0], np.repeat(ints * 1.0, 3)[::3]):
        assert np.array_equal(fn.call_batch([column, ints[::-1]]), want)
    grid = fn(np.arange(3.0)[:, None], np.arange(4.0))
    assert np.array_equal(grid, np.arange(3.0)[:, None] - 2 * np.arange(4.0))
    same = np.arange(5.0)
    assert np.array_equal(fn.call_batch([same, same]), -same)


# Programs


def test_float32_programs_run_in_float32(xy) -> None:
    x = xy[0]
    xs = np.linspace(0.1, 50, 10_001, dtype=np.float32)
    fn = ak.compile_cuda(ak.sin(x) * ak.sqrt(x) + ak.log(x), [x], dtype="float32")
    got = fn.call_batch([xs])
    assert got.dtype == np.float32
    wide = xs.astype(float)
    want = np.sin(wide) * np.sqrt(wide) + np.log(wide)
    assert np.abs(got - want).max() < 2e-5
    assert np.abs(got - want).max() > 0


def test_conditions_come_out_as_truth_values(xy) -> None:
    x, y = xy
    fn = ak.compile_cuda([ak.Lt(x, y), x + y, ak.Or(ak.Ge(x, y), ak.Eq(x, 0))], xy)
    xs, ys = np.array([0.0, 2.0, math.nan, 1.0]), np.array([1.0, 1.0, 1.0, 1.0])
    less, total, other = fn.call_batch([xs, ys])
    assert (less.dtype, total.dtype, other.dtype) == (np.bool_, np.float64, np.bool_)
    assert less.tolist() == [True, False, False, False]
    assert other.tolist() == [True, True, False, True]
    assert np.array_equal(total, xs + ys, equal_nan=True)


def test_a_hundred_outputs_are_each_right(xy) -> None:
    x = xy[0]
    outputs = ak.compile_cuda([x * k + k for k in range(100)], [x]).call_batch([np.arange(257.0)])
    for k, output in enumerate(outputs):
        assert np.array_equal(output, np.arange(257.0) * k + k)


@pytest.mark.sanitize
def test_six_hundred_columns_go_through_a_table() -> None:
    symbols = [ak.symbols(f"x{k}")[0] for k in range(600)]
    pool = symbols[0].pool
    fn = ak.compile_cuda([pool.add(symbols), symbols[599] - symbols[0]], symbols)
    assert fn.artifact.metadata["abi"] == "table"
    columns = [np.arange(300.0) * k for k in range(600)]
    total, difference = fn.call_batch(columns)
    assert np.array_equal(total, np.arange(300.0) * (599 * 600 // 2))
    assert np.array_equal(difference, np.arange(300.0) * 599)


def test_constants_have_the_length_asked_for() -> None:
    fn = ak.compile_cuda(2.5, [])
    assert fn.call_batch([], n=1000).tolist() == [2.5] * 1000


def test_forty_branches_take_the_right_one(xy) -> None:
    x = xy[0]
    branches = [(x * k, ak.Lt(x, k)) for k in range(40)]
    fn = ak.compile_cuda(ak.piecewise(*branches, (x, True)), [x])
    xs = np.linspace(-1, 45, 10_007)
    want = np.select([xs < k for k in range(40)], [xs * k for k in range(40)], xs)
    assert np.array_equal(fn.call_batch([xs]), want)


def test_every_target_up_to_the_devices_own_runs(xy) -> None:
    from alkahest.backends.nvptx import targets

    fn = ak.compile_cuda(ak.sin(xy[0]), xy[:1])
    own = targets.capability(fn.target)
    want = fn.call_batch([np.linspace(0, 9, 100)])
    for target in targets.supported():
        if targets.capability(target) <= own:
            older = ak.compile_cuda(ak.sin(xy[0]), xy[:1], target=target)
            assert np.array_equal(older.call_batch([np.linspace(0, 9, 100)]), want)
            assert older.report["target"] == target
