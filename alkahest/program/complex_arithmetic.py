"""Products, quotients and powers of complex numbers as real formulae (C99 Annex G).

Errors in units in the last place of the result's magnitude, while nothing overflows or underflows:
product 1.5, quotient 3, power 1.5*(|n|-1) up to exponents of magnitude 4 (2 more for negative
ones). Larger exponents are squared in double-word arithmetic: 1 up to 2**40, in single precision
up to 2**18, and growing with the exponent beyond.
"""

from __future__ import annotations

from math import inf, nan

import attrs

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

_LARGEST_MULTIPLIED = 4


def product(z: Parts, w: Parts) -> Parts:
    """``z*w``; where that is nan + i nan, an infinite factor makes an infinity of its direction."""
    usual = _plain_product(z, w)
    lost = usual.re.is_nan() & usual.im.is_nan()
    z_infinite, w_infinite = z.is_infinite(), w.is_infinite()
    (a, b), (c, d) = z, w
    # Factors are exchanged here, so that the products above have no other use and become fma.
    overflow = Parts(c * a, d * b).is_infinite() | Parts(d * a, c * b).is_infinite()
    directions = Parts(*(_direction(part, z_infinite) for part in z))
    others = Parts(*(_direction(part, w_infinite) for part in w))
    length = where(z_infinite | w_infinite | overflow, inf, nan)
    found = choose(lost, _plain_product(directions, others).scaled(length), usual)
    return choose(usual.re.is_nan() | usual.im.is_nan(), found, usual)  # one comparison


def _plain_product(z: Parts, w: Parts) -> Parts:
    (a, b), (c, d) = z, w
    return Parts(a * c - b * d, a * d + b * c)


def _direction(part: Node, is_infinite: Node) -> Node:
    """A part of a factor: of an infinite one as a corner or side of the unit box, else nan as 0."""
    stays = part.is_finite() & ~is_infinite
    return where(stays, part, where(part.is_infinite(), where(part < 0.0, -1.0, 1.0), 0.0))


def quotient(z: Parts, w: Parts) -> Parts:
    """``z/w``; scaled where a square or product would leave the range."""
    limits = z.re.range
    square = w.re * w.re + w.im * w.im
    ordinary = z.size().is_within(limits.tiny, limits.huge)
    ordinary &= square.is_within(limits.tiny**2, limits.huge**2)
    return rarely(~ordinary, _scaled_quotient(z, w), _plain_quotient(z, w, square))


def _plain_quotient(z: Parts, w: Parts, square: Node) -> Parts:
    (a, b), (c, d) = z, w
    return Parts((a * c + b * d) / square, (b * c - a * d) / square)


def _scaled_quotient(z: Parts, w: Parts) -> Parts:
    above, root_above = rescaling(_largest(z))
    below, root_below = rescaling(_largest(w))
    scaled_z, scaled_w = z.scaled(above), w.scaled(below)
    square = scaled_w.re * scaled_w.re + scaled_w.im * scaled_w.im
    found = _plain_quotient(scaled_z, scaled_w, square)
    back = root_above / root_below  # its square would overflow where the quotient does not
    found = found.scaled(back).scaled(back)
    lost = found.re.is_nan() & found.im.is_nan()
    return choose(lost, _recovered_quotient(z, w, found), found)


def _largest(z: Parts) -> Node:
    """``max(|re|, |im|)``; that of the other part where one is nan."""
    a, b = abs(z.re), abs(z.im)
    return where((a >= b) | b.is_nan(), a, b)


def _recovered_quotient(z: Parts, w: Parts, found: Parts) -> Parts:
    """Quotients by zero, of an infinity and by an infinity, in this order (Annex G.5.1)."""
    (a, b), (c, d) = z, w
    by_zero = c.equals(0.0) & d.equals(0.0) & ~(a.is_nan() & b.is_nan())
    of_infinity = z.is_infinite() & c.is_finite() & d.is_finite()
    by_infinity = w.is_infinite() & a.is_finite() & b.is_finite()
    a1, b1, c1, d1 = (_boxed(part) for part in (a, b, c, d))
    infinite = Parts((a1 * c + b1 * d) * inf, (b1 * c - a1 * d) * inf)
    zero = Parts((a * c1 + b * d1) * 0.0, (b * c1 - a * d1) * 0.0)
    infinity = 1.0 / c
    found = choose(by_infinity, zero, choose(of_infinity, infinite, found))
    return choose(by_zero, Parts(infinity * a, infinity * b), found)


def _boxed(part: Node) -> Node:
    """1 for an infinity, 0 for anything else, with the sign of ``part``; 0 for nan."""
    finite = where(part.is_finite(), part * 0.0, 0.0)
    return where(part.is_infinite(), where(part < 0.0, -1.0, 1.0), finite)


def integer_power(z: Parts, n: int) -> Parts:
    """``z**n``: by multiplication up to 4, else by squaring numbers of twice the precision."""
    if abs(n) <= _LARGEST_MULTIPLIED:
        return _by_squaring(z, n)
    base = _Doubled.of(z) if n > 0 else _Doubled.reciprocal(z)
    power = base.to(abs(n))
    usual = Parts(power.re, power.im)
    size = usual.size()
    ordinary = (z.size() > 0.0) & (z.size() < inf)
    unusual = ~((size > 0.0) & (size < inf))
    return rarely(unusual, choose(ordinary, _out_of_range(z, n), _by_squaring(z, n)), usual)


def _by_squaring(z: Parts, n: int) -> Parts:
    one = Parts(z.re.of(1.0), z.re.of(0.0))
    result: Parts | None = None
    for bit in bin(abs(n))[2:]:
        result = None if result is None else product(result, result)
        if bit == "1":
            result = z if result is None else product(result, z)
    if result is None:
        return one
    return result if n > 0 else quotient(one, result)


def _out_of_range(z: Parts, n: int) -> Parts:
    """A power whose magnitude overflows or vanishes; the direction is that of ``(z/|z|)**n``."""
    size = z.re.apply("hypot", z.im)
    unit = Parts(z.re / size, z.im / size)
    direction: Parts | None = None
    for bit in bin(abs(n))[2:]:
        direction = None if direction is None else _plain_product(direction, direction)
        if bit == "1":
            direction = unit if direction is None else _plain_product(direction, unit)
    assert direction is not None
    length = size.apply("powi", parameter=n)
    sine = direction.im if n > 0 else -direction.im
    parts = (where(x.equals(0.0), x, x * length) for x in (direction.re, sine))
    return Parts(*parts)


@attrs.frozen(eq=False)
class _Doubled:
    """``(re + re_low) + i (im + im_low)``, about twice the precision; low parts may be absent."""

    re: Node
    im: Node
    re_low: Node | None = None
    im_low: Node | None = None

    @classmethod
    def of(cls, z: Parts) -> _Doubled:
        return cls(z.re, z.im)

    @classmethod
    def reciprocal(cls, z: Parts) -> _Doubled:
        """``1/z = w + w*(1 - z*w)`` with w of simple precision and the residual exact."""
        x, y = z
        square = x * x + y * y
        u, v = x / square, -y / square
        (xu, xu_low), (yv, yv_low) = two_product(x, u), two_product(y, v)
        (xv, xv_low), (yu, yu_low) = two_product(x, v), two_product(y, u)
        rest, rest_low = two_sum(x.of(1.0), -xu)
        re = (rest + yv) + ((rest_low - xu_low) + yv_low)
        im = -((xv + yu) + (xv_low + yu_low))
        return cls(u, v, u * re - v * im, u * im + v * re)

    def to(self, n: int) -> _Doubled:
        """The power ``n``, at least 1."""
        power = self
        for bit in bin(n)[3:]:
            power = power * power
            if bit == "1":
                power = power * self
        return power

    def __mul__(self, other: _Doubled) -> _Doubled:
        minus_im = None if self.im_low is None else -self.im_low
        re = _dot(
            (self.re, self.re_low, other.re, other.re_low),
            (-self.im, minus_im, other.im, other.im_low),
        )
        im = _dot(
            (self.re, self.re_low, other.im, other.im_low),
            (self.im, self.im_low, other.re, other.re_low),
        )
        return _Doubled(re[0], im[0], re[1], im[1])


_Factors = tuple[Node, Node | None, Node, Node | None]


def _dot(first: _Factors, second: _Factors) -> tuple[Node, Node]:
    """``a*b + c*d`` of double-word numbers ``(a, a_low, b, b_low)`` and ``(c, c_low, d, d_low)``."""
    (p, p_low), (q, q_low) = (two_product(a, b) for a, _, b, _ in (first, second))
    total, low = two_sum(p, q)
    low = low + (p_low + q_low)
    for a, a_low, b, b_low in (first, second):
        low = low if b_low is None else low + a * b_low
        low = low if a_low is None else low + a_low * b
    high = total + low
    return high, low - (high - total)
