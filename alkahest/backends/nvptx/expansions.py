"""Operations that take several instructions; every docstring states the identity that is used.

Each function writes into a :class:`~alkahest.backends.nvptx.block.Block` and returns the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alkahest.backends.nvptx.block import Block


def powi(b: Block, x: str, n: int) -> str:
    """``x**n`` by multiplications (or divisions) for ``|n| <= 4``, else ``sign * pow(|x|, n)``.

    ``pow`` sees the exponent rounded to a double, which loses the parity of large odd integers;
    the sign of the result therefore comes from the exact integer.
    """
    if n == 0:
        return b.constant(1.0)
    if abs(n) <= 4:
        result = x if n > 0 else b.op("fdiv", b.constant(1.0), x)
        for _ in range(abs(n) - 1):
            result = b.op("fmul" if n > 0 else "fdiv", result, x)
        return result
    try:
        exponent = float(n)
    except OverflowError:
        exponent = math.inf if n > 0 else -math.inf
    magnitude = b.intrinsic("llvm.fabs", x)
    power = b.widened(_power_of(exponent), magnitude, only_if=abs(n) > 2**24)
    return power if n % 2 == 0 else b.intrinsic("llvm.copysign", power, x)


def _power_of(exponent: float) -> Callable[[Block, str], str]:
    return lambda b, x: b.library("__nv_pow", x, b.constant(exponent))


def quotient(b: Block, x: str, y: str) -> str:
    """``x / y``, in double precision by :mod:`alkahest.backends.nvptx.quotients`."""
    return b.own("div", x, y) if b.dtype == "float64" else b.op("fdiv", x, y)


def sign(b: Block, x: str) -> str:
    """1 above 0, -1 below 0, x itself where it is nan, else +0."""
    nan_or_zero = b.select(b.compare("uno", x, x), x, b.constant(0.0))
    below = b.select(b.compare("olt", x, b.constant(0.0)), b.constant(-1.0), nan_or_zero)
    return b.select(b.compare("ogt", x, b.constant(0.0)), b.constant(1.0), below)


def mod(b: Block, x: str, y: str) -> str:
    """``r = fmod(x, y)``, which is exact and has the sign of x; ``r + y`` where signs differ.

    A remainder of zero gets the sign of y, as in Python.
    """
    zero = b.constant(0.0)
    remainder = b.library("__nv_fmod", x, y)
    shifted = b.op("fadd", remainder, y)
    negative = b.compare("olt", remainder, zero)
    differs = b.logic("xor", negative, b.compare("olt", y, zero))
    floored = b.select(differs, shifted, remainder)
    is_zero = b.compare("oeq", remainder, zero)
    return b.select(is_zero, b.intrinsic("llvm.copysign", zero, y), floored)


def real_part(b: Block, x: str) -> str:
    """A real number is its own real part and its own conjugate."""
    return x


def imaginary_part(b: Block, x: str) -> str:
    """The imaginary part of a real number is +0."""
    return b.constant(0.0)


def argument(b: Block, x: str) -> str:
    """``atan2(0, x)``: pi where the sign bit is set, else 0; nan stays nan."""
    half_turn = b.intrinsic("llvm.copysign", b.constant(math.pi), x)
    angle = b.select(
        b.compare("olt", half_turn, b.constant(0.0)), b.constant(math.pi), b.constant(0.0)
    )
    return b.select(b.compare("uno", x, x), x, angle)


def select(b: Block, condition: str, x: str, y: str) -> str:
    """LLVM's ``select``: the value not chosen has no effect, not even as a nan."""
    return b.select(condition, x, y)


def negation(b: Block, x: str) -> str:
    """``x xor true``."""
    return b.logic("xor", x, "true")


def lgamma(b: Block, x: str) -> str:
    """libdevice's function, but between -24 and -2 by the recurrence.

    There libdevice uses the reflection formula, whose terms cancel at the zeros: it is wrong by up to
    30 ulps of 1. With f the fraction of x, which is exact, ``lgamma(x) = lgamma(1 + f) - log(p)``
    for the product p of all ``x + k`` below 1, which are exact too; at the poles p is 0.
    """
    one = b.constant(1.0)
    is_between = b.logic(
        "and",
        b.compare("ogt", x, b.constant(-_LGAMMA_FACTORS)),
        b.compare("olt", x, b.constant(-2.0)),
    )
    fraction = b.op("fsub", x, b.intrinsic("llvm.floor", x))
    moved = b.select(is_between, b.op("fadd", one, fraction), x)
    value = b.library("__nv_lgamma", moved)
    return b.branch(
        is_between,
        lambda: b.op("fsub", value, b.shared("lgamma_factors", _log_of_factors, x)),
        lambda: value,
    )


_LGAMMA_FACTORS = 24


def _log_of_factors(b: Block, x: str) -> str:
    """``log|p|``, p the product of all ``x + k`` below 1, for x above ``-_LGAMMA_FACTORS``."""
    one = b.constant(1.0)
    product = x
    for k in range(1, _LGAMMA_FACTORS + 1):
        factor = b.op("fadd", x, b.constant(float(k)))
        counted = b.select(b.compare("olt", factor, one), factor, one)
        product = b.op("fmul", product, counted)
    return b.library("__nv_log", b.intrinsic("llvm.fabs", product))


def digamma(b: Block, x: str) -> str:
    """With w = ``|x|`` and g(w) = digamma(1 + w):

    * x >= 0: ``g(x) - 1/x`` (recurrence);
    * x < 0: ``g(w) + pi*cos(pi*r)/sin(pi*r)``, r = w - rint(w) (reflection, in the form that does
      not subtract the pole at 0); nan at the negative integers.

    g(w) is ``log(z) + 1/(2*z) - sum(B[2k]/(2k) * z**(-2k), k=1..7)`` with z = w from 10 on (the
    first term left out is below 5e-17) and z = w + 10 below, where ``sum(1/(w + k), k=1..10)`` is
    taken off again, as the logarithmic derivative q/p of the product p of its denominators.
    """
    one = b.constant(1.0)
    w = b.intrinsic("llvm.fabs", x)
    p, q = b.op("fadd", w, one), one
    for k in range(2, 11):
        factor = b.op("fadd", w, b.constant(float(k)))
        q = b.op("fadd", b.op("fmul", q, factor), p)
        p = b.op("fmul", p, factor)
    is_small = b.compare("olt", w, b.constant(10.0))
    z = b.select(is_small, b.op("fadd", w, b.constant(10.0)), w)
    taken_off = b.select(is_small, b.op("fdiv", q, p), b.constant(0.0))
    inverse = b.op("fdiv", one, z)
    square = b.op("fmul", inverse, inverse)
    series = b.op("fmul", _polynomial(b, square, _DIGAMMA), square)
    tail = b.intrinsic("llvm.fma", inverse, b.constant(0.5), b.op("fneg", series))
    g = b.op("fsub", b.op("fadd", b.library("__nv_log", z), tail), taken_off)

    def reflected() -> str:
        r = b.op("fsub", w, b.intrinsic("llvm.rint", w))
        sine, cosine = b.library("__nv_sinpi", r), b.library("__nv_cospi", r)
        cotangent = b.op("fdiv", b.op("fmul", b.constant(math.pi), cosine), sine)
        is_pole = b.compare("oeq", r, b.constant(0.0))
        return b.select(is_pole, b.constant(math.nan), b.op("fadd", g, cotangent))

    is_negative = b.compare("olt", x, b.constant(0.0))
    return b.branch(is_negative, reflected, lambda: b.op("fsub", g, b.op("fdiv", one, x)))


_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def j0(b: Block, x: str) -> str:
    """Bessel function J0: C of :func:`_bessel`; even."""
    return _bessel(b, x, "j0", 0, lambda b, x, c, s: c)


def j1(b: Block, x: str) -> str:
    """Bessel function J1: S of :func:`_bessel`; odd."""
    return _bessel(b, x, "j1", 1, lambda b, x, c, s: _where_negative(b, x, b.op("fneg", s), s))


def y0(b: Block, x: str) -> str:
    """Bessel function Y0: S of :func:`_bessel`; nan below 0."""
    return _bessel(b, x, "y0", 0, lambda b, x, c, s: _where_negative(b, x, b.constant(math.nan), s))


def y1(b: Block, x: str) -> str:
    """Bessel function Y1: 0 - C of :func:`_bessel` (+0 at infinity); nan below 0."""

    def pick(b: Block, x: str, c: str, s: str) -> str:
        value = b.op("fsub", b.constant(0.0), c)
        return _where_negative(b, x, b.constant(math.nan), value)

    return _bessel(b, x, "y1", 1, pick)


def _where_negative(b: Block, x: str, value: str, otherwise: str) -> str:
    return b.select(b.compare("olt", x, b.constant(0.0)), value, otherwise)


def _bessel(b: Block, x: str, name: str, order: int, pick: Callable[..., str]) -> str:
    """libdevice's function for small arguments, the asymptotic form from 14 (24) on.

    libdevice reduces ``x - pi/4`` instead of x there and is wrong by up to 3000 ulps of 1. With
    a = cos(x) + sin(x), d = sin(x) - cos(x) and the order's smooth P and Q, nothing is left to
    reduce::

        C = (P*a - Q*d) / sqrt(pi*x)    S = (P*d + Q*a) / sqrt(pi*x)
        J0 = C, Y0 = S of order 0       J1 = S, Y1 = -C of order 1

    Single precision goes through double from 24 on; below, its own function is good to 2 ulps.

    Args:
        b, x: block and operand.
        name: of the function.
        order: 0 or 1.
        pick: ``pick(block, x, C, S)`` gives the value for every x, with C and S of ``|x|``.
    """

    def far(b: Block, x: str) -> str:
        size = b.intrinsic("llvm.fabs", x)
        t = b.op("fdiv", b.constant(_BESSEL_FROM), size)
        u = b.op("fmul", t, t)
        p = _polynomial(b, u, _BESSEL_P[order])
        q = b.op("fdiv", _polynomial(b, u, _BESSEL_Q[order]), size)
        sine, cosine = b.library("__nv_sin", size), b.library("__nv_cos", size)
        a, d = b.op("fadd", cosine, sine), b.op("fsub", sine, cosine)
        c = b.op("fsub", b.op("fmul", p, a), b.op("fmul", q, d))
        s = b.op("fadd", b.op("fmul", p, d), b.op("fmul", q, a))
        root = b.op("fmul", b.intrinsic("llvm.sqrt", size), b.constant(math.sqrt(math.pi)))
        is_infinite = b.compare("oeq", size, b.constant(math.inf))
        scaled = [b.select(is_infinite, b.constant(0.0), b.op("fdiv", w, root)) for w in (c, s)]
        return pick(b, x, *scaled)

    limit = b.constant(_BESSEL_FROM if b.dtype == "float64" else 24.0)
    is_near = b.compare("olt", b.intrinsic("llvm.fabs", x), limit)
    return b.branch(
        is_near, lambda: b.library(f"__nv_{name}", x), lambda: b.shared(f"{name}_far", far, x)
    )


def _polynomial(b: Block, x: str, coefficients: tuple[float, ...]) -> str:
    """``sum(c[k] * x**k)`` by Horner's rule, one rounding a step."""
    value = b.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = b.intrinsic("llvm.fma", value, x, b.constant(coefficient))
    return value


_BESSEL_FROM = 14.0

# P and x*Q of orders 0 and 1 as polynomials in u = (14/x)**2 on [0, 1], interpolated at the 9
# Chebyshev nodes from values of J and Y to 60 digits; largest error 3e-17. With the phase
# chi = x - (2*n + 1)*pi/4: P = sqrt(pi*x/2)*(J*cos(chi) + Y*sin(chi)),
# Q = sqrt(pi*x/2)*(Y*cos(chi) - J*sin(chi)).
_BESSEL_P = (
    (
        1.0,
        -0.00035873724489767574,
        2.919411165035467e-06,
        -7.6034010439748e-08,
        4.115367954943949e-09,
        -3.790541768948531e-10,
        5.119736137180817e-11,
        -7.938791351855897e-12,
        8.57217712719434e-13,
    ),
    (
        1.0,
        0.0005978954081629634,
        -3.7535286424451947e-06,
        8.985838532374837e-08,
        -4.664112840350204e-09,
        4.190074743540739e-10,
        -5.57045750450569e-11,
        8.557746024785574e-12,
        -9.196684763006436e-13,
    ),
)
_BESSEL_Q = (
    (
        -0.12499999999999999,
        0.0003736846300998165,
        -5.911807564668135e-06,
        2.2945939332590417e-07,
        -1.6516979277659695e-08,
        1.895789685009695e-09,
        -3.028823854412712e-10,
        5.249255781691486e-11,
        -6.028997358142931e-12,
    ),
    (
        0.375,
        -0.0005231584821404953,
        7.225542588665478e-06,
        -2.647608965003846e-07,
        1.846034194667395e-08,
        -2.0766915133583646e-09,
        3.2748537142899414e-10,
        -5.632331050782159e-11,
        6.443516868797865e-12,
    ),
)
