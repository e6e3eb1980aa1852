"""Walking expressions without recursion."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TypeVar

from alkahest.expr.nodes import Expr

T = TypeVar("T")


def postorder(*roots: Expr, stop: Container[Expr] = ()) -> Iterator[Expr]:
    """Each distinct node below ``roots`` once, arguments before the nodes that use them.

    Nodes in ``stop`` are given like leaves: what is below them is not visited on their account.
    """
    done: set[Expr] = set()
    opened: set[Expr] = set()
    pending = list(reversed(roots))
    while pending:
        node = pending.pop()
        if node in done:
            continue
        if node not in opened and node.args and node not in stop:
            opened.add(node)
            pending.append(node)  # to come back to when its arguments are done
            pending += [a for a in reversed(node.args) if a not in done]
            continue
        done.add(node)
        yield node


def fold(rule: Callable[[Expr, list[T]], T], *roots: Expr) -> list[T]:
    """Results of ``rule(node, results of its arguments)`` for ``roots``, each node once."""
    results: dict[Expr, T] = {}
    for node in postorder(*roots):
        results[node] = rule(node, [results[a] for a in node.args])
    return [results[root] for root in roots]


def rewrite(root: Expr, table: Mapping[Expr, Expr]) -> Expr:
    """``root`` with every node in ``table`` replaced, outermost first, and built anew."""
    built: dict[Expr, Expr] = {}
    for node in postorder(root, stop=table):
        new = table.get(node)
        if new is None:
            args = [built[a] for a in node.args]
            same = all(map(operator.is_, args, node.args))
            new = node if same else node.pool.func(node.head, args)
        built[node] = new
    return built[root]


def free_symbols(*roots: Expr) -> frozenset[Expr]:
    """The symbols inside ``roots``."""
    return frozenset(node for node in postorder(*roots) if node.head == "symbol")
