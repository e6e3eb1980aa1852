"""Expressions of this library as SymPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import sympy
from sympy.codegen import cfunctions

from alkahest.errors import InputTypeError
from alkahest.expr.nodes import Expr
from alkahest.expr.walk import fold
from alkahest.interop.sympy_functions import round_half_even, truncate

_HALF = sympy.Rational(1, 2)

_CONSTANTS = {"pi": sympy.pi, "E": sympy.E, "I": sympy.I}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": sympy.Add,
    "mul": sympy.Mul,
    "pow": sympy.Pow,
    "lt": sympy.StrictLessThan,
    "le": sympy.LessThan,
    "gt": sympy.StrictGreaterThan,
    "ge": sympy.GreaterThan,
    "eq": sympy.Equality,
    "ne": sympy.Unequality,
    "and": sympy.And,
    "or": sympy.Or,
    "not": sympy.Not,
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "min": sympy.Min,
    "max": sympy.Max,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
    "round": round_half_even,
    "trunc": truncate,
    "mod": sympy.Mod,
    "exp": sympy.exp,
    "exp2": cfunctions.exp2,
    "expm1": cfunctions.expm1,
    "log": sympy.log,
    "log2": cfunctions.log2,
    "log10": cfunctions.log10,
    "log1p": cfunctions.log1p,
    "sqrt": sympy.sqrt,
    "rsqrt": lambda x: sympy.Pow(x, -_HALF),
    "cbrt": cfunctions.Cbrt,
    "hypot": cfunctions.hypot,
    "fma": cfunctions.fma,
    "lgamma": sympy.loggamma,
    "j0": lambda x: sympy.besselj(0, x),
    "j1": lambda x: sympy.besselj(1, x),
    "y0": lambda x: sympy.bessely(0, x),
    "y1": lambda x: sympy.bessely(1, x),
    "piecewise": lambda *flat: sympy.Piecewise(*zip(flat[::2], flat[1::2], strict=True)),
    **{
        name: getattr(sympy, name)
        for name in (
            "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv "
            "gamma digamma re im conjugate arg"
        ).split()
    },
}
"""SymPy's constructor for every head that takes arguments."""


@overload
def to_sympy(expr: Expr, symbols: Mapping[str, Any] | None = None) -> Any: ...
@overload
def to_sympy(expr: Sequence[Any], symbols: Mapping[str, Any] | None = None) -> list[Any]: ...


def to_sympy(expr: Expr | Sequence[Any], symbols: Mapping[str, Any] | None = None) -> Any:
    """``expr`` as an expression of SymPy, which simplifies it as SymPy does on construction.

    Args:
        expr: an expression, or a list or tuple of them, nested as the rows of a matrix are.
        symbols: SymPy symbols by name, to keep assumptions; names that are missing become plain
            ``sympy.Symbol``.

    Returns:
        The SymPy expression or condition; lists in the same nesting. ``round`` and ``trunc``, which
        SymPy has no functions for, are those of :mod:`alkahest.interop.sympy_functions`, and
        ``cbrt``, ``hypot``, ``fma``, ``exp2``, ``expm1`` and the other logarithms those of
        ``sympy.codegen.cfunctions``. SymPy has no negative zero: ``-0.0`` is 0.

    Raises:
        InputTypeError: E-INPUT-008 for anything but expressions.
    """
    roots = list(_members(expr))
    known = {} if symbols is None else symbols

    def rule(node: Expr, args: list[Any]) -> Any:
        if node.args:
            return _FUNCTIONS[node.head](*args)
        return _leaf(node, known)

    return _nested(expr, iter(fold(rule, *roots)))


def _members(expr: Any) -> Iterator[Expr]:
    """The expressions of a nesting, from left to right."""
    if isinstance(expr, Expr):
        yield expr
    elif isinstance(expr, (list, tuple)):
        for member in expr:
            yield from _members(member)
    else:
        message = f"to_sympy takes expressions, got {type(expr).__name__}"
        raise InputTypeError("E-INPUT-008", message)


def _nested(expr: Any, written: Iterator[Any]) -> Any:
    if isinstance(expr, Expr):
        return next(written)
    return [_nested(member, written) for member in expr]


def _leaf(node: Expr, symbols: Mapping[str, Any]) -> Any:
    value: Any = node.value
    match node.head:
        case "symbol":
            return symbols[value] if value in symbols else sympy.Symbol(value)
        case "constant":
            return _CONSTANTS[value]
        case "rational":
            return sympy.Rational(value.numerator, value.denominator)
        case "float":
            return sympy.Float(value, precision=53)
    return sympy.sympify(value)  # integers and truth values
