"""Values, gradients and Hessians on the reference, and the automatic choice of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from alkahest import functions as f
from alkahest.calibration import measuring, predict
from alkahest.cli import main
from alkahest.compiled import compile_expr
from alkahest.expr import Expr, ExprPool

Array = NDArray[Any]

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


def rosenbrock(variables: list[Expr]) -> Expr:
    """Sum of 100 (b - a²)² + (1 - a)² over neighbours a, b."""
    return pool.add([100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(variables)])


def rosenbrock_derivatives(points: Array) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian by the formulae of the textbook; ``points`` is (k, n)."""
    k, n = points.shape
    a, b = points[:-1], points[1:]
    value = (100 * (b - a**2) ** 2 + (1 - a) ** 2).sum(axis=0)
    gradient = np.zeros((k, n))
    gradient[:-1] += -400 * a * (b - a**2) - 2 * (1 - a)
    gradient[1:] += 200 * (b - a**2)
    hessian = np.zeros((k, k, n))
    for i in range(k - 1):
        hessian[i, i] += 1200 * a[i] ** 2 - 400 * b[i] + 2
        hessian[i + 1, i + 1] += 200
        hessian[i, i + 1] -= 400 * a[i]
        hessian[i + 1, i] -= 400 * a[i]
    return value, gradient, hessian


@pytest.mark.parametrize("device", [None, "all"])
def test_rosenbrock_in_ten_variables(device: Any) -> None:
    variables = [pool.symbol(f"x{i}") for i in range(10)]
    fn = compile_expr(rosenbrock(variables), variables, derivatives=2, device=device)
    points = np.random.default_rng(0).uniform(-2, 2, (10, 257))
    for got, want in zip(fn.call_batch(points), rosenbrock_derivatives(points), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-9)


def test_transcendental_derivatives_agree_with_their_closed_forms() -> None:
    fn = compile_expr(f.exp(-x) * f.sin(y), [x, y], derivatives=2)
    a, b = np.random.default_rng(1).uniform(-3, 3, (2, 100))
    value, gradient, hessian = fn(a, b)
    e, s, c = np.exp(-a), np.sin(b), np.cos(b)
    np.testing.assert_allclose(value, e * s, rtol=1e-14)
    np.testing.assert_allclose(gradient, [-e * s, e * c], rtol=1e-14)
    np.testing.assert_allclose(hessian, [[e * s, -e * c], [-e * c, -e * s]], rtol=1e-14)


def test_the_derivative_of_a_complex_square_is_complex() -> None:
    fn = compile_expr([x**2, 3 * x], [x], dtype="complex128", derivatives=2)
    points = np.array([1 + 2j, -0.5j])
    value, jacobian, hessians = fn(points)
    assert np.array_equal(value, [points**2, 3 * points])
    assert np.array_equal(jacobian, [[2 * points], [[3, 3]]])
    assert np.array_equal(hessians, [[[[2, 2]]], [[[0, 0]]]])


def test_float32_derivatives_are_float32() -> None:
    value, gradient = compile_expr(x**3 * y, [x, y], dtype="float32", derivatives=1)(
        np.float32([1, 2]), np.float32([3, 4])
    )
    assert (value.dtype, gradient.dtype) == (np.float32, np.float32)
    assert gradient.tolist() == [[9, 48], [1, 8]]


def test_the_hessian_may_overwrite_nothing_that_is_still_read() -> None:
    fn = compile_expr(x**2 * y, [x, y], derivatives=1)
    columns = np.array([[1.0, 2.0], [3.0, 4.0]])
    value = np.empty(2)
    fn.call_batch(columns, out=(value, columns))  # the gradient takes the columns' place
    assert value.tolist() == [3.0, 16.0]
    assert columns.tolist() == [[6.0, 16.0], [1.0, 4.0]]


# Selection and calibration


def test_host_columns_are_taken_by_the_best_backend_of_the_cpu_unless_calibrated_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALKAHEST_BACKEND", raising=False)
    monkeypatch.setenv("ALKAHEST_CALIBRATION", str(tmp_path / "calibration.json"))
    fn = compile_expr(f.sin(x), [x])
    fn(np.zeros(3))
    assert fn.report["backend"] == compile_expr(f.sin(x), [x], backend="cpu").backend
    assert fn.report["reason"].startswith("host columns, no ")


def test_a_calibration_of_the_reference_predicts_longer_times_for_more_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALKAHEST_CALIBRATION", str(tmp_path / "calibration.json"))
    monkeypatch.setattr(measuring, "LARGE", {"host": 4096, "cuda": 4096})
    assert main(["calibrate", "--quick", "--backend", "cpu-reference"]) == 0
    assert "float32" in capsys.readouterr().out
    program = compile_expr(f.gamma(x) + f.sin(x), [x]).program
    estimates = [predict("cpu-reference", program, n) for n in (1, 10_000, 10_000_000)]
    seconds = [estimate.seconds for estimate in estimates if estimate is not None]
    assert 0 < seconds[0] < seconds[1] < seconds[2]
