"""Where results go, which arrays can take them, and in which order a call is checked."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import InputError
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


def test_results_go_to_out_which_is_returned(weigh: CompiledFn) -> None:
    out = np.zeros(2)
    assert weigh.call_batch([[1, 2], [3, 4]], out=out) is out
    assert out.tolist() == [7.0, 10.0]
    assert weigh(1.0, 2.0, out=np.zeros(())).tolist() == 5.0


@pytest.mark.parametrize("order", ["C", "F"])
def test_out_may_have_any_shape_and_order(weigh: CompiledFn, order: Any) -> None:
    a = np.arange(6.0).reshape(2, 3)
    out = np.zeros((2, 3), order=order)
    weigh(a, 1.0, out=out)
    np.testing.assert_array_equal(out, a + 2)
    wide = np.zeros((2, 6))
    weigh(a, 1.0, out=wide[:, ::2])
    np.testing.assert_array_equal(wide, np.kron(a + 2, [1, 0]))


def test_strided_out_leaves_its_neighbours_alone(weigh: CompiledFn) -> None:
    memory = np.full(9, -1.0)
    weigh.call_batch([np.arange(3.0), 0.0], out=memory[7:0:-3])
    assert memory.tolist() == [-1, 2, -1, -1, 1, -1, -1, 0, -1]


def test_several_outputs_take_several_arrays(arithmetic: Arithmetic) -> None:
    fn = compile_expr([x + y, x < y], [x, y])
    sums, flags = np.zeros(2), np.empty(2, dtype=bool)
    assert fn([1.0, 2.0], 1.5, out=(sums, flags))[1] is flags
    assert sums.tolist() == [2.5, 3.5]
    assert flags.tolist() == [True, False]


@pytest.mark.parametrize(
    ("out", "fault"),
    [
        (np.zeros(3), "has shape (3,), the result has (2,)"),
        (np.zeros((2, 1)), "has shape (2, 1)"),
        (np.zeros(2, dtype="f4"), "has dtype float32, the output is float64"),
        (np.zeros(2, dtype=">f8"), "has dtype >f8"),
        (np.broadcast_to(np.zeros(1), (2,)), "is read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (0,)), "repeats its memory"),
        ([0.0, 0.0], "out has 2 arrays for 1 outputs"),
        (3.0, "is a float, not a NumPy array"),
        (np.ma.zeros(2), "not a NumPy array"),
        ((), "out has 0 arrays"),
    ],
    ids=str,
)
def test_unusable_out_is_refused_before_anything_runs(
    weigh: CompiledFn, arithmetic: Arithmetic, out: Any, fault: str
) -> None:
    with refused("E-INPUT-009", fault):
        weigh.call_batch([np.ones(2), 1.0], out=out)
    assert arithmetic.batches == []


def test_out_whose_rows_overlap_is_refused(weigh: CompiledFn, arithmetic: Arithmetic) -> None:
    out = np.lib.stride_tricks.as_strided(np.zeros(9), (2, 3), (8, 8))
    with refused("E-INPUT-009", "repeats its memory: its strides are (8, 8)"):
        weigh(np.ones((2, 3)), 1.0, out=out)
    assert arithmetic.batches == []


def test_out_arrays_that_share_memory_are_refused(arithmetic: Arithmetic) -> None:
    fn = compile_expr([x + y, x - y], [x, y])
    memory = np.empty(4)
    with refused("E-INPUT-009", "out array 1 shares memory with out array 0"):
        fn.call_batch([np.ones(3), 1.0], out=[memory[:3], memory[1:]])
    repeating = np.lib.stride_tricks.as_strided(memory, (3,), (0,))
    for out, remedy in (
        ([memory[:3], memory[1:]], "Pass arrays that do not overlap."),
        ([memory[:3]], "Pass one array per output."),
        ([repeating, memory[:3]], "Pass a writeable array like np.empty((3,), 'float64')."),
    ):
        with pytest.raises(InputError) as caught:
            fn.call_batch([np.ones(3), 1.0], out=out)
        assert caught.value.remediation == remedy
    fn.call_batch([np.ones(2), 1.0], out=[memory[::2], memory[1::2]])
    assert memory.tolist() == [2, 0, 2, 0]


def test_out_may_be_a_column_and_other_overlaps_are_copied(
    weigh: CompiledFn, arithmetic: Arithmetic
) -> None:
    memory = np.arange(6.0)
    weigh.call_batch([memory, memory], out=memory)
    assert memory.tolist() == [0, 3, 6, 9, 12, 15]
    assert np.shares_memory(arithmetic.batches[-1].columns[0], memory)

    memory = np.arange(6.0)
    weigh.call_batch([memory[:-1], memory[::-1][1:]], out=memory[1:])
    assert memory.tolist() == [0, 8, 7, 6, 5, 4]
    assert not np.shares_memory(arithmetic.batches[-1].columns[0], memory)

    memory = np.arange(3.0)
    weigh(memory[1:2], memory, out=memory)
    assert memory.tolist() == [1, 3, 5]


@pytest.mark.parametrize(("outputs", "size"), [(2, 60), (12, 1500)])
def test_arrays_anywhere_in_memory_take_the_right_values_or_are_refused(
    arithmetic: Arithmetic, outputs: int, size: int
) -> None:
    fn = compile_expr([x + y + i for i in range(outputs)], [x, y])
    random = np.random.default_rng(outputs)
    refusals = 0
    for _ in range(300):
        memory = random.normal(size=size)
        steps = random.choice([-2, -1, 1, 2], outputs + 2)
        starts = random.integers(11, size - 11, outputs + 2)
        arrays = [memory[i : i + 5 * step : step] for i, step in zip(starts, steps, strict=True)]
        columns, out = arrays[:2], arrays[2:]
        expected = [columns[0] + columns[1] + i for i in range(outputs)]
        meeting = [
            (i, j)
            for i, j in itertools.combinations(range(outputs), 2)
            if np.shares_memory(out[i], out[j])
        ]
        if meeting:
            refusals += 1
            i, j = meeting[0]
            with refused("E-INPUT-009", f"out array {j} shares memory with out array {i}"):
                fn(*columns, out=out)
        else:
            np.testing.assert_array_equal(fn(*columns, out=out), expected)
    assert 30 < refusals < 270


def test_interleaved_views_do_not_overlap(weigh: CompiledFn, arithmetic: Arithmetic) -> None:
    table = np.arange(6.0).reshape(3, 2)
    weigh.call_batch([table[:, 0], 1.0], out=table[:, 1])
    assert table.tolist() == [[0, 2], [2, 4], [4, 6]]
    assert np.may_share_memory(arithmetic.batches[-1].columns[0], table)


def test_checks_come_before_the_backend_in_a_fixed_order(
    weigh: CompiledFn, arithmetic: Arithmetic
) -> None:
    ragged_and_text = [["a"], [1.0, 2.0]]
    with refused("E-INPUT-003"):
        weigh.call_batch(ragged_and_text)
    with refused("E-INPUT-001"):
        weigh.call_batch([*ragged_and_text, 1.0])
    with refused("E-INPUT-002"):
        weigh.call_batch([[1.0], [1.0, 2.0]], out=3)
    assert arithmetic.batches == []
