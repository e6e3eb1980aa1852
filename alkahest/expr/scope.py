"""What names mean while one text is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from alkahest.errors import InputTypeError, ParseError, PoolError
from alkahest.expr.grammar import CONSTANTS, FUNCTIONS
from alkahest.expr.nodes import Expr
from alkahest.expr.pool import ExprPool
from alkahest.expr.tokens import RESERVED, Token, shown

Symbols: TypeAlias = Mapping[str, Expr] | Iterable[str | Expr]
"""Declared symbols: names, symbols, or what each name stands for."""


class Scope:
    """The names of one text: declared ones, parts named in it, and symbols met so far.

    Args:
        pool: where symbols are made.
        symbols: names that win over constants and functions of the same name.

    Raises:
        InputTypeError: E-INPUT-008 for something else than names and expressions.
        PoolError: E-POOL-001 for an expression of another pool.
    """

    def __init__(self, pool: ExprPool, symbols: Symbols | None) -> None:
        self.pool = pool
        self.known = {} if symbols is None else _declared(pool, symbols)
        self.met: dict[str, Expr] = {}

    def symbol(self, name: str) -> Expr:
        """What ``name`` was declared to stand for, or the symbol of that name."""
        value = self.known.get(name, self.met.get(name))
        if value is None:
            value = self.met[name] = self.pool.symbol(name)
        return value

    def operand(self, token: Token) -> Expr | float:
        """What a name that is not called stands for.

        Raises:
            ParseError: E-PARSE-001 for ``zoo``.
        """
        name = token.text
        if name not in self.known:
            if name in CONSTANTS:
                return CONSTANTS[name](self.pool)
            if name in RESERVED:
                raise ParseError(
                    "E-PARSE-001",
                    f"{name} (complex infinity) is no number here",
                    remediation="Write oo, -oo or nan.",
                    span=token.span,
                )
        return self.symbol(name)

    def check_function(self, token: Token) -> None:
        """Refuse to call what is not a function.

        Raises:
            ParseError: E-PARSE-003, suggesting similar names.
        """
        name = token.text
        remedy = f"To multiply, write {name if len(name) <= 40 else 'name'}*(...)."
        if name in self.known:
            reason = f"{shown(name)} is declared as a symbol, so it cannot be called"
        elif name not in FUNCTIONS:
            reason = f"unknown function {shown(name)}"
            close = difflib.get_close_matches(name, FUNCTIONS, 3)
            if close:
                remedy = f"Did you mean {' or '.join(close)}? {remedy}"
        else:
            return
        raise ParseError("E-PARSE-003", reason, remediation=remedy, span=token.span)

    def check_new(self, token: Token) -> None:
        """Refuse a name for a part, ``(name := ...)``, that means something already.

        Raises:
            ParseError: E-PARSE-001.
        """
        if any(token.text in names for names in (self.known, self.met, RESERVED)):
            raise ParseError(
                "E-PARSE-001",
                f"{shown(token.text)} already has a meaning here",
                remediation="Choose another name for the part.",
                span=token.span,
            )

    def define(self, name: str, part: Expr) -> None:
        """Let ``name`` stand for ``part`` from here on."""
        self.known[name] = part


def _declared(pool: ExprPool, symbols: Symbols) -> dict[str, Expr]:
    """What each declared name stands for."""
    if isinstance(symbols, str) or not isinstance(symbols, Iterable):
        raise InputTypeError(
            "E-INPUT-008",
            f"symbols must be a collection of names, not {type(symbols).__name__}",
            remediation='Pass a list, for instance symbols=["x", "beta"].',
        )
    known: dict[str, Expr] = {}
    for item in symbols.items() if isinstance(symbols, Mapping) else symbols:
        match item:
            case str(name):
                known[name] = pool.symbol(name)
            case Expr(head="symbol"):
                known[item.value] = item
            case (str(name), Expr() as expr):
                known[name] = expr
            case _:
                raise InputTypeError(
                    "E-INPUT-008", f"symbols holds {item!r}, which is neither a name nor a symbol"
                )
    for name, expr in known.items():
        if expr.pool is not pool:
            raise PoolError("E-POOL-001", f"the declared symbol {name!r} belongs to another pool")
    return known
