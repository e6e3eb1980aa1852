"""What the accuracy modes change about a program."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkahest.backends.cpu.jit import model, steps
from alkahest.backends.cpu.jit.passes import (
    contracted,
    prepared,
    prepared_parts,
    reciprocal,
    with_constant_divisors,
    with_roots,
)
from alkahest.backends.cpu.reference import ReferenceEvaluator
from alkahest.plugin import Batch
from alkahest.program import Instruction, Program
from alkahest.program.arithmetic import with_folded_constants


def program(
    *code: tuple[str, tuple[int, ...]],
    outputs: tuple[int, ...],
    constants: tuple[float, ...] = (),
    inputs: int = 2,
) -> Program:
    return Program(
        dtype="float64",
        inputs=tuple(f"x{k}" for k in range(inputs)),
        constants=constants,
        code=tuple(Instruction(op, args) for op, args in code),
        outputs=outputs,
    ).verify()


def ops(found: Program) -> list[str]:
    return [i.op for i in found.code]


SUM = program(("mul", (0, 1)), ("mul", (0, 0)), ("add", (2, 3)), ("sub", (4, 1)), outputs=(5,))


def test_strict_programs_stay_as_they_are() -> None:
    assert prepared(SUM, "strict") is SUM
    assert prepared_parts(SUM, "strict") is SUM


def test_a_product_in_a_sum_is_fused() -> None:
    assert ops(contracted(SUM)) == ["mul", "fma", "sub"]


def test_a_product_that_is_needed_itself_is_not_fused() -> None:
    needed = program(("mul", (0, 1)), ("add", (2, 1)), outputs=(3, 2))
    assert contracted(needed) is needed


@pytest.mark.parametrize("mode", ["default", "fast"])
def test_prepared_programs_compute_the_same(mode: str) -> None:
    columns = tuple(np.random.default_rng(k).uniform(-2, 2, 50) for k in range(2))
    found, want = (
        ReferenceEvaluator(p).evaluate(Batch(columns=columns, n=50)).outputs[0]
        for p in (prepared(SUM, mode), SUM)
    )
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-15)


@given(
    st.integers(1, 2**40 - 1).filter(lambda n: n & (n - 1)),
    st.integers(-200, 200),
    st.floats(1.0, 2.0),
    st.integers(-600, 600),
)
def test_division_by_a_constant_is_correctly_rounded(
    odd: int, shift: int, x: float, exponent: int
) -> None:
    divisor = float(odd) * 2.0**shift
    numerator = x * 2.0**exponent
    pair = reciprocal(divisor)
    assert pair is not None
    high, low = pair
    exact = Fraction(numerator) * Fraction(high) + Fraction(numerator * low)
    assert float(exact) == numerator / divisor


def test_powers_of_two_are_multiplied_by_and_other_divisors_left_where_they_must_be() -> None:
    assert reciprocal(8.0) == (0.125, 0.0)
    assert reciprocal(2.0**-600) is None
    assert reciprocal(1.1) is None  # 53 significant bits
    halves = program(("div", (0, 1)), ("div", (2, 0)), outputs=(3,), constants=(8.0,), inputs=1)
    assert ops(with_constant_divisors(halves)) == ["mul", "div"]


def test_a_constant_takes_the_sign_of_its_product() -> None:
    less = program(("mul", (0, 1)), ("sub", (0, 2)), outputs=(3,), constants=(3.0,), inputs=1)
    found = contracted(less)
    assert ops(found) == ["fma"]
    assert found.constants[found.code[0].args[1] - 1] == -3.0


def test_arithmetic_on_constants_is_done_once_and_rounded_the_same() -> None:
    constants = (2.0, 0.5, 0.0, -1.0)
    code = [("sqrt", (1,)), ("mul", (5, 2)), ("div", (0, 6)), ("div", (1, 3)), ("sqrt", (4,))]
    found = with_folded_constants(
        program(*code, outputs=(7, 8, 9), constants=constants, inputs=1)
    ).verify()
    assert [i.op for i in found.code] == ["div", "div", "sqrt"]  # 2/0 and the root of -1 stay
    assert found.constants[found.code[0].args[1] - 1] == 0.5 * np.sqrt(2.0)
    single = program(("sqrt", (1,)), outputs=(2,), constants=(2.0,), inputs=1)
    single = attrs.evolve(single, dtype="float32")
    assert with_folded_constants(single) is single


def test_the_power_of_three_halves_is_a_root_and_a_product() -> None:
    half = program(("pow", (0, 1)), outputs=(2,), constants=(1.5,), inputs=1)
    found = with_roots(half)
    assert ops(found) == ["sqrt", "mul", "eq", "select"]
    x = np.array([4.0, 0.0, -0.0, np.inf, -np.inf, -1.0, np.nan])
    value = ReferenceEvaluator(found).evaluate(Batch(columns=(x,), n=7)).outputs[0]
    np.testing.assert_array_equal(value, [8.0, 0.0, 0.0, np.inf, np.inf, np.nan, np.nan])
    other = program(("pow", (0, 1)), outputs=(2,), constants=(1.25,), inputs=1)
    assert with_roots(other) is other


def test_long_chains_are_interleaved_and_crowded_programs_are_not() -> None:
    chain = program(*[("sin", (k,)) for k in range(1, 60)], outputs=(60,))
    assert model.estimate(chain).interleave == 4
    crowd = [("mul", (k, k)) for k in range(40)]
    total = [("add", (40, 41)), *[("add", (80 + k, 42 + k)) for k in range(38)]]
    assert model.estimate(program(*crowd, *total, outputs=(118,), inputs=40)).interleave == 1


def test_quotients_leave_the_divider_only_where_it_is_waited_for() -> None:
    busy = program(*[("div", (k, k + 1)) for k in range(8)], outputs=tuple(range(9, 17)), inputs=9)
    changed, chosen = model.without_divider(busy)
    assert chosen
    assert changed.divider < model.estimate(busy).divider
    links = [[("sin", (1 + 2 * k,)), ("div", (0, 2 + 2 * k))] for k in range(60)]
    chain = program(*[step for link in links for step in link], outputs=(121,))
    assert model.without_divider(chain)[1] == frozenset()
    idle = program(("div", (0, 1)), *[("mul", (2 + k, 0)) for k in range(60)], outputs=(62,))
    assert model.without_divider(idle)[1] == frozenset()


def test_without_approximations_three_quotients_share_a_reciprocal() -> None:
    narrow = model.Vectors(16, 256, approximates=False)
    few = program(*[("div", (k, 2)) for k in range(2)], outputs=(3, 4), inputs=3)
    assert model.without_divider(few, narrow)[1] == frozenset()
    several = program(*[("div", (k, 8)) for k in range(8)], outputs=tuple(range(9, 17)), inputs=9)
    changed, chosen = model.without_divider(several, narrow)
    assert len(chosen) == 8
    assert changed.divider == model.COSTS["div"].divider / 2


def test_with_few_registers_constants_are_shared_by_several_vectors() -> None:
    constants = tuple(1.0 / k for k in range(1, 60))
    code = [("fma", (0, 1 + k if k == 0 else 59 + k, 1 + k)) for k in range(59)]
    horner = program(*code, outputs=(118,), constants=constants, inputs=1)
    narrow = model.estimate(horner, vectors=model.Vectors(16, 256, approximates=False))
    assert narrow.interleave == 4
    assert narrow.loads > 40


def test_sines_and_cosines_of_one_argument_are_one_step() -> None:
    both = program(("cos", (0,)), ("sin", (0,)), ("sin", (1,)), outputs=(2, 3, 4))
    found = steps.steps(both, is_split=False)
    assert [s.writes for s in found] == [(3, 2), (4,)]
    apart = steps.steps(both, is_split=False, pairs=False)
    assert [s.writes for s in apart] == [(2,), (3,), (4,)]


def test_pieces_use_a_slot_again_when_its_value_is_dead() -> None:
    chain = program(*[("add", (1 + k, 0)) for k in range(2000)], outputs=(2001,))
    plan = steps.cut(steps.steps(chain, is_split=False), chain, lambda step: 1.0)
    loaded = 2  # the input, and the value of the piece before
    assert len(plan.parts) == -(-2000 // (steps.PIECE - loaded))
    assert plan.count == 2
    assert sum(map(len, plan.parts)) == 2000


def test_pieces_weigh_what_they_load_and_the_outputs_they_give() -> None:
    wide = program(*[("add", (0, 1))] * 1000, outputs=tuple(range(2, 1002)))
    plan = steps.cut(steps.steps(wide, is_split=False), wide, lambda step: 1.0)
    assert len(plan.parts) == -(-1000 // ((steps.PIECE - 2) // 2))
    assert plan.count == 1000
