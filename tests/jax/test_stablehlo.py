"""XLA takes the modules that ``to_stablehlo`` writes, and computes what they mean."""

import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.extend.backend import get_backend

import alkahest as ak
from alkahest.emit import to_stablehlo
from alkahest.emit.stablehlo import _CHLO, _COMPARISONS, _EXPANSIONS, _STABLEHLO

jax.config.update("jax_enable_x64", True)

POOL = ak.ExprPool()
X, Y = POOL.symbols("x y")
XS = np.array([0.125, 0.3, 0.55, 0.9])
YS = np.array([0.7, 0.3, 1.25, -0.5])


def run(text, *arguments):
    """Parse and verify a module, compile it and give the results of ``main``."""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        backend = get_backend("cpu")
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        program = backend.compile_and_load(module, devices, xla_client.CompileOptions())
    placed = [jax.device_put(argument) for argument in arguments]
    results = program.execute_sharded(placed).disassemble_into_single_device_arrays()
    return [np.asarray(result[0]) for result in results]


def samples():
    """An expression for every operation that can be written, by its name."""
    plain = set(_STABLEHLO) | set(_CHLO) | set(_EXPANSIONS)
    special = {
        "add": X + Y,
        "sub": X - Y,
        "mul": X * Y,
        "div": X / (Y + 2),
        "neg": -X,
        "pow": X**Y,
        "acosh": ak.acosh(X + 1),
        "select": ak.piecewise((X, X < Y), default=Y),
        "not": ak.piecewise((X, ak.Not(ak.Eq(X, Y))), default=Y + 1),
        "and": ak.And(X < Y, X > 0.2),
        "or": ak.Or(X < Y, X > 0.8),
    }
    for op in _COMPARISONS:
        special[op] = POOL.func(op, (X, Y))
    for op in ("min", "max", "atan2", "mod"):
        special[op] = POOL.func(op, (X, Y))
    for n in (2, 4, 7, -1, -3, -9):
        special[f"powi {n}"] = X**n
    return special | {op: POOL.func(op, (X,)) for op in plain - set(special)}


SAMPLES = samples()


@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_xla_computes_every_operation(op):
    (got,) = run(to_stablehlo(SAMPLES[op], [X, Y], shape=(4,)), XS, YS)
    points = [{"x": x, "y": y} for x, y in zip(XS.tolist(), YS.tolist(), strict=True)]
    want = np.array([ak.eval_expr(SAMPLES[op], at) for at in points])
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_extremes_signs_and_remainders_keep_their_special_values():
    exprs = [ak.min(X, Y), ak.max(X, Y), ak.sign(X), ak.mod(X, Y)]
    xs, ys = np.array([np.nan, -0.0, -7.0, 7.0]), np.array([1.0, 0.0, 3.0, -3.0])
    low, high, signs, remainders = run(to_stablehlo(exprs, [X, Y], shape=(4,)), xs, ys)
    assert np.isnan(low[0])
    assert np.isnan(high[0])
    assert not np.signbit(signs[1])
    assert remainders[2:].tolist() == [2.0, -2.0]


def test_scalars_single_precision_and_several_results():
    text = to_stablehlo([ak.exp(X), X < 1], X, dtype="float32")
    value, below = run(text, np.float32(0.5))
    assert value.dtype == np.float32
    assert value == pytest.approx(np.exp(np.float32(0.5)), rel=1e-6)
    assert bool(below)


def test_complex_modules_take_and_give_complex_numbers():
    text = to_stablehlo(ak.exp(X) * POOL.imaginary_unit(), X, shape=(2,), dtype="complex128")
    zs = np.array([0.5 + 1j, -1.0 - 2j])
    (got,) = run(text, zs)
    np.testing.assert_allclose(got, np.exp(zs) * 1j, rtol=1e-14)
