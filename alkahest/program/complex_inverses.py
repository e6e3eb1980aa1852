"""Inverse circular and hyperbolic functions of complex numbers, by Kahan's formulae.

W. Kahan, Branch cuts for complex elementary functions (1987). With A = sqrt(1 - z) and
B = sqrt(1 + z) no difference below cancels, and the signs of zeros choose the side of each cut.
Far from the origin, infinities included, the leading terms take over.
"""

from __future__ import annotations

from math import log, nan, pi

from alkahest.program.complex_exponentials import log_size, sqrt
from alkahest.program.parts import Node, Parts, choose, rarely, where


def asin(z: Parts) -> Parts:
    """``atan(x / Re(A*B)) + i asinh(Im(conj(A)*B))``."""
    x, y = z
    a, b = _roots(z)
    re = x.apply("atan2", a.re * b.re - a.im * b.im)
    im = (a.re * b.im - a.im * b.re).apply("asinh")
    far = Parts(x.apply("atan2", abs(y)), _log_twice(z).with_sign_of(y))
    far = Parts(where(x.equals(0.0), x, far.re), far.im)
    return rarely(_is_far(z), far, Parts(re, im))


def acos(z: Parts) -> Parts:
    """``2 atan(Re A / Re B) + i asinh(Im(conj(B)*A))``."""
    x, y = z
    a, b = _roots(z)
    re = a.re.apply("atan2", b.re) * 2.0
    im = (b.re * a.im - b.im * a.re).apply("asinh")
    far = Parts(abs(y).apply("atan2", x), _log_twice(z).with_sign_of(-y))
    far = Parts(where(x.equals(0.0), pi / 2, far.re), far.im)
    return rarely(_is_far(z), far, Parts(re, im))


def acosh(z: Parts) -> Parts:
    """``acos(z)`` turned by a right angle, to the side where the real part is not negative."""
    turned = acos(z)
    return Parts(abs(turned.im), turned.re.with_sign_of(z.im))


def asinh(z: Parts) -> Parts:
    """``-i asin(i z)``."""
    return asin(z.turned()).turned_back()


def atanh(z: Parts) -> Parts:
    """``log1p(4|x| / ((1-|x|)**2 + y**2))/4`` with the sign of x, and half the angle of
    ``(1-x)*(1+x) - y**2 + 2iy``."""
    x, y = z
    size = abs(x)
    short, square = 1.0 - size, y * y
    ratio = size * 4.0 / (short * short + square)
    sign = where(x < 0.0, -0.25, 0.25)
    angle = (y * 2.0).apply("atan2", short * (size + 1.0) - square) * 0.5
    usual = Parts(ratio.apply("log1p") * sign, angle)
    return rarely(_is_far(z) | _is_at_pole(z) | x.equals(0.0), _atanh_fixed(z, usual), usual)


def _atanh_fixed(z: Parts, usual: Parts) -> Parts:
    x, y = z
    at_pole = (log(2.0) - abs(y).apply("log")) * 0.5
    found = Parts(where(_is_at_pole(z), where(x < 0.0, -at_pole, at_pole), usual.re), usual.im)
    size = x.apply("hypot", y)
    re = where(z.is_infinite(), x.of(0.0).with_sign_of(x), x / size / size)
    is_lost = y.is_nan() | (x.is_nan() & y.is_finite())
    im = where(is_lost, nan, y.of(pi / 2).with_sign_of(y))
    found = choose(_is_far(z), Parts(re, im), found)
    return Parts(where(x.equals(0.0), x, found.re), found.im)


def atan(z: Parts) -> Parts:
    """``-i atanh(i z)``."""
    return atanh(z.turned()).turned_back()


def _roots(z: Parts) -> tuple[Parts, Parts]:
    """``sqrt(1 - z)`` and ``sqrt(1 + z)``."""
    x, y = z
    return sqrt(Parts(1.0 - x, -y)), sqrt(Parts(x + 1.0, y))


def _is_far(z: Parts) -> Node:
    """Whether 1 is nothing beside z, or a part is not finite."""
    return ~(z.size() <= z.re.range.far)


def _is_at_pole(z: Parts) -> Node:
    """Whether z is 1 or -1 but for an imaginary part whose square vanishes."""
    return abs(z.re).equals(1.0) & (abs(z.im) < z.re.range.tiny)


def _log_twice(z: Parts) -> Node:
    """``log(2|z|)``."""
    return log_size(z) + log(2.0)
