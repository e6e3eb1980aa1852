"""Writing arithmetic on vectors as LLVM assembly.

A :class:`Lanes` writes straight-line code on values that are several vectors at once: a value is a
tuple of ``copies`` operands, and every operation is written once for each. Independent vectors
fill the time that one would spend waiting for its own results.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import attrs

from alkahest.backends.cpu.jit.host import HostTarget

Value: TypeAlias = tuple[str, ...]
"""One operand for each of the vectors that are worked on together."""

MAGIC = 1.5 * 2.0**52
"""``x + MAGIC`` rounds x to an integer, in the low bits of the sum, for ``|x| < 2**51``."""


MASK = 2**64 - 1


def bits(value: float) -> int:
    """The representation of a double."""
    representation: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return representation


def single(value: float) -> float:
    """The nearest number of single precision."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


@attrs.define
class Symbols:
    """What a module holds besides its kernel.

    Attributes:
        target: processor.
        declarations: name -> declaration of an intrinsic or an external function.
        external: names of the external functions among them, in order of first use.
        globals: name -> definition of a constant table.
        functions: name -> definition, its linkage left open.
        calls: name of a function -> how many calls of it were written.
    """

    target: HostTarget
    declarations: dict[str, str] = attrs.field(factory=dict)
    external: dict[str, None] = attrs.field(factory=dict)
    globals: dict[str, str] = attrs.field(factory=dict)
    functions: dict[str, str] = attrs.field(factory=dict)
    calls: dict[str, int] = attrs.field(factory=dict)


class Lanes:
    """Code on vectors of one floating-point type.

    Attributes:
        symbols: of the module.
        width: numbers in a vector.
        copies: vectors in a value.
        scalar: ``double`` or ``float``.
        lines: the code so far.
        label: of the block that is being written.
        is_rare: whether all of the code is hardly ever run.
    """

    def __init__(
        self,
        symbols: Symbols,
        width: int,
        copies: int,
        scalar: str = "double",
        label: str = "entry",
    ) -> None:
        self.symbols, self.width, self.copies, self.scalar = symbols, width, copies, scalar
        is_double = scalar == "double"
        self.type = f"<{width} x {scalar}>"
        self.integers = f"<{width} x {'i64' if is_double else 'i32'}>"
        self.mask = f"<{width} x i1>"
        self.suffix = f"v{width}{'f64' if is_double else 'f32'}"
        self.lines: list[str] = []
        self.label = label
        self.is_rare = False
        self._count = itertools.count(1)

    # Names and literals

    def new(self) -> str:
        """A name for a result."""
        return f"%t{next(self._count)}"

    def constant(self, value: float) -> Value:
        """``value`` in every lane; single precision literals are written as doubles, too."""
        if self.scalar == "float":
            value = single(value)
        return (f"splat ({self.scalar} 0x{bits(value) & MASK:016X})",) * self.copies

    def integer(self, value: int) -> Value:
        """An integer as wide as the numbers, in every lane."""
        kind = "i64" if self.scalar == "double" else "i32"
        return (f"splat ({kind} {value})",) * self.copies

    def truth(self, value: bool) -> Value:
        """A truth value in every lane."""
        return (f"splat (i1 {str(value).lower()})",) * self.copies

    # Instructions

    def line(self, text: str) -> None:
        """A line as it stands."""
        self.lines.append(text)

    def each(self, template: str, *operands: Sequence[str]) -> Value:
        """An instruction for each copy; ``template`` has a ``%s`` for each operand."""
        results = []
        for found in zip(*operands, strict=True):
            name = self.new()
            self.lines.append(f"  {name} = {template % found}")
            results.append(name)
        return tuple(results)

    def fetch(self, addresses: Value, ahead: int) -> None:
        """Have memory that is read soon brought into the cache, ``ahead`` bytes behind addresses."""
        name = "llvm.prefetch.p0"
        self.symbols.declarations[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        for place in self.each(f"getelementptr i8, ptr %s, i64 {ahead}", addresses):
            # To read, into all levels, data.
            self.line(f"  call void @{name}(ptr {place}, i32 0, i32 3, i32 1)")

    def op(self, opcode: str, a: Value, b: Value) -> Value:
        """An instruction on two vectors of numbers."""
        return self._side_by_side(self.each(f"{opcode} {self.type} %s, %s", a, b))

    def _side_by_side(self, result: Value) -> Value:
        """A result whose copies stay together.

        Where operands and constants outnumber the registers, LLVM's scheduler would compute one copy
        after the other. It moves nothing across this use, which is no instruction.
        """
        if self.copies > 1:
            self.symbols.declarations["llvm.fake.use"] = "declare void @llvm.fake.use(...)"
            self.lines.append(f"  call void (...) @llvm.fake.use({self.type} {result[-1]})")
        return result

    def add(self, a: Value, b: Value) -> Value:
        return self.op("fadd", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.op("fsub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.op("fmul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.op("fdiv", a, b)

    def neg(self, a: Value) -> Value:
        return self.each(f"fneg {self.type} %s", a)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """An LLVM intrinsic whose operands and result are all of the vector's type."""
        full = f"{name}.{self.suffix}"
        kinds = ", ".join([self.type] * len(operands))
        self.symbols.declarations[full] = f"declare {self.type} @{full}({kinds})"
        arguments = ", ".join([f"{self.type} %s"] * len(operands))
        return self._side_by_side(self.each(f"call {self.type} @{full}({arguments})", *operands))

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """``a*b + c`` with one rounding."""
        return self.intrinsic("llvm.fma", a, b, c)

    def abs(self, a: Value) -> Value:
        return self.intrinsic("llvm.fabs", a)

    def copysign(self, size: Value, sign: Value) -> Value:
        return self.intrinsic("llvm.copysign", size, sign)

    def sqrt(self, a: Value) -> Value:
        return self.intrinsic("llvm.sqrt", a)

    # Truth values

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.each(f"fcmp {predicate} {self.type} %s, %s", a, b)

    def logic(self, opcode: str, a: Value, b: Value) -> Value:
        return self.each(f"{opcode} {self.mask} %s, %s", a, b)

    def inverted(self, a: Value) -> Value:
        return self.logic("xor", a, self.truth(True))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where the condition holds, else ``b``."""
        return self.each(f"select {self.mask} %s, {self.type} %s, {self.type} %s", condition, a, b)

    # Representations

    def to_bits(self, a: Value) -> Value:
        return self.each(f"bitcast {self.type} %s to {self.integers}", a)

    def from_bits(self, a: Value) -> Value:
        return self.each(f"bitcast {self.integers} %s to {self.type}", a)

    def iop(self, opcode: str, a: Value, b: Value) -> Value:
        """An instruction on two vectors of integers."""
        return self.each(f"{opcode} {self.integers} %s, %s", a, b)

    def icompare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.each(f"icmp {predicate} {self.integers} %s, %s", a, b)

    def iselect(self, condition: Value, a: Value, b: Value) -> Value:
        return self.each(
            f"select {self.mask} %s, {self.integers} %s, {self.integers} %s", condition, a, b
        )

    # Blocks

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def any(self, condition: Value) -> str:
        """Whether the condition holds in any lane of any copy, as one ``i1``."""
        joined = condition[0]
        for other in condition[1:]:
            (joined,) = self.each(f"or {self.mask} %s, %s", (joined,), (other,))
        (word,) = self.each(f"bitcast {self.mask} %s to i{self.width}", (joined,))
        (found,) = self.each(f"icmp ne i{self.width} %s, 0", (word,))
        return found

    def branch_rarely(self, condition: str, rare: str, usual: str) -> None:
        """To the block ``rare`` where an ``i1`` holds, which it hardly ever does."""
        weights = "" if self.is_rare else ", !prof !0"
        self.lines.append(f"  br i1 {condition}, label %{rare}, label %{usual}{weights}")

    def phi(self, kind: str, first: Value, first_label: str, second: Value, label: str) -> Value:
        """What came from the one or the other block."""
        return self.each(f"phi {kind} [ %s, %%{first_label} ], [ %s, %%{label} ]", first, second)

    # Longer steps

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """``sum(c[k] * x**k)``: fours by Estrin's scheme, joined by Horner's rule in ``x**4``."""
        return self.joined(x, [self.constant(c) for c in coefficients])

    def joined(self, x: Value, c: Sequence[Value]) -> Value:
        """:meth:`polynomial` with values for coefficients."""
        if len(c) == 1:
            return c[0]
        square = self.mul(x, x) if len(c) > 2 else x
        fourth = self.mul(square, square) if len(c) > 4 else x
        groups = []
        for start in range(0, len(c), 4):
            part = c[start : start + 4]
            low = self.fma(x, part[1], part[0]) if len(part) > 1 else part[0]
            if len(part) > 2:
                high = self.fma(x, part[3], part[2]) if len(part) > 3 else part[2]
                low = self.fma(square, high, low)
            groups.append(low)
        total = groups[-1]
        for group in reversed(groups[:-1]):
            total = self.fma(total, fourth, group)
        return total

    def horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        """``sum(c[k] * x**k)``, one multiply-add a step: the fewest instructions."""
        total = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, self.constant(coefficient))
        return total

    # Tables

    def lookup(self, name: str, table: Sequence[float], index: Value) -> Value:
        """Entries of a table of 16 numbers; of the index the four lowest bits count."""
        if self.symbols.target.has_wide_masks and self.width == 8:
            halves = []
            for part in (table[:8], table[8:]):
                items = ", ".join(f"double 0x{bits(x) & MASK:016X}" for x in part)
                halves.append((f"<{items}>",) * self.copies)
            full = "llvm.x86.avx512.vpermi2var.pd.512"
            self.symbols.declarations[full] = (
                f"declare {self.type} @{full}({self.type}, {self.integers}, {self.type})"
            )
            return self.each(
                f"call {self.type} @{full}({self.type} %s, {self.integers} %s, {self.type} %s)",
                halves[0],
                index,
                halves[1],
            )
        items = ", ".join(f"double 0x{bits(x) & MASK:016X}" for x in table)
        self.symbols.globals[name] = (
            f"@{name} = internal constant [{len(table)} x double] [{items}], align 64"
        )
        within = self.iop("and", index, self.integer(len(table) - 1))
        results = []
        for vector in within:
            found = "poison"
            for lane in range(self.width):
                (k,) = self.each(f"extractelement {self.integers} %s, i32 {lane}", (vector,))
                (at,) = self.each(f"getelementptr double, ptr @{name}, i64 %s", (k,))
                (x,) = self.each("load double, ptr %s, align 8", (at,))
                (found,) = self.each(
                    f"insertelement {self.type} %s, double %s, i32 {lane}", (found,), (x,)
                )
            results.append(found)
        return tuple(results)

    # Single precision

    def widened(self, operands: Sequence[Value]) -> tuple[Lanes, list[Value]]:
        """The same code with two vectors of doubles for each of floats, and the operands so."""
        half = self.width // 2
        wide = Lanes(self.symbols, half, 2 * self.copies)
        wide.lines, wide._count = self.lines, self._count
        results = []
        for operand in operands:
            parts: list[str] = []
            for vector in operand:
                for start in (0, half):
                    order = ", ".join(f"i32 {k}" for k in range(start, start + half))
                    (part,) = self.each(
                        f"shufflevector {self.type} %s, {self.type} poison, <{half} x i32> <{order}>",
                        (vector,),
                    )
                    parts += self.each(f"fpext <{half} x float> %s to {wide.type}", (part,))
            results.append(tuple(parts))
        return wide, results

    def narrowed(self, value: Value) -> Value:
        """What :meth:`widened` made of a value, rounded back."""
        half = self.width // 2
        order = ", ".join(f"i32 {k}" for k in range(self.width))
        parts = [
            self.each(f"fptrunc <{half} x double> %s to <{half} x float>", (x,))[0] for x in value
        ]
        return self.each(
            f"shufflevector <{half} x float> %s, <{half} x float> %s,"
            f" <{self.width} x i32> <{order}>",
            parts[0::2],
            parts[1::2],
        )

    # The C library

    def library(self, symbol: str, *operands: Value) -> Value:
        """A function of the C library on doubles, called for every lane."""
        kinds = ", ".join(["double"] * len(operands))
        self.symbols.external[symbol] = None
        self.symbols.declarations[symbol] = (
            f"declare double @{symbol}({kinds}) nounwind willreturn memory(none)"
        )
        results = []
        for found in zip(*operands, strict=True):
            vector = "poison"
            for lane in range(self.width):
                items = [
                    self.each(f"extractelement {self.type} %s, i32 {lane}", (x,))[0] for x in found
                ]
                if self.scalar == "float":
                    items = [self.each("fpext float %s to double", (x,))[0] for x in items]
                shown = ", ".join(f"double {x}" for x in items)
                (result,) = self.each(f"call double @{symbol}(%s)", (shown,))
                if self.scalar == "float":
                    (result,) = self.each("fptrunc double %s to float", (result,))
                (vector,) = self.each(
                    f"insertelement {self.type} %s, {self.scalar} %s, i32 {lane}",
                    (vector,),
                    (result,),
                )
            results.append(vector)
        return tuple(results)


def joined_lines(parts: Iterable[str]) -> str:
    """Lines as a text."""
    return "\n".join(parts)
