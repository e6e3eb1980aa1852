"""Replacing parts of an expression."""

from __future__ import annotations

from collections.abc import Mapping

from alkahest.errors import InputTypeError
from alkahest.expr.bags import mixed_pools, wrong_kind
from alkahest.expr.nodes import Expr, Operand
from alkahest.expr.walk import rewrite


def subs(expr: Expr, replacements: Mapping[Expr | str, Operand]) -> Expr:
    """``expr`` with every occurrence of the keys replaced by their values, all at once.

    Values are not searched for keys again, so ``{x: y, y: x}`` swaps. A key may be any
    subexpression and is found where it is a node of ``expr``: ``x + y`` is none of ``x + y + z``,
    whose one sum has three terms. Where keys contain each other the outermost is replaced. The
    result is constructed anew, so exact constants fold. Time is linear in the size of ``expr``.

    Args:
        expr: where to replace.
        replacements: expressions of the same pool, or names of symbols, to what takes their
            place: expressions of the same pool or numbers, and bools for conditions.

    Raises:
        InputTypeError: E-INPUT-008 for an argument, key or value of the wrong type.
        PoolError: E-POOL-001 for keys or values of another pool, E-POOL-005 for a condition in
            the place of a number or the reverse.
        ExactDivisionError: E-EVAL-004 when an exact zero gets a negative power.
    """
    if not isinstance(expr, Expr):
        raise _type_error("the expression", expr)
    if not isinstance(replacements, Mapping):
        raise _type_error("replacements", replacements, "a mapping from expressions to expressions")
    pool = expr.pool
    table: dict[Expr, Expr] = {}
    for key, value in replacements.items():
        old = pool.symbol(key) if isinstance(key, str) else key
        if not isinstance(old, Expr):
            raise _type_error("a key of replacements", key, "an expression or the name of a symbol")
        if old.pool is not pool:
            raise mixed_pools("replacements")
        new = pool.condition(value) if old.is_condition else pool.constant(value)
        if new.is_condition is not old.is_condition:
            raise wrong_kind("a replacement", new)
        table[old] = new
    return rewrite(expr, table)


def _type_error(what: str, value: object, wanted: str = "an expression") -> InputTypeError:
    return InputTypeError("E-INPUT-008", f"{what} must be {wanted}, not {type(value).__name__}")
