"""exp, exp2, expm1 and the hyperbolic functions.

All of them write ``x = n*ln(2) + r`` with the integer n nearest to ``x/ln(2)``. ``high``, the
difference of x and n times the first part of ln(2), is exact; ``low`` is n times the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import MAGIC, Lanes, Value, bits

_ONE = bits(1.0)

_Reduction: TypeAlias = Callable[[Lanes, Value], tuple[Value, Value, Value]]
"""The argument -> p, the shifted n and n, for a result of ``p * 2**n``."""


class _Reduced(NamedTuple):
    """``x = n*ln(2) + high + low``; the lowest bits of ``shifted`` are n, too."""

    shifted: Value
    n: Value
    high: Value
    low: Value


def _reduced(b: Lanes, x: Value) -> _Reduced:
    shifted = b.fma(x, b.constant(table.LOG2_E), b.constant(MAGIC))
    n = b.sub(shifted, b.constant(MAGIC))
    high = b.fma(n, b.constant(-table.LN2[0]), x)
    return _Reduced(shifted, n, high, b.mul(n, b.constant(-table.LN2[1])))


def _clipped(b: Lanes, x: Value, low: float, high: float) -> Value:
    """x between two bounds; nan stays nan."""
    below = b.select(b.compare("olt", b.constant(high), x), b.constant(high), x)
    return b.select(b.compare("ogt", b.constant(low), below), b.constant(low), below)


def _at_most(b: Lanes, x: Value, high: float) -> Value:
    return b.select(b.compare("olt", b.constant(high), x), b.constant(high), x)


def _exponent(b: Lanes, shifted: Value, offset: int = 0) -> Value:
    """The bits of ``2**(n + offset)``, n being in the low bits of ``shifted``."""
    raised = b.iop("shl", b.to_bits(shifted), b.integer(52))
    return b.iop("add", raised, b.integer(_ONE + (offset << 52)))


# exp and exp2


def exp(b: Lanes, x: Value) -> Value:
    """``2**n * (1 + (r + r**2*P(r)))``."""
    return _exponential(b, x, _exp_of_reduced, EXP_FAR)


def exp_precise(b: Lanes, x: Value) -> Value:
    """As :func:`exp`, where ``1 + high`` keeps its rounding error."""
    return _exponential(b, x, _precise_exp_of_reduced, EXP_PRECISE_FAR)


def exp2(b: Lanes, x: Value) -> Value:
    """``2**n * (1 + r*P(r))``, ``x = n + r``; r is exact."""
    return _exponential(b, x, _exp2_of_reduced, EXP2_FAR)


def exp2_precise(b: Lanes, x: Value) -> Value:
    """As exp2; ``r*log(2)`` is a sum of two, and ``1 + r*log(2)`` keeps its rounding error."""
    return _exponential(b, x, _precise_exp2_of_reduced, EXP2_PRECISE_FAR)


_LIMIT = {"exp": 708.0, "exp2": 1021.0}


def _exp_of_reduced(b: Lanes, x: Value) -> tuple[Value, Value, Value]:
    shifted = b.fma(x, b.constant(table.LOG2_E), b.constant(MAGIC))
    n = b.sub(shifted, b.constant(MAGIC))
    r = b.fma(n, b.constant(-table.LN2[0]), x)
    r = b.fma(n, b.constant(-table.LN2[1]), r)
    rest = b.fma(b.mul(r, r), b.polynomial(r, table.EXP), r)
    return b.add(rest, b.constant(1.0)), shifted, n


def _precise_exp_of_reduced(b: Lanes, x: Value) -> tuple[Value, Value, Value]:
    shifted, n, high, low = _reduced(b, x)
    r = b.add(high, low)
    total = b.add(b.constant(1.0), high)
    error = b.sub(high, b.sub(total, b.constant(1.0)))
    rest = b.fma(b.mul(r, r), b.polynomial(r, table.EXP), b.add(low, error))
    return b.add(total, rest), shifted, n


def _exp2_of_reduced(b: Lanes, x: Value) -> tuple[Value, Value, Value]:
    shifted = b.add(x, b.constant(MAGIC))
    n = b.sub(shifted, b.constant(MAGIC))
    r = b.sub(x, n)
    return b.fma(r, b.polynomial(r, table.EXP2), b.constant(1.0)), shifted, n


def _precise_exp2_of_reduced(b: Lanes, x: Value) -> tuple[Value, Value, Value]:
    shifted = b.add(x, b.constant(MAGIC))
    n = b.sub(shifted, b.constant(MAGIC))
    r = b.sub(x, n)
    product = b.mul(r, b.constant(table.LN2[0]))
    lost = b.fma(r, b.constant(table.LN2[0]), b.neg(product))
    lost = b.fma(r, b.constant(table.LN2[1]), lost)
    total = b.add(b.constant(1.0), product)
    error = b.sub(product, b.sub(total, b.constant(1.0)))
    rest = b.fma(b.mul(r, r), b.polynomial(r, table.EXP2[1:]), b.add(error, lost))
    return b.add(total, rest), shifted, n


def _exponential(b: Lanes, x: Value, reduced: _Reduction, far: Function) -> Value:
    if _scales(b):
        p, _, n = reduced(b, _clipped(b, x, -1100.0, 1100.0))
        return _scaled(b, p, n)
    p, shifted, _ = reduced(b, x)
    raised = b.iop("shl", b.to_bits(shifted), b.integer(52))
    near = b.from_bits(b.iop("add", b.to_bits(p), raised))
    is_far = b.compare("ogt", b.abs(x), b.constant(_LIMIT[far.name.split(".")[0]]))
    return rarely(b, is_far, far, (x,), near)[0]


def _far(reduced: _Reduction) -> Callable[[Lanes, Value], Value]:
    """In two steps: ``2**n`` may not be a number where the result is one."""

    def build(b: Lanes, x: Value) -> Value:
        p, _, n = reduced(b, _clipped(b, x, -1100.0, 1100.0))
        return _in_two_steps(b, p, n)

    return build


def _in_two_steps(b: Lanes, p: Value, n: Value) -> Value:
    """``p * 2**n`` by two factors, of which the first product is exact."""
    half = b.add(b.mul(n, b.constant(0.5)), b.constant(MAGIC))
    rest = b.add(b.sub(n, b.sub(half, b.constant(MAGIC))), b.constant(MAGIC))
    for part in (half, rest):
        p = b.mul(p, b.from_bits(_exponent(b, part)))
    return p


def _scales(b: Lanes) -> bool:
    return b.symbols.target.has_wide_masks and b.width == 8


def _scaled(b: Lanes, p: Value, n: Value) -> Value:
    """``p * 2**n``, rounded once, by the instruction of AVX-512 for it."""
    full = "llvm.x86.avx512.mask.scalef.pd.512"
    b.symbols.declarations[full] = (
        f"declare {b.type} @{full}({b.type}, {b.type}, {b.type}, i8, i32 immarg)"
    )
    return b.each(
        f"call {b.type} @{full}({b.type} %s, {b.type} %s, {b.type} zeroinitializer, i8 -1, i32 4)",
        p,
        n,
    )


EXP_FAR = Function("exp.far", _far(_exp_of_reduced), is_rare=True)
EXP_PRECISE_FAR = Function("exp.precise.far", _far(_precise_exp_of_reduced), is_rare=True)
EXP2_PRECISE_FAR = Function("exp2.precise.far", _far(_precise_exp2_of_reduced), is_rare=True)
EXP2_FAR = Function("exp2.far", _far(_exp2_of_reduced), is_rare=True)


# expm1 and the hyperbolic functions


def expm1(b: Lanes, x: Value) -> Value:
    """``2*(2**(n-1) - 1/2 + 2**(n-1)*(high + (high**2*P(high) + low*exp(high))))``.

    The polynomial is that of ``high`` alone, which is exact. Half of the value is computed, since ``2**1024`` is not a number.
    """
    shifted, _, high, low = _reduced(b, _clipped(b, x, -60.0, 709.79))
    scale = b.from_bits(_exponent(b, shifted, -1))
    start = b.sub(scale, b.constant(0.5))
    lost = b.sub(b.sub(scale, start), b.constant(0.5))  # not 0 from 2**53 on
    # 1/2 last, with one rounding: around 1/3 this is a fifth of the result.
    curve = b.fma(high, b.polynomial(high, table.EXPM1), b.constant(0.5))
    square = b.mul(high, high)
    small = b.fma(low, b.fma(square, curve, high), low)
    rest = b.fma(square, curve, small)
    raised = b.mul(scale, high)
    total = b.add(start, raised)
    error = b.add(b.sub(raised, b.sub(total, start)), lost)
    half = b.add(total, b.fma(scale, rest, error))
    return _unless_tiny(b, x, b.add(half, half))


def _unless_tiny(b: Lanes, x: Value, value: Value) -> Value:
    """x itself below 2**-60, where value would lose the last bits of subnormal numbers."""
    return b.select(b.compare("olt", b.abs(x), b.constant(2.0**-60)), x, value)


class _Halves(NamedTuple):
    """For ``x >= 0``: ``sinh(x) = 4*(minus*c + plus*s)``, ``cosh(x) = 4*(plus*c + minus*s)``.

    c = cosh(r) = 1 + ``even``, s = sinh(r) = ``high`` + ``odd``; ``minus`` is ``(2**n - 2**-n)/8``
    and ``plus`` ``(2**n + 2**-n)/8``. From n = 27 on both are rounded to ``2**n/8``, and ``lost`` is
    ``-2**-n/8 * (c - s)``, what ``minus*c + plus*s`` lacks and the other sum has in excess.
    """

    minus: Value
    plus: Value
    lost: Value
    high: Value
    odd: Value
    even: Value


def _halves(b: Lanes, x: Value) -> _Halves:
    shifted, _, high, low = _reduced(b, x)
    r = b.add(high, low)
    z = b.mul(r, r)
    odd = b.fma(b.mul(z, r), b.polynomial(z, table.SINH), low)
    even = b.mul(z, b.polynomial(z, table.COSH))
    raised = _exponent(b, shifted, -3)
    lowered = b.iop("sub", b.integer(2 * _ONE - (6 << 52)), raised)
    lowered = b.iselect(b.icompare("sgt", lowered, b.integer(0)), lowered, b.integer(0))
    up, down = b.from_bits(raised), b.from_bits(lowered)
    minus, plus = b.sub(up, down), b.add(up, down)
    rounded = b.sub(b.sub(up, minus), down)
    lost = b.fma(rounded, b.sub(even, high), rounded)
    return _Halves(minus, plus, lost, high, odd, even)


def _sinh_parts(b: Lanes, h: _Halves) -> tuple[Value, Value]:
    total, rest = _sum(b, h.minus, h.plus, h)
    return total, b.add(rest, h.lost)


def _cosh_parts(b: Lanes, h: _Halves) -> tuple[Value, Value]:
    total, rest = _sum(b, h.plus, h.minus, h)
    return total, b.sub(rest, h.lost)


def _sum(b: Lanes, a: Value, c: Value, h: _Halves) -> tuple[Value, Value]:
    """``a*(1 + even) + c*(high + odd)`` as a sum of two; a is 0 or the larger term."""
    product = b.mul(c, h.high)
    error = b.fma(c, h.high, b.neg(product))
    total = b.add(a, product)
    lost = b.sub(product, b.sub(total, a))
    rest = b.fma(a, h.even, b.fma(c, h.odd, b.add(error, lost)))
    return total, rest


def _normal(b: Lanes, high: Value, low: Value) -> tuple[Value, Value]:
    """The same sum, its first part being the nearest number."""
    total = b.add(high, low)
    return total, b.add(b.sub(high, total), low)


def sinh(b: Lanes, x: Value) -> Value:
    """See :class:`_Halves`; the sign is that of x."""
    h = _halves(b, _at_most(b, b.abs(x), 710.48))
    quarter = b.add(*_sinh_parts(b, h))
    return _unless_tiny(b, x, b.copysign(b.mul(quarter, b.constant(4.0)), x))


def cosh(b: Lanes, x: Value) -> Value:
    """See :class:`_Halves`."""
    h = _halves(b, _at_most(b, b.abs(x), 710.48))
    quarter = b.add(*_cosh_parts(b, h))
    return b.mul(quarter, b.constant(4.0))


def tanh(b: Lanes, x: Value) -> Value:
    """``sinh/cosh``, corrected once; from 22 on it is 1."""
    h = _halves(b, _at_most(b, b.abs(x), 22.0))
    top, top_low = _normal(b, *_sinh_parts(b, h))
    bottom, bottom_low = _normal(b, *_cosh_parts(b, h))
    inverse = b.div(b.constant(1.0), bottom)
    quotient = b.mul(top, inverse)
    rest = b.fma(b.neg(quotient), bottom, top)
    rest = b.add(rest, b.fma(b.neg(quotient), bottom_low, top_low))
    return _unless_tiny(b, x, b.copysign(b.fma(rest, inverse, quotient), x))


def exp_of_two(b: Lanes, x: Value, y: Value) -> Value:
    """``exp(x + y)``, which is ``exp(x)*exp(y)`` without their errors and overflows."""
    total = b.add(x, y)
    part = b.sub(total, x)
    low = b.add(b.sub(x, b.sub(total, part)), b.sub(y, part))
    return exponential_of_sum(b, total, low)


def exponential_of_sum(b: Lanes, high: Value, low: Value) -> Value:
    """``exp(high + low)``, low being tiny; both may be far out of range."""
    return _of_sum(b, EXP_OF_SUM_FAR, high, low)


def exponential_times(b: Lanes, high: Value, low: Value, factor: Value, factor_low: Value) -> Value:
    """``exp(high + low) * (factor + factor_low)``, rounded once; the factor is of ordinary size."""
    return _of_sum(b, EXP_TIMES_FAR, high, low, factor, factor_low)


def _of_sum(b: Lanes, far: Function, high: Value, low: Value, *factor: Value) -> Value:
    p, shifted, n = _exp_of_sum(b, high, low, *factor)
    if _scales(b):
        return _scaled(b, p, n)
    raised = b.iop("shl", b.to_bits(shifted), b.integer(52))
    near = b.from_bits(b.iop("add", b.to_bits(p), raised))
    is_far = b.compare("ogt", b.abs(high), b.constant(700.0))
    return rarely(b, is_far, far, (high, low, *factor), near)[0]


def _exp_of_sum(
    b: Lanes, high: Value, low: Value, factor: Value | None = None, factor_low: Value | None = None
) -> tuple[Value, Value, Value]:
    clipped = _clipped(b, high, -1100.0, 1100.0)
    low = b.select(b.compare("oeq", clipped, high), low, b.constant(0.0))
    shifted, n, first, second = _reduced(b, clipped)
    second = b.add(second, low)
    r = b.add(first, second)
    total = b.add(b.constant(1.0), first)
    error = b.sub(first, b.sub(total, b.constant(1.0)))
    rest = b.fma(b.mul(r, r), b.polynomial(r, table.EXP), b.add(second, error))
    if factor is not None and factor_low is not None:
        product = b.mul(total, factor)
        lost = b.fma(total, factor_low, b.fma(total, factor, b.neg(product)))
        total, rest = product, b.fma(rest, factor, lost)
    return b.add(total, rest), shifted, n


def _of_sum_far(b: Lanes, *operands: Value) -> Value:
    p, _, n = _exp_of_sum(b, *operands)
    return _in_two_steps(b, p, n)


EXP_OF_SUM_FAR = Function("exp.of.sum.far", _of_sum_far, arity=2, is_rare=True)
EXP_TIMES_FAR = Function("exp.times.far", _of_sum_far, arity=4, is_rare=True)
