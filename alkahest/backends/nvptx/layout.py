"""The memory side of a kernel as LLVM assembly: its parameters, loads and stores.

See :mod:`alkahest.backends.nvptx.access` for what the parameters are. Above 4 KiB of them they come
as one table in device memory instead, slot by slot in the same order, only the number of points
stays a parameter.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from alkahest.backends.nvptx.access import CONTIGUOUS, SIZES, STRIDED, VALUE, Access
from alkahest.program.records import REAL_DTYPE

if TYPE_CHECKING:
    from alkahest.backends.nvptx.block import Block

MAX_SLOTS = 4096 // 8 - 1
"""Slots that fit into 4 KiB of kernel parameters beside the number of points."""

_POINTER = "ptr addrspace(1)"

# dtype in memory -> LLVM's type of it, and the cast to a floating point type; bool is apart.
_INTEGERS = {
    f"{sign}int{bits}": (f"i{bits}", f"{sign or 's'}itofp")
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_FLOATS = {"float16": "half", "float32": "float", "float64": "double"}
_PAIRS = {"complex64": "<2 x float>", "complex128": "<2 x double>"}


class Layout:
    """Where a kernel's values come from and go to.

    Attributes:
        access: what the kernel assumes.
        abi: ``"pointers"`` or ``"table"``.
        signature: the kernel's parameters.
    """

    def __init__(self, access: Access, block: Block) -> None:
        """Start a kernel of ``access`` whose body is ``block``; nothing is in it yet."""
        self.access = access
        self._block = block
        self._modes = access.modes
        self._slots = slots(access, block.type)
        self.abi = "pointers" if len(self._slots) <= MAX_SLOTS else "table"
        if self.abi == "table":
            self.signature = f"{_POINTER} readonly %table, i64 %n"
        else:
            self.signature = ", ".join([f"{t} %{s}" for s, t in self._slots.items()] + ["i64 %n"])
        self._order = {name: position for position, name in enumerate(self._slots)}
        self._indices = self._split_index()
        self._load = "load"

    def again(self, block: Block) -> Layout:
        """The same for code that shall load everything once more, of the same function."""
        layout = copy.copy(self)
        layout._block, layout._load = block, "load volatile"
        return layout

    def load(self, position: int, index: str = "%i", points: int = 1) -> str:
        """Elements of a column as they are in memory, or the value that stands for it.

        Args:
            position: of the column.
            index: number of the first point; a strided column is read at this thread's point.
            points: how many consecutive ones; above 1 the result is a vector of LLVM's.
        """
        dtype, mode = self.access.columns[position]
        if mode == VALUE:
            return self._slot(f"p{position}")
        kind = self.in_memory(position)
        address = self.address(position, kind, index)
        kind = f"<{points} x {kind}>" if points > 1 else kind
        align = points * SIZES[dtype]
        if dtype in _PAIRS and mode == STRIDED:
            align //= 2
        return self._block.emit(f"{self._load} {kind}, {_POINTER} {address}, align {align}")

    def converted(self, position: int, loaded: str) -> str:
        """One element, as it was loaded, in the program's type."""
        if self.in_memory(position) in ("", self._block.type):
            return loaded
        dtype, _ = self.access.columns[position]
        return _converted(self._block, loaded, dtype)

    def pair(self, position: int) -> tuple[str, str]:
        """Both parts of a complex program's column at this thread's point, in the program's type."""
        dtype, mode = self.access.columns[position]
        if mode == VALUE:
            return self._slot(f"p{position}"), self._slot(f"p{position}.im")
        block, loaded = self._block, self.load(position)
        if dtype not in _PAIRS:
            return self.converted(position, loaded), block.constant(0.0)
        parts = [block.emit(f"extractelement {_PAIRS[dtype]} {loaded}, i32 {k}") for k in (0, 1)]
        if REAL_DTYPE[dtype] != block.dtype:
            parts = [_converted(block, part, REAL_DTYPE[dtype]) for part in parts]
        return parts[0], parts[1]

    def in_memory(self, position: int) -> str:
        """LLVM's type of a column's elements, or "" where a value stands for it."""
        dtype, mode = self.access.columns[position]
        if mode == VALUE:
            return ""
        if dtype == "bool":
            return "i8"
        return _FLOATS.get(dtype) or _PAIRS.get(dtype) or _INTEGERS[dtype][0]

    def address(self, position: int, element: str, index: str = "%i") -> str:
        """Address of an element of a column, or beyond those of an output.

        Args:
            position: of the column or output.
            element: LLVM's type of an element.
            index: number of the point; what is strided is taken at this thread's point.
        """
        block, pointer = self._block, self._slot(f"p{position}")
        if self._modes[position] == CONTIGUOUS:
            return block.emit(
                f"getelementptr inbounds {element}, {_POINTER} {pointer}, i64 {index}"
            )
        offset = ""
        for dimension, index in enumerate(self._indices):
            stride = self._slot(f"s{position}.{dimension}")
            step = block.emit(f"mul nsw i64 {index}, {stride}")
            offset = block.emit(f"add nsw i64 {offset}, {step}") if offset else step
        return block.emit(f"getelementptr inbounds i8, {_POINTER} {pointer}, i64 {offset}")

    def _split_index(self) -> list[str]:
        """The number of a point as one index per dimension, the last running fastest."""
        indices: list[str] = []
        rest = "%i"
        for dimension in range(self.access.rank - 1, 0, -1):
            length = self._slot(f"d{dimension}")
            above = self._block.emit(f"udiv i64 {rest}, {length}")
            below = self._block.emit(f"mul nuw i64 {above}, {length}")
            indices.append(self._block.emit(f"sub nuw i64 {rest}, {below}"))
            rest = above
        return [rest, *reversed(indices)]

    def _slot(self, name: str) -> str:
        if self.abi == "pointers":
            return f"%{name}"
        kind = bare(self._slots[name])
        place = self._block.emit(
            f"getelementptr inbounds i64, {_POINTER} %table, i64 {self._order[name]}"
        )
        return self._block.emit(f"{self._load} {kind}, {_POINTER} {place}, align 8")


def bare(kind: str) -> str:
    """The type of a slot without what is promised about it."""
    return _POINTER if kind.startswith(_POINTER) else kind


def slots(access: Access, kind: str) -> dict[str, str]:
    """Names and LLVM types of the slots, without the number of points.

    Args:
        access: of the kernel.
        kind: LLVM's name of the program's type.
    """
    inputs = len(access.columns)
    apart = "" if access.in_place else " noalias"
    named: dict[str, str] = {}
    for k, (dtype, mode) in enumerate(access.columns):
        named[f"p{k}"] = kind if mode == VALUE else f"{_POINTER}{apart} readonly"
        if mode == VALUE and dtype in _PAIRS:
            named[f"p{k}.im"] = kind
    named |= {f"p{k}": f"{_POINTER}{apart} writeonly" for k in range(inputs, len(access.modes))}
    named |= {f"d{dimension}": "i64" for dimension in range(1, access.rank)}
    for k, mode in enumerate(access.modes):
        if mode == STRIDED:
            named |= {f"s{k}.{dimension}": "i64" for dimension in range(access.rank)}
    return named


def _converted(block: Block, value: str, dtype: str) -> str:
    """``value`` of ``dtype`` as the type of ``block``, rounded to nearest where it has to be."""
    if dtype == "bool":
        return block.emit(f"uitofp i1 {block.emit(f'icmp ne i8 {value}, 0')} to {block.type}")
    if dtype in _INTEGERS:
        kind, cast = _INTEGERS[dtype]
        return block.emit(f"{cast} {kind} {value} to {block.type}")
    cast = "fptrunc" if SIZES[dtype] > SIZES[block.dtype] else "fpext"
    return block.emit(f"{cast} {_FLOATS[dtype]} {value} to {block.type}")
