"""Operations of a few instructions; every docstring states the identity that is used.

Each function writes into :class:`~alkahest.backends.cpu.jit.lanes.Lanes` and returns the result.
"""

from __future__ import annotations

import math

from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import Lanes, Value


def sign(b: Lanes, x: Value) -> Value:
    """1 above 0, -1 below 0, x itself where it is nan, else +0."""
    nan_or_zero = b.select(b.compare("uno", x, x), x, b.constant(0.0))
    below = b.select(b.compare("olt", x, b.constant(0.0)), b.constant(-1.0), nan_or_zero)
    return b.select(b.compare("ogt", x, b.constant(0.0)), b.constant(1.0), below)


def mod(b: Lanes, x: Value, y: Value) -> Value:
    """``r = x - q*y``, q the quotient rounded down, which is exact; y is added where signs differ.

    Of magnitudes with a quotient below 2**52, ``trunc(|x|/|y|)`` is at most one too large, so that
    one fused multiply-add gives the remainder of the C library's fmod, or that minus ``|y|``. The
    rest is for :func:`_fmod`. A remainder of zero gets the sign of y, as in Python.
    """
    zero = b.constant(0.0)
    size, step = b.abs(x), b.abs(y)
    quotient = b.div(size, step)
    r = b.fma(b.neg(b.intrinsic("llvm.trunc", quotient)), step, size)
    r = b.select(b.compare("olt", r, zero), b.add(r, step), r)
    inside = b.logic(
        "and",
        b.compare("olt", quotient, b.constant(2.0**52)),
        b.compare("ogt", step, b.constant(2.0**-900)),
    )
    inside = b.logic("and", inside, b.compare("ord", r, r))  # not for an infinite step
    r = rarely(b, b.inverted(inside), FMOD, (size, step), r)[0]
    # Now of x, and then of the sign of y.
    remainder = b.copysign(r, x)
    shifted = b.add(remainder, y)
    differs = b.logic("xor", b.compare("olt", remainder, zero), b.compare("olt", y, zero))
    floored = b.select(differs, shifted, remainder)
    is_zero = b.compare("oeq", remainder, zero)
    return b.select(is_zero, b.copysign(zero, y), floored)


def _fmod(b: Lanes, x: Value, y: Value) -> Value:
    return b.library("fmod", x, y)


FMOD = Function("fmod", _fmod, arity=2, is_rare=True)
MOD = Function("mod", mod, arity=2)


def same(b: Lanes, x: Value) -> Value:
    """A real number is its own real part and its own conjugate."""
    return x


def zero(b: Lanes, x: Value) -> Value:
    """The imaginary part of a real number is +0."""
    return b.constant(0.0)


def angle(b: Lanes, x: Value) -> Value:
    """``atan2(0, x)``: pi where the sign bit is set, else 0; nan stays nan."""
    half_turn = b.copysign(b.constant(1.0), x)
    is_left = b.compare("olt", half_turn, b.constant(0.0))
    found = b.select(is_left, b.constant(math.pi), b.constant(0.0))
    return b.select(b.compare("uno", x, x), x, found)
