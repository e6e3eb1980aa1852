"""The interpreter: blocks, registers, output arrays, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from alkahest.backends.cpu.reference import ReferenceEvaluator, plan
from alkahest.plugin import Batch
from alkahest.program import Instruction, Program
from alkahest.testing.programs import chain, single

SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 65535, 65537)


def program(*code: tuple[Any, ...], **fields: Any) -> Program:
    choices: dict[str, Any] = {"dtype": "float64", "inputs": ("x",), "constants": ()}
    choices |= fields
    return Program(code=tuple(Instruction(*row) for row in code), **choices).verify()


PLUS_ONE = program(("add", (0, 1)), constants=(1.0,), outputs=(2,))


@pytest.mark.parametrize("n", SIZES)
def test_every_point_is_computed_and_nothing_beyond_is_touched(n: int) -> None:
    memory = np.full(n + 2, -7.0)
    column = np.arange(float(n))
    ReferenceEvaluator(PLUS_ONE).evaluate(Batch(columns=(column,), n=n, out=(memory[1:-1],)))
    np.testing.assert_array_equal(memory[1:-1], np.arange(1.0, n + 1))
    assert memory[0] == memory[-1] == -7.0


@pytest.mark.parametrize("n", [5, 7, 8, 9, 15, 16, 17])
def test_the_block_length_does_not_show(run: Any, n: int) -> None:
    formula = program(
        ("sin", (0,)), ("mul", (3, 1)), ("powi", (0,), 7), ("add", (4, 5)), ("gt", (6, 2)),
        inputs=("x", "y"), constants=(0.5,), outputs=(6, 7, 6, 0, 2),
    )  # fmt: skip
    x, y = np.random.default_rng(n).uniform(-1, 1, (2, n))
    whole = run(formula, x, y)
    for block in (1, 3, 8):
        for got, want in zip(run(formula, x, y, block=block), whole, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_million_points_span_many_blocks(run: Any) -> None:
    column = np.arange(1_000_003.0)
    (got,) = run(PLUS_ONE, column)
    np.testing.assert_array_equal(got, column + 1)


def test_an_empty_batch_gives_empty_outputs(run: Any) -> None:
    (got,) = run(PLUS_ONE, [])
    assert got.shape == (0,)
    assert got.dtype == np.float64


def test_a_long_chain_needs_one_register(run: Any) -> None:
    long = chain(5000)
    assert len(plan(long).scratch) == 1
    assert run(long, [3.0, -1e6])[0].tolist() == [2.0, 2.0]


def test_registers_are_reused_only_after_the_last_use(run: Any) -> None:
    # s = x+x is used by the first and the last instruction after it
    formula = program(
        ("add", (0, 0)), ("mul", (1, 1)), ("neg", (2,)), ("sub", (3, 1)), ("add", (1, 4)),
        outputs=(5,),
    )  # fmt: skip
    assert run(formula, [1.0, 3.0])[0].tolist() == [-4.0, -36.0]


def test_values_computed_for_nothing_do_no_harm(run: Any) -> None:
    formula = program(("neg", (0,)), ("exp", (0,)), ("add", (0, 0)), outputs=(3,))
    assert run(formula, [1.0, 2.0])[0].tolist() == [2.0, 4.0]


def test_outputs_may_be_inputs_constants_repeats_and_inner_values(run: Any) -> None:
    formula = program(
        ("neg", (0,)), ("add", (2, 1)), ("lt", (3, 1)), constants=(5.0,), outputs=(3, 0, 1, 2, 3, 4)
    )
    outputs = run(formula, [1.0, 2.0])
    assert [o.tolist() for o in outputs] == [
        [4.0, 3.0], [1.0, 2.0], [5.0, 5.0], [-1.0, -2.0], [4.0, 3.0], [True, True],
    ]  # fmt: skip
    outputs[0][0] = 99.0
    assert outputs[4][0] == 4.0


def test_a_program_without_inputs_fills_the_batch() -> None:
    constant = Program(dtype="float32", inputs=(), constants=(2.5, True), code=(), outputs=(0, 1))
    outputs = ReferenceEvaluator(constant, block=4).evaluate(Batch(columns=(), n=9)).outputs
    assert [o.tolist() for o in outputs] == [[2.5] * 9, [True] * 9]
    assert outputs[0].dtype == np.float32


@pytest.mark.parametrize("op", ["min", "select", "mod", "erfc", "digamma", "y1", "fma", "cbrt"])
def test_strided_spread_and_read_only_columns_give_the_same(run: Any, op: str) -> None:
    row = single(op)
    arity = len(row.inputs)
    table = np.random.default_rng(0).uniform(-3, 3, (40, arity))
    want = run(row, *table.T.copy())[0]
    views = tuple(table.T)
    for view in views:
        view.flags.writeable = False
    got = ReferenceEvaluator(row, block=7).evaluate(Batch(columns=views, n=40)).outputs[0]
    np.testing.assert_array_equal(got, want)
    spread = tuple(np.broadcast_to(c[:1], (40,)) for c in table.T)
    got = ReferenceEvaluator(row).evaluate(Batch(columns=spread, n=40)).outputs[0]
    np.testing.assert_array_equal(got, np.broadcast_to(want[:1], (40,)))


@pytest.mark.parametrize("block", [None, 4])
def test_outputs_may_be_the_columns_themselves(block: int | None) -> None:
    swap = program(
        ("add", (0, 1)), ("sub", (0, 1)), inputs=("x", "y"), constants=(), outputs=(2, 3)
    )
    x, y = np.arange(10.0), np.ones(10)
    batch = Batch(columns=(x, y), n=10, out=(y, x))
    outputs = ReferenceEvaluator(swap, block=block).evaluate(batch).outputs
    assert outputs[0] is y
    np.testing.assert_array_equal(y, np.arange(10.0) + 1)
    np.testing.assert_array_equal(x, np.arange(10.0) - 1)


def test_complex_results_go_to_strided_outputs(run: Any) -> None:
    formula = single("mul", "complex64")
    z, w = (np.arange(6) + 1j).astype(np.complex64), np.full(6, 2 - 1j, np.complex64)
    memory = np.zeros(12, np.complex64)
    ReferenceEvaluator(formula, block=4).evaluate(Batch(columns=(z, w), n=6, out=(memory[::-2],)))
    np.testing.assert_array_equal(memory[::-2], z * w)
    assert not memory[::2].any()


def test_threads_share_one_evaluator() -> None:
    shared = ReferenceEvaluator(
        program(("sin", (0,)), ("mul", (1, 0)), ("erf", (2,)), ("add", (3, 2)), outputs=(4,))
    )

    def work(seed: int) -> bytes:
        column = np.random.default_rng(seed % 2).random(20_000)
        return shared.evaluate(Batch(columns=(column,), n=20_000)).outputs[0].tobytes()

    with ThreadPoolExecutor(8) as workers:
        results = list(workers.map(work, range(32)))
    assert len(set(results[0::2])) == len(set(results[1::2])) == 1


def test_blocks_shrink_as_programs_grow() -> None:
    assert plan(PLUS_ONE).block > 10_000
    wide = Program(
        dtype="complex128",
        inputs=tuple(f"x{i}" for i in range(1000)),
        constants=(),
        code=(),
        outputs=(0,),
    )
    assert plan(wide).block == 1024
