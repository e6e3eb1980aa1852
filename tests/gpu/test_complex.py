"""Complex programs on the device against the CPU reference: values, layouts, special values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import alkahest as ak
from alkahest.compiled import CompiledFn
from alkahest.errors import AlkahestError
from alkahest.ops import OPS
from alkahest.testing.programs import single

POINTS = 20_000
# Of the magnitude, both backends' errors together.
TOLERANCE = {"complex128": 12 * 2.0**-52, "complex64": 16 * 2.0**-23}
SPECIAL = (0.0, -0.0, 1.0, -2.0, 0.5, math.inf, -math.inf, math.nan)


def complex_operations() -> list[str]:
    names = []
    for op in OPS:
        try:
            single(op, "complex128")
        except AlkahestError:
            continue  # no meaning for complex columns
        names.append(op)
    return names


def numbers(n: int, dtype: str, seed: int) -> np.ndarray:
    """Points of every direction, of magnitudes from 1e-3 to 10."""
    random = np.random.default_rng(seed)
    angles = random.uniform(-math.pi, math.pi, n)
    return (10 ** random.uniform(-3, 1, n) * np.exp(1j * angles)).astype(dtype)


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("op", complex_operations())
def test_complex_operations_agree_with_the_reference(op: str, dtype: str) -> None:
    program = single(op, dtype)
    columns = [numbers(POINTS, dtype, seed) for seed in range(len(program.inputs))]
    (got,) = CompiledFn.from_program(program, backend="nvptx").call_batch(columns)
    (want,) = CompiledFn.from_program(program, backend="cpu-reference").call_batch(columns)
    assert got.dtype == want.dtype
    if got.dtype == bool:
        assert (got == want).all()
        return
    allowed = np.full(POINTS, TOLERANCE[dtype])
    if op == "pow":
        allowed *= 1 + np.abs(columns[1] * np.log(columns[0]))
    finite = np.isfinite(want)
    assert finite.mean() > 0.9
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / np.abs(want)
    fine = (error <= allowed) | (got == want) | ~finite | (np.abs(want) < 1e-30)
    assert fine.all(), [c[~fine][:3] for c in (*columns, got, want)]


@pytest.mark.parametrize(
    "op", ["mul", "div", "exp", "log", "sqrt", "tanh", "asin", "acosh", "atan"]
)
def test_special_values_are_those_of_the_reference(op: str) -> None:
    program = single(op, "complex128")
    plane = np.array([complex(x, y) for x, y in itertools.product(SPECIAL, repeat=2)])
    columns = [plane]
    if len(program.inputs) == 2:
        columns = [np.repeat(plane, len(plane)), np.tile(plane, len(plane))]
    (got,) = CompiledFn.from_program(program, backend="nvptx").call_batch(columns)
    (want,) = CompiledFn.from_program(program, backend="cpu-reference").call_batch(columns)
    for part, wanted in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(part, wanted, rtol=1e-14, atol=1e-15)


def test_arrays_on_the_device_are_read_as_pairs_and_strided_ones_in_place() -> None:
    cupy = pytest.importorskip("cupy")
    z, w = ak.symbols("z w")
    fn = ak.compile_expr([z * w, ak.functions.re(z)], [z, w], backend="nvptx", dtype="complex128")
    table = cupy.asarray(numbers(3000, "complex128", 7).reshape(1000, 3))
    for column in (cupy.ascontiguousarray(table[:, 0]), table[:, 1], table[::-1, 2]):
        product, real = fn.call_batch([column, column])
        np.testing.assert_allclose(product.get(), column.get() ** 2, rtol=1e-14)
        np.testing.assert_array_equal(real.get(), column.get().real)
    out = cupy.empty((1000, 2), "complex128")
    parts = cupy.empty(1000)
    fn.call_batch([table[:, 0], table[:, 1]], out=(out[:, 1], parts))
    np.testing.assert_allclose(out[:, 1].get(), (table[:, 0] * table[:, 1]).get(), rtol=1e-14)


@pytest.mark.sanitize
def test_a_batch_larger_than_a_chunk_from_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALKAHEST_CUDA_CHUNK", "10000")
    z, w = ak.symbols("z w")
    fn = ak.compile_expr([z * w + 1, abs(z)], [z, w], backend="nvptx", dtype="complex128")
    a, b = numbers(100_001, "complex128", 3), numbers(100_001, "complex128", 4)
    product, size = fn.call_batch([a, b])
    np.testing.assert_allclose(product, a * b + 1, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(size, np.abs(a), rtol=1e-15)
