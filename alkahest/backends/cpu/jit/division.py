"""Quotients and roots by multiply-adds, for kernels that would wait for the divider.

A processor with AVX-512 has instructions for reciprocals and inverse roots with 14 bits. Newton's
iteration and one correction make them quotients and roots that are correctly rounded but for a few
operands, within 0.51 ulp. Without it a division gives the reciprocal, which is worth it where several
quotients share it. Where an operand is out of range, the divider does it.
"""

from __future__ import annotations

import math

import attrs

from alkahest.backends.cpu.jit.functions import Function, rarely
from alkahest.backends.cpu.jit.lanes import Lanes, Value, bits


def _approximation(b: Lanes, name: str, x: Value) -> Value:
    full = f"llvm.x86.avx512.{name}.pd.512"
    b.symbols.declarations[full] = f"declare {b.type} @{full}({b.type}, {b.type}, i8)"
    return b.each(f"call {b.type} @{full}({b.type} %s, {b.type} zeroinitializer, i8 -1)", x)


@attrs.frozen
class Reciprocal:
    """Of one divisor, for all its quotients.

    Attributes:
        value: ``1/y`` within an ulp where y is ordinary, an infinity or 0 where it has to be.
        is_rare: an ``i1``: whether some y is subnormal or so large that ``1/y`` is.
    """

    value: Value
    is_rare: str


def _is_extreme(b: Lanes, y: Value) -> Value:
    """Whether ``|y|`` is not from 2**-1021 to 2**1021: one comparison of integers."""
    least = bits(2.0**-1021)
    size = b.iop("and", b.to_bits(y), b.integer(bits(math.inf) | ((1 << 52) - 1)))
    above = b.iop("sub", size, b.integer(least))
    return b.icompare("ugt", above, b.integer(bits(2.0**1021) - least))


def reciprocal(b: Lanes, y: Value) -> Reciprocal:
    """An approximation with 14 bits, and two steps of Newton's iteration; or a division."""
    one, minus = b.constant(1.0), b.neg(y)
    if not b.symbols.target.has_wide_masks:
        return Reciprocal(b.div(one, y), b.any(_is_extreme(b, y)))
    r = _approximation(b, "rcp14", y)
    for _ in range(2):
        r = b.fma(r, b.fma(minus, r, one), r)
    return Reciprocal(r, b.any(_is_extreme(b, y)))


def quotient(b: Lanes, x: Value, y: Value, r: Reciprocal) -> Value:
    """``x/y``: ``q = x*r``, then ``q + (x - q*y)*r``, unless that is nan or 0.

    So it is where x is zero or infinite, or q is: q itself is right then.
    """
    first = b.mul(x, r.value)
    second = b.fma(b.fma(b.neg(first), y, x), r.value, first)
    near = b.select(b.compare("one", second, b.constant(0.0)), second, first)
    before, name = b.label, b.new().removeprefix("%")
    b.branch_rarely(r.is_rare, f"rare.{name}", f"done.{name}")
    b.start(f"rare.{name}")
    chosen = b.select(_is_extreme(b, y), b.div(x, y), near)
    b.jump(f"done.{name}")
    b.start(f"done.{name}")
    return b.phi(b.type, chosen, f"rare.{name}", near, before)


def root(b: Lanes, x: Value) -> Value:
    """``g = x*y`` and ``h = y/2`` from the inverse root y, improved together; g corrected."""
    half = b.constant(0.5)
    y = _approximation(b, "rsqrt14", x)
    g, h = b.mul(x, y), b.mul(y, half)
    for _ in range(2):
        e = b.fma(b.neg(g), h, half)
        g, h = b.fma(g, e, g), b.fma(h, e, h)
    g = b.fma(b.fma(b.neg(g), g, x), h, g)
    least = bits(2.0**-960)
    above = b.iop("sub", b.to_bits(x), b.integer(least))
    unusual = b.icompare("uge", above, b.integer(bits(math.inf) - least))
    return rarely(b, unusual, ROOT_FAR, (x,), g)[0]


ROOT_FAR = Function("root.far", Lanes.sqrt, is_rare=True)

ROOT = Function("root", root)
