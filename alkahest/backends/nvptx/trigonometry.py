"""sin and cos, written as LLVM assembly; see :mod:`alkahest.backends.nvptx.fastmath`."""

from __future__ import annotations

from collections.abc import Callable

from alkahest.backends.nvptx import coefficients as table
from alkahest.backends.nvptx.mathcode import MAGIC, PAIR, SIGN, Code
from alkahest.program.far_angles import TWO_OVER_PI_WORDS


def sincos_near(code: Code) -> None:
    """``{ sin(x), cos(x) }`` from ``x = n*pi/2 + r``, ``n = round(x*2/pi)``.

    ``x - n*p1`` is exact, p1 being pi/2 rounded: the difference is a multiple of 2**-53 (of ulp(x)
    where ``|x| < 1``) and below 1. Two more parts of pi/2 then leave an error of r below an ulp of
    r: up to ``|x| = 2**31`` no double comes nearer to a multiple of pi/2 than 2**-61, and against
    that the part left out, ``n * 2**-160``, is nothing.
    """
    code.fma("%t", "%x", code.constant(table.TWO_OVER_PI), code.constant(MAGIC))
    code.op("%n", "fsub", "%t", code.constant(MAGIC))
    code.fma("%r.1", "%n", code.constant(-table.HALF_PI[0]), "%x")
    code.fma("%r.2", "%n", code.constant(-table.HALF_PI[1]), "%r.1")
    code.fma("%r", "%n", code.constant(-table.HALF_PI[2]), "%r.2")
    code.emit("%quadrant = call i32 @llvm.nvvm.d2i.lo(double %t)")
    _from_quadrant(code)
    _return_pair(code, "%sin", "%cos")


def sin_near(code: Code) -> None:
    """sin(x) from ``x = n*pi + r``, ``n = round(x/pi)``: one polynomial, where the pair takes two.

    The reduction is that of :func:`sincos_near` in units of pi.
    """
    code.fma("%t", "%x", code.constant(table.ONE_OVER_PI), code.constant(MAGIC))
    _over_a_half_turn(code, "%x", "%t", MAGIC)
    code.emit("%turn = shl i32 %whole, 31")
    _return_signed(code)


def cos_near(code: Code) -> None:
    """cos(x) from ``|x| = h*pi + r`` with h the half-odd number near it: minus or plus sin(r).

    A sum with ten binary digits after the point becomes half-odd when these are replaced by those
    of 1/2; what it was rounded by makes ``|r|`` exceed pi/2 by a thousandth.
    """
    magic = MAGIC / 2**_DIGITS
    code.emit("%size.x = call double @llvm.fabs.f64(double %x)")
    code.fma("%t", "%size.x", code.constant(table.ONE_OVER_PI), code.constant(magic))
    code.emit(f"""
        %t.lower = call i32 @llvm.nvvm.d2i.lo(double %t)
        %t.upper = call i32 @llvm.nvvm.d2i.hi(double %t)
        %t.integer = and i32 %t.lower, {-(2**_DIGITS)}
        %t.half = or i32 %t.integer, {2 ** (_DIGITS - 1)}
        %half.odd = call double @llvm.nvvm.lohi.i2d(i32 %t.half, i32 %t.upper)
    """)
    _over_a_half_turn(code, "%size.x", "%half.odd", magic)
    code.emit(f"""
        %turn.back = shl i32 %whole, {31 - _DIGITS}
        %turn = xor i32 %turn.back, {SIGN}
    """)
    _return_signed(code)


_DIGITS = 10


def _over_a_half_turn(code: Code, x: str, multiple: str, magic: float) -> None:
    """``%sine = sin(r)``, ``r = x - multiple*pi``, and ``%whole``, the multiple's lower word."""
    code.op("%n", "fsub", multiple, code.constant(magic))
    code.fma("%r.1", "%n", code.constant(-table.PI[0]), x)
    code.fma("%r.2", "%n", code.constant(-table.PI[1]), "%r.1")
    code.fma("%r", "%n", code.constant(-table.PI[2]), "%r.2")
    code.op("%z", "fmul", "%r", "%r")
    code.polynomial("%p", "%z", table.SINE)
    code.op("%rz", "fmul", "%r", "%z")
    code.fma("%sine", "%rz", "%p", "%r")
    code.emit(f"%whole = call i32 @llvm.nvvm.d2i.lo(double {multiple})")


def _return_signed(code: Code) -> None:
    """Return ``%sine`` with the sign of ``%r``, which it has unless 0, turned by ``%turn``."""
    code.emit(f"""
        %lower = call i32 @llvm.nvvm.d2i.lo(double %sine)
        %upper = call i32 @llvm.nvvm.d2i.hi(double %sine)
        %r.upper = call i32 @llvm.nvvm.d2i.hi(double %r)
        %turned = xor i32 %r.upper, %turn
        %sign = and i32 %turned, {SIGN}
        %size = and i32 %upper, {2**31 - 1}
        %word = or i32 %size, %sign
        %value = call double @llvm.nvvm.lohi.i2d(i32 %lower, i32 %word)
        ret double %value
    """)


def sincos_far(code: Code) -> None:
    """``{ sin(x), cos(x) }`` for ``|x| >= 2**31``; nan for infinities and nan.

    With ``|x| = m * 2**e``, m an integer: those bits of 2/pi are left out whose products are
    multiples of 4, and of the others 192, called W, are enough: ``|x| * 2/pi = m*W * 2**-190``
    modulo 4. Of m*W the upper 128 bits are computed. The two highest, rounded, are the quadrant,
    the others a signed fraction of one, whose first 64 significant bits give r. sin is odd.
    """
    size = len(TWO_OVER_PI_WORDS)
    words = ", ".join(f"i64 {word}" for word in TWO_OVER_PI_WORDS)
    code.before.append(f"@ak.bits = internal addrspace(1) constant [{size} x i64] [{words}]")
    code.emit(f"""
        %bits = bitcast double %x to i64
        %low = and i64 %bits, {2**52 - 1}
        %m = or i64 %low, {2**52}
        %m.wide = zext i64 %m to i128
        %signed = lshr i64 %bits, 52
        %exponent = and i64 %signed, 2047
        %first = sub i64 %exponent, {1075 - 62}
        %word = lshr i64 %first, 6
        %within = and i64 %first, 63
    """)
    for k in range(4):
        code.emit(f"""
            %at.{k} = add i64 %word, {k}
            %to.{k} = getelementptr i64, ptr addrspace(1) @ak.bits, i64 %at.{k}
            %w.{k} = load i64, ptr addrspace(1) %to.{k}, align 8
        """)
    for k in range(3):
        code.emit(f"""
            %v.{k} = call i64 @llvm.fshl.i64(i64 %w.{k}, i64 %w.{k + 1}, i64 %within)
            %v.{k}.wide = zext i64 %v.{k} to i128
            %product.{k} = mul i128 %m.wide, %v.{k}.wide
        """)
    code.emit(f"""
        %upper = shl i128 %product.0, 64
        %lower = lshr i128 %product.2, 64
        %partly = add i128 %upper, %product.1
        %turns = add i128 %partly, %lower
        %rounded = add i128 %turns, {2**125}
        %quadrant.wide = lshr i128 %rounded, 126
        %quadrant = trunc i128 %quadrant.wide to i32
        %fraction = shl i128 %turns, 2
        %size = call i128 @llvm.abs.i128(i128 %fraction, i1 false)
        %zeros = call i128 @llvm.ctlz.i128(i128 %size, i1 false)
        %normal = shl i128 %size, %zeros
        %normal.upper = lshr i128 %normal, 64
        %angle = mul i128 %normal.upper, {table.HALF_PI_WORD}
        %angle.upper = lshr i128 %angle, 64
        %angle.word = trunc i128 %angle.upper to i64
        %r.scaled = uitofp i64 %angle.word to double
        %zeros.word = trunc i128 %zeros to i64
        %r.exponent = sub i64 {1023 - 63}, %zeros.word
        %r.bits = shl i64 %r.exponent, 52
        %r.scale = bitcast i64 %r.bits to double
        %r.size = fmul double %r.scaled, %r.scale
        %fraction.upper = lshr i128 %fraction, 64
        %fraction.word = trunc i128 %fraction.upper to i64
        %fraction.sign = bitcast i64 %fraction.word to double
        %r = call double @llvm.copysign.f64(double %r.size, double %fraction.sign)
    """)
    _from_quadrant(code)
    code.emit("""
        %minus = fneg double %sin
        %is.negative = icmp slt i64 %bits, 0
        %sin.of.x = select i1 %is.negative, double %minus, double %sin
        %nothing = fsub double %x, %x
        %is.nan = fcmp uno double %nothing, %nothing
        %sin.far = select i1 %is.nan, double %nothing, double %sin.of.x
        %cos.far = select i1 %is.nan, double %nothing, double %cos
    """)
    _return_pair(code, "%sin.far", "%cos.far")


def _from_quadrant(code: Code) -> None:
    """``%sin`` and ``%cos`` of ``%quadrant * pi/2 + %r``, ``|r| <= pi/4``.

    sin(r) takes the sign of r even where it is 0. An odd quadrant swaps sine and cosine; its bit 1
    is the sine's sign, bit 1 of the next quadrant the cosine's.
    """
    code.op("%z", "fmul", "%r", "%r")
    code.polynomial("%p", "%z", table.SIN)
    code.op("%rz", "fmul", "%r", "%z")
    code.fma("%sin.r", "%rz", "%p", "%r")
    code.polynomial("%q", "%z", table.COS)
    code.fma("%cos.r", "%z", "%q", code.constant(1.0))
    code.emit(f"""
        %s = call double @llvm.copysign.f64(double %sin.r, double %r)
        %odd = trunc i32 %quadrant to i1
        %sin.size = select i1 %odd, double %cos.r, double %s
        %cos.size = select i1 %odd, double %s, double %cos.r
        %sin.turn = shl i32 %quadrant, 30
        %cos.turn = add i32 %sin.turn, {2**30}
    """)
    for name in ("sin", "cos"):
        code.emit(f"""
            %{name}.lower = call i32 @llvm.nvvm.d2i.lo(double %{name}.size)
            %{name}.upper = call i32 @llvm.nvvm.d2i.hi(double %{name}.size)
            %{name}.flip = and i32 %{name}.turn, {SIGN}
            %{name}.word = xor i32 %{name}.upper, %{name}.flip
            %{name} = call double @llvm.nvvm.lohi.i2d(i32 %{name}.lower, i32 %{name}.word)
        """)


def _return_pair(code: Code, first: str, second: str) -> None:
    code.emit(f"""
        %single = insertvalue {PAIR} poison, double {first}, 0
        %pair = insertvalue {PAIR} %single, double {second}, 1
        ret {PAIR} %pair
    """)


def component(function: str, index: int) -> Callable[[Code], None]:
    """One component of the pair that another function returns."""

    def build(code: Code) -> None:
        code.emit(f"""
            %pair = call {PAIR} @ak.{function}(double %x)
            %value = extractvalue {PAIR} %pair, {index}
            ret double %value
        """)

    return build
