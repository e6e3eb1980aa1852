"""Integer powers and the cube root.

Exponents are exact integers of any size. Up to 4 in magnitude a power is multiplied out. A larger
real power is ``pow`` with the parity restored that a double cannot carry; a larger complex power
is squared in double-double arithmetic, because ``exp(n*log(z))`` loses as many digits as ``n`` has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.backends.cpu.complex_kernels import Complex, divide, multiply
from alkahest.backends.cpu.doubled import Doubled, add, subtract, times, two_prod

Array = NDArray[Any]

_LARGEST_MULTIPLIED = 4
_EXACT_INTEGERS = 2**53
_EXPONENT_LIMIT = 2**50
"""Binary exponents saturate here: far outside every format, and doubling stays inside int64."""


def real_pow(a: Array, b: Array, out: Array) -> None:
    """``a**b`` as IEEE 754 has it, whether ``b`` is one number for all points or a column."""
    if b.size and not any(b.strides) and b.flat[0] == 0.5:
        # NumPy takes the square root then, which keeps -0 and has nan for -inf.
        b = np.full(out.shape, b.flat[0])
    np.power(a, b, out)


def real_powi(n: int, a: Array, out: Array) -> None:
    """``a**n``; 1 for n = 0 whatever ``a`` is."""
    if abs(n) <= _LARGEST_MULTIPLIED:
        _multiplied_out(n, a, out)
    elif abs(n) <= _EXACT_INTEGERS:
        np.power(a, float(n), out)
    else:
        magnitude = _huge_power(n, np.absolute(a))
        out[...] = np.copysign(magnitude, a) if n % 2 else magnitude


def _multiplied_out(n: int, a: Array, out: Array) -> None:
    if n == 0:
        out[...] = 1.0
    elif n == 1:
        out[...] = a
    elif n == 4:
        square = a * a
        np.multiply(square, square, out)
    else:
        # A negative power divides again and again: 1/(a*a) would overflow or underflow early.
        step = np.multiply if n > 0 else np.divide
        power = a if n > 0 else 1.0 / a
        for _ in range(abs(n) - 2):
            power = step(power, a)
        if n == -1:
            out[...] = power
        else:
            step(power, a, out)


def _huge_power(n: int, magnitude: Array) -> Array:
    """``magnitude**n`` for an ``n`` that is not a double: the rounded part, then the rest."""
    try:
        head = float(n)
    except OverflowError:
        return np.asarray(np.power(magnitude, np.inf if n > 0 else -np.inf))
    power = np.power(magnitude, head)
    rest = np.power(magnitude, float(n - int(head)))
    finite = np.isfinite(power) & (power != 0)
    return np.where(finite, power * rest, power)


def complex_powi(n: int, z: Complex, out: Complex) -> None:
    """``z**n``, within a few units in the last place of ``|z**n|`` for ``|n|`` below 2**40."""
    if abs(n) <= _LARGEST_MULTIPLIED:
        result = _by_squaring(abs(n), z)
        if n < 0:
            divide(np.ones_like(z), result, result)
    else:
        ordinary = np.isfinite(z) & (z != 0)
        result = np.empty_like(z)
        result[ordinary] = _doubled_power(n, z[ordinary])
        rest = _by_squaring(abs(n), z[~ordinary])
        if n < 0:
            divide(np.ones_like(rest), rest, rest)
        result[~ordinary] = rest
    out[...] = result


def _by_squaring(n: int, z: Complex) -> Complex:
    result = np.ones_like(z)
    base = z.copy()
    first = True
    while n:
        if n & 1:
            if first:
                result[...] = base
                first = False
            else:
                multiply(result, base, result)
        n >>= 1
        if n:
            multiply(base, base, base)
    return result


class _Scaled:
    """Complex numbers ``(re + i im) * 2**exponent``, ``re`` and ``im`` double-double, |.| near 1."""

    def __init__(self, re: Doubled, im: Doubled, exponent: Array) -> None:
        _, shift = np.frexp(np.hypot(re.high, im.high) * np.sqrt(2.0))
        shift -= 1  # 1 stays 1 with exponent 0, so that powers of units need no exponent
        self.re = re.scaled(-shift)
        self.im = im.scaled(-shift)
        self.exponent = np.clip(exponent + shift, -_EXPONENT_LIMIT, _EXPONENT_LIMIT)

    def __mul__(self, other: _Scaled) -> _Scaled:
        re = subtract(times(self.re, other.re), times(self.im, other.im))
        im = add(times(self.re, other.im), times(self.im, other.re))
        return _Scaled(re, im, self.exponent + other.exponent)


def _doubled_power(n: int, z: Complex) -> Complex:
    _, scale = np.frexp(np.maximum(np.absolute(z.real), np.absolute(z.imag)))
    re, im = np.ldexp(z.real, -scale), np.ldexp(z.imag, -scale)
    base = _Scaled(Doubled.of(re), Doubled.of(im), scale.astype(np.int64))
    power: _Scaled | None = None
    bits = abs(n)
    while bits:
        if bits & 1:
            power = base if power is None else power * base
        bits >>= 1
        if bits:
            base = base * base
    if power is None:
        raise AssertionError("exponent 0 is multiplied out")
    result = np.empty_like(z)
    result.real, result.imag = power.re.high, power.im.high
    exponent = power.exponent
    if n < 0:
        divide(np.ones_like(result), result, result)
        exponent = -exponent
    shift = np.clip(exponent, -5000, 5000).astype(np.int32)
    scaled = np.empty_like(z)
    scaled.real, scaled.imag = np.ldexp(result.real, shift), np.ldexp(result.imag, shift)
    return scaled


def cbrt(a: Array, out: Array) -> None:
    """Real cube root, corrected once: the C library's alone may be off by more than 3 ulp."""
    shift = np.where(np.absolute(a) > 1.0, -600, 600)  # a multiple of 3, keeps y**3 in range
    shift[(np.absolute(a) > 1e-150) & (np.absolute(a) < 1e150)] = 0
    scaled = np.ldexp(a, shift)
    y = np.cbrt(scaled)
    square, square_error = two_prod(y, y)
    cube, cube_error = two_prod(square, y)
    residual = (scaled - cube) - cube_error - square_error * y
    correction = residual / (3.0 * square)
    ordinary = np.isfinite(a) & (a != 0)
    out[...] = np.ldexp(np.where(ordinary, y + correction, y), -shift // 3)
