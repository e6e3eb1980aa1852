"""Code of one basic type under construction, as LLVM assembly."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable

from alkahest.backends.nvptx import fastmath

LARGEST_POOL = 256
"""Constants, at most, in constant memory; more of them would not stay in the cache."""

TYPES = {"float64": ("double", "f64", 8), "float32": ("float", "f32", 4)}
"""dtype -> LLVM's type, the suffix of its intrinsics, bytes."""


class Symbols:
    """What the functions of one module share.

    Attributes:
        declarations: symbol of an intrinsic -> its declaration.
        library: libdevice symbols that are called.
        own: keys of :data:`fastmath.FUNCTIONS` that are called.
        shared: name -> definition of a function of the module.
        pool: constants that are kept in memory, in order.
    """

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.library: set[str] = set()
        self.own: set[str] = set()
        self.shared: dict[str, str] = {}
        self.pool: dict[float, int] = {}

    def pooled(self, value: float) -> str | None:
        """Where a constant is in constant memory, as an operand of ``load``.

        None for one that is an operand of an instruction as it stands, because its lower 32 bits
        are 0, and for one too many.
        """
        if _literal(value).endswith("0" * 8) or (
            value not in self.pool and len(self.pool) >= LARGEST_POOL
        ):
            return None
        position = self.pool.setdefault(value, len(self.pool))
        return (
            f"ptr addrspace(4) getelementptr inbounds (double, ptr addrspace(4) {_POOL},"
            f" i64 {position}), align 8, !invariant.load !{{}}"
        )

    @property
    def constants(self) -> list[str]:
        """The definition of the pool, if anything is in it."""
        if not self.pool:
            return []
        values = ", ".join(f"double {_literal(value)}" for value in self.pool)
        # Were it a plain constant, LLVM would put the values back into the instructions.
        return [
            f"{_POOL} = internal addrspace(4) externally_initialized global"
            f" [{len(self.pool)} x double] [{values}]"
        ]


def with_pool(definitions: str, symbols: Symbols) -> str:
    """LLVM assembly of functions with literals replaced by loads from constant memory."""
    lines: list[str] = []
    for line in definitions.splitlines():
        if line.startswith("  ") and " phi " not in line:
            for literal in dict.fromkeys(_DOUBLES.findall(line)):
                (value,) = struct.unpack(">d", bytes.fromhex(literal[2:]))
                place = symbols.pooled(value)
                if place is not None:
                    name = f"%pooled.{len(lines)}"
                    lines.append(f"  {name} = load double, {place}")
                    line = line.replace(literal, name)
        lines.append(line)
    return "\n".join(lines)


_POOL = "@alkahest_constants"
_DOUBLES = re.compile(r"(?: = f\w+ (?:\w+ )?double %[\w.]+,|double) (0x[0-9A-F]{16})\b")


class Block:
    """Code of one floating point type under construction: the operations that rows are made of.

    Operands and results are LLVM values as text, ``%v12`` or a literal.

    Attributes:
        dtype: ``"float64"`` or ``"float32"``.
        type: LLVM's name of it.
        lines: the code so far.
        label: the basic block that the next instruction goes to.
        out_of_line: whether functions are called, rather than made a part of the code.
        frame: what the function begins with: its places in local memory.
    """

    def __init__(
        self,
        dtype: str,
        symbols: Symbols,
        first: int = 0,
        label: str = "entry",
        *,
        out_of_line: bool = False,
    ) -> None:
        self.dtype = dtype
        self.type, self._suffix, _ = TYPES[dtype]
        self.lines: list[str] = []
        self.label = label
        self.out_of_line = out_of_line
        self.frame: list[str] = []
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

    def aside(self, label: str) -> Block:
        """Code of the same function that calls functions, to be written and then joined."""
        aside = Block(self.dtype, self._symbols, self._next, label, out_of_line=True)
        aside.frame = self.frame
        return aside

    def join(self, aside: Block) -> None:
        """Append code that was written aside; what follows has to start a basic block."""
        self.lines += aside.lines
        self._next = aside._next

    def allocate(self, kind: str) -> str:
        """A place in local memory."""
        name = f"%place{len(self.frame)}"
        self.frame.append(f"  {name} = alloca {kind}")
        return name

    @property
    def calls_functions(self) -> bool:
        """Whether the module has functions beside the kernel."""
        return bool(self._symbols.own or self._symbols.library or self._symbols.shared)

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

    def unlikely(self, condition: str) -> str:
        """The same truth value, said to be false nearly always."""
        name = "llvm.expect.i1"
        self._symbols.declarations[name] = f"declare i1 @{name}(i1, i1)"
        return self.emit(f"call i1 @{name}(i1 {condition}, i1 false)")

    def constant(self, value: float) -> str:
        """A literal: ``value`` rounded to the type, as the bits of a double of the same value."""
        if self.dtype == "float32" and math.isfinite(value):
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return _literal(value)

    def intrinsic(self, name: str, *operands: str) -> str:
        """An intrinsic that is overloaded on the floating point type."""
        return self._call(f"{name}.{self._suffix}", self.type, operands)

    def library(self, name: str, *operands: str) -> str:
        """A libdevice function, by its double precision name."""
        symbol = name if self.dtype == "float64" else name + "f"
        self._symbols.library.add(symbol)
        return self._function(symbol, self.type, operands)

    def own(self, name: str, *operands: str, part: str = "") -> str:
        """A function of :mod:`alkahest.backends.nvptx.fastmath`, or ``".near"`` of one."""
        self._symbols.own.add(name)
        return self._function(f"ak.{name}{part}", fastmath.FUNCTIONS[name].result, operands)

    def is_far(self, name: str, *operands: str) -> str:
        """Whether the near part of such a function is wrong; a truth value."""
        return self.emit(f"call i1 @ak.{name}.is_far({_arguments('double', operands)})")

    def _function(self, symbol: str, result: str, operands: Iterable[str]) -> str:
        """A call of a function that is inlined, unless this code is not to grow."""
        arguments = _arguments(self.type, operands)
        if self.out_of_line:
            called = "alkahest_call_" + symbol.removeprefix("__nv_").replace(".", "_")
            if called not in self._symbols.shared:
                names = [f"%x{k}" for k in range(len(tuple(operands)))]
                parameters = _arguments(self.type, names)
                # Not internal: for every call of an internal function, LLVM's PTX backend looks
                # through all its uses, which takes time quadratic in the number of calls.
                self._symbols.shared[called] = "\n".join(
                    [
                        f"define {result} @{called}({parameters}) noinline nounwind {{",
                        f"  %value = call {result} @{symbol}({parameters})",
                        f"  ret {result} %value",
                        "}",
                    ]
                )
            symbol = called
        return self.emit(f"call {result} @{symbol}({arguments})")

    def pooled(self, value: float) -> str:
        """A constant that takes two instructions as a literal, and one from constant memory."""
        if self.dtype != "float64" or self.out_of_line:
            return self.constant(value)
        place = self._symbols.pooled(value)
        return self.constant(value) if place is None else self.emit(f"load double, {place}")

    def shared(self, name: str, build: Callable[..., str], *operands: str) -> str:
        """A call of ``build`` as a function of the module, in double precision."""
        if self.dtype != "float64":
            return self.widened(lambda wide, *xs: wide.shared(name, build, *xs), *operands)
        symbol = f"alkahest_{name}"
        if symbol not in self._symbols.shared:
            body = Block("float64", self._symbols, out_of_line=self.out_of_line)
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
        wide = Block("float64", self._symbols, self._next, self.label, out_of_line=self.out_of_line)
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


def _literal(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _arguments(kind: str, operands: Iterable[str]) -> str:
    return ", ".join([f"{kind} {x}" for x in operands])


def type_name(dtype: str) -> str:
    """LLVM's name of a program's dtype."""
    return TYPES[dtype][0]
