"""Rewrites keep the mathematics, and cost less."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkahest.expr import ExprPool, functions, parse
from alkahest.program import Program, lower
from alkahest.program.rewrites import factor_sums, share_reciprocals


def lowered(text: str, names: str) -> Program:
    pool = ExprPool()
    symbols = [pool.symbol(name) for name in names.split()]
    return lower([parse(text, pool, symbols=symbols)], symbols)


def exactly(program: Program, point: list[Fraction]) -> Fraction:
    """The first output in rational arithmetic, where the rewrites change nothing at all."""
    rules = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "neg": lambda a: -a,
    }
    values = [*point, *map(Fraction, program.constants)]
    for op, args, parameter in program.code:
        operands = [values[a] for a in args]
        values.append(operands[0] ** parameter if op == "powi" else rules[op](*operands))
    return values[program.outputs[0]]


def counted(program: Program) -> Counter:
    return Counter(i.op for i in program.code)


def test_a_polynomial_becomes_horners_rule():
    text = " + ".join(f"{k + 2}*x**{k}" for k in range(9))
    program = factor_sums(lowered(text, "x"))
    assert counted(program) == {"mul": 8, "add": 8}


def test_a_missing_power_is_skipped_in_one_step():
    program = factor_sums(lowered("x**9 + 3*x**5 + 2", "x"))
    assert exactly(program, [Fraction(3)]) == 3**9 + 3**6 + 2
    assert counted(program) == {"powi": 2, "mul": 1, "add": 2}


def test_several_variables_are_factored_greedily():
    terms = [f"{1 + i + 2 * j}*x**{i}*y**{j}" for i in range(4) for j in range(4 - i)]
    plain = lowered(" + ".join(terms), "x y")
    program = factor_sums(plain)
    assert counted(program)["add"] == len(terms) - 1
    assert counted(program)["mul"] == len(terms) - 1
    assert exactly(program, [Fraction(2), Fraction(-3)]) == exactly(
        plain, [Fraction(2), Fraction(-3)]
    )


def test_common_factors_need_not_be_variables():
    program = factor_sums(lowered("sin(x)*y + sin(x)*cos(y)", "x y"))
    assert counted(program) == {"sin": 1, "cos": 1, "add": 1, "mul": 1}


def test_parts_that_something_else_uses_are_not_computed_twice():
    pool = ExprPool()
    x, y = pool.symbol("x"), pool.symbol("y")
    inner = x * y + x
    plain = lower([functions.sin(inner) + inner * y], [x, y])
    program = factor_sums(plain)
    assert counted(program)["mul"] <= counted(plain)["mul"]
    assert counted(program)["sin"] == 1


@given(
    st.lists(
        st.tuples(
            st.integers(-9, 9).filter(bool),
            st.integers(0, 5),
            st.integers(0, 5),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=12,
    ),
    st.tuples(*[st.fractions(-5, 5, max_denominator=8)] * 3),
)
def test_factoring_any_sum_of_products_changes_no_exact_value(terms, point):
    text = " + ".join(f"({c})*x**{i}*y**{j}*z**{k}" for c, i, j, k in terms)
    plain = lowered(text, "x y z")
    program = factor_sums(plain)
    assert exactly(program, list(point)) == exactly(plain, list(point))
    if len({tuple(powers) for _, *powers in terms}) == len(terms):
        assert len(program.code) <= len(plain.code)


def test_like_terms_are_collected():
    assert counted(factor_sums(lowered("x*y + sin(x) + 2*x*y", "x y")))["add"] == 1


def test_terms_that_cancel_still_depend_on_their_factors():
    program = factor_sums(lowered("x*y - y*x", "x y"))
    assert exactly(program, [Fraction(3), Fraction(5)]) == 0
    assert program.code, "infinite operands give nan, not 0"


def test_a_sum_of_many_powers_does_not_nest_without_end():
    pool = ExprPool()
    x = pool.symbol("x")
    program = factor_sums(lower([pool.add([x**k for k in range(2000)])], [x]))
    assert exactly(program, [Fraction(1)]) == 2000


def test_quotients_by_one_value_share_its_reciprocal():
    plain = lowered("(x/w)*sin(y/w) + z/w", "w x y z")
    program = share_reciprocals(plain)
    assert counted(plain)["div"] >= 2
    assert counted(program)["div"] == 1


def test_a_single_quotient_and_divisions_by_constants_stay():
    for text in ("x/y", "x/3 + sin(y/3)"):
        plain = lowered(text, "x y")
        assert share_reciprocals(plain) == plain


@pytest.mark.parametrize("rewrite", [factor_sums, share_reciprocals])
def test_complex_programs_are_left_alone(rewrite):
    pool = ExprPool()
    z = pool.symbol("z")
    plain = lower([z**2 / z + 3 * z / z], [z], "complex128")
    assert rewrite(plain) is plain
