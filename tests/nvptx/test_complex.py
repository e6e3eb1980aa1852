"""Complex kernels on the emulated device: layouts, conversions, branches, special values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from alkahest import ExprPool, parse
from alkahest.backends.cpu.reference import ReferenceEvaluator
from alkahest.backends.nvptx.accuracy import MODES
from alkahest.backends.nvptx.emulate import EmulatedEvaluator
from alkahest.backends.nvptx.pairs import RareCode
from alkahest.device_columns import describe
from alkahest.plugin import Batch, DeviceBatch, DeviceColumn
from alkahest.program import Program, lower
from alkahest.program.split_complex import FORMULAE, split
from alkahest.testing.programs import single

RANDOM = np.random.default_rng(11)
PLANE = np.array(
    [
        complex(x, y)
        for x, y in itertools.product(
            (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, math.inf, -math.inf, math.nan, 1e300), repeat=2
        )
    ]
)


class OnDevice:
    """An array of the emulated device."""

    def __init__(self, array: np.ndarray) -> None:
        interface = array.__array_interface__
        self.__cuda_array_interface__ = {**interface, "stream": None, "version": 3}
        self.array = array


def program(*texts: str, dtype: str = "complex128") -> Program:
    pool = ExprPool()
    inputs = [pool.symbol(n) for n in "xy"]
    return lower([parse(t, pool) for t in texts], inputs, dtype)


def numbers(n: int, dtype: str = "complex128") -> np.ndarray:
    return (RANDOM.normal(size=n) + 1j * RANDOM.normal(size=n)).astype(dtype)


def evaluated(
    evaluator: EmulatedEvaluator, columns: list[np.ndarray | complex], *outs: np.ndarray
) -> str:
    """Evaluate where the arrays are; the kernel's access."""
    described = tuple(
        describe(OnDevice(c), "x", 1) if isinstance(c, np.ndarray) else np.asarray(c)
        for c in columns
    )
    batch = DeviceBatch(
        columns=described,
        shape=outs[0].shape,
        out=tuple(describe(OnDevice(out), "out", 1) for out in outs),
        sources=tuple(range(len(outs))),
        stream=1,
        device=0,
    )
    assert any(isinstance(column, DeviceColumn) for column in described)
    return str(evaluator.evaluate_on_device(batch)["access"])


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where finite parts agree and the others are equal, but for the signs of zeros."""
    with np.errstate(all="ignore"):
        close = np.isclose(got, want, rtol=1e-14, atol=0)
    return close | (got == want) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_contiguous_numbers_are_read_and_written_as_pairs(dtype: str) -> None:
    evaluator = EmulatedEvaluator(program("x*y + 1", "re(x)", "Eq(x, y)", dtype=dtype))
    x, y = numbers(100, dtype), numbers(100, dtype)
    y[::3] = x[::3]
    batch = Batch(columns=(x, y), n=100)
    total, real, equal = evaluator.evaluate(batch).outputs
    np.testing.assert_allclose(total, x * y + 1, rtol=1e-6 if dtype == "complex64" else 1e-14)
    np.testing.assert_array_equal(real, x.real)
    np.testing.assert_array_equal(equal, x == y)
    assert [o.dtype.name for o in (total, real, equal)] == [dtype, x.real.dtype.name, "bool"]


@pytest.mark.parametrize("n", [0, 1, 2, 31, 33])
def test_every_length_is_written_to_its_end_and_no_further(n: int) -> None:
    evaluator = EmulatedEvaluator(program("x + y"))
    x, y, guarded = numbers(n), numbers(n), np.full(n + 4, -1j)
    evaluator.evaluate(Batch(columns=(x, y), n=n, out=(guarded[:n],)))
    np.testing.assert_array_equal(guarded[:n], x + y)
    assert (guarded[n:] == -1j).all()


def test_strided_columns_and_outputs_on_the_device_are_used_where_they_are() -> None:
    evaluator = EmulatedEvaluator(program("x + y", "im(y)"))
    table, frame, parts = numbers(60).reshape(20, 3), np.full((20, 2), -1j), np.empty(20)
    access = evaluated(evaluator, [table[:, 1], table[::-1, 0]], frame[:, 1], parts)
    assert access.startswith("complex128 strided, complex128 strided -> 0 strided")
    np.testing.assert_array_equal(frame[:, 1], table[:, 1] + table[::-1, 0])
    np.testing.assert_array_equal(parts, table[::-1, 0].imag)
    assert (frame[:, 0] == -1j).all()


def test_numbers_at_odd_addresses_are_strided() -> None:
    evaluator = EmulatedEvaluator(program("x + y"))
    memory = RANDOM.normal(size=101)
    x = memory[1:].view("complex128")
    whole = x if x.ctypes.data % 16 else memory[:100].view("complex128")
    out = np.empty(50, "complex128")
    assert "complex128 strided" in evaluated(evaluator, [whole, whole], out)
    np.testing.assert_array_equal(out, 2 * whole)
    batch = Batch(columns=(whole, whole), n=50)
    np.testing.assert_array_equal(evaluator.evaluate(batch).outputs[0], 2 * whole)


@pytest.mark.parametrize("given", ["int32", "float32", "float64", "complex64"])
def test_columns_of_other_dtypes_on_the_device_widen(given: str) -> None:
    evaluator = EmulatedEvaluator(program("x*y"))
    x, y, out = (10 * RANDOM.normal(size=40)).astype(given), numbers(40), np.empty(40, "complex128")
    assert evaluated(evaluator, [x, y], out).startswith(f"{given}, complex128")
    np.testing.assert_allclose(out, x.astype("complex128") * y, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_a_number_beside_a_column_takes_two_slots(dtype: str) -> None:
    evaluator = EmulatedEvaluator(program("x - y", dtype=dtype))
    y, out = numbers(40, dtype), np.empty(40, dtype)
    assert evaluated(evaluator, [np.dtype(dtype).type(2 - 3j), y], out).startswith("value, ")
    np.testing.assert_array_equal(out, np.dtype(dtype).type(2 - 3j) - y)


def test_an_output_may_be_a_column() -> None:
    evaluator = EmulatedEvaluator(program("x*y", "x - y"))
    x, y = numbers(33), numbers(33)
    wanted = [x * y, x - y]
    access = evaluated(evaluator, [x, y], y, x)
    assert access.endswith("in place")
    np.testing.assert_allclose([y, x], wanted, rtol=1e-14)


def test_many_columns_are_reached_through_a_table() -> None:
    pool = ExprPool()
    symbols = [pool.symbol(f"x{k}") for k in range(600)]
    evaluator = EmulatedEvaluator(lower([pool.add(symbols)], symbols, "complex64"))
    columns = tuple(numbers(5, "complex64") for _ in symbols)
    (got,) = evaluator.evaluate(Batch(columns=columns, n=5)).outputs
    np.testing.assert_allclose(got, np.sum(columns, axis=0, dtype="complex128"), rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["mul", "div", "exp", "sqrt", "atan", "acosh"])
def test_special_values_are_those_of_the_reference_in_every_mode(op: str, mode: str) -> None:
    one = single(op, "complex128")
    columns = [PLANE] if len(one.inputs) == 1 else [np.repeat(PLANE, 100), np.tile(PLANE, 100)]
    batch = Batch(columns=tuple(columns), n=len(columns[0]))
    (got,) = EmulatedEvaluator(one, mode=mode).evaluate(batch).outputs
    (want,) = ReferenceEvaluator(one).evaluate(batch).outputs
    agree = same(got.real, want.real) & same(got.imag, want.imag)
    if mode != "strict":
        with np.errstate(all="ignore"):  # multiply-adds may leave a rest of what cancels
            agree |= np.abs(got - want) <= 1e-15 * np.abs(want)
    if mode == "fast":
        # Infinities as factors, and sines of far angles, are among what the mode gives up.
        agree |= ~np.isfinite(batch.columns[0]) | (np.abs(batch.columns[0]) > 1e9)
    assert agree.all(), [c[~agree][:4] for c in (*columns, got, want)]


@pytest.mark.parametrize("op", sorted(FORMULAE.keys() - {"select", "complex", "conjugate"}))
def test_no_instruction_that_is_always_needed_waits_in_a_branch(op: str) -> None:
    real = split(single(op, "complex128")).program
    rare = RareCode(real)
    first = real.first_instruction
    grouped = [number for group in rare.selects.values() for number in group]
    assert len(grouped) == len(set(grouped))
    for number, (name, args, _) in enumerate(real.code, first):
        if number in rare.instructions:
            continue
        needed = (args[0], args[2]) if number in grouped else args
        assert name != "select" or rare.instructions.isdisjoint(needed)
    assert rare.instructions.isdisjoint(real.outputs)
