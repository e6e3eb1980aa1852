"""Walks: each node once, arguments first."""

from alkahest.expr import ExprPool, cos, sin
from alkahest.expr.walk import fold, free_symbols, postorder, rewrite


def test_arguments_come_before_the_nodes_that_use_them_and_once():
    x, y = ExprPool().symbols("x y")
    expr = sin(x * y) + cos(x * y) ** 2
    nodes = list(postorder(expr))
    assert len(nodes) == len(set(nodes)) == 8
    seen = set()
    for node in nodes:
        assert seen.issuperset(node.args)
        seen.add(node)
    assert nodes[-1] is expr


def test_several_roots_share_their_nodes():
    x = ExprPool().symbol("x")
    assert list(postorder(sin(x), x, cos(sin(x)), sin(x))) == [x, sin(x), cos(sin(x))]
    assert list(postorder()) == []


def test_a_walk_can_stop_at_given_nodes():
    x, y = ExprPool().symbols("x y")
    assert list(postorder(sin(x) * y, stop={sin(x)})) == [sin(x), y, sin(x) * y] or list(
        postorder(sin(x) * y, stop={sin(x)})
    ) == [y, sin(x), sin(x) * y]
    assert x in postorder(sin(x) * x, stop={sin(x)})


def test_shared_parts_are_walked_once_however_large_the_tree():
    expr = ExprPool().symbol("x")
    for _ in range(200):
        expr = sin(expr) + cos(expr)
    assert sum(1 for _ in postorder(expr)) == 601


def test_a_fold_computes_each_node_from_its_arguments():
    x, y = ExprPool().symbols("x y")
    depth = fold(lambda node, below: 1 + max(below, default=0), x, sin(x) + y, sin(sin(x)))
    assert depth == [1, 3, 3]


def test_free_symbols_of_several_roots():
    x, y, _ = ExprPool().symbols("x y z")
    assert free_symbols(x + 1, sin(y), x * y) == {x, y}


def test_a_rewrite_leaves_untouched_parts_as_they_are():
    x, y = ExprPool().symbols("x y")
    expr = sin(x) + cos(y)
    assert rewrite(expr, {}) is expr
    assert rewrite(expr, {sin(x): x}) is x + cos(y)
