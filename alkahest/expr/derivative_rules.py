"""What one node contributes to a derivative."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from alkahest.errors import DiffError
from alkahest.expr.heads import EXACT
from alkahest.expr.nodes import Expr
from alkahest.expr.parser import parse
from alkahest.expr.pool import ExprPool
from alkahest.expr.walk import postorder
from alkahest.ops import OPS

SELECTIONS = frozenset(("piecewise", "min", "max"))
"""Heads that choose one argument: their derivative chooses among the derivatives."""


Partial: TypeAlias = tuple[int | Fraction, tuple[Expr, ...]]
"""A partial derivative as an exact number and other factors.

The number is kept apart because a long chain multiplies as many of them: made nodes at every
step, they would fill the pool with ever longer integers.
"""


def partial(node: Expr, position: int) -> Partial:
    """The partial derivative of ``node`` with respect to one of its arguments.

    Not for selections. For products see also :func:`cofactors`.

    Raises:
        DiffError: E-DIFF-001 when the op table has no rule.
    """
    args = node.args
    match node.head:
        case "add":
            return 1, ()
        case "mul":
            return _without_number(args[:position] + args[position + 1 :])
        case "pow":
            return _power(args[0], args[1], position)
    return _instantiate(_rules(node.head)[position], node)


def cofactors(product: Expr) -> list[Partial]:
    """For each factor of a product the product of the others.

    Each is put together from the products of those before and those after it, so that all of
    them are made in linear time; only looking at the arguments of each one costs more.
    """
    pool, factors = product.pool, product.args
    number, rest = _without_number(factors)
    before = [pool.integer(1)]
    for factor in rest[:-1]:
        before.append(pool.mul((before[-1], factor)))
    after = pool.integer(1)
    others: list[Partial] = []
    for factor, left in zip(reversed(rest), reversed(before), strict=True):
        others.append((number, (pool.mul((left, after)),)))
        after = pool.mul((factor, after))
    # Of the number itself nobody takes a derivative.
    return [(1, (after,))] * (len(factors) - len(rest)) + others[::-1]


def _without_number(factors: tuple[Expr, ...]) -> Partial:
    """The exact coefficient that stands first in a product, and the rest."""
    if factors and factors[0].head in EXACT:
        return factors[0].value, factors[1:]
    return 1, factors


def selection(node: Expr, derivatives: Mapping[int, Expr]) -> Expr:
    """The derivative of a selection, given those of its arguments that are not zero."""
    pool, args = node.pool, node.args
    zero = pool.integer(0)
    if node.head == "piecewise":
        values = [derivatives.get(i, zero) for i in range(0, len(args), 2)]
        return pool.piecewise(zip(values, args[1::2], strict=True))
    if len(args) == 2:
        a, b = args
        first, second = (a <= b, a > b) if node.head == "min" else (a >= b, a < b)
        return pool.piecewise(
            [(derivatives.get(0, zero), first), (derivatives.get(1, zero), second)]
        )
    pairs = [(d, pool.pred_eq(args[i], node)) for i, d in derivatives.items()]
    if len(pairs) < len(args):
        pairs.append((zero, pool.pred_eq(node, node)))  # true but for nan, which stays nan
    return pool.piecewise(pairs)


def _power(base: Expr, exponent: Expr, position: int) -> Partial:
    """Partial derivatives of ``base**exponent``; only the second one needs a logarithm."""
    pool = base.pool
    if position == 1:
        power = pool.pow(base, exponent)
        return 1, (power,) if base == pool.e() else (power, pool.func("log", (base,)))
    value = exponent.value
    if exponent.head in EXACT:
        return value, (pool.pow(base, value - 1),)
    if exponent.head == "float":
        return (1, (exponent, pool.pow(base, pool.float(value - 1)))) if value else (0, ())
    return 1, (exponent, pool.pow(base, pool.add((exponent, -1))))


@cache
def _rules(head: str) -> tuple[list[Expr], ...]:
    """The rules of the op table for ``head``, as nodes in post-order over symbols a, b, c."""
    rules = OPS[head].derivative
    if rules is None:
        raise DiffError(
            "E-DIFF-001",
            f"{head} has no derivative here",
            remediation="Rewrite the expression without it, or keep it free of the variable.",
        )
    return tuple(list(postorder(parse(rule, ExprPool()))) for rule in rules)


def _instantiate(rule: list[Expr], node: Expr) -> Partial:
    """``rule`` in the pool of ``node``, with its arguments for a, b, c."""
    pool = node.pool
    operands = dict(zip("abc", node.args, strict=False))
    built: dict[Expr, Expr] = {}
    for part in rule[:-1] if rule[-1].head == "mul" else rule:
        match part.head:
            case "symbol":
                built[part] = operands[part.value]
            case "constant":
                built[part] = pool.named(part.value)
            case "boolean":
                built[part] = pool.boolean(part.value)
            case head if head in EXACT:
                built[part] = pool.constant(part.value)
            case head:
                built[part] = pool.func(head, [built[arg] for arg in part.args])
    root = rule[-1]
    if root.head == "mul":
        return _without_number(tuple([built[factor] for factor in root.args]))
    return _without_number((built[root],))
