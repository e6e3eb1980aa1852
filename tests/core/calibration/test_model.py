"""The linear model: what a program counts for, and what that adds up to."""

from __future__ import annotations

import pytest

from alkahest.calibration.model import Cost, Model, Work, costed_as, op_class
from alkahest.expr import ExprPool
from alkahest.ops import OPS
from alkahest.program import Instruction, lower

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")

MODEL = Model(
    call=10.0,
    read=Cost(1.0, 0.5),
    write=Cost(2.0, 0.25),
    ops={"add": Cost(3.0, 4.0), "mul": Cost(5.0, 6.0), "exp": Cost(7.0, 8.0)},
)


def test_the_work_of_a_program_is_its_columns_and_operations() -> None:
    work = Work.of(lower([x * y + x, x < y], [x, y], "float32"))
    assert (work.columns_in, work.bytes_in) == (2, 8)
    assert (work.columns_out, work.bytes_out) == (2, 4 + 1)
    assert work.ops == {"mul": 1, "add": 1, "lt": 1}


def test_seconds_are_the_sum_of_what_everything_costs() -> None:
    work = Work(columns_in=2, bytes_in=16, columns_out=1, bytes_out=8, ops={"add": 2, "exp": 1})
    assert MODEL.seconds(work, 0) == 10 + 2 * 1 + 1 * 2 + 2 * 3 + 7
    per_point = 16 * 0.5 + 8 * 0.25 + 2 * 4 + 8
    assert MODEL.seconds(work, 100) - MODEL.seconds(work, 0) == 100 * per_point


def test_columns_on_the_device_cost_no_transfer() -> None:
    work = Work(columns_in=2, bytes_in=16, columns_out=1, bytes_out=8, ops={"add": 1})
    assert MODEL.seconds(work, 10, moves=False) == 10 + 3 + 10 * 4


def test_an_operation_that_was_not_measured_costs_what_its_class_does() -> None:
    assert MODEL.classes == {"arithmetic": Cost(4.0, 5.0), "elementary": Cost(7.0, 8.0)}
    assert MODEL.cost("sub") == Cost(4.0, 5.0)
    assert MODEL.cost("sin") == Cost(7.0, 8.0)


def test_a_class_that_was_not_measured_costs_what_the_dearest_one_does() -> None:
    assert MODEL.cost("gamma") == Cost(7.0, 8.0)
    assert Model(call=1.0, read=Cost(), write=Cost(), ops={}).cost("add") == Cost()


@pytest.mark.parametrize(
    ("op", "expected"),
    [("select", "arithmetic"), ("div", "arithmetic"), ("pow", "elementary"), ("j0", "special")],
)
def test_the_op_table_tells_the_class(op: str, expected: str) -> None:
    assert op_class(op) == expected


def test_every_operation_has_a_class() -> None:
    assert {op_class(op) for op in OPS} == {"arithmetic", "elementary", "special"}


@pytest.mark.parametrize(
    ("exponent", "expected"), [(2, "powi"), (-4, "powi"), (5, "pow"), (-(10**30), "pow")]
)
def test_large_exponents_cost_what_pow_does(exponent: int, expected: str) -> None:
    assert costed_as(Instruction("powi", (0,), exponent)) == expected
