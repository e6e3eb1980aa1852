"""Replacing parts of expressions."""

from fractions import Fraction

import pytest

from alkahest.errors import InputTypeError, PoolError
from alkahest.expr import And, Expr, ExprPool, cos, exp, max, piecewise, sin, subs


@pytest.fixture
def symbols() -> tuple[Expr, ...]:
    return ExprPool().symbols("x y z")


def test_symbols_are_replaced_by_expressions_and_numbers(symbols):
    x, y, z = symbols
    assert subs(x**2 + sin(x * y), {x: z + 1}) is (z + 1) ** 2 + sin((z + 1) * y)
    assert subs(x * y, {x: 0.5}) is 0.5 * y
    assert subs(x + y, {x: Fraction(1, 2), "y": 2}) is x.pool.rational(5, 2)


def test_replacement_is_simultaneous(symbols):
    x, y, _ = symbols
    assert subs(x - y**2, {x: y, y: x}) is y - x**2


def test_any_part_can_be_replaced_and_the_outermost_wins(symbols):
    x, y, z = symbols
    assert subs(sin(x + y) * cos(x + y), {x + y: z}) is sin(z) * cos(z)
    assert subs(exp(sin(x)), {sin(x): y, x: z}) is exp(y)
    assert subs(exp(sin(x)) + x, {sin(x): y, x: z}) is exp(y) + z
    assert subs(x, {x: y}) is y


def test_a_part_of_a_sum_is_no_part_of_the_expression(symbols):
    x, y, z = symbols
    assert subs(x + y + z, {x + y: 0}) is x + y + z


def test_the_result_is_flattened_and_folded_anew(symbols):
    x, y, z = symbols
    assert subs(x + z, {x: y + 1, z: y - 1}) is y + y
    assert subs(x**y, {y: 1}) is x
    assert subs(max(x, y), {x: max(z, 1)}) is max(y, z, 1)
    assert subs(x, {}) is x
    assert subs(x, {y: 1}) is x


def test_conditions_are_replaced_by_conditions(symbols):
    x, y, _ = symbols
    choice = piecewise((x, x < y), (y, And(x > 1, x < y)))
    assert subs(choice, {x < y: True}) is piecewise((x, True), (y, x > 1))
    assert subs(choice, {x < y: y > 0}) is piecewise((x, y > 0), (y, And(x > 1, y > 0)))
    assert subs(x < y, {x: 1, y: 2}).value is True
    for wrong in ({x: x < y}, {x < y: x}, {x < y: 1}):
        with pytest.raises(PoolError, match="E-POOL-005"):
            subs(choice, wrong)


def test_an_exact_division_by_zero_is_reported(symbols):
    x = symbols[0]
    with pytest.raises(ZeroDivisionError, match="E-EVAL-004"):
        subs(1 / x, {x: 0})
    assert subs(1 / x, {x: 0.0}).head == "pow"


def test_other_pools_and_other_types_are_refused(symbols):
    x = symbols[0]
    other = ExprPool().symbol("x")
    for wrong in ({other: 1}, {x: other}):
        with pytest.raises(PoolError, match="E-POOL-001"):
            subs(x, wrong)
    with pytest.raises(InputTypeError, match=r"a key of replacements must be .*, not int"):
        subs(x, {1: x})
    with pytest.raises(InputTypeError, match="must be an expression or a number, not str"):
        subs(x, {x: "y"})
    with pytest.raises(InputTypeError, match=r"replacements must be a mapping.*, not list"):
        subs(x, [(x, 1)])
    with pytest.raises(InputTypeError, match="the expression must be an expression, not str"):
        subs("x", {x: 1})
