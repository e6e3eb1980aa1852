"""Deep chains, wide sums and wide sharing: everything is iterative and near linear."""

import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from alkahest.expr import Expr, ExprPool, eval_expr, max, sin, subs
from alkahest.expr.walk import postorder

LARGE = 100_000


@pytest.fixture(autouse=True)
def _recursion_would_be_noticed() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    yield
    sys.setrecursionlimit(limit)


@pytest.fixture(scope="module")
def chain() -> Expr:
    """x/2 + 1, of that half plus one, and so on; tends to 2."""
    expr = ExprPool().symbol("x")
    for _ in range(LARGE):
        expr = expr / 2 + 1
    return expr


@pytest.fixture(scope="module")
def total() -> Expr:
    """x0*0.5 + x1*1.5 + ... in one sum, built one term at a time."""
    pool = ExprPool()
    expr = pool.integer(0)
    for i in range(LARGE):
        expr = expr + pool.symbol(f"x{i}") * (i + 0.5)
    return expr


def test_a_chain_has_one_node_per_operation(chain):
    assert sum(1 for _ in postorder(chain)) == 2 * LARGE + 3


def test_a_chain_is_evaluated_hashed_and_compared(chain):
    assert eval_expr(chain, {"x": 7}) == 2.0
    assert hash(chain) == hash(chain)
    assert chain == chain.args[0] + 1
    assert [s.value for s in chain.free_symbols] == ["x"]


def test_a_chain_is_substituted_into(chain):
    x = chain.pool.symbol("x")
    folded = subs(chain, {x: Fraction(2)})
    assert (folded.head, folded.value) == ("integer", 2)
    other = subs(chain, {x: sin(x)})
    assert other is not chain
    assert subs(other, {sin(x): x}) is chain


def test_a_chain_pickles(chain):
    assert pickle.loads(pickle.dumps(chain)) is chain


def test_a_sum_built_term_by_term_is_one_node(total):
    assert total.head == "add"
    assert len(total.args) == LARGE
    assert total is total.pool.add(total.args)
    assert str(total.args[0]) == "0.5*x0"


def test_a_sum_is_evaluated_and_substituted_into(total):
    values = {f"x{i}": 2.0 for i in range(LARGE)}
    assert eval_expr(total, values) == float(LARGE) ** 2
    pool = total.pool
    assert len(subs(total, {pool.symbol("x7"): pool.symbol("y") + 1}).args) == LARGE
    assert len(total.free_symbols) == LARGE


def test_a_sum_pickles(total):
    assert pickle.loads(pickle.dumps(total)) is total


def test_a_long_maximum_and_a_long_product_are_flat():
    pool = ExprPool()
    highest, product = pool.symbol("m"), pool.symbol("p")
    for i in range(3000):
        x = pool.symbol(f"x{i}")
        highest, product = max(x, highest), product * x
    assert len(highest.args) == len(product.args) == 3001


def _built(step: Callable[[Expr, Expr], Expr], steps: int) -> Expr:
    pool = ExprPool()
    expr = pool.symbol("x")
    symbols = [pool.symbol(f"y{i}") for i in range(steps)]
    for symbol in symbols:
        expr = step(expr, symbol)
    assert expr.args
    return expr


def _calls(step: Callable[[Expr, Expr], Expr], steps: int) -> int:
    """Calls of Python and C functions while building."""
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        _built(step, steps)
    finally:
        sys.setprofile(None)
    return count


def _bytes(step: Callable[[Expr, Expr], Expr], steps: int) -> int:
    """Memory at its highest while building; a pool keeps every node, and so every copy."""
    tracemalloc.start()
    try:
        _built(step, steps)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("step", [lambda e, x: e + x, lambda e, x: sin(e) * 2 + x])
@pytest.mark.parametrize("measure", [_calls, _bytes])
def test_building_takes_work_and_memory_proportional_to_the_number_of_steps(measure, step):
    measure(step, 10)  # what happens once
    few, many = measure(step, 1000), measure(step, 8000)
    assert many < 8 * few * 1.3  # quadratic growth would give 64 times as much


def test_freeing_a_deep_chain_does_not_exhaust_the_stack():
    code = """
import gc, resource, threading
from alkahest.expr import ExprPool, sin, piecewise
threading.stack_size(1024 * 1024)
def build_and_free():
    pool = ExprPool()
    x = pool.symbol("x")
    nested = total = chosen = x
    for i in range(100_000):
        nested = sin(nested)
        total = total + pool.symbol(f"y{i % 100}")
        chosen = piecewise((chosen, chosen < i), (x, True)) if i % 4 == 0 else chosen
    del pool, x, nested, total, chosen
    gc.collect()
thread = threading.Thread(target=build_and_free)
thread.start()
thread.join()
print("freed", gc.collect() < 10)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "freed True\n"), done.stderr
