"""Commutative heads: flattening, folding of exact constants, canonical order.

A sum is a bag of terms beside one exact constant. Which bag it is, is known without listing the
terms: every node carries a random tag of 128 bits, and two bags of one pool are the same when
their constants, their sizes and the *sums of their tags* are equal. (The tags never leave the
process and are drawn anew for each node, so no input can be made to collide; by chance two bags
collide with a probability of 2**-128.) So ``a + b`` is found or made in constant time however
many terms ``a`` has; it remembers the two parts, and :func:`put_together` lists and sorts the
terms on the first look at ``args``.

The order of the arguments depends on structure alone, through keys that are as cheap: the
alphabetically first and last symbol inside a term, its exponent, its head, and the digest of its
structure to break ties.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from alkahest.errors import PoolError
from alkahest.expr.heads import CONDITIONS, EXACT
from alkahest.expr.nodes import Expr, Names, Node

if TYPE_CHECKING:
    from alkahest.expr.pool import ExprPool

Exact = int | Fraction

MAX_TERMS = 1 << 24
"""Largest bag: ``e = e + e`` in a loop doubles a sum each time and would fill the memory."""

_FOLDS: dict[str, tuple[Exact, Callable[[Any, Any], Any]]] = {
    "add": (0, operator.add),
    "mul": (1, operator.mul),
}
"""Heads whose exact arguments are folded into one constant: neutral element and operation."""

_draw = random.Random().getrandbits  # of our own, so that random.seed() cannot repeat tags
_put_args = vars(Node)["args"].__set__  # past Expr.__setattr__, which always refuses
_put_parts = vars(Node)["_parts"].__set__


def new_tag() -> int:
    """A random tag for a new node."""
    return _draw(128)


def digest_of(head: str, *pieces: bytes) -> bytes:
    """The 16-byte digest of a node; pieces other than a single one have fixed lengths."""
    return blake2b(b"\0".join((head.encode(), *pieces)), digest_size=16).digest()


def joined_names(parts: Iterable[Expr]) -> Names | None:
    """Alphabetically first and last symbol inside ``parts``."""
    joined: Names | None = None
    for part in parts:
        names = part._names
        if names is None or names is joined:
            continue
        if joined is None:
            joined = names
        elif names[0] < joined[0] or names[1] > joined[1]:
            joined = min(names[0], joined[0]), max(names[1], joined[1])
    return joined


def combine(pool: ExprPool, head: str, parts: Iterable[Expr]) -> Expr:
    """The node ``head(*parts)`` for a commutative head, flattened and folded.

    Raises:
        PoolError: E-POOL-001 for a part of another pool, E-POOL-005 for a condition among numbers
            or the reverse, E-POOL-006 for more than :data:`MAX_TERMS` terms.
    """
    neutral, fold = _FOLDS.get(head, (0, None))
    wants_condition = head in CONDITIONS
    constant: Exact = neutral
    count = tags = marks = 0
    kept: list[Expr] = []
    for part in parts:
        if part.pool is not pool:
            raise mixed_pools(head)
        if part.head == head:
            assert part._bag is not None
            inner, size, inner_tags, inner_marks = part._bag
            if fold is not None and inner != neutral:
                constant = fold(constant, inner)
            count += size
            tags += inner_tags
            marks += inner_marks
        elif fold is not None and part.head in EXACT:
            constant = fold(constant, part.value)
            continue
        else:
            if part.is_condition is not wants_condition:
                raise wrong_kind(head, part)
            count += 1
            tags += part._tag
            marks += int.from_bytes(part.digest, "little")
        kept.append(part)
    if type(constant) is Fraction and constant.denominator == 1:
        constant = constant.numerator
    if count == 0:  # sums and products only; the others have at least one part
        return pool.constant(constant)
    if count == 1 and constant == neutral:
        return _listed(head, kept)[0]
    if count > MAX_TERMS:
        raise PoolError(
            "E-POOL-006",
            f"{head} of {count} terms; {MAX_TERMS} is the most",
            remediation="Write repeated terms with a coefficient, repeated factors with a power.",
        )
    key = (head, constant.numerator, constant.denominator, count, tags)
    found = pool.find(key)
    if found is not None:
        return found
    node = Node()
    node.head = head
    node.value = None
    node.is_condition = wants_condition
    node.digest = digest_of(
        head,
        (marks % (1 << 128)).to_bytes(16, "little"),
        b"%x %x %x" % (count, constant.numerator, constant.denominator),
    )
    node._names = joined_names(kept)
    node._power = max([e._power for e in kept]) if head == "mul" else 1
    node._bag = constant, count, tags, marks
    node._parts = tuple(kept)
    return pool.keep(key, node)


def put_together(node: Expr) -> tuple[Expr, ...]:
    """List the arguments of a commutative node in canonical order, and remember them."""
    parts = node._parts
    if parts is None:  # another thread was faster
        return node.args
    assert node._bag is not None
    head, constant = node.head, node._bag[0]
    terms = _listed(head, parts)
    if head == "mul":
        terms.sort(key=_factor_key)
    else:
        terms.sort(key=_term_key)
    if head in _FOLDS and constant != _FOLDS[head][0]:
        terms.insert(0 if head == "mul" else len(terms), node.pool.constant(constant))
    args = tuple(terms)
    # In this order: whoever finds no parts must find the arguments.
    _put_args(node, args)
    _put_parts(node, None)
    return args


def _listed(head: str, parts: Iterable[Expr]) -> list[Expr]:
    """The terms inside ``parts`` without exact constants, unsorted."""
    folded = EXACT if head in _FOLDS else frozenset[str]()
    terms: list[Expr] = []
    pending = list(parts)
    while pending:
        part = pending.pop()
        if part.head != head:
            terms.append(part)
            continue
        deeper = part._parts
        if deeper is None:
            terms += [a for a in part.args if a.head not in folded]
        else:
            pending += deeper
    return terms


_TERM_RANK = {"symbol": 0, "pow": 1, "mul": 2, "add": 4, "constant": 5, "float": 6, "integer": 7}
_TERM_RANK["rational"] = 7
_FACTOR_RANK = {"integer": 0, "rational": 0, "float": 1, "constant": 2, "symbol": 3, "pow": 3}
_FACTOR_RANK |= {"add": 5, "piecewise": 5}


def _value(node: Expr) -> Exact | float:
    """The number that orders numeric leaves among themselves."""
    if node.head in ("integer", "rational", "float") and node.value == node.value:
        return node.value  # type: ignore[no-any-return]
    return 0


def _term_key(node: Expr) -> tuple[object, ...]:
    """Sums: by symbols, higher powers first; then what has no symbol, numbers last."""
    names = node._names
    rank = _TERM_RANK.get(node.head, 3)
    if names is None:
        return (True, rank, _value(node), node.head, node.digest)
    return (False, names, -node._power, rank, node.head, node.digest)


def _factor_key(node: Expr) -> tuple[object, ...]:
    """Products: numbers, constants, powers of symbols by name, functions, sums."""
    rank = _FACTOR_RANK.get(node.head, 4)
    names = node._names
    if names is None:
        return (False, rank, _value(node), node.head, node.digest)
    return (True, rank, names, -node._power, node.head, node.digest)


def mixed_pools(where: str) -> PoolError:
    """The error for expressions of two pools that meet in ``where``."""
    return PoolError("E-POOL-001", f"{where}: the expressions belong to different pools")


def wrong_kind(where: str, node: Expr) -> PoolError:
    """The error for a condition in the place of a number, or the reverse."""
    kinds = ("number", "condition")
    got, wanted = kinds[node.is_condition], kinds[not node.is_condition]
    return PoolError("E-POOL-005", f"{where} takes a {wanted}; a {got} ({node.head}) was given")
