"""Functions of expressions: one for every function head, and spellings made of several.

Arguments are expressions of one pool and any numbers; when all are numbers the result belongs to
:func:`alkahest.expr.pool.default_pool`. Nothing is evaluated here, not even ``sin(0)``.

``abs``, ``max``, ``min`` and ``round`` are here too, but not in ``__all__``: importing star-wise
leaves the built-in functions alone.

Errors of every function: InputTypeError E-INPUT-008 for an argument that is no number, PoolError
E-POOL-001 for arguments of different pools, E-POOL-005 for a condition in the place of a number
or the reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from alkahest.errors import PoolError
from alkahest.expr.nodes import Expr, Operand
from alkahest.expr.pool import ExprPool, default_pool
from alkahest.ops import OPS

__all__ = [
    "And",
    "Eq",
    "Ge",
    "Gt",
    "Le",
    "Lt",
    "Ne",
    "Not",
    "Or",
    "acos",
    "acosh",
    "acot",
    "acoth",
    "acsc",
    "acsch",
    "arg",
    "asec",
    "asech",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "besselj",
    "bessely",
    "cbrt",
    "ceil",
    "conjugate",
    "cos",
    "cosh",
    "cot",
    "coth",
    "csc",
    "csch",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "gamma",
    "heaviside",
    "hypot",
    "im",
    "j0",
    "j1",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "mod",
    "piecewise",
    "re",
    "root",
    "rsqrt",
    "sec",
    "sech",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "y0",
    "y1",
]


def pool_of(*args: object) -> ExprPool:
    """The pool of the first expression among ``args``, else the default pool."""
    for arg in args:
        if isinstance(arg, Expr):
            return arg.pool
    return default_pool()


def _unary(name: str) -> Callable[[Operand], Expr]:
    def function(x: Operand, /) -> Expr:
        return pool_of(x).func(name, (x,))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}(a)``: {OPS[name].meaning}."
    return function


def _binary(name: str) -> Callable[[Operand, Operand], Expr]:
    def function(a: Operand, b: Operand, /) -> Expr:
        return pool_of(a, b).func(name, (a, b))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}(a, b)``: {OPS[name].meaning}."
    return function


abs = _unary("abs")
sign = _unary("sign")
floor = _unary("floor")
ceil = _unary("ceil")
round = _unary("round")
trunc = _unary("trunc")
mod = _binary("mod")
exp = _unary("exp")
exp2 = _unary("exp2")
expm1 = _unary("expm1")
log2 = _unary("log2")
log10 = _unary("log10")
log1p = _unary("log1p")
sqrt = _unary("sqrt")
rsqrt = _unary("rsqrt")
cbrt = _unary("cbrt")
hypot = _binary("hypot")
sin = _unary("sin")
cos = _unary("cos")
tan = _unary("tan")
asin = _unary("asin")
acos = _unary("acos")
atan = _unary("atan")
atan2 = _binary("atan2")
sinh = _unary("sinh")
cosh = _unary("cosh")
tanh = _unary("tanh")
asinh = _unary("asinh")
acosh = _unary("acosh")
atanh = _unary("atanh")
erf = _unary("erf")
erfc = _unary("erfc")
erfinv = _unary("erfinv")
gamma = _unary("gamma")
lgamma = _unary("lgamma")
digamma = _unary("digamma")
j0 = _unary("j0")
j1 = _unary("j1")
y0 = _unary("y0")
y1 = _unary("y1")
re = _unary("re")
im = _unary("im")
conjugate = _unary("conjugate")
arg = _unary("arg")


def min(*args: Operand) -> Expr:
    """The least of two arguments or more; nan when one is nan, -0 below +0."""
    return pool_of(*args).func("min", args)


def max(*args: Operand) -> Expr:
    """The greatest of two arguments or more; nan when one is nan, -0 below +0."""
    return pool_of(*args).func("max", args)


def fma(a: Operand, b: Operand, c: Operand) -> Expr:
    """``a*b + c`` with one rounding."""
    return pool_of(a, b, c).func("fma", (a, b, c))


def log(x: Operand, base: Operand | None = None) -> Expr:
    """The natural logarithm, or the one to ``base``: ``log2``, ``log10`` or ``log(x)/log(base)``."""
    pool = pool_of(x, base)
    if base is None:
        return pool.func("log", (x,))
    base = pool.constant(base)
    if base.head == "integer" and base.value in (2, 10):
        return pool.func(f"log{base.value}", (x,))
    return pool.func("log", (x,)) / pool.func("log", (base,))


def root(x: Operand, n: Operand) -> Expr:
    """The principal n-th root ``x**(1/n)``; nan for negative ``x``, unlike :func:`cbrt`."""
    pool = pool_of(x, n)
    return pool.pow(x, pool.pow(n, -1))


# The reciprocal functions and their inverses, as SymPy defines them.


def _reciprocal(x: Operand) -> Expr:
    return pool_of(x).pow(x, -1)


def sec(x: Operand) -> Expr:
    """``1/cos(x)``."""
    return 1 / cos(x)


def csc(x: Operand) -> Expr:
    """``1/sin(x)``."""
    return 1 / sin(x)


def cot(x: Operand) -> Expr:
    """``1/tan(x)``."""
    return 1 / tan(x)


def sech(x: Operand) -> Expr:
    """``1/cosh(x)``."""
    return 1 / cosh(x)


def csch(x: Operand) -> Expr:
    """``1/sinh(x)``."""
    return 1 / sinh(x)


def coth(x: Operand) -> Expr:
    """``1/tanh(x)``."""
    return 1 / tanh(x)


def asec(x: Operand) -> Expr:
    """``acos(1/x)``."""
    return acos(_reciprocal(x))


def acsc(x: Operand) -> Expr:
    """``asin(1/x)``."""
    return asin(_reciprocal(x))


def acot(x: Operand) -> Expr:
    """``atan(1/x)``, odd, with a jump at 0."""
    return atan(_reciprocal(x))


def asech(x: Operand) -> Expr:
    """``acosh(1/x)``."""
    return acosh(_reciprocal(x))


def acsch(x: Operand) -> Expr:
    """``asinh(1/x)``."""
    return asinh(_reciprocal(x))


def acoth(x: Operand) -> Expr:
    """``atanh(1/x)``."""
    return atanh(_reciprocal(x))


def besselj(order: Operand, x: Operand) -> Expr:
    """The Bessel function of the first kind; ``order`` is the literal 0 or 1 (E-POOL-004)."""
    return _bessel("j", order, x)


def bessely(order: Operand, x: Operand) -> Expr:
    """The Bessel function of the second kind; ``order`` is the literal 0 or 1 (E-POOL-004)."""
    return _bessel("y", order, x)


def _bessel(kind: str, order: Operand, x: Operand) -> Expr:
    pool = pool_of(x, order)
    node = pool.constant(order)
    if node.head != "integer" or node.value not in (0, 1):
        raise PoolError(
            "E-POOL-004",
            f"bessel{kind} of an order other than the literals 0 and 1",
            remediation="Reduce the order with the recurrence "
            f"{kind}(n+1) = 2*n/x*{kind}(n) - {kind}(n-1).",
        )
    return pool.func(f"{kind}{node.value}", (x,))


def heaviside(x: Operand, at_zero: Operand = Fraction(1, 2)) -> Expr:
    """The step: 0 below zero, ``at_zero`` at zero, 1 above, nan for nan."""
    pool = pool_of(x, at_zero)
    return pool.piecewise([(0, pool.lt(x, 0)), (at_zero, pool.pred_eq(x, 0)), (1, pool.gt(x, 0))])


def piecewise(*pairs: tuple[Operand, Operand], default: Operand | None = None) -> Expr:
    """The value of the first pair ``(value, condition)`` whose condition holds.

    Conditions are relations, their combinations, or bools. Where none holds the value is
    ``default``, or nan without one.
    """
    flat = [part for pair in pairs for part in pair]
    return pool_of(*flat, default).piecewise(pairs, default)


def Eq(a: Operand, b: Operand) -> Expr:
    """The condition that ``a`` equals ``b``; never holds for nan."""
    return pool_of(a, b).pred_eq(a, b)


def Ne(a: Operand, b: Operand) -> Expr:
    """The condition that ``a`` differs from ``b``; always holds for nan."""
    return pool_of(a, b).pred_ne(a, b)


def Lt(a: Operand, b: Operand) -> Expr:
    """The condition ``a < b``."""
    return pool_of(a, b).lt(a, b)


def Le(a: Operand, b: Operand) -> Expr:
    """The condition ``a <= b``."""
    return pool_of(a, b).le(a, b)


def Gt(a: Operand, b: Operand) -> Expr:
    """The condition ``a > b``."""
    return pool_of(a, b).gt(a, b)


def Ge(a: Operand, b: Operand) -> Expr:
    """The condition ``a >= b``."""
    return pool_of(a, b).ge(a, b)


def And(*conditions: Operand) -> Expr:
    """The condition that all of ``conditions`` hold."""
    return pool_of(*conditions).pred_and(*conditions)


def Or(*conditions: Operand) -> Expr:
    """The condition that at least one of ``conditions`` holds."""
    return pool_of(*conditions).pred_or(*conditions)


def Not(condition: Operand) -> Expr:
    """The condition that ``condition`` does not hold."""
    return pool_of(condition).pred_not(condition)
