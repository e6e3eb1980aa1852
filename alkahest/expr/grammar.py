"""Tables of the expression language: operators, constants and functions.

This is the allow-list: the parser knows no other operator and calls nothing that is not here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction
from math import inf, nan

import attrs

from alkahest.errors import InputTypeError
from alkahest.expr import functions, heads
from alkahest.expr.nodes import Expr
from alkahest.expr.pool import ExprPool


class Takes(Enum):
    """What the operands of an operator or the arguments of a function are."""

    NUMBERS = "numbers"
    CONDITIONS = "conditions"
    CHOICE = "a condition, then two numbers or two conditions"
    PAIRS = "(value, condition) pairs"


@attrs.frozen
class Infix:
    """An operator between two operands.

    Attributes:
        binds: strength; the larger takes its operands first.
        build: makes the node from both operands; for collecting operators, makes the next part
            from the right operand alone.
        collects: head of the n-ary node whose parts a run of such operators collects, or "".
        takes: NUMBERS or CONDITIONS.
        right: whether it groups to the right.
    """

    binds: int
    build: Callable[..., Expr]
    collects: str = ""
    takes: Takes = Takes.NUMBERS
    right: bool = False


@attrs.frozen
class Prefix:
    """An operator before its operand; ``build`` also takes plain numbers where NUMBERS are taken.

    Attributes:
        binds: strength.
        build: makes the node.
        takes: NUMBERS or CONDITIONS.
    """

    binds: int
    build: Callable[..., Expr]
    takes: Takes = Takes.NUMBERS


@attrs.frozen
class Function:
    """A function that texts may call.

    Attributes:
        build: makes the node from the arguments (for PAIRS: value, condition, value, ...).
        fewest: least number of arguments.
        most: largest number of arguments, or None.
        takes: what the arguments are.
    """

    build: Callable[[ExprPool, Sequence[Expr]], Expr]
    fewest: int = 1
    most: int | None = 1
    takes: Takes = Takes.NUMBERS

    @property
    def arity(self) -> str:
        """The number of arguments in words."""
        few = "1 argument" if self.fewest == 1 else f"{self.fewest} arguments"
        if self.most is None:
            return f"{few} or more"
        return few if self.most == self.fewest else f"{self.fewest} or {self.most} arguments"


def _same(operand: Expr) -> Expr:
    return operand


def _inverse(operand: Expr) -> Expr:
    if operand.head in heads.EXACT:  # folds at any length, which pow does not
        return operand.pool.rational(1, operand.value)
    return operand.pool.pow(operand, -1)


_COMPARE, _CONDITIONS = 4, Takes.CONDITIONS

INFIX = {
    "or": Infix(1, _same, "or", _CONDITIONS),
    "and": Infix(2, _same, "and", _CONDITIONS),
    "<": Infix(_COMPARE, operator.lt),
    "<=": Infix(_COMPARE, operator.le),
    ">": Infix(_COMPARE, operator.gt),
    ">=": Infix(_COMPARE, operator.ge),
    "==": Infix(_COMPARE, lambda a, b: a.pool.pred_eq(a, b)),
    "!=": Infix(_COMPARE, lambda a, b: a.pool.pred_ne(a, b)),
    "|": Infix(5, _same, "or", _CONDITIONS),
    "&": Infix(6, _same, "and", _CONDITIONS),
    "+": Infix(7, _same, "add"),
    "-": Infix(7, lambda b: -b, "add"),
    "*": Infix(8, _same, "mul"),
    "/": Infix(8, _inverse, "mul"),
    "%": Infix(8, operator.mod),
    "//": Infix(8, lambda a, b: functions.floor(a * _inverse(b))),
    "**": Infix(10, operator.pow, right=True),
    "^": Infix(10, operator.pow, right=True),
}
"""Operators between operands. Strengths are Python's, with ``^`` as another ``**``."""

PREFIX = {
    "not": Prefix(3, lambda a: ~a, _CONDITIONS),
    "-": Prefix(9, lambda a: -a),
    "+": Prefix(9, lambda a: +a),
    "~": Prefix(9, lambda a: ~a, _CONDITIONS),
}
"""Operators before their operand."""

CONSTANTS: dict[str, Callable[[ExprPool], Expr | float]] = {
    "pi": ExprPool.pi,
    "E": ExprPool.e,
    "I": ExprPool.imaginary_unit,
    "oo": lambda pool: inf,  # a plain number, so that -oo is one float and not a product
    "nan": lambda pool: nan,
    "True": ExprPool.pred_true,
    "False": ExprPool.pred_false,
}
"""Names that mean a constant unless a symbol of that name is declared."""


def _head(name: str) -> Function:
    arity = heads.FUNCTIONS[name]
    return Function(lambda pool, args: pool.func(name, args), arity, arity)


def _made_by(function: Callable[..., Expr], fewest: int = 1, most: int | None = None) -> Function:
    return Function(lambda pool, args: function(*args), fewest, most or fewest)


def _extreme(name: str) -> Function:
    def build(pool: ExprPool, args: Sequence[Expr]) -> Expr:
        return args[0] if len(args) == 1 else pool.func(name, args)

    return Function(build, 1, None)


def _exact(node: Expr) -> Fraction:
    if node.head not in heads.EXACT:
        raise InputTypeError("E-INPUT-008", f"an exact number is needed here, not {node}")
    return Fraction(node.value)


def _rational(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    return pool.rational(*map(_exact, args))


def _integer(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    return pool.integer(_exact(args[0]))


def _float(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    (number,) = args
    return number if number.head == "float" else pool.float(_exact(number))


def _choice(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    condition, yes, no = args
    if yes.is_condition:
        return (condition & yes) | (~condition & no)
    return pool.piecewise([(yes, condition)], no)


def _pairs(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    return pool.func("piecewise", args)


def _polygamma(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    if args[0] != pool.integer(0):
        raise InputTypeError("E-INPUT-008", "polygamma is known for order 0 only: digamma")
    return pool.func("digamma", args[1:])


def _sinc(pool: ExprPool, args: Sequence[Expr]) -> Expr:
    (x,) = args
    return pool.piecewise([(functions.sin(x) / x, pool.pred_ne(x, 0))], 1)


_OTHER_NAMES = {
    "Abs": "abs",
    "Max": "max",
    "Min": "min",
    "Mod": "mod",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bessel_j0": "j0",
    "bessel_j1": "j1",
    "ceiling": "ceil",
    "ln": "log",
    "loggamma": "lgamma",
    "Heaviside": "heaviside",
    "Pow": "pow",
    "Piecewise": "piecewise",
}
_RECIPROCAL = ("sec", "csc", "cot", "sech", "csch", "coth")

FUNCTIONS: dict[str, Function] = {
    **{name: _head(name) for name in heads.FUNCTIONS},
    **{name: _made_by(getattr(functions, name)) for name in _RECIPROCAL},
    **{"a" + name: _made_by(getattr(functions, "a" + name)) for name in _RECIPROCAL},
    **{
        name: _made_by(getattr(functions, name), 2) for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")
    },
    "min": _extreme("min"),
    "max": _extreme("max"),
    "log": _made_by(functions.log, 1, 2),
    "root": _made_by(functions.root, 2),
    "pow": _made_by(operator.pow, 2),
    "besselj": _made_by(functions.besselj, 2),
    "bessely": _made_by(functions.bessely, 2),
    "heaviside": _made_by(functions.heaviside, 1, 2),
    "polygamma": Function(_polygamma, 2, 2),
    "factorial": _made_by(lambda n: functions.gamma(n + 1)),
    "frac": _made_by(lambda x: x % 1),
    "sinc": Function(_sinc),
    "Rational": Function(_rational, 1, 2),
    "Integer": Function(_integer),
    "Float": Function(_float),
    "And": Function(lambda pool, args: pool.pred_and(*args), 1, None, Takes.CONDITIONS),
    "Or": Function(lambda pool, args: pool.pred_or(*args), 1, None, Takes.CONDITIONS),
    "Not": Function(lambda pool, args: pool.pred_not(*args), 1, 1, Takes.CONDITIONS),
    "ITE": Function(_choice, 3, 3, Takes.CHOICE),
    "piecewise": Function(_pairs, 1, None, Takes.PAIRS),
}
"""Every function that a text may call, by each of its names."""

FUNCTIONS |= {name: FUNCTIONS[other] for name, other in _OTHER_NAMES.items()}
