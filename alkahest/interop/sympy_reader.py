"""Expressions of SymPy as this library's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from math import inf, nan
from typing import Any

import sympy
from sympy.codegen import cfunctions
from sympy.core.function import AppliedUndef

from alkahest.errors import InputError, InputTypeError
from alkahest.expr import functions
from alkahest.expr.nodes import Expr
from alkahest.expr.pool import ExprPool, default_pool
from alkahest.interop.sympy_functions import round_half_even, truncate

Rule = Callable[..., Expr]

_NAMESAKES = (
    "sign atan2 sin cos tan asin acos atan sec csc cot asec acsc acot sinh cosh tanh asinh acosh "
    "atanh sech csch coth asech acsch acoth exp log erf erfc erfinv gamma digamma besselj bessely "
    "re im conjugate arg"
)
"""Functions that have the same name and meaning in both."""

_FUNCTIONS: dict[Any, Rule] = {
    **{getattr(sympy, name): getattr(functions, name) for name in _NAMESAKES.split()},
    sympy.Abs: functions.abs,
    sympy.Min: functions.min,
    sympy.Max: functions.max,
    sympy.floor: functions.floor,
    sympy.ceiling: functions.ceil,
    sympy.frac: lambda x: x - functions.floor(x),
    sympy.Mod: functions.mod,
    sympy.loggamma: functions.lgamma,
    sympy.factorial: lambda n: functions.gamma(n + 1),
    sympy.erfcinv: lambda x: functions.erfinv(1 - x),
    sympy.sinc: lambda x: functions.piecewise(
        (1, functions.Eq(x, 0)), default=functions.sin(x) / x
    ),
    sympy.Heaviside: functions.heaviside,
    sympy.Equality: functions.Eq,
    sympy.Unequality: functions.Ne,
    sympy.StrictLessThan: functions.Lt,
    sympy.LessThan: functions.Le,
    sympy.StrictGreaterThan: functions.Gt,
    sympy.GreaterThan: functions.Ge,
    sympy.And: functions.And,
    sympy.Or: functions.Or,
    sympy.Not: functions.Not,
    sympy.Xor: lambda *conditions: reduce(_exclusive, conditions),
    sympy.ITE: lambda condition, yes, no: functions.Or(
        functions.And(condition, yes), functions.And(functions.Not(condition), no)
    ),
    sympy.Implies: lambda a, b: functions.Or(functions.Not(a), b),
    sympy.Equivalent: lambda *conditions: functions.Or(
        functions.And(*conditions), functions.And(*map(functions.Not, conditions))
    ),
    sympy.UnevaluatedExpr: lambda x: x,
    cfunctions.exp2: functions.exp2,
    cfunctions.expm1: functions.expm1,
    cfunctions.log2: functions.log2,
    cfunctions.log10: functions.log10,
    cfunctions.log1p: functions.log1p,
    cfunctions.Sqrt: functions.sqrt,
    cfunctions.Cbrt: functions.cbrt,
    cfunctions.hypot: functions.hypot,
    cfunctions.fma: functions.fma,
    round_half_even: functions.round,
    truncate: functions.trunc,
}

_UNFINISHED = (
    sympy.Derivative,
    sympy.Integral,
    sympy.Limit,
    sympy.Product,
    sympy.Subs,
    sympy.Sum,
)
"""Operations that SymPy leaves standing until it is told to carry them out."""


def from_sympy(expr: Any, pool: ExprPool | None = None) -> Any:
    """A SymPy expression, condition, matrix, or a sequence of them, as expressions of ``pool``.

    Numbers stay exact, floats are rounded once to float64. ``x**(1/2)`` is ``sqrt(x)``; other
    powers stay powers, so that the cube root of a negative number is nan, as where NumPy computes
    it. ``Heaviside`` has the value at 0 that it was made with, 1/2 where none was given.
    Derivatives, sums, products and integrals are carried out where SymPy can.

    Args:
        expr: what ``sympy.sympify`` takes; a matrix gives a list of its rows, a sequence a list.
        pool: where the expressions are built, the default pool unless given. Symbols keep their
            names and lose their assumptions; ``Dummy("x")`` is called ``_x_`` and its number.

    Raises:
        InputTypeError: E-SYMPY-001 for something that has no equivalent; names it.
        InputError: E-SYMPY-002 for two symbols of one name with different assumptions.
    """
    return Reader(default_pool() if pool is None else pool).read(expr)


class Reader:
    """Converts expressions that belong together: their symbols are the same ones."""

    def __init__(self, pool: ExprPool) -> None:
        self.pool = pool
        self._done: dict[Any, Expr] = {}
        self._names: dict[str, Any] = {}

    def read(self, expr: Any) -> Any:
        """As :func:`from_sympy`."""
        if isinstance(expr, sympy.MatrixExpr):
            expr = self._explicit(expr)
        if isinstance(expr, (sympy.MatrixBase, sympy.NDimArray)):
            return self.read(expr.tolist())
        if isinstance(expr, (list, tuple, sympy.Tuple)):
            return [self.read(member) for member in expr]
        if not isinstance(expr, (sympy.Basic, int, float, complex)):
            raise _unknown(expr, "is no SymPy expression")
        return self._expression(sympy.sympify(expr))

    def input(self, node: Any) -> Expr:
        """The symbol that stands for ``node`` from now on: a symbol, or ``q(t)`` as a whole."""
        return self._done.setdefault(node, self.pool.symbol(self._name(node)))

    def _explicit(self, matrix: Any) -> Any:
        try:
            return matrix.as_explicit()
        except (TypeError, ValueError) as error:
            raise _unknown(matrix, "has no explicit size") from error

    def _expression(self, root: Any) -> Expr:
        """Arguments before what uses them, without recursion: expressions may be deep."""
        pending = [root]
        while pending:
            node = pending[-1]
            if node in self._done:
                pending.pop()
                continue
            parts = self._parts(node)
            missing = [part for part in parts if part not in self._done]
            if missing:
                pending += missing
                continue
            self._done[node] = self._built(node, [self._done[part] for part in parts])
            pending.pop()
        return self._done[root]

    def _parts(self, node: Any) -> Sequence[Any]:
        """The expressions that have to be converted before ``node``."""
        if _is_leaf(node):
            return ()
        if isinstance(node, _UNFINISHED):
            finished = node.doit()
            if isinstance(finished, _UNFINISHED):
                raise _unknown(node, "cannot be carried out by SymPy")
            return (finished,)
        if isinstance(node, sympy.Piecewise):
            return tuple(part for pair in node.args for part in pair.args)
        if isinstance(node, (sympy.besselj, sympy.bessely)) and node.order not in (0, 1):
            raise _unknown(node, "has an order other than 0 and 1")
        if node.func not in _ARGUMENTS and not self._is_digamma(node):
            raise _unknown(node, "has no equivalent in alkahest")
        return tuple(node.args)

    def _built(self, node: Any, args: list[Expr]) -> Expr:
        if _is_leaf(node):
            return self._leaf(node)
        if isinstance(node, _UNFINISHED):
            return args[0]
        if self._is_digamma(node):
            return functions.digamma(args[1])
        return _ARGUMENTS[node.func](self.pool, args)

    @staticmethod
    def _is_digamma(node: Any) -> bool:
        return isinstance(node, sympy.polygamma) and node.args[0] == 0

    def _leaf(self, node: Any) -> Expr:
        if isinstance(node, (sympy.Symbol, sympy.matrices.expressions.matexpr.MatrixElement)):
            return self.pool.symbol(self._name(node))
        if isinstance(node, sympy.Integer):
            return self.pool.integer(int(node))
        if isinstance(node, sympy.Rational):
            return self.pool.rational(int(node.p), int(node.q))
        if isinstance(node, sympy.Float):
            return self.pool.float(float(node))
        if isinstance(node, sympy.logic.boolalg.BooleanAtom):
            return self.pool.boolean(bool(node))
        if node in _LEAVES:
            return _LEAVES[node](self.pool)
        if isinstance(node, sympy.NumberSymbol):
            return self.pool.float(float(node))
        raise _unknown(node, "has no equivalent in alkahest")

    def _name(self, symbol: Any) -> str:
        """What ``symbol`` is called here; two symbols never share a name."""
        name = f"_{symbol.name}_{symbol.dummy_index}" if symbol.is_Dummy else str(symbol)
        if self._names.setdefault(name, symbol) != symbol:
            raise InputError(
                "E-SYMPY-002",
                f"two symbols are called {name!r}: {_assumed(self._names[name])} and "
                f"{_assumed(symbol)}",
            )
        return name


_LEAVES: dict[Any, Callable[[ExprPool], Expr]] = {
    sympy.pi: ExprPool.pi,
    sympy.E: ExprPool.e,
    sympy.I: ExprPool.imaginary_unit,
    sympy.oo: lambda pool: pool.float(inf),
    -sympy.oo: lambda pool: pool.float(-inf),
    sympy.nan: lambda pool: pool.float(nan),
}


def _spread(rule: Rule) -> Callable[[ExprPool, list[Expr]], Expr]:
    return lambda _, args: rule(*args)


def _power(pool: ExprPool, args: list[Expr]) -> Expr:
    base, exponent = args
    if exponent.head == "rational" and exponent.value == Fraction(1, 2):
        return functions.sqrt(base)
    return pool.pow(base, exponent)


def _piecewise(pool: ExprPool, args: list[Expr]) -> Expr:
    return pool.piecewise(list(zip(args[::2], args[1::2], strict=True)))


_ARGUMENTS: dict[Any, Callable[[ExprPool, list[Expr]], Expr]] = {
    sympy.Add: ExprPool.add,
    sympy.Mul: ExprPool.mul,
    sympy.Pow: _power,
    sympy.Piecewise: _piecewise,
    **{function: _spread(rule) for function, rule in _FUNCTIONS.items()},
}
"""For every class with arguments, how its node is made from those converted."""


def _is_leaf(node: Any) -> bool:
    return isinstance(node, sympy.matrices.expressions.matexpr.MatrixElement) or not node.args


def _exclusive(a: Expr, b: Expr) -> Expr:
    return functions.Or(functions.And(a, functions.Not(b)), functions.And(functions.Not(a), b))


def _assumed(symbol: Any) -> str:
    assumptions = ", ".join(f"{k}={v}" for k, v in sorted(symbol.assumptions0.items()))
    return f"{type(symbol).__name__}({assumptions})"


def _unknown(node: Any, reason: str) -> InputTypeError:
    kind = "the undefined function" if isinstance(node, AppliedUndef) else type(node).__name__
    shown = str(node)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return InputTypeError("E-SYMPY-001", f"{kind} {shown} {reason}")
