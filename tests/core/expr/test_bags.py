"""The order of commutative arguments, and that it depends on structure alone."""

import random
import subprocess
import sys
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkahest.errors import PoolError
from alkahest.expr import ExprPool, cos, exp, sin
from alkahest.expr.bags import MAX_TERMS


@pytest.mark.parametrize(
    ("terms", "order"),
    [
        ("1 b a 2.5 c", "a b c 2.5 1"),
        ("x x**3 1 x**2", "x**3 x**2 x 1"),
        ("y**2 2*x*y x**2", "x**2 2*x*y y**2"),
        ("c b*x a*x**2", "a*x**2 b*x c"),
        ("pi x sqrt(2) 3", "x sqrt(2) pi 3"),
        ("sin(x) cos(x) x", "x cos(x) sin(x)"),
        ("1/x x", "x 1/x"),
    ],
)
def test_sums_are_ordered_for_people(terms, order):
    from alkahest.expr import parse

    pool = ExprPool()
    total = pool.add(parse(t, pool) for t in terms.split())
    assert [str(a) for a in total.args] == order.split()


@pytest.mark.parametrize(
    ("factors", "order"),
    [
        ("b 2 a", "2 a b"),
        ("(x + 1) sin(x) y x pi 2.5 3", "3 2.5 pi x y sin(x) (x + 1)"),
        ("y x**2", "x**2 y"),
    ],
)
def test_products_are_ordered_for_people(factors, order):
    from alkahest.expr import parse

    pool = ExprPool()
    product = pool.mul(parse(f, pool) for f in factors.replace("(x + 1)", "x+1").split())
    assert product.args == tuple(parse(f, pool) for f in order.replace("(x + 1)", "x+1").split())


def test_minimum_and_conjunction_are_sorted_too():
    pool = ExprPool()
    x, y, z = pool.symbols("x y z")
    for args in permutations((z, 2, x, y)):
        assert pool.func("max", args).args == (x, y, z, pool.integer(2))
    a, b = x < 1, y < 1
    assert pool.pred_and(b, a).args == pool.pred_and(a, b).args == (a, b)


def test_min_of_a_min_is_flattened_and_keeps_its_constants_apart():
    pool = ExprPool()
    x = pool.symbol("x")
    inner = pool.func("min", (x, 2))
    assert pool.func("min", (inner, 3)).args == (x, pool.integer(2), pool.integer(3))
    assert pool.func("max", (inner, 3)).args == (inner, pool.integer(3))


leaves = st.sampled_from(["x", "y", "ab", 1, 2, -3, 0.5, 2.5])
trees = st.recursive(
    leaves,
    lambda inner: st.tuples(
        st.sampled_from(["add", "mul", "max", "sin", "pow"]),
        st.lists(inner, min_size=2, max_size=4),
    ),
    max_leaves=12,
)


def build(pool, tree, shuffle):
    """The tree in ``pool``, n-ary arguments in an order and a grouping that ``shuffle`` draws."""
    if isinstance(tree, str):
        return pool.symbol(tree)
    if not isinstance(tree, tuple):
        return pool.constant(tree)
    head, args = tree
    made = [build(pool, a, shuffle) for a in args]
    if head == "sin":
        return sin(made[0])
    if head == "pow":
        return exp(made[0]) ** made[1]
    shuffle.shuffle(made)
    while len(made) > 2 and shuffle.random() < 0.5:
        made.append(pool.func(head, [made.pop(0), made.pop(0)]))
    return pool.func(head, made)


def structure(expr):
    return (expr.head, expr.value, [structure(a) for a in expr.args])


@given(trees, st.randoms(use_true_random=False))
def test_order_and_grouping_of_construction_leave_no_trace(tree, shuffle):
    pool, other = ExprPool(), ExprPool()
    first = build(pool, tree, random.Random(0))
    assert build(pool, tree, shuffle) is first
    for name in ("ab", "y", "x"):  # another interning history
        other.symbol(name)
    foreign = build(other, tree, shuffle)
    assert foreign.digest == first.digest
    assert structure(foreign) == structure(first)


def test_digests_are_the_same_in_every_process():
    code = (
        "from alkahest.expr import ExprPool, sin\n"
        "y, x = ExprPool().symbols('y x')\n"
        "print((sin(x*y)**2 + 3*x + 0.5 + y/7).digest.hex())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    x, y = ExprPool().symbols("x y")
    assert digests == {(y / 7 + 0.5 + 3 * x + sin(x * y) ** 2).digest.hex() + "\n"}
    assert len((x + y).digest) == 16


def test_different_structures_have_different_digests():
    pool = ExprPool()
    x, y = pool.symbols("x y")
    nodes = [x, y, x + y, x * y, x + x, x + x + x, x + 1, x + 2, 2 * x, x**2, x**y, y**x, sin(x)]
    nodes += [cos(x), x < y, y < x, pool.float(1.0), pool.integer(1), pool.boolean(True)]
    nodes += [pool.symbol("integer"), pool.piecewise([(x, x < y)]), pool.rational(1, 2)]
    assert len({n.digest for n in nodes}) == len(nodes)


def test_a_sum_that_doubles_without_end_is_refused():
    x = ExprPool().symbol("x")
    total = x
    terms = 1
    while terms < MAX_TERMS:
        total, terms = total + total, 2 * terms
    with pytest.raises(PoolError, match=f"E-POOL-006.*add of {2 * MAX_TERMS} terms"):
        _ = total + total
