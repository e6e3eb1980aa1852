"""One test for every shape of kernel that a call can need; the sanitizers run all of them.

The shape is read off the access that the kernel was generated for, so that a test whose arrays no
longer lead to the kernel of its name fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import alkahest as ak
from alkahest.backends.nvptx import arrays
from alkahest.backends.nvptx.access import STRIDED, VALUE, Access
from alkahest.backends.nvptx.accuracy import MODES

pytestmark = pytest.mark.sanitize

N = 1037
DTYPES = {"float64": 1e-13, "float32": 1e-5, "complex128": 1e-13, "complex64": 1e-5}
"""Dtype -> relative difference that two backends may have."""

x, y = ak.symbols("x y")

Made = tuple[list[Any], dict[str, Any]]
Shape = tuple[Callable[[Any, Any], Made], Callable[[Access], bool]]


def aligned(cupy: Any, table: Any) -> Made:
    return [table[0].copy(), table[1].copy()], {}


def unaligned(cupy: Any, table: Any) -> Made:
    frame = cupy.zeros(N + 1, table.dtype)
    frame[1:] = table[0]
    return [frame[1:], table[1].copy()], {}


def odd_addresses(cupy: Any, table: Any) -> Made:
    """At an odd multiple of the part's size: complex numbers that do not lie on their own."""
    parts = table[0].view(table.real.dtype)
    memory = cupy.zeros(len(parts) + 1, parts.dtype)
    memory[1:] = parts
    return [memory[1:].view(table.dtype), table[1].copy()], {}


def strided(cupy: Any, table: Any) -> Made:
    columns = cupy.ascontiguousarray(table.T)
    return [columns[:, 0], columns[:, 1]], {}


def backwards(cupy: Any, table: Any) -> Made:
    return [table[0][::-1], table[1].copy()], {}


def several_dimensions(cupy: Any, table: Any) -> Made:
    square = table[:, : 32 * 32].reshape(2, 32, 32)
    return [square[0].T, square[1].copy()], {}


def broadcast(cupy: Any, table: Any) -> Made:
    square = table[:, : 32 * 32].reshape(2, 32, 32)
    return [square[0], square[1][0]], {}


def one_value(cupy: Any, table: Any) -> Made:
    return [table[0].copy(), 2.5], {}


def in_place(cupy: Any, table: Any) -> Made:
    columns = [table[0].copy(), table[1].copy()]
    return columns, {"out": columns[0]}


def strided_output(cupy: Any, table: Any) -> Made:
    frame = cupy.zeros((N, 2), table.dtype)
    return [table[0].copy(), table[1].copy()], {"out": frame[:, 1]}


SHAPES: dict[str, Shape] = {
    "aligned": (aligned, lambda a: STRIDED not in a.modes and a.rank == 1),
    "unaligned": (unaligned, lambda a: a.points == 1),
    "odd addresses": (odd_addresses, lambda a: a.points == 1),
    "strided": (strided, lambda a: a.modes[:2] == (STRIDED, STRIDED)),
    "backwards": (backwards, lambda a: a.modes[0] == STRIDED),
    "several dimensions": (several_dimensions, lambda a: a.rank == 2),
    "broadcast": (broadcast, lambda a: a.rank == 2),
    "one value": (one_value, lambda a: a.modes[1] == VALUE),
    "in place": (in_place, lambda a: a.in_place),
    "strided output": (strided_output, lambda a: a.modes[2] == STRIDED),
}


@pytest.fixture
def accesses(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """What kernels the calls of a test needed."""
    seen: list[Access] = []
    decide = arrays.arguments

    def spy(*given: Any) -> Any:
        called = decide(*given)
        seen.append(called.access)
        return called

    monkeypatch.setattr(arrays, "arguments", spy)
    return seen


def function(dtype: str, mode: str = "default") -> ak.CompiledFn:
    """Two outputs; a real one has all of a kernel's blocks, far arguments included."""
    if dtype.startswith("complex"):
        outputs = [ak.exp(x) * y + x, abs(y)]
    else:
        outputs = [ak.sin(x) * ak.exp(y) + x / y, x < y]
    return ak.compile_expr(outputs, [x, y], backend="nvptx", dtype=dtype, accuracy=mode)


def table_of(cupy: Any, dtype: str) -> Any:
    """Two rows of numbers of the dtype."""
    random = np.random.default_rng(11)
    values = random.uniform(0.5, 3, (2, N)) * random.choice([-1, 1], (2, N))
    if dtype.startswith("complex"):
        values = values + 1j * random.uniform(-2, 2, (2, N))
    return cupy.asarray(values.astype(dtype))


def wanted(dtype: str, columns: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The values, in double precision."""
    wide = "complex128" if dtype.startswith("complex") else "float64"
    a, b = (np.asarray(getattr(c, "get", lambda c=c: c)()).astype(wide) for c in columns)
    if wide == "complex128":
        return np.exp(a) * b + a, np.broadcast_to(np.abs(b), np.broadcast(a, b).shape)
    return np.sin(a) * np.exp(b) + a / b, a < b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_a_kernel_of_every_shape_gives_the_right_values(
    name: str, dtype: str, cupy: Any, accesses: list[Access]
) -> None:
    make, is_right = SHAPES[name]
    columns, options = make(cupy, table_of(cupy, dtype))
    value, second = wanted(dtype, columns)
    if "out" in options:
        options["out"] = (options["out"], second_like(cupy, second, dtype))
    got, other = function(dtype)(*columns, **options)
    assert is_right(accesses[-1]), accesses[-1].text
    np.testing.assert_allclose(got.get(), value, rtol=DTYPES[dtype], atol=DTYPES[dtype])
    np.testing.assert_allclose(other.get(), second, rtol=DTYPES[dtype])


def second_like(cupy: Any, second: np.ndarray, dtype: str) -> Any:
    """Memory for the second output: truth values, or real numbers of the program's precision."""
    real = {"complex128": "float64", "complex64": "float32"}
    return cupy.empty(second.shape, real.get(dtype, "bool"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_near_and_far_arguments_are_computed_in_every_mode(
    dtype: str, mode: str, cupy: Any
) -> None:
    near, _ = table_of(cupy, dtype)
    far = near.copy()
    far[::97] *= 1e20
    fn = function(dtype, mode)
    for first, second in ((near, near), (far, near), (near[1:], near[:-1])):
        got, smaller = fn.call_batch([first, second])
        value, truth = wanted(dtype, [first, second])
        kept = np.abs(first.get()) < 2**31 if mode == "fast" else slice(None)
        np.testing.assert_allclose(got.get()[kept], value[kept], rtol=DTYPES[dtype] * 10)
        np.testing.assert_array_equal(smaller.get(), truth)


@pytest.mark.parametrize(
    "column", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32".split()
)
@pytest.mark.parametrize("step", [1, 3])
def test_columns_of_other_dtypes_are_converted_by_the_kernel(
    column: str, step: int, cupy: Any, accesses: list[Access]
) -> None:
    values = (np.arange(step * N) % 120).astype(column)
    xs = cupy.asarray(values)[::step]
    fn = ak.compile_expr([x / y], [x, y], backend="nvptx")
    (got,) = fn.call_batch([xs, cupy.full(N, 4.0)])
    assert accesses[-1].columns[0][0] == column
    np.testing.assert_array_equal(got.get(), values[::step].astype(float) / 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_addresses_of_many_columns_come_in_a_table(dtype: str, cupy: Any) -> None:
    symbols = [ak.symbols(f"x{k}")[0] for k in range(600)]
    fn = ak.compile_expr([symbols[0].pool.add(symbols)], symbols, backend="nvptx", dtype=dtype)
    assert fn.artifact.metadata["abi"] == "table"
    columns = [cupy.full(N, float(k % 7), dtype) for k in range(600)]
    total = sum(k % 7 for k in range(600))
    (plain,) = fn.call_batch(columns)
    columns[5] = cupy.full(2 * N, 5.0, dtype)[::2]
    (strided_too,) = fn.call_batch(columns)
    for got in (plain, strided_too):
        np.testing.assert_array_equal(got.get(), np.full(N, total, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outputs", [1, 2, 3, 40])
def test_any_number_of_outputs_is_written(dtype: str, outputs: int, cupy: Any) -> None:
    table = table_of(cupy, dtype)
    fn = ak.compile_expr([x + k for k in range(outputs)], [x], backend="nvptx", dtype=dtype)
    for n in (1, 2, 3, 4, 5, 127, 128, 129, N):
        for k, got in enumerate(fn.call_batch([table[0][:n]])):
            np.testing.assert_allclose(got.get(), table[0][:n].get() + k, rtol=DTYPES[dtype])
