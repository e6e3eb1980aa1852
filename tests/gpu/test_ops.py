"""Every operation against the CPU reference, on many random operands."""

from __future__ import annotations

import numpy as np
import pytest

from alkahest.backends.nvptx.lowerings import LOWERINGS
from alkahest.backends.nvptx.probe import every_operation
from alkahest.compiled import CompiledFn
from alkahest.ops import OPS, Exactness
from alkahest.program import Program
from alkahest.testing import oracle
from alkahest.testing.programs import single

POINTS = 20_000
FLOAT32_ULP = 16.0
POWERS = (-1074, -3, 2, 3, 5, 100, 10**30 + 1)


def both(program: Program, columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The program's first output on the device and on the reference."""
    gpu = CompiledFn.from_program(program, backend="nvptx").call_batch(columns)
    cpu = CompiledFn.from_program(program, backend="cpu-reference").call_batch(columns)
    return gpu[0], cpu[0]


def columns_for(op: str, dtype: str) -> list[np.ndarray]:
    points = np.array(oracle.samples(op, POINTS, seed=1, dtype=dtype), dtype)
    return [np.ascontiguousarray(points[:, k]) for k in range(points.shape[1])]


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_operations_in_one_kernel_agree_with_the_reference(dtype: str) -> None:
    program = every_operation(dtype)
    columns = list(np.random.default_rng(5).uniform(0.1, 0.9, (3, 1000)).astype(dtype))
    outputs = CompiledFn.from_program(program, backend="nvptx").call_batch(columns)
    wanted = CompiledFn.from_program(program, backend="cpu-reference").call_batch(columns)
    assert len(outputs) == 1 + len(LOWERINGS)
    accuracy = 1e-13 if dtype == "float64" else 1e-4
    for output, want in zip(outputs, wanted, strict=True):
        assert output.dtype == want.dtype
        if output.dtype == np.bool_:
            assert np.array_equal(output, want)
        else:
            assert np.allclose(output, want, rtol=accuracy, atol=accuracy, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", LOWERINGS)
def test_an_operation_agrees_with_the_reference(op: str, dtype: str) -> None:
    row = OPS[op]
    for parameter in POWERS if row.has_parameter else (None,):
        columns = columns_for(op, dtype)
        if parameter is not None and abs(parameter) > 30:
            columns = [
                np.sign(c) * np.exp(np.abs(c) / abs(parameter)).astype(dtype) for c in columns
            ]
        got, want = both(single(op, dtype, parameter), columns)
        assert got.dtype == want.dtype
        if got.dtype == np.bool_ or row.exactness in (Exactness.EXACT, Exactness.ROUNDED):
            assert np.array_equal(got, want, equal_nan=got.dtype != np.bool_)
            continue
        assert np.array_equal(np.isnan(got), np.isnan(want))
        allowed = 2 * oracle.bound(row) if dtype == "float64" else FLOAT32_ULP
        spacing = np.spacing(np.maximum(np.abs(want), np.asarray(oracle.scale(row), dtype)))
        with np.errstate(invalid="ignore"):  # equal infinities
            off = np.where(got == want, 0, np.abs(got - want) / spacing)
        assert np.nanmax(off) <= allowed, (columns[0][np.nanargmax(off)], np.nanmax(off))
