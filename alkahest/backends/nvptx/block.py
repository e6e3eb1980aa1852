"""Code of one basic type under construction, as LLVM assembly."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable

from alkahest.backends.nvptx import fastmath

TYPES = {"float64": ("double", "f64", 8), "float32": ("float", "f32", 4)}
"""dtype -> LLVM's type, the suffix of its intrinsics, bytes."""


class Symbols:
    """What the functions of one module share.

    Attributes:
        declarations: symbol of an intrinsic -> its declaration.
        library: libdevice symbols that are called.
        library_calls: number of calls of them.
        own: keys of :data:`fastmath.FUNCTIONS` that are called.
        own_calls: number of calls of them.
        shared: name -> definition of a function of the module.
    """

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.library: set[str] = set()
        self.library_calls = 0
        self.own: set[str] = set()
        self.own_calls = 0
        self.shared: dict[str, str] = {}


class Block:
    """Code of one floating point type under construction: the operations that rows are made of.

    Operands and results are LLVM values as text, ``%v12`` or a literal.

    Attributes:
        dtype: ``"float64"`` or ``"float32"``.
        type: LLVM's name of it.
        lines: the code so far.
        label: the basic block that the next instruction goes to.
    """

    def __init__(self, dtype: str, symbols: Symbols, first: int = 0, label: str = "entry") -> None:
        self.dtype = dtype
        self.type, self._suffix, _ = TYPES[dtype]
        self.lines: list[str] = []
        self.label = label
        self._symbols = symbols
        self._next = first

    def emit(self, instruction: str) -> str:
        """Append an instruction; returns the name of its result."""
        name = f"%v{self._next}"
        self._next += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(text)

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """End the basic block."""
        self.lines.append(f"  br label %{label}")

    def split(self, condition: str, yes: str, no: str) -> None:
        """End the basic block with a choice."""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def op(self, opcode: str, *operands: str) -> str:
        """``fadd``, ``fneg``, ... on floating point operands."""
        return self.emit(f"{opcode} {self.type} {', '.join(operands)}")

    def logic(self, opcode: str, *operands: str) -> str:
        """``and``, ``or``, ``xor`` on truth values."""
        return self.emit(f"{opcode} i1 {', '.join(operands)}")

    def compare(self, predicate: str, x: str, y: str) -> str:
        """``fcmp``; gives a truth value."""
        return self.emit(f"fcmp {predicate} {self.type} {x}, {y}")

    def select(self, condition: str, x: str, y: str) -> str:
        """``x`` where ``condition`` holds, else ``y``."""
        return self.emit(f"select i1 {condition}, {self.type} {x}, {self.type} {y}")

    def branch(self, condition: str, then: Callable[[], str], otherwise: Callable[[], str]) -> str:
        """What ``then`` returns where ``condition`` holds, else ``otherwise``; only one runs."""
        number = self._next
        self._next += 1
        yes, no, end = (f"{part}{number}" for part in ("yes", "no", "end"))
        self.split(condition, yes, no)
        results = []
        for label, build in ((yes, then), (no, otherwise)):
            self.start(label)
            results.append(f"[ {build()}, %{self.label} ]")
            self.jump(end)
        self.start(end)
        return self.emit(f"phi {self.type} {', '.join(results)}")

    def constant(self, value: float) -> str:
        """A literal: ``value`` rounded to the type, as the bits of a double of the same value."""
        if self.dtype == "float32" and math.isfinite(value):
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def intrinsic(self, name: str, *operands: str) -> str:
        """An intrinsic that is overloaded on the floating point type."""
        return self._call(f"{name}.{self._suffix}", self.type, operands)

    def library(self, name: str, *operands: str) -> str:
        """A libdevice function, by its double precision name."""
        symbol = name if self.dtype == "float64" else name + "f"
        self._symbols.library.add(symbol)
        self._symbols.library_calls += 1
        return self.emit(f"call {self.type} @{symbol}({_arguments(self.type, operands)})")

    def own(self, name: str, x: str, *, part: str = "") -> str:
        """A function of :mod:`alkahest.backends.nvptx.fastmath`, or ``".near"`` of one."""
        self._symbols.own.add(name)
        self._symbols.own_calls += 1
        result = fastmath.FUNCTIONS[name].result
        return self.emit(f"call {result} @ak.{name}{part}(double {x})")

    def approximate_reciprocal(self, x: str) -> str:
        """``1/x`` to 18 bits at least, in double precision; subnormal numbers count as 0."""
        return self._call("llvm.nvvm.rcp.approx.ftz.d", self.type, (x,))

    def shared(self, name: str, build: Callable[..., str], *operands: str) -> str:
        """A call of ``build`` as a function of the module, in double precision."""
        if self.dtype != "float64":
            return self.widened(lambda wide, *xs: wide.shared(name, build, *xs), *operands)
        symbol = f"alkahest_{name}"
        if symbol not in self._symbols.shared:
            body = Block("float64", self._symbols)
            parameters = [f"%x{k}" for k in range(len(operands))]
            result = build(body, *parameters)
            signature = ", ".join(f"double {p}" for p in parameters)
            lines = [f"define internal double @{symbol}({signature}) nounwind {{", *body.lines]
            self._symbols.shared[symbol] = "\n".join([*lines, f"  ret double {result}", "}"])
        return self.emit(f"call double @{symbol}({_arguments('double', operands)})")

    def widened(self, build: Callable[..., str], *operands: str, only_if: bool = True) -> str:
        """``build(block, *operands)`` in double precision, the result rounded to this type."""
        if self.dtype == "float64" or not only_if:
            return build(self, *operands)
        wide = Block("float64", self._symbols, self._next, self.label)
        xs = [wide.emit(f"fpext float {x} to double") for x in operands]
        result = wide.emit(f"fptrunc double {build(wide, *xs)} to float")
        self.lines += wide.lines
        self._next, self.label = wide._next, wide.label
        return result

    def _call(self, symbol: str, kind: str, operands: Iterable[str]) -> str:
        operands = tuple(operands)
        if symbol not in self._symbols.declarations:
            types = ", ".join([kind] * len(operands))
            self._symbols.declarations[symbol] = f"declare {kind} @{symbol}({types})"
        return self.emit(f"call {kind} @{symbol}({_arguments(kind, operands)})")


def _arguments(kind: str, operands: Iterable[str]) -> str:
    return ", ".join([f"{kind} {x}" for x in operands])


def type_name(dtype: str) -> str:
    """LLVM's name of a program's dtype."""
    return TYPES[dtype][0]
