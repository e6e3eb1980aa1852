"""Writing functions of one double as LLVM assembly."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

PAIR = "{ double, double }"

SIGN = -(2**31)
"""The sign bit of a word."""

MAGIC = 1.5 * 2.0**52
"""``x + MAGIC`` rounds x to an integer, which then stands in the lower word of the sum, for
``|x| < 2**31``; conversions between doubles and integers are slow instructions."""


class Code:
    """Body of one function of doubles under construction.

    Attributes:
        parameters: the function's, ``double %x`` or more.
        before: globals that it needs, one definition each.
        lines: the instructions so far.
        pool: values to load from constant memory, in order; None where literals are wanted.
    """

    def __init__(self, *, pooled: bool, parameters: str = "double %x") -> None:
        self.parameters = parameters
        self.before: list[str] = []
        self.lines: list[str] = []
        self.pool: list[float] | None = [] if pooled else None

    def emit(self, lines: str) -> None:
        self.lines += [f"  {line.strip()}" for line in lines.strip().splitlines()]

    def constant(self, value: float) -> str:
        """An operand of this value: a literal where its lower 32 bits are 0, else a pooled one."""
        if self.pool is None or bits(value) & 0xFFFFFFFF == 0:
            return f"0x{bits(value):016X}"
        if value not in self.pool:
            self.pool.append(value)
        return f"%pool.{self.pool.index(value)}"

    def op(self, result: str, opcode: str, x: str, y: str) -> None:
        self.emit(f"{result} = {opcode} double {x}, {y}")

    def fma(self, result: str, x: str, y: str, z: str) -> None:
        self.emit(f"{result} = call double @llvm.fma.f64(double {x}, double {y}, double {z})")

    def polynomial(self, result: str, x: str, coefficients: Sequence[float]) -> None:
        """``sum(c[k] * x**k)`` by Horner's rule."""
        value = self.constant(coefficients[-1])
        for k in reversed(range(len(coefficients) - 1)):
            step = f"{result}.{k}" if k else result
            self.fma(step, x, value, self.constant(coefficients[k]))
            value = step


def bits(value: float) -> int:
    """The representation of a double."""
    representation: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return representation


def beyond(limit: float) -> Callable[[Code], None]:
    """``|x| >= limit``, an infinity or nan."""

    def build(code: Code) -> None:
        size_is_beyond(code, limit)
        code.emit("ret i1 %is.beyond")

    return build


def size_is_beyond(code: Code, limit: float) -> None:
    """``%is.beyond``: ``|x| >= limit``, an infinity or nan, for a limit whose lower word is 0.

    The upper words are compared as if they were single precision numbers, which are ordered alike:
    one instruction takes the absolute value, compares, and answers true where the word looks
    like a nan, as those of the largest doubles do.
    """
    code.emit(f"""
        %beyond.word = call i32 @llvm.nvvm.d2i.hi(double %x)
        %beyond.alike = bitcast i32 %beyond.word to float
        %size = call float @llvm.nvvm.fabs.f32(float %beyond.alike)
        %limit = bitcast i32 {bits(limit) >> 32} to float
        %is.beyond = fcmp uge float %size, %limit
    """)


def below(code: Code, limit: float) -> None:
    """``%is.below``: ``x < limit`` by upper words; x below -2**1017 looks like nan and is not."""
    code.emit(f"""
        %below.word = call i32 @llvm.nvvm.d2i.hi(double %x)
        %below.alike = bitcast i32 %below.word to float
        %least = bitcast i32 {(bits(limit) >> 32) - 2**32} to float
        %is.below = fcmp olt float %below.alike, %least
    """)


def branch(code: Code, name: str, otherwise: str) -> None:
    """To the block ``rare``, begun here, where x is far; LLVM moves it out of the way."""
    code.emit(f"""
        %is.far = call i1 @ak.{name}.is_far({code.parameters})
        %is.rare = call i1 @llvm.expect.i1(i1 %is.far, i1 false)
        br i1 %is.rare, label %rare, label %{otherwise}
        rare:
    """)


def out_of_line(name: str, result: str) -> Callable[[Code], None]:
    """The near function's value, or a call of the far one."""

    def build(code: Code) -> None:
        code.emit(f"%near = call {result} @ak.{name}.near({code.parameters})")
        branch(code, name, "done")
        code.emit(f"""
            %far = call {result} @ak.{name}.far({code.parameters})
            br label %done
            done:
            %value = phi {result} [ %near, %entry ], [ %far, %rare ]
            ret {result} %value
        """)

    return build
