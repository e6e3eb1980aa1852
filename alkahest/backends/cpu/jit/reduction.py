"""Large arguments of circular functions, modulo pi/2 (Payne and Hanek 1983).

With ``|x| = m * 2**e``, m an integer, those bits of 2/pi are left out whose products with it are
multiples of 4; of the others 192 are enough: their product with m has the quadrant in its two
highest bits and the fraction of a quadrant in the next 126.
"""

from __future__ import annotations

from alkahest.backends.cpu.jit import coefficients as table
from alkahest.backends.cpu.jit.lanes import Lanes, Value
from alkahest.program.far_angles import TWO_OVER_PI_WORDS

_NAME = "ak.reduced"
_RESULT = "{ i64, double, double }"


def reduced_far(b: Lanes, x: Value) -> tuple[Value, Value, Value]:
    """Quadrant, and what is left as a sum of two, for ``|x| >= 2**30``; nan for infinite x.

    The lanes are worked on one after the other: such arguments are rare.
    """
    _define(b)
    kinds = ((b.integers, "i64"), (b.type, "double"), (b.type, "double"))
    results: list[list[str]] = [[], [], []]
    for vector in x:
        found = ["poison"] * 3
        for lane in range(b.width):
            (item,) = b.each(f"extractelement {b.type} %s, i32 {lane}", (vector,))
            (parts,) = b.each(f"call {_RESULT} @{_NAME}(double %s)", (item,))
            for k, (kind, scalar) in enumerate(kinds):
                (part,) = b.each(f"extractvalue {_RESULT} %s, {k}", (parts,))
                (found[k],) = b.each(
                    f"insertelement {kind} %s, {scalar} %s, i32 {lane}", (found[k],), (part,)
                )
        for result, vector_found in zip(results, found, strict=True):
            result.append(vector_found)
    return tuple(results[0]), tuple(results[1]), tuple(results[2])


def _define(b: Lanes) -> None:
    symbols = b.symbols
    if _NAME in symbols.functions:
        return
    size = len(TWO_OVER_PI_WORDS)
    words = ", ".join(f"i64 {word}" for word in TWO_OVER_PI_WORDS)
    symbols.globals["ak.bits"] = f"@ak.bits = internal constant [{size} x i64] [{words}], align 64"
    for name, kinds in _INTRINSICS.items():
        symbols.declarations[name] = (
            f"declare {kinds.partition(' ')[0]} @{name}({kinds.partition(' ')[2]})"
        )
    lines = [f"define internal {_RESULT} @{_NAME}(double %x) noinline cold nounwind {{", "entry:"]
    lines += _HEAD.splitlines()
    for k in range(4):
        lines += [
            f"  %at.{k} = add i64 %word, {k}",
            f"  %to.{k} = getelementptr i64, ptr @ak.bits, i64 %at.{k}",
            f"  %w.{k} = load i64, ptr %to.{k}, align 8",
        ]
    for k in range(3):
        lines += [
            f"  %v.{k} = call i64 @llvm.fshl.i64(i64 %w.{k}, i64 %w.{k + 1}, i64 %within)",
            f"  %v.{k}.wide = zext i64 %v.{k} to i128",
            f"  %product.{k} = mul i128 %m.wide, %v.{k}.wide",
        ]
    lines += [*_TAIL.splitlines(), "}"]
    symbols.functions[_NAME] = "\n".join(lines)


_INTRINSICS = {
    "llvm.fshl.i64": "i64 i64, i64, i64",
    "llvm.abs.i128": "i128 i128, i1",
    "llvm.ctlz.i128": "i128 i128, i1",
    "llvm.copysign.f64": "double double, double",
    "llvm.fabs.f64": "double double",
}

# Arguments that are small after all read the first words: their result is not used.
_HEAD = f"""\
  %bits = bitcast double %x to i64
  %low = and i64 %bits, {2**52 - 1}
  %m = or i64 %low, {2**52}
  %m.wide = zext i64 %m to i128
  %signed = lshr i64 %bits, 52
  %exponent = and i64 %signed, 2047
  %is.large = icmp uge i64 %exponent, 1053
  %used = select i1 %is.large, i64 %exponent, i64 1053
  %first = sub i64 %used, {1075 - 62}
  %word = lshr i64 %first, 6
  %within = and i64 %first, 63"""

# r is the fraction's first 64 significant bits times pi/2: 63 bits of that as a double, and the
# difference from it.
_TAIL = f"""\
  %upper = shl i128 %product.0, 64
  %lower = lshr i128 %product.2, 64
  %partly = add i128 %upper, %product.1
  %turns = add i128 %partly, %lower
  %rounded = add i128 %turns, {2**125}
  %quadrant.wide = lshr i128 %rounded, 126
  %quadrant.size = trunc i128 %quadrant.wide to i64
  %fraction = shl i128 %turns, 2
  %size = call i128 @llvm.abs.i128(i128 %fraction, i1 false)
  %zeros = call i128 @llvm.ctlz.i128(i128 %size, i1 false)
  %normal = shl i128 %size, %zeros
  %normal.upper = lshr i128 %normal, 64
  %angle = mul i128 %normal.upper, {table.HALF_PI_WORD}
  %angle.upper = lshr i128 %angle, 65
  %angle.word = trunc i128 %angle.upper to i64
  %r.scaled = sitofp i64 %angle.word to double
  %r.whole = fptosi double %r.scaled to i64
  %r.missing = sub i64 %angle.word, %r.whole
  %low.scaled = sitofp i64 %r.missing to double
  %zeros.word = trunc i128 %zeros to i64
  %r.exponent = sub i64 {1023 - 62}, %zeros.word
  %r.bits = shl i64 %r.exponent, 52
  %r.scale = bitcast i64 %r.bits to double
  %r.size = fmul double %r.scaled, %r.scale
  %low.size = fmul double %low.scaled, %r.scale
  %fraction.upper = lshr i128 %fraction, 64
  %fraction.word = trunc i128 %fraction.upper to i64
  %sign.word = xor i64 %fraction.word, %bits
  %is.minus = icmp slt i64 %sign.word, 0
  %r.minus = fneg double %r.size
  %low.minus = fneg double %low.size
  %r = select i1 %is.minus, double %r.minus, double %r.size
  %low.part = select i1 %is.minus, double %low.minus, double %low.size
  %quadrant.minus = sub i64 0, %quadrant.size
  %is.negative = icmp slt i64 %bits, 0
  %quadrant = select i1 %is.negative, i64 %quadrant.minus, i64 %quadrant.size
  %nothing = fsub double %x, %x
  %r.checked = fadd double %r, %nothing
  %first.part = insertvalue {_RESULT} poison, i64 %quadrant, 0
  %second.part = insertvalue {_RESULT} %first.part, double %r.checked, 1
  %third.part = insertvalue {_RESULT} %second.part, double %low.part, 2
  ret {_RESULT} %third.part"""
