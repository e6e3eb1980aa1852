"""The operations on Python floats, by the rules of IEEE 754: results instead of exceptions.

One function per operation of :data:`alkahest.ops.OPS` on real operands, in :data:`REAL`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from math import copysign, inf, nan
from typing import Any

from alkahest.expr import special_math

RealFunction = Callable[[float], float]

MAX_EXACT_FLOAT = 2**53
"""Integers up to this magnitude are floats, parity included."""


def _total(function: RealFunction, outside: float = nan) -> RealFunction:
    """``function`` of the math module with infinities and ``outside`` in place of exceptions."""

    def total(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return outside
        except OverflowError:
            return inf

    return total


def divide(x: float, y: float) -> float:
    """``x / y``; division by zero gives a signed infinity, or nan for 0/0."""
    if y:
        return x / y
    return nan if not x or x != x else copysign(inf, x) * copysign(1.0, y)


def fma(x: float, y: float, z: float) -> float:
    """``x*y + z`` with one rounding."""
    product = x * y
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        # An overflow of the product alone must not decide: inf belongs to an operand.
        return z if math.isinf(z) and math.isfinite(x) and math.isfinite(y) else product + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if not exact:
        return product + z  # exact as well, and with the sign that IEEE gives a zero
    return nearest(exact)


def power(x: float, y: float) -> float:
    """``x**y``: IEEE 754 pow, nan for a negative base to a fraction."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -inf if x < 0 and _is_odd(y) else inf
    except ValueError:
        if x:
            return nan
        return copysign(inf, x) if _is_odd(y) else inf


def _is_odd(y: float) -> bool:
    return math.fmod(y, 2.0) in (1.0, -1.0)


def integer_power(x: float, n: int) -> float:
    """``x**n`` with the exact parity of ``n``; small powers by multiplication or division."""
    if n == 0:
        return 1.0
    if abs(n) <= 4:
        step = operator.mul if n > 0 else divide
        result = x if n > 0 else divide(1.0, x)
        for _ in range(abs(n) - 1):
            result = step(result, x)
        return result
    if abs(n) <= MAX_EXACT_FLOAT:
        return power(x, float(n))
    magnitude = power(abs(x), nearest(n))
    return copysign(magnitude, x) if n % 2 else magnitude


def nearest(value: int | Fraction) -> float:
    """The float nearest to an exact number; an infinity beyond their range."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def sign(x: float) -> float:
    """-1, +0 or 1; nan stays nan."""
    return x if x != x else float((x > 0) - (x < 0))


def minimum(x: float, y: float) -> float:
    """IEEE 754-2019 minimum: nan propagates, -0 is below +0."""
    if x != x or y != y:
        return nan
    if x == y:
        return x if copysign(1.0, x) < 0 else y
    return x if x < y else y


def maximum(x: float, y: float) -> float:
    """IEEE 754-2019 maximum: nan propagates, -0 is below +0."""
    if x != x or y != y:
        return nan
    if x == y:
        return y if copysign(1.0, x) < 0 else x
    return x if x > y else y


def _whole(function: Callable[[float], int]) -> RealFunction:
    """A rounding function of Python, which gives an int, with floats as results."""

    def whole(x: float) -> float:
        return copysign(float(function(x)), x) if math.isfinite(x) else x

    return whole


def modulo(x: float, y: float) -> float:
    """``x - y*floor(x/y)``: the sign of ``y``; nan for ``y = 0`` or infinite ``x``."""
    return x % y if y else nan


def reciprocal_root(x: float) -> float:
    """``1/sqrt(x)``."""
    return divide(1.0, _sqrt(x))


def cube_root(x: float) -> float:
    """The real cube root; platform libraries are off by several ulp, a Newton step is not."""
    root = math.cbrt(x)
    if not root or not math.isfinite(root):
        return root
    return root + (x / (root * root) - root) / 3


def _log(function: RealFunction, pole: float = 0.0) -> RealFunction:
    """A logarithm: -inf at its pole, nan below."""
    total = _total(function)
    return lambda x: -inf if x == pole else total(x)


def _odd_overflow(function: RealFunction) -> RealFunction:
    """A function that overflows to infinities of the sign of its argument."""
    total = _total(function)
    return lambda x: copysign(r, x) if (r := total(x)) == inf else r


def atanh(x: float) -> float:
    """Inverse hyperbolic tangent; infinite at -1 and 1, nan beyond."""
    return copysign(inf, x) if abs(x) == 1.0 else _atanh(x)


def gamma(x: float) -> float:
    """Euler's gamma function; nan at negative integers, an infinity of its sign at zero."""
    return divide(1.0, x) if x == 0.0 else _gamma(x)


_sqrt = _total(math.sqrt)
_atanh = _total(math.atanh)
_gamma = _odd_overflow(math.gamma)

REAL: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": divide,
    "neg": operator.neg,
    "fma": fma,
    "powi": integer_power,
    "pow": power,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
    "select": lambda condition, chosen, other: chosen if condition else other,
    "abs": abs,
    "sign": sign,
    "min": minimum,
    "max": maximum,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    "trunc": _whole(math.trunc),
    "mod": modulo,
    "exp": _total(math.exp),
    "exp2": _total(math.exp2),
    "expm1": _total(math.expm1),
    "log": _log(math.log),
    "log2": _log(math.log2),
    "log10": _log(math.log10),
    "log1p": _log(math.log1p, -1.0),
    "sqrt": _sqrt,
    "rsqrt": reciprocal_root,
    "cbrt": cube_root,
    "hypot": math.hypot,
    "sin": _total(math.sin),
    "cos": _total(math.cos),
    "tan": _total(math.tan),
    "asin": _total(math.asin),
    "acos": _total(math.acos),
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": _odd_overflow(math.sinh),
    "cosh": _total(math.cosh),
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": _total(math.acosh),
    "atanh": atanh,
    "erf": math.erf,
    "erfc": math.erfc,
    "erfinv": special_math.erfinv,
    "gamma": gamma,
    "lgamma": _total(math.lgamma, outside=inf),
    "digamma": special_math.digamma,
    "j0": special_math.j0,
    "j1": special_math.j1,
    "y0": special_math.y0,
    "y1": special_math.y1,
    "complex": complex,
    "re": lambda x: x,
    "im": lambda x: 0.0,
    "conjugate": lambda x: x,
    "arg": lambda x: math.atan2(0.0, x),
}
"""Operation -> function of real operands (``powi`` takes its exponent last)."""
