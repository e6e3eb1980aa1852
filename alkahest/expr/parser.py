"""Text to expressions: a grammar of its own, which never runs code.

The language is Python's expression syntax cut down to numbers, names, operators and calls of the
functions in :data:`alkahest.expr.grammar.FUNCTIONS`; ``^`` is another ``**``.

- Decimal and scientific literals mean the nearest float64. Integers of any length and their
  ratios are exact: ``1/2`` is one half, ``x**(1/3)`` a power with a rational exponent.
- A minus sign right before a decimal literal belongs to it: ``-1.5`` is a float, ``-(1.5)`` a
  product.
- ``&``, ``|`` and ``~`` bind tighter than comparisons, as in Python; ``and``, ``or`` and ``not``
  bind looser. ``a < b < c`` is refused.
- A name before ``(`` is a function. Any other name is a symbol, except ``pi``, ``E``, ``I``,
  ``oo``, ``nan``, ``True``, ``False``; declaring a symbol of such a name makes it one.
- Names may have letters outside ASCII in NFKC normal form. Any text can be a symbol between
  backquotes, with backquotes inside doubled.
- ``(name := part)`` names a part for the text to its right.

Operators are handled by precedence on two stacks, so nesting is limited by memory alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import attrs

from alkahest.errors import (
    ExactDivisionError,
    InputTypeError,
    ParseDivisionError,
    ParseError,
    PoolError,
)
from alkahest.expr.grammar import FUNCTIONS, INFIX, PREFIX, Infix, Prefix, Takes
from alkahest.expr.nodes import Expr
from alkahest.expr.pool import ExprPool
from alkahest.expr.scope import Scope, Symbols
from alkahest.expr.tokens import Token, TokenKind, float_value, integer_value, shown, tokenise


def parse(text: str, pool: ExprPool, symbols: Symbols | None = None) -> Expr:
    """Build the expression, or condition, that ``text`` describes.

    Args:
        text: in the language of this module.
        pool: where the expression is made.
        symbols: names or symbols that win over constants and functions of the same name, or a
            mapping from names to the expressions of ``pool`` they stand for. Other names still
            become symbols.

    Raises:
        ParseError: E-PARSE-001 for a text outside the language, E-PARSE-003 for an unknown
            function or a wrong number of arguments; ``span`` says where.
        ParseDivisionError: E-PARSE-002 for a division by an exact zero.
        InputTypeError: E-INPUT-008 for arguments of the wrong type.
        PoolError: E-POOL-001 for a declared expression of another pool.
    """
    if not isinstance(text, str):
        raise InputTypeError("E-INPUT-008", f"the text must be a str, not {type(text).__name__}")
    if not isinstance(pool, ExprPool):
        raise InputTypeError("E-INPUT-008", f"pool must be an ExprPool, not {type(pool).__name__}")
    return _Parser(text, Scope(pool, symbols)).run()


class _Many:
    """A run of operators that becomes one n-ary node when something else needs it."""

    __slots__ = ("head", "parts")

    def __init__(self, head: str, first: Expr) -> None:
        self.head = head
        self.parts = [first]


_Pair: TypeAlias = tuple[Expr, ...]
_Operand: TypeAlias = "Expr | int | float | _Many | _Pair"
"""Numbers stay Python's while they are literals: a minus sign in front still belongs to them."""


class _Pending(NamedTuple):
    """An operator that waits for its right operand to end."""

    operator: Infix | Prefix
    token: Token


@attrs.define
class _Bracket:
    """An open bracket.

    Attributes:
        name: of the function whose arguments it holds; None around an operand.
        binding: ``part`` in ``(part := ...)``, or "".
        arguments: operands that ended with a comma.
    """

    name: Token | None = None
    binding: str = ""
    arguments: list[_Operand] = attrs.Factory(list)


_BEFORE = re.compile(r"[ \t\r\n\f]*(\(|:=)?")
_CONDITIONS = (
    "Join comparisons with &, each in brackets: (a < b) & (b < c). Conditions choose numbers in "
    "Piecewise((value, condition), ...)."
)


class _Parser:
    """One run over one text."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.pool = scope.pool
        self.scope = scope
        self.tokens = tokenise(text)
        self.operands: list[_Operand] = []
        self.pending: list[_Pending | _Bracket] = []

    def run(self) -> Expr:
        """Shift and reduce until the text ends."""
        wants_operand = True
        before = Token(TokenKind.OPERATOR, "", 0, 0)
        for token in self.tokens:
            if wants_operand:
                wants_operand = self.operand(token)
            else:
                wants_operand = self.operator(token, before)
            before = token
        return self.finished(self.operands.pop(), before)

    # Where an operand is expected; these return whether one is still expected afterwards.
    def operand(self, token: Token) -> bool:
        """Shift the beginning of an operand."""
        match token.kind:
            case TokenKind.INTEGER:
                self.operands.append(integer_value(token))
            case TokenKind.FLOAT:
                self.operands.append(float_value(token))
            case TokenKind.NAME:
                return self.name(token)
            case TokenKind.QUOTED:
                self.operands.append(self.scope.symbol(token.text))
            case _ if token.text in PREFIX and token.kind == TokenKind.OPERATOR:
                return self.prefix(token)
            case _ if token.text == "(":
                self.pending.append(_Bracket())
                return True
            case _ if token.text == ")" and (name := self.empty_call()) is not None:
                self.pending.pop()
                self.operands.append(self.call(name, ()))
            case _:
                found = shown(token.text) if token.text else token.kind
                raise _wrong(f"an operand is missing before {found}", token)
        return False

    def prefix(self, token: Token) -> bool:
        """Shift an operator that stands before its operand."""
        operator = PREFIX[token.text]
        top = self.pending[-1] if self.pending else None
        if (
            token.text == "not"
            and isinstance(top, _Pending)
            and top.operator.binds > operator.binds
        ):
            raise _wrong(f"'not' after {top.token.text!r} needs brackets around it", token)
        self.pending.append(_Pending(operator, token))
        return True

    def empty_call(self) -> Token | None:
        """The name of the function whose bracket was just opened, if one was."""
        top = self.pending[-1] if self.pending else None
        return top.name if isinstance(top, _Bracket) and not top.arguments else None

    def name(self, token: Token) -> bool:
        """Shift a symbol or constant, or open the bracket of a call or of ``(name := ...)``."""
        before = _BEFORE.match(self.text, token.end)
        match before[1] if before else None:
            case "(":
                self.scope.check_function(token)
                next(self.tokens)
                self.pending.append(_Bracket(token))
                return True
            case ":=":
                self.bind(token)
                next(self.tokens)
                return True
        self.operands.append(self.scope.operand(token))
        return False

    def bind(self, token: Token) -> None:
        """Note that the bracket just opened is ``(name := ...``."""
        top = self.pending[-1] if self.pending else None
        if not isinstance(top, _Bracket) or top.name or top.arguments or top.binding:
            raise _wrong(":= needs brackets of its own", token, "Write (name := part).")
        self.scope.check_new(token)
        top.binding = token.text

    # Where an operand has just ended
    def operator(self, token: Token, before: Token) -> bool:
        """Reduce as far as the token binds, then shift it; True if an operand must follow."""
        operator = INFIX.get(token.text) if token.kind == TokenKind.OPERATOR else None
        if operator is not None:
            self.reduce(operator.binds, operator.right)
            self.pending.append(_Pending(operator, token))
            return True
        if token.kind == TokenKind.END:
            self.reduce(0)
            if self.pending:
                raise _wrong("a closing bracket is missing", token)
            return False
        if token.kind == TokenKind.OPERATOR and token.text in ",)":
            self.reduce(0)
            top = self.pending[-1] if self.pending else None
            if not isinstance(top, _Bracket):
                raise _wrong(f"{token.text!r} outside brackets", token)
            if token.text == ")":
                self.close(token)
                return False
            if top.binding:
                raise _wrong("a comma after :=", token, "Write (name := part).")
            top.arguments.append(self.operands.pop())
            return True
        raise _missing_operator(token, before)

    def reduce(self, binds: int, right: bool = False) -> None:
        """Apply the pending operators that bind tighter than one of strength ``binds``."""
        while self.pending:
            top = self.pending[-1]
            if isinstance(top, _Bracket) or top.operator.binds < binds:
                return
            if top.operator.binds == binds and right:
                return
            self.pending.pop()
            self.apply(top.operator, top.token)

    def apply(self, operator: Infix | Prefix, token: Token) -> None:
        """Replace the operands of ``operator`` by its result."""
        takes = operator.takes
        right = self.operands.pop()
        if isinstance(operator, Prefix):
            if not isinstance(right, int | float) or takes is Takes.CONDITIONS:
                right = self.checked(right, takes, token)
            self.operands.append(operator.build(right))
            return
        left = self.operands.pop()
        second = self.checked(right, takes, token)
        if not operator.collects:
            first = self.checked(left, takes, token)
            self.operands.append(_built(token, "E-PARSE-001", operator.build, first, second))
            return
        if not isinstance(left, _Many) or left.head != operator.collects:
            left = _Many(operator.collects, self.checked(left, takes, token))
        left.parts.append(_built(token, "E-PARSE-001", operator.build, second))
        self.operands.append(left)

    def close(self, token: Token) -> None:
        """End the innermost bracket, whose last operand is complete: a call, or an operand."""
        bracket = self.pending.pop()
        assert isinstance(bracket, _Bracket)
        last = self.operands.pop()
        if bracket.name is not None:
            self.operands.append(self.call(bracket.name, [*bracket.arguments, last]))
        elif bracket.arguments:
            parts = [self.finished(a, token) for a in (*bracket.arguments, last)]
            self.operands.append(tuple(parts))
        elif isinstance(last, _Many) and not bracket.binding:
            self.operands.append(last)  # a + (b + c) is one sum
        else:
            inner = self.finished(last, token)
            if bracket.binding:
                self.scope.define(bracket.binding, inner)
            self.operands.append(inner)

    def call(self, token: Token, operands: Sequence[_Operand]) -> Expr:
        """The result of calling the function that ``token`` names."""
        function = FUNCTIONS[token.text]
        if len(operands) < function.fewest or len(operands) > (function.most or len(operands)):
            reason = f"{token.text} takes {function.arity}; {len(operands)} given"
            raise _wrong(reason, token, code="E-PARSE-003")
        takes = function.takes
        args: list[Expr] = []
        if takes is Takes.PAIRS:
            for operand in operands:
                if not isinstance(operand, tuple) or len(operand) != 2:
                    raise _wrong(f"{token.text} takes pairs (value, condition)", token)
                args.append(self.checked(operand[0], Takes.NUMBERS, token))
                args.append(self.checked(operand[1], Takes.CONDITIONS, token))
        elif takes is Takes.CHOICE:
            args.append(self.checked(operands[0], Takes.CONDITIONS, token))
            first = self.finished(operands[1], token)
            kind = Takes.CONDITIONS if first.is_condition else Takes.NUMBERS
            args += [first, self.checked(operands[2], kind, token)]
        else:
            args += [self.checked(operand, takes, token) for operand in operands]
        return _built(token, "E-PARSE-003", function.build, self.pool, args)

    def checked(self, operand: _Operand, takes: Takes, token: Token) -> Expr:
        """``operand`` as the number or the condition that ``token`` takes."""
        expr = self.finished(operand, token)
        if expr.is_condition is not (takes is Takes.CONDITIONS):
            kinds = ("number", "condition")
            given, wanted = kinds[expr.is_condition], kinds[not expr.is_condition]
            reason = f"{token.text!r} takes a {wanted}; a {given} was given"
            raise _wrong(reason, token, _CONDITIONS)
        return expr

    def finished(self, operand: _Operand, token: Token) -> Expr:
        """``operand`` as an expression of either kind."""
        match operand:
            case Expr():
                return operand
            case int():
                return self.pool.integer(operand)
            case float():
                return self.pool.float(operand)
            case _Many(head=head, parts=parts):
                return _built(token, "E-PARSE-001", self.pool.func, head, parts)
        raise _wrong("a comma outside the arguments of a function", token)


def _built(token: Token, code: str, build: Callable[..., Expr], *args: object) -> Expr:
    """The result of ``build``, whose refusals become parse errors at ``token``."""
    try:
        return build(*args)
    except ExactDivisionError as error:
        reason = f"division by an exact zero in {token.text!r}"
        raise ParseDivisionError(
            "E-PARSE-002", reason, remediation="Write 0.0 for IEEE division.", span=token.span
        ) from error
    except (PoolError, InputTypeError) as error:
        raise _wrong(error.message, token, error.remediation, code=code) from error


def _wrong(
    reason: str, token: Token, remedy: str | None = None, *, code: str = "E-PARSE-001"
) -> ParseError:
    return ParseError(code, reason, remediation=remedy, span=token.span)


def _missing_operator(token: Token, before: Token) -> ParseError:
    """The error for an operand right behind another one."""
    found = token.text
    remedy = "Multiplication is always written: 2*x, x*(y + 1)."
    if before.kind in (TokenKind.INTEGER, TokenKind.FLOAT) and before.end == token.start:
        if found in ("j", "J"):
            remedy = "There are no imaginary literals; write a factor I."
        elif before.text == "0" and found[:1] in tuple("xXbBoO"):
            remedy = "Integers are decimal; write 16 for 0x10."
    return _wrong(f"an operator is missing before {shown(found)}", token, remedy)
