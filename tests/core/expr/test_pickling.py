"""Expressions through pickle: the same node here, the same structure elsewhere."""

import base64
import gc
import pickle
import subprocess
import sys

import pytest

from alkahest.expr import And, ExprPool, eval_expr, exp, fma, piecewise, sin


def expressions(pool):
    x, y = pool.symbol("x y"), pool.symbol("\\beta")
    return [
        x,
        pool.integer(-(10**5000)),
        pool.rational(10**5000, 7),
        pool.float(-0.0),
        pool.float(float("inf")),
        pool.pi(),
        pool.pred_true(),
        2 * x * sin(y) ** 2 + 0.1 - x / y + 1,
        piecewise((x, And(x < y, y != 1, x >= 0)), (fma(x, y, 1), ~(x > 2)), default=exp(x)),
    ]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_in_the_same_process_the_very_node_comes_back(protocol):
    pool = ExprPool()
    for expr in expressions(pool):
        assert pickle.loads(pickle.dumps(expr, protocol)) is expr
    assert pickle.loads(pickle.dumps(pool, protocol)) is pool


def test_when_the_pool_is_gone_everything_meets_in_one_new_pool():
    pool = ExprPool()
    originals = expressions(pool)
    digests = [e.digest for e in originals]
    together, apart = pickle.dumps(originals), [pickle.dumps(e) for e in originals]
    del pool, originals
    gc.collect()
    loaded = pickle.loads(together)
    assert [e.digest for e in loaded] == digests
    assert len({e.pool for e in loaded}) == 1
    assert all(pickle.loads(data) is e for data, e in zip(apart, loaded, strict=True))


def test_another_process_gets_the_same_structure():
    x = ExprPool().symbol("x")
    data = base64.b64encode(pickle.dumps([sin(x) + x / 3, x])).decode()
    code = (
        "import base64, pickle\n"
        "from alkahest.expr import eval_expr\n"
        f"e, x = pickle.loads(base64.b64decode('{data}'))\n"
        "print(e.pool is x.pool, e.digest.hex(), eval_expr(e, {x: 2}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expr = sin(x) + x / 3
    assert out.stdout == f"True {expr.digest.hex()} {eval_expr(expr, {x: 2})}\n"


def test_a_pickle_grows_with_the_distinct_nodes_not_with_the_tree():
    x = ExprPool().symbol("x")
    expr = x
    for _ in range(60):  # a tree of 2**60 leaves
        expr = sin(expr) * exp(expr)
    assert len(pickle.dumps(expr)) < 8000
    assert pickle.loads(pickle.dumps(expr)) is expr
