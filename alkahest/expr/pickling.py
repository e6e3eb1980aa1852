"""Expressions as flat lists, for pickle.

An expression pickles as its distinct nodes in post-order, arguments by position, and a handle of
its pool: nothing recurses, and the size is linear in the number of nodes. The handle is a random
token. Loading gives the living pool of that token (in the process that pickled, so the very same
node comes back) or else one new pool per token: what was pickled from one pool, together or
separately, meets in one pool again.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from alkahest.expr.heads import LEAVES
from alkahest.expr.walk import postorder
from alkahest.forks import ForkSafeLock

if TYPE_CHECKING:
    from alkahest.expr.nodes import Expr
    from alkahest.expr.pool import ExprPool

_pools: weakref.WeakValueDictionary[bytes, ExprPool] = weakref.WeakValueDictionary()
_lock = ForkSafeLock()


def token_of(pool: ExprPool) -> bytes:
    """The token that stands for ``pool`` in pickles."""
    with _lock:
        if pool._token is None:
            token = os.urandom(16)
            _pools[token] = pool
            pool._token = token
        return pool._token


def pool_of(token: bytes) -> ExprPool:
    """The living pool of ``token``, or a new one."""
    from alkahest.expr.pool import ExprPool

    with _lock:
        pool = _pools.get(token)
        if pool is None:
            pool = ExprPool()
            pool._token = token
            _pools[token] = pool
        return pool


def flatten(root: Expr) -> list[tuple[Any, ...]]:
    """The nodes of ``root``: ``(head, value)`` for leaves, ``(head, position, ...)`` for others."""
    positions: dict[Expr, int] = {}
    rows: list[tuple[Any, ...]] = []
    for node in postorder(root):
        positions[node] = len(rows)
        if node.head == "rational":  # a Fraction pickles through a text of limited length
            rows.append((node.head, node.value.numerator, node.value.denominator))
        elif node.head in LEAVES:
            rows.append((node.head, node.value))
        else:
            rows.append((node.head, *[positions[a] for a in node.args]))
    return rows


def rebuild(pool: ExprPool, rows: list[tuple[Any, ...]]) -> Expr:
    """The expression that :func:`flatten` wrote down, made in ``pool``."""
    leaves: dict[str, Callable[..., Expr]] = {
        "symbol": pool.symbol,
        "integer": pool.integer,
        "rational": pool.rational,
        "float": pool.float,
        "constant": pool.named,
        "boolean": pool.boolean,
    }
    nodes: list[Expr] = []
    for head, *rest in rows:
        make = leaves.get(head)
        nodes.append(make(*rest) if make else pool.func(head, [nodes[i] for i in rest]))
    return nodes[-1]
