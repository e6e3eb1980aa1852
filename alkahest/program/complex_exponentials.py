"""Exponential, logarithm, roots, powers, circular and hyperbolic functions of complex numbers.

Real formulae with the special values of C99 Annex G. Where the usual formula leaves the range of
the format, or an operand is infinite, :func:`alkahest.program.parts.rarely` takes over.
Circular functions are hyperbolic ones of ``i*z``.
"""

from __future__ import annotations

from math import inf, log, nan

from alkahest.program.complex_arithmetic import product
from alkahest.program.parts import (
    Node,
    Parts,
    choose,
    rarely,
    rescaling,
    two_product,
    two_sum,
    where,
)


def exp(z: Parts) -> Parts:
    """``e**x * (cos y + i sin y)``."""
    x, y = z
    cosine, sine = y.apply("cos"), y.apply("sin")
    size = x.apply("exp")
    usual = Parts(size * cosine, size * sine)
    half = (x * 0.5).apply("exp")
    fixed = _real_on_axis(y, Parts(half * cosine * half, half * sine * half))
    turns_forever = x.is_infinite() & ~y.is_finite()
    fixed = choose(turns_forever, Parts(half, where(x < 0.0, 0.0, nan)), fixed)
    return rarely(~(abs(x) <= x.range.exp), fixed, usual)


def _real_on_axis(y: Node, value: Parts) -> Parts:
    """A function that is real for real arguments: its imaginary part is y where y is zero."""
    return Parts(value.re, where(y.equals(0.0), y, value.im))


def log_(z: Parts) -> Parts:
    """``log|z| + i arg z``, precise in both parts also where \\|z\\| is near 1.

    There ``log(x*x + y*y)`` gets the rounding errors of its argument added.
    """
    x, y = z
    (p, p_low), (q, q_low) = two_product(x, x), two_product(y, y)
    square, low = two_sum(p, q)
    low = where(square.is_within(0.5, 2.0), low + (p_low + q_low), 0.0)
    usual = (square.apply("log") + low) * 0.5
    angle = y.apply("atan2", x)
    ordinary = square.is_within(x.range.tiny**2, x.range.huge**2)
    return rarely(~ordinary, Parts(log_size(z), angle), Parts(usual, angle))


def log_size(z: Parts) -> Node:
    """``log|z|`` where \\|z\\| is not near 1: infinite for an infinity, -inf for zero."""
    scale = z.re.range.scale
    is_large = ~(z.size() <= 1.0)  # of nan too, so that no finite part is made infinite
    scaled = z.scaled(where(is_large, 1 / scale, scale))
    size = scaled.re.apply("hypot", scaled.im)
    return size.apply("log") + where(is_large, log(scale), -log(scale))


def sqrt(z: Parts) -> Parts:
    """With ``t = sqrt((|x| + |z|)/2)``: t and ``y/(2t)``, or in the left half plane the reverse."""
    limits = z.re.range
    square = z.re * z.re + z.im * z.im
    ordinary = square.is_within(limits.tiny**2, limits.huge**2) & ~z.im.equals(0.0)
    usual = _sqrt(z, square.sqrt(), where(z.im < 0.0, -1.0, 1.0))
    return rarely(~ordinary, _scaled_sqrt(z), usual)


def _sqrt(z: Parts, size: Node, sign: Node) -> Parts:
    x, y = z
    root = ((abs(x) + size) * 0.5).sqrt()
    other = y / (root * 2.0)
    is_left = x < 0.0
    return Parts(where(is_left, abs(other), root), where(is_left, root * sign, other))


def _scaled_sqrt(z: Parts) -> Parts:
    x, y = z
    scale, root = rescaling(z.size())
    scaled = z.scaled(scale)
    size = scaled.re.apply("hypot", scaled.im)
    found = _sqrt(scaled, size, where(y.is_negative(), -1.0, 1.0)).scaled(root)
    found = choose(x.equals(0.0) & y.equals(0.0), Parts(x.of(0.0), y), found)
    return choose(y.is_infinite(), Parts(x.of(inf), y), found)


def power(z: Parts, w: Parts) -> Parts:
    """``exp(w*log(z))``; 1 for ``w = 0``, else of ``z = 0``: 0 where ``Re w > 0``, otherwise nan."""
    x = z.re
    found = exp(product(w, log_(z)))
    is_zero = x.equals(0.0) & z.im.equals(0.0)
    of_zero = where(w.re > 0.0, 0.0, nan)
    no_power = w.re.equals(0.0) & w.im.equals(0.0)
    found = choose(is_zero, Parts(of_zero, of_zero), found)
    return choose(no_power, Parts(x.of(1.0), x.of(0.0)), found)


# Hyperbolic functions, and the circular ones through them


def sinh(z: Parts) -> Parts:
    """``sinh x cos y + i cosh x sin y``."""
    x, y = z
    cosine, sine = y.apply("cos"), y.apply("sin")
    usual = Parts(x.apply("sinh") * cosine, x.apply("cosh") * sine)
    half = (abs(x) * 0.5).apply("exp")
    near_half = half * 0.5
    re = half * (near_half * cosine)
    large = Parts(where(x < 0.0, -re, re), half * (near_half * sine))
    fixed = choose(abs(x) <= x.range.exp, usual, large)
    fixed = _real_on_axis(y, Parts(where(x.is_nan(), x, fixed.re), fixed.im))
    turns_forever = (x.is_infinite() | x.equals(0.0)) & ~y.is_finite()
    fixed = choose(turns_forever, Parts(x, x.of(nan)), fixed)
    return rarely(_is_extreme(z), fixed, usual)


def cosh(z: Parts) -> Parts:
    """``cosh x cos y + i sinh x sin y``."""
    x, y = z
    cosine, sine = y.apply("cos"), y.apply("sin")
    usual = Parts(x.apply("cosh") * cosine, x.apply("sinh") * sine)
    half = (abs(x) * 0.5).apply("exp")
    near_half = half * 0.5
    im = half * (near_half * sine)
    large = Parts(half * (near_half * cosine), where(x < 0.0, -im, im))
    fixed = choose(abs(x) <= x.range.exp, usual, large)
    fixed = Parts(fixed.re, where(y.equals(0.0), where(x.is_negative(), -y, y), fixed.im))
    turns_forever = x.is_infinite() & ~y.is_finite()
    fixed = choose(turns_forever, Parts(abs(x), x.of(nan)), fixed)
    fixed = Parts(fixed.re, where(x.equals(0.0) & ~y.is_finite(), 0.0, fixed.im))
    return rarely(_is_extreme(z), fixed, usual)


def _is_extreme(z: Parts) -> Node:
    """Whether ``exp(x)`` is out of range, or a part is not finite."""
    return ~((abs(z.re) <= z.re.range.exp) & z.im.is_finite())


def tanh(z: Parts) -> Parts:
    """``(sinh x cosh x + i sin y cos y) / (cos(y)**2 + sinh(x)**2)``; nothing cancels."""
    x, y = z
    cosine, sine = y.apply("cos"), y.apply("sin")
    turn = sine * cosine
    sinus = x.apply("sinh")
    square = cosine * cosine + sinus * sinus
    usual = Parts(sinus * x.apply("cosh") / square, turn / square)
    decay = (abs(x) * -2.0).apply("exp")
    far = Parts(where(x < 0.0, -1.0, 1.0), turn * 4.0 * decay)
    no_turn = where(y < 0.0, -0.0, 0.0)
    far = Parts(far.re, where(x.is_infinite() & ~y.is_finite(), no_turn, far.im))
    near = Parts(where(x.equals(0.0), x, usual.re), usual.im)
    is_far = (abs(x) >= x.range.flat) & (y.is_finite() | x.is_infinite())
    fixed = _real_on_axis(y, choose(is_far, far, near))
    return rarely(~((abs(x) < x.range.flat) & y.is_finite()), fixed, usual)


def sin(z: Parts) -> Parts:
    """``-i sinh(i z)``."""
    return sinh(z.turned()).turned_back()


def cos(z: Parts) -> Parts:
    """``cosh(i z)``."""
    return cosh(z.turned())


def tan(z: Parts) -> Parts:
    """``-i tanh(i z)``."""
    return tanh(z.turned()).turned_back()
