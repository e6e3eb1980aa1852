"""Quotients and square roots as LLVM assembly; see :mod:`alkahest.backends.nvptx.fastmath`.

A GPU has instructions for approximate reciprocals and for those of square roots; what PTX calls
division and square root is code around them. This is cheaper code: with ``d`` the relative error of
the approximation, below 2**-18, the last step rounds a number that is off by d**4.
"""

from __future__ import annotations

from alkahest.backends.nvptx.mathcode import Code


def div_near(code: Code) -> None:
    """``x / y``: a quotient q off by d**2, then ``q + (x - q*y) * r``; r is off by d**2 too.

    Of a quotient of zero the sign is wrong where x is -0 and y is positive; that counts as far.
    """
    code.emit("""
        %rough = call double @llvm.nvvm.rcp.approx.ftz.d(double %y)
        %y.minus = fneg double %y
    """)
    code.fma("%e", "%y.minus", "%rough", code.constant(1.0))
    code.fma("%r", "%rough", "%e", "%rough")
    code.op("%q", "fmul", "%x", "%r")
    code.fma("%rest", "%y.minus", "%q", "%x")
    code.fma("%near", "%rest", "%r", "%q")
    code.emit("ret double %near")


def _is_zero(code: Code) -> None:
    """``%is.zero``: x is +0."""
    code.emit("""
        %zero.lower = call i32 @llvm.nvvm.d2i.lo(double %x)
        %zero.upper = call i32 @llvm.nvvm.d2i.hi(double %x)
        %zero.bits = or i32 %zero.upper, %zero.lower
        %is.zero = icmp eq i32 %zero.bits, 0
    """)


def div_is_far(code: Code) -> None:
    """The operands or the quotient are too large, too small, 0 or nan for the near part.

    Upper words are compared as if they were single precision numbers, which are ordered alike. What
    the near part gives is nan, an infinity or 0 where a reciprocal or a product has left the range;
    ``0*y`` makes it nan where y is so large that its word looks like a nan or an infinity. A small
    x would lose digits of the remainder. Where x is +0 only a nan is in doubt.
    """
    code.emit("%near = call double @ak.div.near(double %x, double %y)")
    for name, value in (("x", "%x"), ("y", "%y"), ("q", "%near")):
        code.emit(f"""
            %{name}.word = call i32 @llvm.nvvm.d2i.hi(double {value})
            %{name}.alike = bitcast i32 %{name}.word to float
        """)
    code.emit(f"""
        %x.size = call float @llvm.nvvm.fabs.f32(float %x.alike)
        %x.least = bitcast i32 {_LEAST_DIVIDEND} to float
        %x.less = fcmp olt float %x.size, %x.least
        %both = call float @llvm.fma.f32(float 0.0, float %y.alike, float %q.alike)
        %both.size = call float @llvm.nvvm.fabs.f32(float %both)
        %q.least = bitcast i32 {_LEAST_NORMAL} to float
    """)
    _is_zero(code)
    code.emit("""
        %not.zero = xor i1 %is.zero, true
        %x.small = and i1 %x.less, %not.zero
        %least = select i1 %is.zero, float -1.0, float %q.least
        %q.small = fcmp ule float %both.size, %least
        %far = or i1 %x.small, %q.small
        ret i1 %far
    """)


_LEAST_DIVIDEND = 0x03600000  # upper word of 2**-969
_LEAST_NORMAL = 0x00100000  # upper word of 2**-1022


def div_far(code: Code) -> None:
    """``x / y``, correctly rounded."""
    code.emit("""
        %value = fdiv double %x, %y
        ret double %value
    """)


def sqrt_near(code: Code) -> None:
    """The square root of x: g and h tend to it and to half its reciprocal (Goldschmidt).

    After one step both are off by ``1.5 * d**2``; the last one is ``g + (x - g*g) * h``. An
    infinity instead of the reciprocal root of +0 is lowered to a number, by which +0 stays itself.
    """
    code.emit(f"""
        %steep = call double @llvm.nvvm.rsqrt.approx.ftz.d(double %x)
        %steep.word = call i32 @llvm.nvvm.d2i.hi(double %steep)
        %rough.word = call i32 @llvm.smin.i32(i32 %steep.word, i32 {0x7FE00000})
        %rough = call double @llvm.nvvm.lohi.i2d(i32 0, i32 %rough.word)
        %half.word = sub i32 %rough.word, {2**20}
        %half = call double @llvm.nvvm.lohi.i2d(i32 0, i32 %half.word)
    """)
    code.op("%g", "fmul", "%x", "%rough")
    code.emit("%g.minus = fneg double %g")
    code.fma("%e", "%g.minus", "%half", code.constant(0.5))
    code.fma("%g.1", "%g", "%e", "%g")
    code.fma("%h.1", "%half", "%e", "%half")
    code.emit("%g.1.minus = fneg double %g.1")
    code.fma("%rest", "%g.1.minus", "%g.1", "%x")
    code.fma("%near", "%rest", "%h.1", "%g.1")
    code.emit("ret double %near")


def sqrt_is_far(code: Code) -> None:
    """x is below 2**-969 but not +0, an infinity or nan, by its upper word and a test for 0."""
    code.emit(f"""
        %word = call i32 @llvm.nvvm.d2i.hi(double %x)
        %above = sub i32 %word, {_LEAST_DIVIDEND}
        %outside = icmp uge i32 %above, {0x7FF00000 - _LEAST_DIVIDEND}
    """)
    _is_zero(code)
    code.emit("""
        %not.zero = xor i1 %is.zero, true
        %far = and i1 %outside, %not.zero
        ret i1 %far
    """)


def sqrt_far(code: Code) -> None:
    """The square root of x, correctly rounded."""
    code.emit("""
        %value = call double @llvm.sqrt.f64(double %x)
        ret double %value
    """)
