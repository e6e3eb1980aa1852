"""Derivatives of deep and wide expressions: nothing recurses, time is near linear."""

import pytest

from alkahest.expr import ExprPool, diff, gradient, sin
from alkahest.expr.walk import postorder

LARGE = 100_000


@pytest.fixture
def pool():
    return ExprPool()


@pytest.fixture(scope="module")
def chains():
    """Deep chains over x and y, by name."""
    pool = ExprPool()
    x, y = pool.symbol("x"), pool.symbol("y")
    halves = nested = polynomial = x
    for i in range(LARGE):
        halves = halves / 2 + 1
        nested = sin(nested)
        if i % 4 == 0:
            polynomial = polynomial * x + y
    return {"halves": halves, "nested": nested, "polynomial": polynomial}


def test_a_chain_of_exact_steps_has_an_exact_derivative(chains):
    expr = chains["halves"]
    (slope,) = gradient(expr, [expr.pool.symbol("x")])
    assert slope.value == expr.pool.rational(1, 2**LARGE).value


def test_a_deep_chain_of_functions_gives_one_product(chains):
    expr = chains["nested"]
    slope = diff(expr, expr.pool.symbol("x"))
    assert (slope.head, len(slope.args)) == ("mul", LARGE)


def test_a_deep_chain_has_a_gradient(chains):
    expr = chains["polynomial"]
    x, y = expr.pool.symbol("x"), expr.pool.symbol("y")
    rows = gradient(expr, [x, y])
    assert all(sum(1 for _ in postorder(row)) < 2 * LARGE for row in rows)


def test_a_wide_sum_of_products_has_a_gradient_in_linear_time(pool):
    x, y = pool.symbol("x"), pool.symbol("y")
    others = [pool.symbol(f"x{i}") for i in range(2000)]
    expr = pool.add([i * x * y**2 * sin(i * other) for i, other in enumerate(others, 1)])
    rows = gradient(expr, [x, y, *others])
    assert len(rows[0].args) == len(rows[1].args) == 2000
    assert str(rows[2]) == "x*y**2*cos(x0)"
    assert str(rows[-1]) == "4000000*x*y**2*cos(2000*x1999)"


def test_a_wide_product_has_a_derivative(pool):
    x = pool.symbol("x")
    expr = pool.mul([x + i for i in range(300)])
    assert len(diff(expr, x).args) == 300
    slope = diff(pool.mul([x] * 300), x)
    assert (slope.args[0].value, len(slope.args)) == (300, 300)
