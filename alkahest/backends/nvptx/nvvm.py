"""What a GPU's own instructions compute, written as LLVM functions for a host.

One function per NVVM intrinsic (``llvm.nvvm.X`` is ``@nvvm.X``) and per piece of inline PTX
(``@nvvm.asm.<first instruction>.<class of its result>``), after the PTX ISA manual:

* conversions to integers saturate; nan becomes 0 for ``f32 -> s32``, else the smallest integer;
* ``rcp.approx.ftz`` and ``rsqrt.approx.ftz`` on doubles give an upper word, the lower one is 0;
* ``.ftz`` flushes subnormal operands and results to zeros of their sign;
* ``.rz`` and ``.rm`` round once, toward zero and downward.
"""

from __future__ import annotations

HOST = """
; ---- words of doubles ----

define internal i32 @nvvm.d2i.lo(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %r = trunc i64 %bits to i32
  ret i32 %r
}
define internal i32 @nvvm.d2i.hi(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %upper = lshr i64 %bits, 32
  %r = trunc i64 %upper to i32
  ret i32 %r
}
define internal double @nvvm.lohi.i2d(i32 %low, i32 %high) alwaysinline {
  %l = zext i32 %low to i64
  %h = zext i32 %high to i64
  %upper = shl i64 %h, 32
  %bits = or i64 %upper, %l
  %r = bitcast i64 %bits to double
  ret double %r
}
define internal double @upper.word(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %upper = and i64 %bits, -4294967296
  %r = bitcast i64 %upper to double
  ret double %r
}

; ---- flushing subnormals ----

define internal double @flush.d(double %a) alwaysinline {
  %size = call double @llvm.fabs.f64(double %a)
  %tiny = fcmp olt double %size, 0x0010000000000000
  %zero = call double @llvm.copysign.f64(double 0.0, double %a)
  %r = select i1 %tiny, double %zero, double %a
  ret double %r
}
define internal float @flush.f(float %a) alwaysinline {
  %size = call float @llvm.fabs.f32(float %a)
  %tiny = fcmp olt float %size, 0x3810000000000000
  %zero = call float @llvm.copysign.f32(float 0.0, float %a)
  %r = select i1 %tiny, float %zero, float %a
  ret float %r
}

; ---- double precision ----

define internal double @nvvm.fabs.f64(double %a) alwaysinline {
  %r = call double @llvm.fabs.f64(double %a)
  ret double %r
}
define internal double @nvvm.round.d(double %a) alwaysinline { ; ties to even
  %r = call double @llvm.rint.f64(double %a)
  ret double %r
}
define internal double @nvvm.add.rn.d(double %a, double %b) alwaysinline {
  %r = fadd double %a, %b
  ret double %r
}
define internal double @nvvm.mul.rn.d(double %a, double %b) alwaysinline {
  %r = fmul double %a, %b
  ret double %r
}
define internal double @nvvm.rcp.approx.ftz.d(double %a) alwaysinline {
  %x = call double @flush.d(double %a)
  %exact = fdiv double 1.0, %x
  %normal = call double @flush.d(double %exact)
  %r = call double @upper.word(double %normal)
  ret double %r
}
define internal double @nvvm.asm.rsqrt.approx.ftz.f64.d(double %a) alwaysinline {
  %x = call double @flush.d(double %a)
  %root = call double @llvm.sqrt.f64(double %x)
  %exact = fdiv double 1.0, %root
  %r = call double @upper.word(double %exact)
  ret double %r
}
define internal double @nvvm.rsqrt.approx.ftz.d(double %a) alwaysinline {
  %r = call double @nvvm.asm.rsqrt.approx.ftz.f64.d(double %a)
  ret double %r
}
define internal double @nvvm.rsqrt.approx.d(double %a) alwaysinline {
  %root = call double @llvm.sqrt.f64(double %a)
  %r = fdiv double 1.0, %root
  ret double %r
}
define internal double @nvvm.asm.setp.equ.f64.d(double %a, double %b, double %x, double %y) alwaysinline {
  %equal = fcmp ueq double %a, %b
  %r = select i1 %equal, double %x, double %y
  ret double %r
}
define internal i32 @nvvm.d2i.rn(double %a) alwaysinline {
  %whole = call double @llvm.rint.f64(double %a)
  %near = call i32 @llvm.fptosi.sat.i32.f64(double %whole)
  %nan = fcmp uno double %a, %a
  %r = select i1 %nan, i32 -2147483648, i32 %near
  ret i32 %r
}
define internal i64 @nvvm.d2ll.rz(double %a) alwaysinline {
  %near = call i64 @llvm.fptosi.sat.i64.f64(double %a)
  %nan = fcmp uno double %a, %a
  %r = select i1 %nan, i64 -9223372036854775808, i64 %near
  ret i64 %r
}

; ---- single precision ----

define internal float @nvvm.fabs.f32(float %a) alwaysinline {
  %r = call float @llvm.fabs.f32(float %a)
  ret float %r
}
define internal float @nvvm.round.f(float %a) alwaysinline { ; ties to even
  %r = call float @llvm.rint.f32(float %a)
  ret float %r
}
define internal float @nvvm.add.rn.f(float %a, float %b) alwaysinline {
  %r = fadd float %a, %b
  ret float %r
}
define internal float @nvvm.asm.sub.rn.f32.f(float %a, float %b) alwaysinline {
  %r = fsub float %a, %b
  ret float %r
}
define internal float @nvvm.mul.rn.f(float %a, float %b) alwaysinline {
  %r = fmul float %a, %b
  ret float %r
}
define internal float @nvvm.div.rn.f(float %a, float %b) alwaysinline {
  %r = fdiv float %a, %b
  ret float %r
}
define internal float @nvvm.sqrt.rn.f(float %a) alwaysinline {
  %r = call float @llvm.sqrt.f32(float %a)
  ret float %r
}
define internal float @nvvm.saturate.f(float %a) alwaysinline { ; to [0, 1], nan to 0
  %positive = fcmp ogt float %a, 0.0
  %low = select i1 %positive, float %a, float 0.0
  %above = fcmp ogt float %low, 1.0
  %r = select i1 %above, float 1.0, float %low
  ret float %r
}
define internal i32 @nvvm.f2i.rn(float %a) alwaysinline {
  %whole = call float @llvm.rint.f32(float %a)
  %r = call i32 @llvm.fptosi.sat.i32.f32(float %whole)
  ret i32 %r
}
define internal i32 @nvvm.f2i.rz(float %a) alwaysinline {
  %r = call i32 @llvm.fptosi.sat.i32.f32(float %a)
  ret i32 %r
}

; ---- approximations in single precision, here accurate ----

define internal float @nvvm.ex2.approx.f32(float %a) alwaysinline {
  %x = fpext float %a to double
  %power = call double @llvm.exp2.f64(double %x)
  %r = fptrunc double %power to float
  ret float %r
}
define internal float @nvvm.ex2.approx.ftz.f32(float %a) alwaysinline {
  %x = call float @flush.f(float %a)
  %power = call float @nvvm.ex2.approx.f32(float %x)
  %r = call float @flush.f(float %power)
  ret float %r
}
define internal float @nvvm.lg2.approx.f(float %a) alwaysinline {
  %x = fpext float %a to double
  %log = call double @llvm.log2.f64(double %x)
  %r = fptrunc double %log to float
  ret float %r
}
define internal float @nvvm.lg2.approx.ftz.f(float %a) alwaysinline {
  %x = call float @flush.f(float %a)
  %log = call float @nvvm.lg2.approx.f(float %x)
  %r = call float @flush.f(float %log)
  ret float %r
}
define internal float @nvvm.rsqrt.approx.f(float %a) alwaysinline {
  %x = fpext float %a to double
  %root = call double @llvm.sqrt.f64(double %x)
  %inverse = fdiv double 1.0, %root
  %r = fptrunc double %inverse to float
  ret float %r
}
define internal float @nvvm.rsqrt.approx.ftz.f(float %a) alwaysinline {
  %x = call float @flush.f(float %a)
  %inverse = call float @nvvm.rsqrt.approx.f(float %x)
  %r = call float @flush.f(float %inverse)
  ret float %r
}
define internal float @nvvm.asm.rcp.approx.ftz.f32.f(float %a) alwaysinline {
  %x = call float @flush.f(float %a)
  %inverse = fdiv float 1.0, %x
  %r = call float @flush.f(float %inverse)
  ret float %r
}
define internal float @nvvm.div.approx.f(float %a, float %b) alwaysinline {
  ; a divisor above 2**126 gives 0, or nan under an infinity
  %quotient = fdiv float %a, %b
  %size = call float @llvm.fabs.f32(float %b)
  %large = fcmp ogt float %size, 0x47D0000000000000
  %finite = fcmp olt float %size, 0x7FF0000000000000
  %lost = and i1 %large, %finite
  %nothing = fmul float %a, 0.0
  %r = select i1 %lost, float %nothing, float %quotient
  ret float %r
}
define internal float @nvvm.div.approx.ftz.f(float %a, float %b) alwaysinline {
  %x = call float @flush.f(float %a)
  %y = call float @flush.f(float %b)
  %quotient = call float @nvvm.div.approx.f(float %x, float %y)
  %r = call float @flush.f(float %quotient)
  ret float %r
}

; ---- directed rounding in single precision, by way of double-double ----

define internal float @rounded(double %sum, double %rest, i1 %down) alwaysinline {
  ; sum + rest, exactly, |rest| within half an ulp of sum: down, or toward zero
  %near = fptrunc double %sum to float
  %wide = fpext float %near to double
  %moved = fsub double %wide, %sum
  %above = fcmp ogt double %moved, %rest
  %below = fcmp olt double %moved, %rest
  %negative = fcmp olt double %sum, 0.0
  %outward = select i1 %negative, i1 %below, i1 %above
  %wrong = select i1 %down, i1 %above, i1 %outward
  %grows = and i1 %down, %negative
  %direction = select i1 %grows, i32 1, i32 -1
  %step = select i1 %wrong, i32 %direction, i32 0
  %bits = bitcast float %near to i32
  %stepped = add i32 %bits, %step
  %r = bitcast i32 %stepped to float
  ret float %r
}
define internal float @rounded.sum(double %a, double %b, i1 %down) alwaysinline {
  %sum = fadd double %a, %b
  %part = fsub double %sum, %a
  %other = fsub double %sum, %part
  %rest.a = fsub double %a, %other
  %rest.b = fsub double %b, %part
  %rest = fadd double %rest.a, %rest.b
  %r = call float @rounded(double %sum, double %rest, i1 %down)
  ret float %r
}
define internal float @nvvm.add.rz.f(float %a, float %b) alwaysinline {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %r = call float @rounded.sum(double %x, double %y, i1 false)
  ret float %r
}
define internal float @nvvm.mul.rz.f(float %a, float %b) alwaysinline {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %product = fmul double %x, %y ; exact
  %r = call float @rounded(double %product, double 0.0, i1 false)
  ret float %r
}
define internal float @rounded.fma(float %a, float %b, float %c, i1 %down) alwaysinline {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %z = fpext float %c to double
  %product = fmul double %x, %y ; exact
  %r = call float @rounded.sum(double %product, double %z, i1 %down)
  ret float %r
}
define internal float @nvvm.fma.rz.f(float %a, float %b, float %c) alwaysinline {
  %r = call float @rounded.fma(float %a, float %b, float %c, i1 false)
  ret float %r
}
define internal float @nvvm.fma.rm.f(float %a, float %b, float %c) alwaysinline {
  %r = call float @rounded.fma(float %a, float %b, float %c, i1 true)
  ret float %r
}

; ---- long integers in words, lowest first ----

define internal { i32, i32 } @nvvm.asm.mad.lo.cc.u32.r(i32 %a, i32 %b, i32 %c) alwaysinline {
  %x = zext i32 %a to i64
  %y = zext i32 %b to i64
  %z = zext i32 %c to i64
  %product = mul i64 %x, %y
  %sum = add i64 %product, %z
  %low = trunc i64 %sum to i32
  %upper = lshr i64 %sum, 32
  %high = trunc i64 %upper to i32
  %first = insertvalue { i32, i32 } undef, i32 %low, 0
  %r = insertvalue { i32, i32 } %first, i32 %high, 1
  ret { i32, i32 } %r
}
define internal i128 @joined(i64 %low, i64 %high) alwaysinline {
  %l = zext i64 %low to i128
  %h = zext i64 %high to i128
  %upper = shl i128 %h, 64
  %r = or i128 %upper, %l
  ret i128 %r
}
define internal { i64, i64 } @split(i128 %a) alwaysinline {
  %low = trunc i128 %a to i64
  %upper = lshr i128 %a, 64
  %high = trunc i128 %upper to i64
  %first = insertvalue { i64, i64 } undef, i64 %low, 0
  %r = insertvalue { i64, i64 } %first, i64 %high, 1
  ret { i64, i64 } %r
}
define internal { i64, i64 } @nvvm.asm.mul.lo.u32.l(i64 %a, i64 %b) alwaysinline {
  %r = call { i64, i64 } @nvvm.asm.mad.lo.cc.u32.l(i64 %a, i64 %b, i64 0)
  ret { i64, i64 } %r
}
define internal { i64, i64 } @nvvm.asm.mad.lo.cc.u32.l(i64 %a, i64 %b, i64 %c) alwaysinline {
  %x = zext i64 %a to i128
  %y = zext i64 %b to i128
  %z = zext i64 %c to i128
  %product = mul i128 %x, %y
  %sum = add i128 %product, %z
  %r = call { i64, i64 } @split(i128 %sum)
  ret { i64, i64 } %r
}
define internal { i64, i64 } @nvvm.asm.add.cc.u32.l(i64 %a, i64 %b, i64 %c, i64 %d) alwaysinline {
  %x = call i128 @joined(i64 %a, i64 %b)
  %y = call i128 @joined(i64 %c, i64 %d)
  %sum = add i128 %x, %y
  %r = call { i64, i64 } @split(i128 %sum)
  ret { i64, i64 } %r
}
define internal { i64, i64 } @nvvm.asm.sub.cc.u32.l(i64 %a, i64 %b, i64 %c, i64 %d) alwaysinline {
  %x = call i128 @joined(i64 %a, i64 %b)
  %y = call i128 @joined(i64 %c, i64 %d)
  %difference = sub i128 %x, %y
  %r = call { i64, i64 } @split(i128 %difference)
  ret { i64, i64 } %r
}

declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.rint.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.exp2.f64(double)
declare double @llvm.log2.f64(double)
declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)
declare float @llvm.rint.f32(float)
declare float @llvm.sqrt.f32(float)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare i32 @llvm.fptosi.sat.i32.f32(float)
"""
"""LLVM assembly to append to a kernel module whose GPU instructions were renamed."""
