"""What the pool makes of what it is given."""

import gc
import threading
import weakref
from fractions import Fraction

import pytest

from alkahest.errors import EvalError, InputTypeError, PoolError
from alkahest.expr import Expr, ExprPool, default_pool, sin, symbol, symbols
from alkahest.expr.pool import MAX_POWER_BITS


@pytest.fixture
def pool() -> ExprPool:
    return ExprPool()


def heads(expr: Expr) -> list[tuple[str, object]]:
    return [(a.head, a.value) for a in expr.args]


# Leaves


def test_the_same_construction_is_the_same_object(pool):
    x, y = pool.symbols("x y")
    assert pool.symbol("x") is x
    assert sin(x + y) ** 2 is sin(y + x) ** 2
    assert pool.integer(3) is pool.constant(3)
    assert pool.float(float("nan")) is pool.float(-float("nan"))


def test_leaves_of_equal_value_and_different_meaning_are_different(pool):
    one = [pool.integer(1), pool.float(1.0), pool.boolean(True), pool.symbol("1")]
    assert len(set(one)) == 4
    assert pool.float(0.0) is not pool.float(-0.0)
    assert pool.symbol("pi") is not pool.pi()


def test_equal_nodes_of_two_pools_are_not_equal(pool):
    assert pool.symbol("x") != ExprPool().symbol("x")


@pytest.mark.parametrize(
    "name",
    ["x y", "x_y", "x-y", "\\beta", "x_{0}", "C(t)", "1x", "for", "x\0", "\ud800", " ", "µ", "μ"],
)
def test_any_text_but_the_empty_one_names_a_symbol(pool, name):
    node = pool.symbol(name)
    assert (node.head, node.value) == ("symbol", name)
    assert pool.symbol(name) is node
    assert pool.symbol(name + "'") is not node


def test_a_symbol_without_a_name_is_refused(pool):
    with pytest.raises(PoolError, match="E-POOL-003"):
        pool.symbol("")
    with pytest.raises(TypeError, match="must be a text, not int 3"):
        pool.symbol(3)


def test_symbols_are_listed_with_blanks_or_commas():
    p = ExprPool()
    assert [s.value for s in symbols("x, y z,t", p)] == ["x", "y", "z", "t"]
    assert all(s.pool is p for s in symbols("x y", p))
    assert symbols("x") == (symbol("x"),)
    assert symbol("x").pool is default_pool()
    assert symbol("x y", p).value == "x y"


def test_integers_take_whatever_is_an_integer(pool):
    assert pool.integer(10**40).value == 10**40
    assert pool.integer(True) is pool.integer(1)
    assert pool.integer(Fraction(6, 2)) is pool.integer(3)
    for wrong in (3.0, "12", None, 1j):
        with pytest.raises(InputTypeError, match="E-INPUT-008"):
            pool.integer(wrong)


def test_rationals_are_reduced(pool):
    assert pool.rational(2, 4).value == Fraction(1, 2)
    assert pool.rational(1, -2).value == Fraction(-1, 2)
    assert pool.rational(4, 2) is pool.integer(2)
    assert pool.rational(10**40, 7).value == Fraction(10**40, 7)


def test_a_rational_with_denominator_zero_is_a_division_by_zero(pool):
    with pytest.raises(ZeroDivisionError, match="E-EVAL-004"):
        pool.rational(1, 0)
    with pytest.raises(InputTypeError, match=r"exact number, not float 0.5"):
        pool.rational(0.5, 2)


def test_floats_keep_every_bit(pool):
    for value in (0.1, 5e-324, 1.7976931348623157e308, float("inf")):
        assert pool.float(value).value == value
    assert pool.float(3).value == 3.0
    with pytest.raises(InputTypeError, match="E-INPUT-008"):
        pool.float("1.5")


def test_named_constants(pool):
    assert [n.value for n in (pool.pi(), pool.e(), pool.imaginary_unit())] == ["pi", "E", "I"]
    assert pool.pos_infinity() is pool.float(float("inf"))
    with pytest.raises(PoolError, match="E-POOL-004"):
        pool.named("tau")


def test_a_constant_is_an_expression_or_a_number(pool):
    x = pool.symbol("x")
    assert pool.constant(x) is x
    with pytest.raises(InputTypeError, match="must be an expression or a number, not str 'x'"):
        pool.constant("x")


# Sums and products


def test_sums_and_products_are_flattened_and_sorted(pool):
    x, y, z = pool.symbols("x y z")
    assert (z + x) + y is z + (y + x)
    assert (x + y + z).args == (x, y, z)
    assert ((z * y) * x).args == (x, y, z)
    assert pool.add([z, y, z]).args == (y, z, z)


def test_exact_constants_of_a_sum_become_one_and_come_last(pool):
    x = pool.symbol("x")
    assert (1 + x + Fraction(1, 2)).args == (x, pool.rational(3, 2))
    assert (x + 2) - 2 is x
    assert (x + 1) + (x - 1) is x + x


def test_exact_constants_of_a_product_become_one_and_come_first(pool):
    x = pool.symbol("x")
    assert (x * 6 / 4).args == (pool.rational(3, 2), x)
    assert (2 * x) / 2 is x
    negative = -x
    assert -negative is x
    assert (2 * x) * (3 * x) is 6 * (x * x)


def test_sums_and_products_of_constants_alone_are_constants(pool):
    assert pool.add([]) is pool.integer(0)
    assert pool.mul([]) is pool.integer(1)
    assert pool.add([1, 2, Fraction(1, 2)]) is pool.rational(7, 2)
    assert pool.integer(7) / 2 is pool.rational(7, 2)


def test_nothing_is_cancelled_collected_or_distributed(pool):
    x, y = pool.symbols("x y")
    assert (x - x).args == (x, -x) or (x - x).args == (-x, x)
    assert (x + x).args == (x, x)
    assert (x * x).args == (x, x)
    assert (x / x).head == "mul"
    assert (0 * x).args == (pool.integer(0), x)
    assert (2 * (x + y)).args == (pool.integer(2), x + y)
    assert ((x**2) ** 3).args == (x**2, pool.integer(3))


def test_floats_are_not_folded(pool):
    x = pool.symbol("x")
    assert sorted(map(str, heads(x + 0.0 + 1))) == sorted(
        map(str, [("symbol", "x"), ("float", 0.0), ("integer", 1)])
    )
    assert len(pool.add([0.5, 0.5]).args) == 2
    assert (1.0 * x).args == (pool.float(1.0), x)


# Powers


def test_exact_powers_are_computed(pool):
    assert pool.pow(2, 10) is pool.integer(1024)
    assert pool.pow(2, -2) is pool.rational(1, 4)
    assert pool.pow(Fraction(-2, 3), 3) is pool.rational(-8, 27)
    assert pool.pow(0, 5) is pool.integer(0)


def test_trivial_exponents_vanish(pool):
    x = pool.symbol("x")
    assert x**1 is x
    assert x**0 is pool.integer(1)
    assert pool.pow(0, 0) is pool.integer(1)
    assert (x**1.0).head == (x**0.0).head == "pow"


def test_powers_too_long_to_write_down_stay_powers(pool):
    assert pool.pow(2, MAX_POWER_BITS).head == "pow"
    assert pool.pow(2, MAX_POWER_BITS // 2 - 1).head == "integer"
    assert pool.pow(3, 10**30).head == "pow"


def test_powers_of_one_and_minus_one_keep_the_exact_parity(pool):
    assert pool.pow(-1, 10**30 + 1) is pool.integer(-1)
    assert pool.pow(-1, 10**30) is pool.integer(1)
    assert pool.pow(1, -(10**30)) is pool.integer(1)


def test_exact_zero_to_a_negative_power_is_refused(pool):
    x = pool.symbol("x")
    with pytest.raises(ZeroDivisionError, match="E-EVAL-004"):
        pool.pow(0, -1)
    with pytest.raises(EvalError, match=r"Write 0.0"):
        x / 0
    assert (x / 0.0).head == "mul"


def test_fractional_powers_and_functions_of_constants_are_left_alone(pool):
    assert pool.pow(4, Fraction(1, 2)).head == "pow"
    assert pool.func("sqrt", (4,)).args == (pool.integer(4),)
    assert pool.func("sin", (0,)).args == (pool.integer(0),)


# Functions and conditions


def test_every_head_can_be_made_by_name(pool):
    x, y = pool.symbols("x y")
    assert pool.func("sin", [x]) is sin(x)
    assert pool.func("add", [x, 1]) is x + 1
    assert pool.func("pow", [x, 2]) is x**2
    assert pool.func("lt", [x, y]) is (x < y)
    assert pool.func("and", [x < y, True]) is (x < y)
    assert pool.func("piecewise", [x, x < y, y, True]) is pool.piecewise([(x, x < y)], default=y)


@pytest.mark.parametrize(
    "name", ["foo", "sub", "div", "neg", "powi", "select", "complex", "symbol", ""]
)
def test_other_names_are_no_functions(pool, name):
    with pytest.raises(PoolError, match="E-POOL-004"):
        pool.func(name, [pool.symbol("x")])


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(("sin", 0), ("sin", 2), ("atan2", 1), ("fma", 2), ("max", 1), ("pow", 3), ("lt", 1)),
        *(("not", 2), ("piecewise", 1), ("piecewise", 0)),
    ],
)
def test_a_wrong_number_of_arguments_is_refused(pool, name, count):
    with pytest.raises(PoolError, match=f"E-POOL-002.*{name} takes"):
        pool.func(name, [pool.symbol("x")] * count)


def test_conditions_and_numbers_do_not_mix(pool):
    x, y = pool.symbols("x y")
    for build in (
        lambda: (x < y) + 1,
        lambda: sin(x < y),
        lambda: (x < y) ** 2,
        lambda: pool.lt(x < y, 1),
        lambda: pool.piecewise([(x < y, True)]),
        lambda: pool.func("max", (x, x < y)),
        lambda: pool.pred_and(x, x < y),
        lambda: pool.pred_not(x),
        lambda: pool.piecewise([(x, y)]),
    ):
        with pytest.raises(PoolError, match="E-POOL-005"):
            build()


def test_expressions_of_two_pools_do_not_mix(pool):
    x, other = pool.symbol("x"), ExprPool().symbol("x")
    for build in (
        lambda: x + other,
        lambda: x**other,
        lambda: pool.func("max", (x, other)),
        lambda: x < other,
        lambda: sin(other) * x,
        lambda: pool.constant(other),
        lambda: pool.piecewise([(x, other < 1)]),
    ):
        with pytest.raises(PoolError, match="E-POOL-001"):
            build()


def test_relations_of_exact_constants_are_decided(pool):
    x = pool.symbol("x")
    assert pool.lt(1, 2) is pool.pred_true()
    assert pool.pred_eq(Fraction(1, 2), Fraction(2, 4)) is pool.pred_true()
    assert pool.ge(1, 2) is pool.pred_false()
    assert pool.pred_ne(x, x).head == "ne"
    assert pool.lt(1.0, 2).head == "lt"


def test_conjunctions_and_disjunctions_know_true_and_false(pool):
    x, y = pool.symbols("x y")
    a, b = x < y, x > 1
    assert pool.pred_and(a, True) is a
    assert pool.pred_and(a, False, b) is pool.pred_false()
    assert pool.pred_or(a, False) is a
    assert pool.pred_or(a, True) is pool.pred_true()
    assert pool.pred_and() is pool.pred_true()
    assert pool.pred_or() is pool.pred_false()
    assert pool.pred_and(pool.pred_and(a, b), a) is pool.pred_and(a, a, b)
    assert pool.pred_not(False) is pool.pred_true()
    assert pool.pred_not(pool.pred_not(a)).head == "not"


def test_a_piecewise_keeps_its_pairs_in_order(pool):
    x = pool.symbol("x")
    node = pool.piecewise([(1, x < 0), (2, x < 0), (3, False)], default=x)
    assert node.args == (
        *(pool.integer(1), x < 0, pool.integer(2), x < 0),
        *(pool.integer(3), pool.pred_false(), x, pool.pred_true()),
    )


# Lifetime and threads


def test_a_pool_is_a_context_manager_that_stays_open(pool):
    with pool as inside:
        x = inside.symbol("x")
    assert inside is pool
    assert (x + 1).pool is pool
    assert repr(pool).startswith("<ExprPool of")


def test_a_pool_is_freed_with_its_last_expression():
    pool = ExprPool()
    x = pool.symbol("x")
    expr = sin(x) + x
    gone = weakref.ref(pool)
    del pool, x
    gc.collect()
    assert gone() is expr.pool
    del expr
    gc.collect()
    assert gone() is None


def test_threads_that_build_the_same_get_the_same_node(pool):
    found: list[Expr] = []
    start = threading.Barrier(8)

    def build() -> None:
        start.wait()
        total = pool.integer(0)
        for i in range(300):
            total = total + sin(pool.symbol(f"x{i}")) ** i / (i + 1)
        found.append(total)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len({expr.args for expr in found}) == 1
