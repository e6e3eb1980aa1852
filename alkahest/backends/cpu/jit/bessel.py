"""Bessel functions of orders 0 and 1.

Below 25, J is one of sixteen polynomials, and so are the entire functions G in::

    Y0(x) = 2/pi*log(x)*J0(x) + G0(x)        Y1(x) = 2/pi*(log(x)*J1(x) - 1/x) + G1(x)

From there on, with a = cos(x) + sin(x), d = sin(x) - cos(x) and the order's smooth P and Q, nothing
is left to reduce::

    C = (P*a - Q*d) / sqrt(pi*x)    S = (P*d + Q*a) / sqrt(pi*x)
    J0 = C, Y0 = S of order 0       J1 = S, Y1 = -C of order 1
"""

from __future__ import annotations

import math
from collections.abc import Callable

from alkahest.backends.cpu.jit import besseltables as table
from alkahest.backends.cpu.jit.errorfunctions import piecewise
from alkahest.backends.cpu.jit.functions import Function, only, rarely
from alkahest.backends.cpu.jit.lanes import Lanes, Value
from alkahest.backends.cpu.jit.logarithms import log
from alkahest.backends.cpu.jit.trigonometry import sincos

_LOG = Function("log", log)

_TWO_OVER_PI = 2 / math.pi


def j0(b: Lanes, x: Value) -> Value:
    """Even; 0 at both infinities."""
    return _near_or_far(b, x, _near(b, "j0", table.J0, b.abs(x)), J0_FAR)


def j1(b: Lanes, x: Value) -> Value:
    """Odd; 0 at both infinities."""
    near = _with_sign(b, _near(b, "j1", table.J1, b.abs(x)), x)
    return _near_or_far(b, x, near, J1_FAR)


def y0(b: Lanes, x: Value) -> Value:
    """-inf at 0, nan below, 0 at inf."""
    product = b.mul(only(b, _LOG, x), _near(b, "j0", table.J0, x))
    near = b.fma(product, b.constant(_TWO_OVER_PI), _near(b, "g0", table.G0, x))
    return _near_or_far(b, x, near, Y0_FAR)


def y1(b: Lanes, x: Value) -> Value:
    """-inf at 0, nan below, 0 at inf."""
    # Halves, since 1/x may overflow where the value does not.
    pole = b.div(b.constant(0.5), x)
    factor = b.mul(_near(b, "j1", table.J1, x), b.constant(0.5))
    product = b.fma(only(b, _LOG, x), factor, b.neg(pole))
    near = b.fma(product, b.constant(2 * _TWO_OVER_PI), _near(b, "g1", table.G1, x))
    is_zero = b.compare("oeq", x, b.constant(0.0))
    near = b.select(is_zero, b.constant(-math.inf), near)
    return _near_or_far(b, x, near, Y1_FAR)


def _near(b: Lanes, name: str, rows: tuple[tuple[float, ...], ...], x: Value) -> Value:
    limit = b.constant(table.END)
    clipped = b.select(b.compare("olt", limit, x), limit, x)
    return piecewise(b, f"ak.{name}", rows, table.STEP, clipped)


def _with_sign(b: Lanes, value: Value, x: Value) -> Value:
    """The value of an odd function from that of ``|x|``."""
    sign = b.iop("and", b.to_bits(x), b.integer(-(1 << 63)))
    return b.from_bits(b.iop("xor", b.to_bits(value), sign))


def _near_or_far(b: Lanes, x: Value, near: Value, far: Function) -> Value:
    is_far = b.compare("ogt", b.abs(x), b.constant(table.END))
    return rarely(b, is_far, far, (x,), near)[0]


def _waves(b: Lanes, x: Value, order: int) -> tuple[Value, Value]:
    """C and S of ``|x|``; 0 where it is infinite."""
    size = b.abs(x)
    t = b.div(b.constant(table.HANKEL_FROM), size)
    u = b.mul(t, t)
    p = b.polynomial(u, table.HANKEL_P[order])
    q = b.div(b.polynomial(u, table.HANKEL_Q[order]), size)
    sine, cosine = sincos(b, size)
    a, d = b.add(cosine, sine), b.sub(sine, cosine)
    c = b.fma(p, a, b.neg(b.mul(q, d)))
    s = b.fma(p, d, b.mul(q, a))
    root = b.mul(b.sqrt(size), b.constant(math.sqrt(math.pi)))
    is_infinite = b.compare("oeq", size, b.constant(math.inf))
    first, second = (b.select(is_infinite, b.constant(0.0), b.div(w, root)) for w in (c, s))
    return first, second


def _far(order: int, pick: Callable[[Lanes, Value, Value, Value], Value]) -> Callable[..., Value]:
    return lambda b, x: pick(b, x, *_waves(b, x, order))


def _where_positive(b: Lanes, x: Value, value: Value) -> Value:
    return b.select(b.compare("olt", x, b.constant(0.0)), b.constant(math.nan), value)


J0_FAR = Function("j0.far", _far(0, lambda b, x, c, s: c), is_rare=True)
J1_FAR = Function("j1.far", _far(1, lambda b, x, c, s: _with_sign(b, s, x)), is_rare=True)
Y0_FAR = Function("y0.far", _far(0, lambda b, x, c, s: _where_positive(b, x, s)), is_rare=True)
Y1_FAR = Function(
    "y1.far",
    _far(1, lambda b, x, c, s: _where_positive(b, x, b.sub(b.constant(0.0), c))),
    is_rare=True,
)
