"""From an expression to text without recursion: what the printers share.

A printer says for one node which pieces it is written as, texts and nodes; :func:`write` strings
them together. Texts are only ever appended at the end, so a chain of 10^5 nodes costs as much as
its characters.

An expression shares its common parts, a text repeats them. Where that would blow up
(:data:`LARGE_TREE`), printers give names to the parts that :func:`repeated` lists, and the text
stays as long as the expression has distinct nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import count

from alkahest.expr.heads import EXACT
from alkahest.expr.nodes import Expr
from alkahest.expr.tokens import float_text
from alkahest.expr.walk import postorder

Piece = str | tuple[Expr, int]
"""A text, or a node and the strength with which its surroundings bind (0: not at all)."""

LARGE_TREE = 100_000
"""Nodes that are written out in full before repeated parts get names."""

_WORTH_A_NAME = 8  # nodes; smaller parts are shorter written out


def write(pieces: Iterable[Piece], expand: Callable[[Expr, int], Sequence[Piece]]) -> str:
    """Write ``pieces``, replacing nodes by what ``expand`` gives for them, left to right."""
    texts: list[str] = []
    pending = list(pieces)
    pending.reverse()
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            texts.append(piece)
        else:
            pending.extend(reversed(expand(*piece)))
    return "".join(texts)


def repeated(expr: Expr) -> list[Expr]:
    """Parts of ``expr`` that occur more than once, children first; none if it is small anyway."""
    size: dict[Expr, int] = {}
    uses: dict[Expr, int] = {}
    for node in postorder(expr):
        nodes = 1
        for arg in node.args:
            nodes += size[arg]
            uses[arg] = uses.get(arg, 0) + 1
        size[node] = min(nodes, LARGE_TREE + 1)
    if size[expr] <= LARGE_TREE:
        return []
    return [node for node in size if size[node] >= _WORTH_A_NAME and uses.get(node, 0) > 1]


def fresh_names(expr: Expr, form: str) -> Iterable[str]:
    """``form`` filled in with 1, 2, ..., without the names of symbols of ``expr``."""
    taken = {symbol.value for symbol in expr.free_symbols}
    return (name for name in map(form.format, count(1)) if name not in taken)


def is_negative(node: Expr) -> bool:
    """Whether a sum writes ``node`` behind a minus sign: an exact number or coefficient below 0."""
    if node.head == "mul":
        node = node.args[0]
    return node.head in EXACT and node.value < 0


def starts_with_minus(node: Expr) -> bool:
    """Whether a number, or a product by its first factor, is written with a minus sign in front."""
    first = node.args[0] if node.head == "mul" else node
    if first.head == "float":
        return float_text(first.value).startswith("-")
    return is_negative(first)


def coefficient(product: Expr) -> tuple[Fraction, Sequence[Expr]]:
    """The exact coefficient of a product and its other factors."""
    first = product.args[0]
    if first.head in EXACT:
        return Fraction(first.value), product.args[1:]
    return Fraction(1), product.args
