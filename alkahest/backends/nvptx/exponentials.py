"""exp, exp2 and log, written as LLVM assembly; see :mod:`alkahest.backends.nvptx.fastmath`."""

from __future__ import annotations

from collections.abc import Callable

from alkahest.backends.nvptx import coefficients as table
from alkahest.backends.nvptx.mathcode import (
    MAGIC,
    SIGN,
    Code,
    below,
    bits,
    branch,
    size_is_beyond,
)


def exp_near(code: Code) -> None:
    """exp(x), with the exponent of the result put in by integers."""
    _exp(code)
    _scaled(code, EXP_VANISHES)
    code.emit("ret double %near")


def exp_whole(code: Code) -> None:
    """exp(x) for every x."""
    _exp(code)
    _scaled(code, EXP_VANISHES)
    _scaled_where_far(code, "exp", 760.0)


def _exp(code: Code) -> None:
    """``p * 2**n = exp(x)``, p = exp(r), from ``x = n*ln(2) + r``, n = round(x/ln(2)) in t."""
    code.fma("%t", "%x", code.constant(table.LOG2_E), code.constant(MAGIC))
    code.op("%n", "fsub", "%t", code.constant(MAGIC))
    code.fma("%r.1", "%n", code.constant(-table.LN2[0]), "%x")
    code.fma("%r", "%n", code.constant(-table.LN2[1]), "%r.1")
    code.polynomial("%p", "%r", (1.0, 1.0, *table.EXP))


def exp2_near(code: Code) -> None:
    """2**x, with the exponent of the result put in by integers."""
    _exp2(code)
    _scaled(code, EXP2_VANISHES)
    code.emit("ret double %near")


def exp2_whole(code: Code) -> None:
    """2**x for every x."""
    _exp2(code)
    _scaled(code, EXP2_VANISHES)
    _scaled_where_far(code, "exp2", 1100.0)


def _exp2(code: Code) -> None:
    """``p * 2**n = 2**x``, p = 2**r, from ``x = n + r``, n = round(x) in t; r is exact."""
    code.op("%t", "fadd", "%x", code.constant(MAGIC))
    code.op("%n", "fsub", "%t", code.constant(MAGIC))
    code.op("%r", "fsub", "%x", "%n")
    code.polynomial("%p", "%r", (1.0, *table.EXP2))


EXP_VANISHES, EXP2_VANISHES = -746.0, -1076.0
"""Below these results are 0. Lower words are 0."""


def _scaled(code: Code, vanishes: float) -> None:
    """``%near = p * 2**n`` where that is normal, by adding n to the exponent of p; 0 far below."""
    code.emit("""
        %n.whole = call i32 @llvm.nvvm.d2i.lo(double %t)
        %lower = call i32 @llvm.nvvm.d2i.lo(double %p)
        %upper = call i32 @llvm.nvvm.d2i.hi(double %p)
        %raise = shl i32 %n.whole, 20
        %word = add i32 %upper, %raise
        %scaled = call double @llvm.nvvm.lohi.i2d(i32 %lower, i32 %word)
    """)
    below(code, vanishes)
    code.emit("%near = select i1 %is.below, double 0.0, double %scaled")


def _scaled_where_far(code: Code, name: str, limit: float) -> None:
    """Return ``p * 2**n``: near, or by two multiplications, of which the first is exact.

    From ``limit`` on n makes no sense, but the result is an infinity or 0. A nan has made p one.
    """
    branch(code, name, "done")
    code.emit("""
        %n.1 = ashr i32 %n.whole, 1
        %n.2 = sub i32 %n.whole, %n.1
    """)
    for k in (1, 2):
        code.emit(f"""
            %biased.{k} = add i32 %n.{k}, 1023
            %word.{k} = shl i32 %biased.{k}, 20
            %scale.{k} = call double @llvm.nvvm.lohi.i2d(i32 0, i32 %word.{k})
        """)
    code.op("%half", "fmul", "%p", "%scale.1")
    code.op("%product", "fmul", "%half", "%scale.2")
    code.emit(f"""
        %is.above = fcmp ogt double %x, {limit}
        %not.above = select i1 %is.above, double 0x7FF0000000000000, double %product
        %is.least = fcmp olt double %x, {-limit}
        %far = select i1 %is.least, double 0.0, double %not.above
        br label %done
        done:
        %value = phi double [ %near, %entry ], [ %far, %rare ]
        ret double %value
    """)


_ROOT_HALF = 0x3FE6A09E  # upper word of sqrt(1/2)
_WHOLE = 2.0**52 + 2.0**31


def log_near(code: Code) -> None:
    """log(x) of a positive and normal x."""
    _log(code, "%x", code.constant(_WHOLE))


def log_whole(code: Code) -> None:
    """log(x) for every x; nan below 0.

    A subnormal x counts as ``2**54 * x`` with 54 less in the exponent. Where there is no logarithm
    to compute, the exponent becomes -inf, inf or nan, and with it the result; the rest of the code
    works on the digits of x, whatever they are.
    """
    branch(code, "log", "main")
    code.emit(f"""
        %raised = fmul double %x, {2.0**54}
        %is.zero = fcmp oeq double %x, 0.0
        %for.zero = select i1 %is.zero, double 0x7FF0000000000000, double {_WHOLE + 54}
        %is.infinite = fcmp oeq double %x, 0x7FF0000000000000
        %for.infinite = select i1 %is.infinite, double 0xFFF0000000000000, double %for.zero
        %is.negative = fcmp ult double %x, 0.0
        %whole.far = select i1 %is.negative, double 0x7FF8000000000000, double %for.infinite
        br label %main
        main:
        %digits = phi double [ %x, %entry ], [ %raised, %rare ]
        %whole = phi double [ {_WHOLE}, %entry ], [ %whole.far, %rare ]
    """)
    _log(code, "%digits", "%whole")


def _log(code: Code, x: str, whole: str) -> None:
    """Return ``k*ln(2) + log(1 + f)``, ``x = 2**k * (1 + f)``, 1 + f from sqrt(1/2) to sqrt(2).

    With s = f/(2 + f) and z = s**2: ``log(1 + f) = 2*atanh(s) = f - s*(f - z*P(z))``. The product
    is at most a fifth of the whole, so that s may be off by an ulp or two: an approximate
    reciprocal of 2 + f is good enough after one step of third order, ``y*(1 + e + e**2)`` with
    ``e = 1 - (2 + f)*y``.

    k becomes a double as the lower word of ``2**52 + 2**31 + k``; then ``whole`` is taken off.
    """
    code.emit(f"""
        %upper = call i32 @llvm.nvvm.d2i.hi(double {x})
        %lower = call i32 @llvm.nvvm.d2i.lo(double {x})
        %above = sub i32 %upper, {_ROOT_HALF}
        %exponent = and i32 %above, {-(2**20)}
        %m.word = sub i32 %upper, %exponent
        %m = call double @llvm.nvvm.lohi.i2d(i32 %lower, i32 %m.word)
        %k.whole = ashr i32 %above, 20
        %k.biased = xor i32 %k.whole, {SIGN}
        %k.raised = call double @llvm.nvvm.lohi.i2d(i32 %k.biased, i32 {bits(2.0**52) >> 32})
    """)
    code.op("%k", "fsub", "%k.raised", whole)
    code.op("%f", "fadd", "%m", code.constant(-1.0))
    code.op("%d", "fadd", "%m", code.constant(1.0))
    code.emit("""
        %y.0 = call double @llvm.nvvm.rcp.approx.ftz.d(double %d)
        %d.minus = fneg double %d
    """)
    code.fma("%e", "%d.minus", "%y.0", code.constant(1.0))
    code.fma("%e.2", "%e", "%e", "%e")
    code.fma("%y", "%y.0", "%e.2", "%y.0")
    code.op("%s", "fmul", "%f", "%y")
    code.op("%z", "fmul", "%s", "%s")
    code.polynomial("%p", "%z", table.LOG)
    code.emit("%z.minus = fneg double %z")
    code.fma("%rest", "%z.minus", "%p", "%f")
    code.op("%product", "fmul", "%s", "%rest")
    code.fma("%small", "%k", code.constant(-table.LN2[1]), "%product")
    code.op("%log.m", "fsub", "%f", "%small")
    code.fma("%value", "%k", code.constant(table.LN2[0]), "%log.m")
    code.emit("ret double %value")


def not_moderate(limit: float, vanishes: float) -> Callable[[Code], None]:
    """``|x| >= limit``, an infinity or nan, but where results vanish."""

    def build(code: Code) -> None:
        size_is_beyond(code, limit)
        below(code, vanishes)
        code.emit("""
            %not.below = xor i1 %is.below, true
            %far = and i1 %is.beyond, %not.below
            ret i1 %far
        """)

    return build


def not_positive_and_normal(code: Code) -> None:
    """x is subnormal, zero, negative, an infinity or nan, by one unsigned comparison."""
    code.emit(f"""
        %word = call i32 @llvm.nvvm.d2i.hi(double %x)
        %above = sub i32 %word, {0x00100000}
        %far = icmp uge i32 %above, {0x7FF00000 - 0x00100000}
        ret i1 %far
    """)
