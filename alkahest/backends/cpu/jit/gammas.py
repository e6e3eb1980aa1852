"""gamma, lgamma and digamma.

With w = ``|x|`` and, for w < 12, z = w + 12 and p = (w + 1)...(w + 11), else z = w and p = 1::

    log(Gamma(z)) = (z - 1/2)*log(z) - z + log(2*pi)/2 + sum(B[2k]/(2k*(2k-1)) * z**(1-2k))
    Gamma(x) = Gamma(z)/(w*p)                      for x > 0, without w where p is 1
    Gamma(x) = -pi*p/(sin(pi*w)*Gamma(z))          for x < 0, divided by w where p is 1

The logarithm is a sum of two doubles, which its exponential is not sensitive to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from alkahest.backends.cpu.jit.exponentials import exponential_times
from alkahest.backends.cpu.jit.functions import Function, only
from alkahest.backends.cpu.jit.lanes import MAGIC, Lanes, Value
from alkahest.backends.cpu.jit.logarithms import log
from alkahest.backends.cpu.jit.powers import log_parts
from alkahest.backends.cpu.jit.trigonometry import flipped, sincos

_LOG = Function("log", log)

_FROM = 12

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""``B[2*k]/(2*k*(2*k - 1))``, k from 1 on; at 12 the first term left out is 6e-17."""

_ROOT = (2.5066282746310007, -1.8328579980459167e-16)
"""sqrt(2*pi) as a sum of two."""

_TINY = 2.0**-60
"""Below, gamma is 1/x."""

_HUGE = 2.0**1000
"""Above, the logarithm of gamma is ``x*(log(x) - 1)``."""


class _Parts(NamedTuple):
    """``Gamma(x) = exp(high + low) * (factor + factor_low)``, poles apart."""

    high: Value
    low: Value
    factor: Value
    factor_low: Value
    is_pole: Value


def _parts(b: Lanes, x: Value) -> _Parts:
    zero, one = b.constant(0.0), b.constant(1.0)
    w = b.abs(x)
    is_small = b.compare("olt", w, b.constant(float(_FROM)))
    z = b.select(is_small, b.add(w, b.constant(float(_FROM))), w)
    moved = b.sub(z, b.select(is_small, b.constant(float(_FROM)), zero))
    lost = b.select(is_small, b.sub(w, moved), zero)
    product = b.add(w, one)
    for k in range(2, _FROM):
        product = b.mul(product, b.add(w, b.constant(float(k))))
    product = b.select(is_small, product, one)
    # The logarithm of Gamma(z)/sqrt(2*pi).
    log_high, log_low = log_parts(b, z)
    times = b.sub(z, b.constant(0.5))
    first = b.mul(times, log_high)
    first_low = b.fma(times, log_low, b.fma(times, log_high, b.neg(first)))
    high = b.sub(first, z)
    error = b.sub(b.sub(first, high), z)
    inverse = b.div(one, z)
    series = b.mul(inverse, b.polynomial(b.mul(inverse, inverse), _STIRLING))
    low = b.add(series, b.fma(lost, log_high, b.add(error, first_low)))
    # The factor, by one division.
    is_negative = b.compare("olt", x, zero)
    nearest = b.add(w, b.constant(MAGIC))
    r = b.sub(w, b.intrinsic("llvm.rint", w))
    sine, _ = sincos(b, b.mul(r, b.constant(math.pi)))
    sine = flipped(b, sine, b.to_bits(nearest), 0)
    below = b.select(is_small, one, w)
    above = b.select(is_small, b.mul(product, w), one)
    half_root = -math.sqrt(math.pi / 2)
    top = b.select(is_negative, b.mul(product, b.constant(half_root)), b.constant(_ROOT[0]))
    bottom = b.select(is_negative, b.mul(sine, below), above)
    is_pole = b.logic("and", is_negative, b.compare("oeq", r, zero))
    factor = b.div(top, bottom)
    # What the quotient lacks makes factorials exact; reflected values have larger errors anyway.
    rest = b.add(b.fma(b.neg(factor), bottom, top), b.constant(_ROOT[1]))
    rest = b.mul(b.mul(rest, factor), b.constant(1 / _ROOT[0]))
    is_plain = b.logic("and", b.compare("ogt", x, b.constant(_TINY)), b.compare("ord", rest, rest))
    return _Parts(
        b.select(is_negative, b.neg(high), high),
        b.select(is_negative, b.neg(low), low),
        factor,
        b.select(is_plain, rest, zero),
        is_pole,
    )


def gamma(b: Lanes, x: Value) -> Value:
    """See the module; nan at the negative integers, an infinity at zeros."""
    found = _parts(b, x)
    value = exponential_times(b, found.high, found.low, found.factor, found.factor_low)
    is_tiny = b.compare("olt", b.abs(x), b.constant(_TINY))
    value = b.select(is_tiny, b.div(b.constant(1.0), x), value)
    value = b.select(b.compare("oeq", x, b.constant(math.inf)), x, value)
    is_nan = b.logic("or", found.is_pole, b.compare("oeq", x, b.constant(-math.inf)))
    return b.select(is_nan, b.constant(math.nan), value)


def lgamma(b: Lanes, x: Value) -> Value:
    """``log|factor| + high + low``; infinite at the poles and at both infinities."""
    found = _parts(b, x)
    size = b.abs(x)
    is_tiny = b.compare("olt", size, b.constant(_TINY))
    log_high, log_low = log_parts(b, b.abs(found.factor))
    total = b.add(found.high, log_high)
    part = b.sub(total, found.high)
    lost = b.add(b.sub(found.high, b.sub(total, part)), b.sub(log_high, part))
    value = b.add(total, b.add(lost, b.add(found.low, log_low)))
    log_size = only(b, _LOG, size)
    value = b.select(is_tiny, b.neg(log_size), value)
    # What is left of Stirling's formula; its terms one by one overflow earlier than their sum.
    huge = b.mul(size, b.sub(log_size, b.constant(1.0)))
    value = b.select(b.compare("ogt", size, b.constant(_HUGE)), huge, value)
    is_zero = b.logic(
        "or", b.compare("oeq", x, b.constant(1.0)), b.compare("oeq", x, b.constant(2.0))
    )
    value = b.select(is_zero, b.constant(0.0), value)
    return b.select(found.is_pole, b.constant(math.inf), value)


_SHIFT = 10

_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""``B[2*k]/(2*k)``, k from 1 on, with alternating signs."""


def digamma(b: Lanes, x: Value) -> Value:
    """With w = ``|x|`` and g(w) = digamma(1 + w):

    * x >= 0: ``g(x) - 1/x`` (recurrence);
    * x < 0: ``g(w) + pi*cos(pi*r)/sin(pi*r)``, r = w - rint(w) (reflection, in the form that does
      not subtract the pole at 0); nan at the negative integers.

    g(w) is ``log(z) + 1/(2*z) - sum(B[2k]/(2k) * z**(-2k), k=1..7)`` with z = w from 10 on (the
    first term left out is below 5e-17) and z = w + 10 below, where ``sum(1/(w + k), k=1..10)`` is
    taken off again, as the logarithmic derivative q/p of the product p of its denominators.
    """
    one, zero = b.constant(1.0), b.constant(0.0)
    w = b.abs(x)
    p, q = b.add(w, one), one
    for k in range(2, _SHIFT + 1):
        factor = b.add(w, b.constant(float(k)))
        q = b.fma(q, factor, p)
        p = b.mul(p, factor)
    is_small = b.compare("olt", w, b.constant(float(_SHIFT)))
    z = b.select(is_small, b.add(w, b.constant(float(_SHIFT))), w)
    taken_off = b.select(is_small, b.div(q, p), zero)
    inverse = b.div(one, z)
    square = b.mul(inverse, inverse)
    series = b.mul(b.polynomial(square, _SERIES), square)
    tail = b.fma(inverse, b.constant(0.5), b.neg(series))
    g = b.sub(b.add(only(b, _LOG, z), tail), taken_off)
    is_negative = b.compare("olt", x, zero)
    r = b.sub(w, b.intrinsic("llvm.rint", w))
    sine, cosine = sincos(b, b.mul(r, b.constant(math.pi)))
    top = b.select(is_negative, b.mul(cosine, b.constant(math.pi)), b.constant(-1.0))
    bottom = b.select(is_negative, sine, x)
    value = b.add(g, b.div(top, bottom))
    is_pole = b.logic("and", is_negative, b.compare("oeq", r, zero))
    return b.select(is_pole, b.constant(math.nan), value)
