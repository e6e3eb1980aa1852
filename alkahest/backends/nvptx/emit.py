"""Programs to LLVM assembly: one kernel, nothing linked yet.

The kernel's shape, for a program of two inputs and one output::

    define ptx_kernel void @alkahest_eval(ptr column 0, ptr column 1, ptr output 0, i64 n)
        for (i = global thread index; i < n; i += number of threads)
            load what is used, compute, store every output

Any grid computes every point exactly once. Above 4 KiB of parameters the pointers come in a table
in device memory instead, in the same order: ``@alkahest_eval(ptr table, i64 n)``.

Values are named by numbers only; no text of the user's gets into the assembly.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable

import attrs

from alkahest.backends.nvptx.lowerings import (
    LOWERINGS,
    Compare,
    Expansion,
    Intrinsic,
    Library,
    Logic,
    Opcode,
    Shared,
)
from alkahest.errors import CudaError
from alkahest.ops import Kind
from alkahest.program import Program

ENTRY = "alkahest_eval"

MAX_POINTERS = 4096 // 8 - 1
"""Pointers that fit into 4 KiB of kernel parameters beside the count."""

SPLIT = 2000
"""Instructions per basic block: LLVM's and NVIDIA's compilers take time quadratic in the size of a
block. Blocks end in a condition that always holds but that no compiler can prove (the count of
points is not -k), since blocks that simply follow each other would be merged."""

_TYPES = {"float64": ("double", "f64", 8), "float32": ("float", "f32", 4)}
_SREGS = ("tid.x", "ntid.x", "ctaid.x", "nctaid.x")


@attrs.frozen
class Kernel:
    """A program as LLVM assembly.

    Attributes:
        text: the kernel and the functions it shares, without declarations.
        declarations: symbol of an intrinsic -> its declaration.
        library: libdevice symbols that are called.
        library_calls: number of calls of them.
        abi: ``"pointers"`` or ``"table"``.
    """

    text: str
    declarations: dict[str, str]
    library: frozenset[str]
    library_calls: int
    abi: str


class _Symbols:
    """What the functions of one module share."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.library: set[str] = set()
        self.library_calls = 0
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

    def __init__(
        self, dtype: str, symbols: _Symbols, first: int = 0, label: str = "entry"
    ) -> None:
        self.dtype = dtype
        self.type, self._suffix, _ = _TYPES[dtype]
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

    def branch(
        self, condition: str, then: Callable[[], str], otherwise: Callable[[], str]
    ) -> str:
        """What ``then`` returns where ``condition`` holds, else ``otherwise``; only one runs."""
        number = self._next
        self._next += 1
        yes, no, end = (f"{part}{number}" for part in ("yes", "no", "end"))
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")
        results = []
        for label, build in ((yes, then), (no, otherwise)):
            self.lines.append(f"{label}:")
            self.label = label
            results.append(f"[ {build()}, %{self.label} ]")
            self.lines.append(f"  br label %{end}")
        self.lines.append(f"{end}:")
        self.label = end
        return self.emit(f"phi {self.type} {', '.join(results)}")

    def split(self) -> None:
        """Start a new basic block of the kernel; see :data:`SPLIT`."""
        number = self._next
        ready = self.emit(f"icmp ne i64 %n, -{number}")
        self.label = f"part{number}"
        self.lines += [f"  br i1 {ready}, label %{self.label}, label %exit", f"{self.label}:"]

    def constant(self, value: float) -> str:
        """A literal: ``value`` rounded to the type, as the bits of a double of the same value."""
        if self.dtype == "float32" and math.isfinite(value):
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def intrinsic(self, name: str, *operands: str) -> str:
        """An intrinsic that is overloaded on the floating point type."""
        return self._call(f"{name}.{self._suffix}", self.type, operands)

    def library(self, name: str, *operands: str, widen: bool = False) -> str:
        """A libdevice function, by its double precision name."""
        if self.dtype == "float64":
            return self._library_call(name, operands)
        if not widen:
            return self._library_call(name + "f", operands)
        return self.widened(lambda wide, *xs: wide.library(name, *xs), *operands)

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

    def _library_call(self, symbol: str, operands: Iterable[str]) -> str:
        self._symbols.library.add(symbol)
        self._symbols.library_calls += 1
        return self.emit(f"call {self.type} @{symbol}({_arguments(self.type, operands)})")


def _arguments(kind: str, operands: Iterable[str]) -> str:
    return ", ".join([f"{kind} {x}" for x in operands])


def kernel(program: Program) -> Kernel:
    """The kernel of a verified program.

    Raises:
        CudaError: E-CUDA-002 naming an operation or dtype that is not lowered.
    """
    if program.dtype not in _TYPES:
        raise CudaError(
            "E-CUDA-002",
            f"dtype {program.dtype} is not lowered for GPUs",
            remediation="Compile for float64 or float32, or use a CPU backend.",
        )
    symbols = _Symbols()
    block = Block(program.dtype, symbols, label="body")
    layout = _Layout(program, block)
    stores = _body(program, block, layout)
    for register in _SREGS:
        symbol = f"llvm.nvvm.read.ptx.sreg.{register}"
        symbols.declarations[symbol] = f"declare i32 @{symbol}()"
    text = "\n".join(
        [
            *symbols.shared.values(),
            f"define ptx_kernel void @{ENTRY}({layout.signature}) nounwind {{",
            _PROLOGUE.format(last=block.label),
            *block.lines,
            *stores,
            _EPILOGUE,
        ]
    )
    return Kernel(
        text, symbols.declarations, frozenset(symbols.library), symbols.library_calls, layout.abi
    )


class _Layout:
    """Where the pointers of columns and outputs come from, and access to what they point to."""

    def __init__(self, program: Program, block: Block) -> None:
        count = len(program.inputs) + len(program.outputs)
        self.abi = "pointers" if count <= MAX_POINTERS else "table"
        self._block = block
        inputs = len(program.inputs)
        if self.abi == "table":
            self.signature = "ptr addrspace(1) readonly %table, i64 %n"
        else:
            columns = [f"ptr addrspace(1) readonly %p{k}" for k in range(inputs)]
            outputs = [f"ptr addrspace(1) writeonly %p{k}" for k in range(inputs, count)]
            self.signature = ", ".join([*columns, *outputs, "i64 %n"])

    def address(self, position: int, element: str) -> str:
        """Address of this thread's element of pointer ``position``."""
        pointer = f"%p{position}"
        if self.abi == "table":
            slot = self._block.emit(
                f"getelementptr inbounds ptr addrspace(1), ptr addrspace(1) %table, i64 {position}"
            )
            pointer = self._block.emit(f"load ptr addrspace(1), ptr addrspace(1) {slot}, align 8")
        return self._block.emit(
            f"getelementptr inbounds {element}, ptr addrspace(1) {pointer}, i64 %i"
        )


def _body(program: Program, block: Block, layout: _Layout) -> list[str]:
    """Write loads and instructions into ``block``; returns the stores, which come last."""
    _, _, size = _TYPES[program.dtype]
    inputs = len(program.inputs)
    values: list[str] = [""] * inputs
    for constant in program.constants:
        is_bool = isinstance(constant, bool)
        values.append(str(constant).lower() if is_bool else block.constant(_real(constant)))

    def value(number: int) -> str:
        if not values[number]:  # a column, loaded where it is first used
            address = layout.address(number, block.type)
            values[number] = block.emit(
                f"load {block.type}, ptr addrspace(1) {address}, align {size}"
            )
        return values[number]

    ends = SPLIT
    for op, args, parameter in program.code:
        if len(block.lines) > ends:
            block.split()
            ends = len(block.lines) + SPLIT
        values.append(_instruction(block, op, [value(a) for a in args], parameter))
    results = [value(o) for o in program.outputs]
    stores = []
    for position, (number, result) in enumerate(zip(program.outputs, results), inputs):
        if program.kinds[number] is Kind.BOOL:
            stored, kind, align = block.emit(f"zext i1 {result} to i8"), "i8", 1
        else:
            stored, kind, align = result, block.type, size
        address = layout.address(position, kind)
        stores.append(f"  store {kind} {stored}, ptr addrspace(1) {address}, align {align}")
    return stores


def _real(constant: complex) -> float:
    assert isinstance(constant, float)  # verify() admits complex constants in complex programs only
    return constant


def _instruction(block: Block, op: str, operands: list[str], parameter: int | None) -> str:
    match LOWERINGS.get(op):
        case Opcode(name):
            return block.op(name, *operands)
        case Compare(predicate):
            return block.compare(predicate, *operands)
        case Logic(name):
            return block.logic(name, *operands)
        case Intrinsic(name):
            return block.intrinsic(name, *operands)
        case Library(name, widen):
            return block.library(name, *operands, widen=widen)
        case Shared(name, build):
            return block.shared(name, build, *operands)
        case Expansion(build):
            extra = () if parameter is None else (parameter,)
            return build(block, *operands, *extra)
    raise CudaError(
        "E-CUDA-002",
        f"operation {op!r} is not lowered for GPUs",
        remediation="Use a CPU backend.",
    )


_PROLOGUE = """\
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %nctaid = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %thread = zext i32 %tid to i64
  %size = zext i32 %ntid to i64
  %block = zext i32 %ctaid to i64
  %blocks = zext i32 %nctaid to i64
  %before = mul nuw nsw i64 %block, %size
  %first = add nuw nsw i64 %before, %thread
  %stride = mul nuw nsw i64 %blocks, %size
  %any = icmp ult i64 %first, %n
  br i1 %any, label %body, label %exit

body:
  %i = phi i64 [ %first, %entry ], [ %next, %{last} ]"""

_EPILOGUE = """\
  %next = add nuw nsw i64 %i, %stride
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %exit, !llvm.loop !0

exit:
  ret void
}

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}"""
