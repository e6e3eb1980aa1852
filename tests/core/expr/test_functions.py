"""The module functions: one per head, and spellings made of several."""

import builtins
import math
from fractions import Fraction

import pytest

import alkahest.expr
from alkahest.errors import InputTypeError, PoolError
from alkahest.expr import ExprPool, default_pool, eval_expr, functions
from alkahest.expr.heads import FUNCTIONS
from alkahest.ops import OPS


@pytest.fixture
def pool() -> ExprPool:
    return ExprPool()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_head_has_a_function_of_its_name(pool, name):
    args = pool.symbols("x y z")[: FUNCTIONS[name]]
    function = getattr(functions, name)
    assert function(*args) is pool.func(name, args)
    assert function.__name__ == name
    assert len(function.__doc__) > 10
    assert getattr(alkahest.expr, name) is function


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_of_numbers_alone_belong_to_the_default_pool(name):
    args = (0.5, 0.25, 0.125)[: FUNCTIONS[name]]
    node = getattr(functions, name)(*args)
    assert node.pool is default_pool()
    assert node.head == name


def test_star_imports_leave_the_builtins_alone():
    for module in (functions, alkahest.expr):
        assert not set(module.__all__) & set(dir(builtins))
        assert all(hasattr(module, name) for name in module.__all__)


def test_numbers_join_the_pool_of_the_expression_beside_them(pool):
    x = pool.symbol("x")
    assert functions.atan2(1, x) is pool.func("atan2", (1, x))
    assert functions.max(0.5, 2, x).args == (x, pool.float(0.5), pool.integer(2))
    assert functions.fma(2, 3, x).pool is pool


def test_what_is_no_number_is_refused_by_type(pool):
    for bad in ("x", None, [1]):
        with pytest.raises(InputTypeError, match="must be an expression or a number"):
            functions.sin(bad)


def test_a_logarithm_to_a_base(pool):
    x, b = pool.symbols("x b")
    assert functions.log(x, 2) is functions.log2(x)
    assert functions.log(x, 10) is functions.log10(x)
    assert functions.log(x, b) is functions.log(x) / functions.log(b)
    assert functions.log(8, 2) is functions.log2(8)


def test_roots_are_powers(pool):
    x, n = pool.symbols("x n")
    assert functions.root(x, 3) is x ** Fraction(1, 3)
    assert functions.root(x, n) is x ** (1 / n)
    assert functions.sqrt(x) is not functions.root(x, 2)


RECIPROCALS = {
    "sec": lambda x: 1 / math.cos(x),
    "csc": lambda x: 1 / math.sin(x),
    "cot": lambda x: 1 / math.tan(x),
    "sech": lambda x: 1 / math.cosh(x),
    "csch": lambda x: 1 / math.sinh(x),
    "coth": lambda x: 1 / math.tanh(x),
    "asec": lambda x: math.acos(1 / x),
    "acsc": lambda x: math.asin(1 / x),
    "acot": lambda x: math.atan(1 / x),
    "acsch": lambda x: math.asinh(1 / x),
    "acoth": lambda x: math.atanh(1 / x),
}


@pytest.mark.parametrize("name", sorted(RECIPROCALS))
def test_reciprocal_functions_are_made_of_others(pool, name):
    x = pool.symbol("x")
    node = getattr(functions, name)(x)
    assert eval_expr(node, {x: 1.25}) == pytest.approx(RECIPROCALS[name](1.25), rel=1e-15)


def test_the_inverse_hyperbolic_secant(pool):
    x = pool.symbol("x")
    assert eval_expr(functions.asech(x), {x: 0.5}) == pytest.approx(math.acosh(2.0), rel=1e-15)


def test_bessel_functions_take_their_order_as_a_literal(pool):
    x = pool.symbol("x")
    assert functions.besselj(0, x) is functions.j0(x)
    assert functions.bessely(pool.integer(1), x) is functions.y1(x)
    for order in (2, -1, 0.0, x):
        with pytest.raises(PoolError, match=r"(?s)E-POOL-004.*besselj.*recurrence"):
            functions.besselj(order, x)


def test_the_step_function_is_a_half_at_zero_and_nan_for_nan(pool):
    x = pool.symbol("x")
    step = functions.heaviside(x)
    assert [eval_expr(step, {x: v}) for v in (-1, 0, -0.0, 2)] == [0.0, 0.5, 0.5, 1.0]
    assert math.isnan(eval_expr(step, {x: math.nan}))
    assert eval_expr(functions.heaviside(x, 0), {x: 0}) == 0.0


def test_relations_and_connectives_have_functions(pool):
    x, y = pool.symbols("x y")
    heads = {"Eq": "eq", "Ne": "ne", "Lt": "lt", "Le": "le", "Gt": "gt", "Ge": "ge"}
    for name, head in heads.items():
        assert getattr(functions, name)(x, y) is pool.func(head, (x, y))
    a, b = x < y, x > 1
    assert functions.And(a, b, True) is pool.pred_and(a, b)
    assert functions.Or(False, a, b) is pool.pred_or(a, b)
    assert functions.Not(a) is pool.pred_not(a)
    assert functions.And(True, False) is default_pool().pred_false()
    assert functions.Eq(1, Fraction(2, 2)) is default_pool().pred_true()


def test_piecewise_takes_pairs_and_a_default(pool):
    x = pool.symbol("x")
    node = functions.piecewise((x, x > 0), (0, True))
    assert node is functions.piecewise((x, x > 0), default=0)
    assert node is pool.piecewise([(x, x > 0)], 0)
    assert functions.piecewise((1, False), default=x).pool is pool


def test_functions_are_the_operations_without_the_operators():
    assert set(OPS) - set(FUNCTIONS) == {
        *("add", "sub", "mul", "div", "neg", "pow", "powi", "select", "complex"),
        *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"),
    }
