"""JAX's own arrays: taken where they are, traced, differentiated, and refused when they must be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy
from alkahest_jax.evaluator import padded

import alkahest as ak
from alkahest.testing import oracle

x, y = ak.symbols("x y")
XS, YS = np.linspace(0.1, 2.0, 7), np.linspace(-1.0, 1.5, 7)
WAVE = ak.sin(x * y) + x**3 / y


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types switched on, as an application that wants them does."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def no_x64() -> Iterator[None]:
    """64-bit types switched off, as they are in JAX."""
    with jax.enable_x64(False):
        yield


def compiled(expr: Any = WAVE, **choices: Any) -> Any:
    return ak.compile_expr(expr, [x, y], backend="jax", **choices)


def wave(xs: Any, ys: Any) -> Any:
    return np.sin(xs * ys) + xs**3 / ys


@pytest.mark.usefixtures("x64")
def test_arrays_of_jax_give_arrays_of_jax() -> None:
    got = compiled()(jnp.asarray(XS)[:, None], jnp.asarray(YS))
    assert isinstance(got, jax.Array)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, wave(XS[:, None], YS), rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_a_compiled_function_is_traced_like_any_other() -> None:
    fn = compiled()
    assert np.array_equal(jax.jit(fn)(XS, YS), fn(jnp.asarray(XS), YS))
    rows = jax.vmap(fn, (0, None))(jnp.asarray(XS), 0.5)
    np.testing.assert_allclose(rows, wave(XS, 0.5), rtol=1e-14)
    text = jax.jit(fn).lower(XS, YS).as_text()
    assert "stablehlo.sine" in text
    assert "callback" not in text


@pytest.mark.usefixtures("x64")
def test_jax_differentiates_as_alkahest_does() -> None:
    everything = WAVE + ak.atanh(x / 4) * ak.cbrt(y + 3) + ak.sinh(x) * ak.tanh(y) + ak.mod(x, y)
    value, exact = compiled(everything, derivatives=1)(XS, YS)
    fn = compiled(everything)
    got = jax.grad(lambda a, b: fn(a, b).sum(), argnums=(0, 1))(jnp.asarray(XS), jnp.asarray(YS))
    np.testing.assert_allclose(fn(XS, YS), value, rtol=1e-15)
    np.testing.assert_allclose(got, exact, rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("function", "point"),
    [
        *((name, 0.0) for name in "exp2 expm1 sin sinh cosh tanh asinh atanh erf".split()),
        *((name, -0.0) for name in "sinh tanh atanh".split()),
        *((name, 1.0) for name in "lgamma digamma cbrt log2".split()),
        *((name, 9.0) for name in "exp2 sinh cosh tanh".split()),
    ],
)
def test_derivatives_are_right_where_formulae_change(function: str, point: float) -> None:
    got = jax.grad(compiled(x.pool.func(function, [x]) * y))(jnp.asarray(point), 1.0)
    with mpmath.workdps(40):
        want = mpmath.diff(lambda a: oracle.exact(function, [a]), mpmath.mpf(point))
    assert float(got) == pytest.approx(float(want), rel=1e-12, abs=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("a", [-6.0, 6.0, 0.0, 7.5])
def test_a_remainder_has_its_slopes_at_multiples_too(a: float) -> None:
    got = jax.grad(compiled(ak.mod(x, y)), argnums=(0, 1))(jnp.asarray(a), jnp.asarray(3.0))
    assert [float(slope) for slope in got] == [1.0, -(a // 3.0)]


@pytest.mark.usefixtures("x64")
def test_value_gradient_and_hessian_are_arrays_of_jax() -> None:
    fn = compiled([WAVE, x], derivatives=2)
    for mine, numpys in zip(fn(jnp.asarray(XS), YS), fn(XS, YS), strict=True):
        assert isinstance(mine, jax.Array)
        np.testing.assert_allclose(mine, numpys, rtol=1e-13)


@pytest.mark.usefixtures("x64")
def test_complex_arrays_work_too() -> None:
    z = jnp.asarray(XS + 1j * YS)
    got = compiled(ak.exp(x) * y, dtype="complex128")(z, 2j)
    np.testing.assert_allclose(got, np.exp(XS + 1j * YS) * 2j, rtol=1e-14)


@pytest.mark.usefixtures("no_x64")
def test_host_columns_are_computed_in_float64_whatever_jax_is_set_to() -> None:
    assert not jax.config.jax_enable_x64
    got = compiled()(XS, YS)
    assert type(got) is np.ndarray
    np.testing.assert_allclose(got, wave(XS, YS), rtol=1e-14)
    assert not jax.config.jax_enable_x64


@pytest.mark.usefixtures("no_x64")
def test_arrays_of_float32_need_a_program_of_float32_where_jax_has_no_64_bits() -> None:
    xs = jnp.asarray(XS)
    with pytest.raises(ak.InputTypeError, match="would hold that as float32") as caught:
        compiled()(xs, 1.0)
    assert caught.value.code == "E-INPUT-004"
    got = compiled(dtype="float32")(xs, 1.0)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wave(XS, 1.0), rtol=1e-6)


@pytest.mark.usefixtures("no_x64")
@pytest.mark.parametrize(
    ("choices", "code"), [({"out": np.empty(7)}, "E-INPUT-009"), ({"stream": 1}, "E-INPUT-011")]
)
def test_what_jax_has_not_is_refused(choices: Any, code: str) -> None:
    with pytest.raises(ak.AlkahestError) as caught:
        compiled(dtype="float32")(jnp.ones(7), 1.0, **choices)
    assert caught.value.code == code


def test_two_devices_have_ordinals_and_a_call_stays_where_it_was_sent() -> None:
    code = """
import json, jax, numpy as np, alkahest as ak
import alkahest_jax.plugin
if "jax" not in ak.capabilities()["backends"]:
    ak.register(alkahest_jax.plugin)
x, y = ak.symbols("x y")
fn = ak.compile_expr(x + 1, [x], backend="jax", dtype="float32", device=1)
first, second = (jax.device_put(np.ones(3, "f4"), d) for d in jax.devices())
answer = {"host": fn(np.ones(3, "f4")).tolist(), "there": str(fn(second).devices())}
product = ak.compile_expr(x * y, [x, y], backend="jax", dtype="float32")
two = ak.compile_expr(x + ak.sqrt(x), [x], backend="jax")
answer["all"] = two.call_batch([np.full(1001, 4.0)], device="all").tolist() == [6.0] * 1001
answer["parts"] = [part["n"] for part in two.report["devices"]]
for name, call in {
    "elsewhere": lambda: fn(first),
    "mixed": lambda: product(first, second),
    "missing": lambda: ak.compile_expr(x, [x], backend="jax", device=2),
}.items():
    try:
        call()
    except ak.AlkahestError as error:
        answer[name] = error.code
print(json.dumps(answer))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "host": [2.0, 2.0, 2.0],
        "there": "{CpuDevice(id=1)}",
        "all": True,
        "parts": [500, 501],
        "elsewhere": "E-INPUT-010",
        "mixed": "E-INPUT-010",
        "missing": "E-INPUT-011",
    }


def test_few_lengths_are_compiled_and_at_most_a_quarter_is_added() -> None:
    lengths = {n: padded(n) for n in range(1, 5000)}
    assert all(n <= length for n, length in lengths.items())
    assert all(length <= n * 5 / 4 for n, length in lengths.items() if n >= 64)
    assert len(set(lengths.values())) < 35


@pytest.mark.usefixtures("x64")
def test_a_matrix_of_sympy_is_an_array_of_jax_and_can_be_traced() -> None:
    t, u = sympy.symbols("t u")
    turn = ak.lambdify([t, u], sympy.Matrix([[sympy.cos(t), -u], [u, 1]]), backend="jax")
    found = jax.jit(turn)(jnp.asarray(XS), 2.0)
    assert isinstance(found, jax.Array)
    ones = np.ones_like(XS)
    wanted = [[np.cos(XS), -2 * ones], [2 * ones, ones]]
    np.testing.assert_allclose(found, np.array(wanted), rtol=1e-14)
    slope = jax.jacfwd(lambda angle: turn(angle, 2.0))(0.5)
    np.testing.assert_allclose(slope, [[-np.sin(0.5), 0], [0, 0]], rtol=1e-14)
