"""Deep and wide expressions to text and back: nothing recurses, time is near linear."""

import pytest

from alkahest.expr import ExprPool, cos, eval_expr, exp, functions, latex, parse, piecewise, sin

LARGE = 100_000


@pytest.fixture
def pool():
    return ExprPool()


# Reading


def test_a_hundred_thousand_brackets_are_read(pool):
    assert parse("(" * LARGE + "x" + ")" * LARGE, pool) is pool.symbol("x")
    assert parse("-" * LARGE + "x", pool) is pool.symbol("x")


def test_a_hundred_thousand_nested_calls_are_read(pool):
    expr = pool.symbol("x")
    for _ in range(LARGE):
        expr = cos(expr)
    assert parse("cos(" * LARGE + "x" + ")" * LARGE, pool) is expr


def test_a_hundred_thousand_terms_are_read(pool):
    expr = parse(" + ".join(f"{i}*x{i}" for i in range(LARGE)), pool)
    assert len(expr.args) == LARGE
    assert expr is pool.add([i * pool.symbol(f"x{i}") for i in range(LARGE)])


def test_nested_polynomials_and_towers_are_read(pool):
    assert parse("(" * 2000 + "x" + "*x + 1)" * 2000, pool).head == "add"
    tower = parse("**".join(["x"] * 2000), pool)
    assert eval_expr(tower, {"x": 1.0}) == 1.0
    assert parse("exp(0) + 1", pool) is exp(pool.integer(0)) + 1


# Writing


def test_deep_chains_print(pool):
    x = pool.symbol("x")
    nested = chain = x
    for _ in range(LARGE):
        nested, chain = sin(nested), chain / 2 + 1
    assert str(nested) == "sin(" * LARGE + "x" + ")" * LARGE
    assert str(chain) == "(" * (LARGE - 1) + "x/2 + 1" + ")/2 + 1" * (LARGE - 1)


def test_wide_sums_print_and_read_back(pool):
    expr = pool.add([(-1) ** i * i * pool.symbol(f"x{i:06}") for i in range(2, 30_000)])
    text = str(expr)
    assert text.startswith("2*x000002 - 3*x000003 + 4*x000004 - ")
    assert parse(text, pool) is expr


def test_wide_selections_print(pool):
    x = pool.symbol("x")
    expr = piecewise(*((x + i, x < i) for i in range(3_000))) + functions.min(
        *(x + i for i in range(3_000))
    )
    assert parse(str(expr), pool) is expr


def test_deep_and_wide_expressions_are_written():
    pool = ExprPool()
    nested = pool.symbol("x")
    for _ in range(LARGE):
        nested = sin(nested)
    assert latex(nested).count(r"\sin") == LARGE
    total = pool.add([-2 * pool.symbol(f"x{i}") for i in range(30_000)])
    assert latex(total).count(" - 2 x_{") == 29_999
