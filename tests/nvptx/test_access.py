"""Kernels for memory as it lies, on the emulated device: strides, dtypes, values, many arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import alkahest as ak
from alkahest.backends.nvptx import emit, layout
from alkahest.backends.nvptx.access import Access, arguments
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.plugin import DeviceBatch, DeviceColumn
from alkahest.program import Program, lower

x, y = ak.symbols("x y")
RANDOM = np.random.default_rng(5)
TABLE = RANDOM.normal(size=(7, 5))
ROW = RANDOM.normal(size=5)
CUBE = RANDOM.normal(size=(3, 4, 5))


@cache
def weigh(dtype: str = "float64") -> EmulatedEvaluator:
    """``x + 2*y``, where exchanged columns show."""
    return EmulatedEvaluator(lower([x + 2 * y], [x, y], dtype))


def column(values: np.ndarray, shape: tuple[int, ...] | None = None) -> DeviceColumn:
    """The memory of ``values``, spread to ``shape``."""
    spread = np.broadcast_to(values, values.shape if shape is None else shape)
    return DeviceColumn(
        pointer=values.ctypes.data,
        dtype=values.dtype.name,
        shape=spread.shape,
        strides=spread.strides,
        device=0,
        owner=values,
    )


def evaluate(
    evaluator: EmulatedEvaluator, columns: list[Any], outputs: list[np.ndarray], **changes: Any
) -> str:
    """Evaluate into ``outputs``; numbers among the columns are values. Returns the access."""
    shape = outputs[0].shape
    batch = DeviceBatch(
        columns=tuple(
            column(c, shape) if isinstance(c, np.ndarray) else np.array(c, evaluator.program.dtype)
            for c in columns
        ),
        shape=shape,
        out=tuple(map(column, outputs)),
        sources=changes.get("sources", tuple(range(len(outputs)))),
        stream=1,
        device=0,
    )
    return evaluator.evaluate_on_device(batch).get("access", "")


@pytest.mark.parametrize("program_dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "f2", "f4"],
)
@pytest.mark.parametrize("step", [1, 3])
def test_columns_of_every_dtype_convert_as_numpy_converts_them(
    program_dtype: str, dtype: str, step: int
) -> None:
    bits = RANDOM.integers(0, 2**63, 3000, dtype=np.uint64) * 2 + 1
    values = bits.astype(dtype) if np.dtype(dtype).kind in "biu" else bits.view(dtype)
    values = values[np.isfinite(values)][::step]
    out = np.empty(values.shape, program_dtype)
    access = evaluate(weigh(program_dtype), [values, 0.5], [out])
    assert access.startswith(f"{values.dtype.name}{' strided' * (step > 1)}, value -> 0")
    with np.errstate(all="ignore"):
        assert np.array_equal(out, values.astype(program_dtype) + np.dtype(program_dtype).type(1))


def test_wider_columns_are_rounded_to_nearest() -> None:
    values = RANDOM.normal(size=999) * 10.0 ** RANDOM.integers(-50, 50, 999)
    out = np.empty(999, "f4")
    evaluate(weigh("float32"), [values, 0.0], [out])
    with np.errstate(all="ignore"):
        assert np.array_equal(out, values.astype("f4"))


LAYOUTS: dict[str, tuple[Callable[[], list[np.ndarray]], str]] = {
    "contiguous": (lambda: [TABLE, TABLE + 1], "0 contiguous, 2 points"),
    "row spread over a table": (lambda: [TABLE, ROW], "in 2 dimensions"),
    "columns of a table": (lambda: [TABLE[:, 0], TABLE[::-1, 1]], "strided -> 0 contiguous"),
    "transposed": (lambda: [TABLE.T, ROW[:, None]], "in 2 dimensions"),
    "reversed and stepped": (lambda: [TABLE[::-1, ::2], ROW[::-2]], "in 2 dimensions"),
    "fortran order throughout": (
        lambda: [np.asfortranarray(TABLE), np.asfortranarray(TABLE)],
        "in 2 dimensions",
    ),
    "three dimensions": (lambda: [CUBE.transpose(2, 0, 1), ROW[:, None, None]], "in 2 dimensions"),
    "three that do not merge": (lambda: [CUBE[:, ::2, ::3], CUBE[:, :2, :2]], "in 3 dimensions"),
    "one number in memory": (lambda: [TABLE, ROW[2:3]], "strided -> 0 contiguous"),
    "one point": (lambda: [TABLE[3:4, 2], ROW[4:]], "0 contiguous"),
}


@pytest.mark.parametrize(("arrays", "access"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_the_values_of_numpy(arrays, access: str) -> None:
    xs, ys = arrays()
    out = np.empty(np.broadcast_shapes(xs.shape, ys.shape))
    assert access in evaluate(weigh(), [xs, ys], [out])
    assert np.array_equal(out, xs + 2 * ys)


def test_outputs_of_any_layout_are_written_and_nothing_else() -> None:
    frame = np.full((7, 12), -1.0)
    out = frame[::-1, 1:11:2]
    evaluate(weigh(), [TABLE, ROW], [out])
    assert np.array_equal(out, TABLE + 2 * ROW)
    frame[:, 1:11:2] = -1
    assert (frame == -1).all()


def test_an_output_in_fortran_order_is_walked_in_its_order() -> None:
    xs, out = np.asfortranarray(TABLE), np.empty((5, 7)).T
    assert "in 2 dimensions" not in evaluate(weigh(), [xs, xs], [out])
    assert np.array_equal(out, 3 * TABLE)


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 65, 1000])
@pytest.mark.parametrize("offset", [0, 1])
def test_memory_that_is_not_aligned_to_16_bytes_is_computed_to_its_last_point(
    n: int, offset: int
) -> None:
    xs = np.arange(n + 2.0)[offset : n + offset]
    frame = np.full(n + 4, -1.0)
    out = frame[1 + offset : n + 1 + offset]
    evaluate(weigh(), [xs, 1.0], [out])
    assert np.array_equal(out, xs + 2)
    assert (np.delete(frame, np.arange(1 + offset, n + 1 + offset)) == -1).all()


def test_an_output_may_be_a_column() -> None:
    two = EmulatedEvaluator(lower([x + y, x - y], [x, y]))
    xs, ys = np.arange(9.0), np.arange(9.0) * 3
    want = xs + ys, xs - ys
    assert "in place" in evaluate(two, [xs, ys], [ys, xs])
    assert np.array_equal(ys, want[0])
    assert np.array_equal(xs, want[1])


def test_one_output_goes_to_several_places() -> None:
    outs = [np.empty(9) for _ in range(3)]
    two = EmulatedEvaluator(lower([x + y, ak.Lt(x, y)], [x, y]))
    flags = np.empty(9, bool)
    xs, ys = np.arange(9.0), np.full(9, 4.0)
    evaluate(two, [xs, ys], [outs[0], flags, outs[1]], sources=(0, 1, 0))
    assert np.array_equal(outs[0], xs + 4)
    assert np.array_equal(outs[1], xs + 4)
    assert flags.tolist() == [True] * 4 + [False] * 5


def many(count: int) -> tuple[Program, list[np.ndarray]]:
    symbols = [ak.symbols(f"x{k}")[0] for k in range(count)]
    pool = symbols[0].pool
    program = lower([pool.add(s * (k + 1) for k, s in enumerate(symbols))], symbols)
    return program, [RANDOM.normal(size=(6, 2)) for _ in range(count)]


@pytest.mark.parametrize("count", [3, 300])
def test_many_strided_columns_and_values_go_through_a_table(count: int) -> None:
    program, arrays = many(count)
    columns: list[Any] = [a[:, 0] for a in arrays]
    columns[1] = 1.5
    out = np.empty(6)
    evaluate(EmulatedEvaluator(program), columns, [out])
    want = sum((k + 1) * np.asarray(c) for k, c in enumerate(columns))
    assert np.allclose(out, want, rtol=1e-12)
    batch = DeviceBatch(
        columns=tuple(np.array(c) if isinstance(c, float) else column(c) for c in columns),
        shape=(6,),
        out=(column(out),),
        sources=(0,),
        stream=1,
        device=0,
    )
    access = arguments(program, batch, 1).access
    slots = 2 * count  # an address and a stride, but for the value; the output's address
    assert access.packing.size == 8 * (slots + 1)
    abi = "table" if slots > layout.MAX_SLOTS else "pointers"
    assert emit.kernel(program, access).abi == abi


def test_kernels_are_made_once_per_access() -> None:
    evaluator = EmulatedEvaluator(lower([x * y], [x, y]))
    for n in (3, 5, 8):
        evaluate(evaluator, [np.arange(2.0 * n)[::2], 1.0], [np.empty(n)])
        evaluate(evaluator, [np.arange(3.0 * n)[::3], 2.0], [np.empty(n)])
    assert len(evaluator._kernels) == 2  # the plain one and this one


def test_an_empty_batch_launches_nothing() -> None:
    assert evaluate(weigh(), [np.empty((0, 3)), 1.0], [np.empty((0, 3))]) == ""


def test_the_text_of_an_access_says_what_is_not_plain() -> None:
    program = lower([x + 2 * y], [x, y])
    assert Access.plain(program).text == "float64, float64 -> 0 contiguous, 2 points a thread"
    access = Access((("int32", "strided"), ("float64", "value")), ("strided",), (0,), rank=2)
    assert access.text == "int32 strided, value -> 0 strided in 2 dimensions"
