"""The operations on Python complex numbers, by C99 Annex G: results instead of exceptions.

Python's own complex arithmetic and cmath agree with Annex G on finite numbers. What differs is
mended here: products and quotients with infinite parts, division by zero, and the exceptions on
overflow, at poles, and for infinite imaginary parts.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from math import copysign, inf, nan
from typing import Any

from alkahest.expr.real_math import REAL, divide, nearest

ComplexFunction = Callable[[complex], complex]


def _unit(x: float) -> float:
    """1 of the sign of ``x`` for an infinity, else 0 of its sign."""
    return copysign(1.0 if math.isinf(x) else 0.0, x)


def _zero_for_nan(x: float) -> float:
    return copysign(0.0, x) if x != x else x


def multiply(z: complex, w: complex) -> complex:
    """``z*w``; an infinite factor makes an infinite product unless the other is 0 or nan."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    x, y = a * c - b * d, a * d + b * c
    if x == x or y == y:
        return complex(x, y)
    recalculate = False
    if math.isinf(a) or math.isinf(b):
        a, b, c, d = _unit(a), _unit(b), _zero_for_nan(c), _zero_for_nan(d)
        recalculate = True
    if math.isinf(c) or math.isinf(d):
        a, b, c, d = _zero_for_nan(a), _zero_for_nan(b), _unit(c), _unit(d)
        recalculate = True
    if not recalculate and any(map(math.isinf, (a * c, b * d, a * d, b * c))):
        a, b, c, d = map(_zero_for_nan, (a, b, c, d))
        recalculate = True
    return complex(inf * (a * c - b * d), inf * (a * d + b * c)) if recalculate else complex(x, y)


def quotient(z: complex, w: complex) -> complex:
    """``z/w``; zero divisors give infinities, infinite divisors zeros."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    size = max(abs(c), abs(d))
    shift = 0
    if size and math.isfinite(size):  # scaled so that squares neither overflow nor vanish
        shift = -math.frexp(size)[1]
        c, d = math.ldexp(c, shift), math.ldexp(d, shift)
    square = c * c + d * d
    x = _scaled(divide(a * c + b * d, square), shift)
    y = _scaled(divide(b * c - a * d, square), shift)
    if x == x or y == y:
        return complex(x, y)
    if square == 0.0 and (a == a or b == b):
        return complex(copysign(inf, c) * a, copysign(inf, c) * b)
    if (math.isinf(a) or math.isinf(b)) and math.isfinite(c) and math.isfinite(d):
        a, b = _unit(a), _unit(b)
        return complex(inf * (a * c + b * d), inf * (b * c - a * d))
    if math.isinf(size) and math.isfinite(a) and math.isfinite(b):
        c, d = _unit(c), _unit(d)
        return complex(0.0 * (a * c + b * d), 0.0 * (b * c - a * d))
    return complex(x, y)


def _scaled(x: float, shift: int) -> float:
    try:
        return math.ldexp(x, shift)
    except OverflowError:
        return copysign(inf, x)


def integer_power(z: complex, n: int) -> complex:
    """``z**n``; small powers by multiplication or division."""
    if n == 0:
        return 1 + 0j
    if abs(n) > 4:
        return power(z, complex(nearest(n)))
    step = multiply if n > 0 else quotient
    result = z if n > 0 else quotient(1 + 0j, z)
    for _ in range(abs(n) - 1):
        result = step(result, z)
    return result


def power(z: complex, w: complex) -> complex:
    """``z**w``, the principal value; 1 for ``w = 0``."""
    try:
        return z**w
    except (OverflowError, ZeroDivisionError):
        return exp(multiply(w, log(z)))


def exp(z: complex) -> complex:
    """``e**z``."""
    try:
        return cmath.exp(z)
    except OverflowError:
        return complex(_large(z.real, math.cos(z.imag)), _large(z.real, math.sin(z.imag)))
    except ValueError:
        return complex(abs(z.real) if math.isinf(z.real) else nan, nan)


def _large(exponent: float, direction: float) -> float:
    """``exp(exponent)*direction`` where the exponential alone may overflow."""
    if not direction:
        return direction
    half = REAL["exp"](exponent / 2)
    return float(direction * half * half)


def log(z: complex) -> complex:
    """The principal natural logarithm; -inf at zero."""
    return cmath.log(z) if z else complex(-inf, math.atan2(z.imag, z.real))


def sinh(z: complex) -> complex:
    """Hyperbolic sine."""
    try:
        return cmath.sinh(z)
    except OverflowError:
        size, turn = abs(z.real), copysign(0.5, z.real)
        return complex(_large(size, turn * math.cos(z.imag)), _large(size, 0.5 * math.sin(z.imag)))
    except ValueError:
        return complex(z.real if z.real == 0 or math.isinf(z.real) else nan, nan)


def cosh(z: complex) -> complex:
    """Hyperbolic cosine."""
    try:
        return cmath.cosh(z)
    except OverflowError:
        size, turn = abs(z.real), copysign(0.5, z.real)
        return complex(_large(size, 0.5 * math.cos(z.imag)), _large(size, turn * math.sin(z.imag)))
    except ValueError:
        if z.real == 0:
            return complex(nan, 0.0)
        return complex(abs(z.real) if math.isinf(z.real) else nan, nan)


def tanh(z: complex) -> complex:
    """Hyperbolic tangent."""
    try:
        return cmath.tanh(z)
    except ValueError:
        return complex(z.real if z.real == 0 else nan, nan)


def atanh(z: complex) -> complex:
    """Inverse hyperbolic tangent; infinite at -1 and 1."""
    try:
        return cmath.atanh(z)
    except ValueError:
        return complex(copysign(inf, z.real), z.imag)


def _rotated(hyperbolic: ComplexFunction) -> ComplexFunction:
    """An odd circular function through its hyperbolic twin: ``f(z) = -i h(i z)``."""

    def circular(z: complex) -> complex:
        turned = hyperbolic(complex(-z.imag, z.real))
        return complex(turned.imag, -turned.real)

    return circular


def cos(z: complex) -> complex:
    """Cosine."""
    return cosh(complex(-z.imag, z.real))


COMPLEX: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": multiply,
    "div": quotient,
    "neg": operator.neg,
    "powi": integer_power,
    "pow": power,
    "eq": operator.eq,
    "ne": operator.ne,
    "select": REAL["select"],
    "abs": lambda z: math.hypot(z.real, z.imag),
    "exp": exp,
    "log": log,
    "sqrt": cmath.sqrt,
    "sin": _rotated(sinh),
    "cos": cos,
    "tan": _rotated(tanh),
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": _rotated(atanh),
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "asinh": cmath.asinh,
    "acosh": cmath.acosh,
    "atanh": atanh,
    "re": operator.attrgetter("real"),
    "im": operator.attrgetter("imag"),
    "conjugate": lambda z: z.conjugate(),
    "arg": lambda z: math.atan2(z.imag, z.real),
}
"""Operation -> function of complex operands (``powi`` takes its exponent last)."""
