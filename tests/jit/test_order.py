"""The order of instructions: the same values, few of which wait."""

from __future__ import annotations

import random

import numpy as np

from alkahest.backends.cpu.jit import model
from alkahest.backends.cpu.jit.order import ordered
from alkahest.backends.cpu.reference import ReferenceEvaluator
from alkahest.plugin import Batch
from alkahest.program import Instruction, Program


def program(*code: tuple[str, tuple[int, ...]], outputs: tuple[int, ...], inputs: int) -> Program:
    return Program(
        dtype="float64",
        inputs=tuple(f"x{k}" for k in range(inputs)),
        constants=(0.5,),
        code=tuple(Instruction(op, args) for op, args in code),
        outputs=outputs,
    ).verify()


def test_outputs_are_the_same_bits() -> None:
    choose = random.Random(5)
    code = [
        (choose.choice(("add", "sub", "mul")), (choose.randrange(n), choose.randrange(n)))
        for n in range(5, 305)
    ]
    before = program(*code, outputs=(304, 300, 2, 304, 4), inputs=4)
    after = ordered(before)
    columns = tuple(np.random.default_rng(1).uniform(-1, 1, (4, 30)))
    found, want = (
        ReferenceEvaluator(p).evaluate(Batch(columns=columns, n=30)).outputs
        for p in (after.verify(), before)
    )
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_products_are_added_as_they_come() -> None:
    products = [("mul", (k, k)) for k in range(30)]
    total = [("add", (31, 32)), *[("add", (61 + k, 33 + k)) for k in range(28)]]
    before = program(*products, *total, outputs=(89,), inputs=30)
    assert model.estimate(before).live == 30
    assert model.estimate(ordered(before)).live <= 3


def test_what_nothing_uses_is_left_out() -> None:
    before = program(("mul", (0, 0)), ("add", (0, 0)), outputs=(3, 0), inputs=1)
    assert [i.op for i in ordered(before).code] == ["add"]


def test_a_long_chain_is_no_recursion() -> None:
    before = program(*[("add", (k, 0)) for k in range(1, 50_001)], outputs=(50_001,), inputs=1)
    assert ordered(before) == before
