"""How a kernel reaches its columns and outputs, and what it is called with.

The plain kernel takes contiguous memory of the program's dtype. Arrays that already live on a
device may be strided views, broadcast, or of a narrower dtype, and scalars may stand beside them;
rather than copying, a kernel is generated for their *access*: per column contiguous, strided or a
value, and the dtype that is loaded and converted.

Parameters, in this order, each one *slot* of 8 bytes:

* every column: its address, or where it is a value, the value itself, a complex one in two slots;
* every array that is written: its address. There may be more of them than the program has outputs:
  an output can go to several;
* where the access has a rank above 1: the lengths of all dimensions but the first;
* of every strided column and output: the bytes from one element to the next, per dimension;
* the number of points.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from alkahest.backends.nvptx.accuracy import DEFAULT
from alkahest.backends.nvptx.shapes import ALIGNMENT, points_per_thread
from alkahest.plugin import DeviceBatch, DeviceColumn

if TYPE_CHECKING:
    from alkahest.program import Program

CONTIGUOUS = "contiguous"
STRIDED = "strided"
VALUE = "value"

SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes of an element, for every dtype that a kernel loads or stores."""

_VALUE_FORMATS = {"float64": "d", "float32": "f4x", "complex128": "dd", "complex64": "f4xf4x"}


@attrs.frozen
class Access:
    """What a kernel assumes about its arguments.

    Attributes:
        columns: per input, dtype in memory and one of the modes above.
        outputs: per array that is written, :data:`CONTIGUOUS` or :data:`STRIDED`.
        sources: which of the program's outputs each of them receives.
        rank: number of dimensions that the strided ones are walked in; 1 where there are none.
        points: how many consecutive points a thread computes. Above 1 nothing is strided, and every
            address is a multiple of the bytes of so many elements. Addresses of contiguous complex
            columns and outputs always are multiples of the bytes of an element.
        in_place: whether a column may be the memory of an output.
    """

    columns: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    sources: tuple[int, ...]
    rank: int = 1
    points: int = 1
    in_place: bool = False

    @classmethod
    def plain(cls, program: Program, mode: str = DEFAULT, points: int | None = None) -> Access:
        """Contiguous and aligned columns of the program's dtype, and outputs apart from them.

        Args:
            program: what is evaluated.
            mode: the accuracy mode, on which the best number of points per thread depends.
            points: that number, where it is known; finding it takes long for large programs.
        """
        return cls(
            ((program.dtype, CONTIGUOUS),) * len(program.inputs),
            (CONTIGUOUS,) * len(program.outputs),
            tuple(range(len(program.outputs))),
            points=points or points_per_thread(program, mode),
        )

    @property
    def modes(self) -> tuple[str, ...]:
        """Of the columns, then of the outputs."""
        return (*(mode for _, mode in self.columns), *self.outputs)

    @property
    def text(self) -> str:
        """For reports and cache keys: ``"float64, int32 strided -> 0 contiguous"``."""
        columns = ", ".join(
            VALUE if mode == VALUE else dtype if mode == CONTIGUOUS else f"{dtype} {mode}"
            for dtype, mode in self.columns
        )
        outputs = ", ".join(
            f"{source} {mode}" for source, mode in zip(self.sources, self.outputs, strict=True)
        )
        rank = f" in {self.rank} dimensions" if self.rank > 1 else ""
        by = f", {self.points} points a thread" if self.points > 1 else ""
        return f"{columns or 'nothing'} -> {outputs}{rank}{by}{', in place' * self.in_place}"

    @property
    def alignment(self) -> int:
        """Bytes that the addresses of the plain kernel are multiples of."""
        if self.points > 1:
            return ALIGNMENT
        return max((SIZES[dtype] for dtype, _ in self.columns), default=1)

    @cached_property
    def packing(self) -> struct.Struct:
        """Packs the slots, in the order of the parameters."""
        columns = [_VALUE_FORMATS[dtype] if mode == VALUE else "Q" for dtype, mode in self.columns]
        strided = self.modes.count(STRIDED)
        rest = "Q" * len(self.outputs) + "q" * (self.rank - 1 + self.rank * strided) + "Q"
        return struct.Struct("<" + "".join(columns) + rest)


@attrs.frozen
class Arguments:
    """A kernel's access and the numbers for its slots.

    Attributes:
        access: what the kernel has to be generated for.
        slots: a number per slot, to be packed by ``access.packing``.
    """

    access: Access
    slots: tuple[float, ...]


def arguments(program: Program, batch: DeviceBatch, points: int) -> Arguments:
    """What to call which kernel with, for a batch of at least one point.

    Args:
        program: what is evaluated.
        batch: where.
        points: what a thread computes of a kernel whose memory allows it.
    """
    columns, shape = batch.columns, batch.shape
    arrays = [column for column in columns if isinstance(column, DeviceColumn)]
    arrays += batch.out
    sizes = [SIZES[array.dtype] for array in arrays]
    lengths, strides = _fewest_dimensions(shape, [array.strides for array in arrays])
    if not lengths:  # one point
        lengths, strides = [1], [[size] for size in sizes]
    straight = [
        all(s == size * math.prod(lengths[d + 1 :]) for d, s in enumerate(steps))
        and not (array.dtype.startswith("complex") and array.pointer % size)
        for array, steps, size in zip(arrays, strides, sizes, strict=True)
    ]
    rank = 1 if all(straight) else len(lengths)
    modes = iter([CONTIGUOUS if is_straight else STRIDED for is_straight in straight])
    access = Access(
        tuple(
            (column.dtype, next(modes))
            if isinstance(column, DeviceColumn)
            else (program.dtype, VALUE)
            for column in columns
        ),
        tuple(modes),
        batch.sources,
        rank,
        points if rank == 1 and all(straight) and _is_aligned(arrays, points) else 1,
        in_place=not {out.pointer for out in batch.out}.isdisjoint(
            array.pointer for array in arrays[: -len(batch.out)]
        ),
    )
    slots: list[float] = []
    for column in columns:
        if isinstance(column, DeviceColumn):
            slots.append(column.pointer)
        elif column.dtype.kind == "c":
            value = complex(column.item())
            slots += (value.real, value.imag)
        else:
            slots.append(column.item())
    slots += [output.pointer for output in batch.out]
    slots += lengths[1:] if rank > 1 else ()
    for steps, is_straight in zip(strides, straight, strict=True):
        slots += () if is_straight else steps
    return Arguments(access, (*slots, batch.n))


def _is_aligned(arrays: Sequence[DeviceColumn], points: int) -> bool:
    return not any(array.pointer % (points * SIZES[array.dtype]) for array in arrays)


def _fewest_dimensions(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """``shape`` and the strides of every array with dimensions merged that are walked as one.

    Points may be walked in any order: dimensions are sorted so that the last array, an output, is
    written as contiguously as it can be. For one point no dimension is left.
    """
    order = [d for d, length in enumerate(shape) if length != 1]
    order.sort(key=lambda d: [-abs(steps[d]) for steps in reversed(strides)])
    lengths: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for d in order:
        if lengths and all(
            m[-1] == steps[d] * shape[d] for m, steps in zip(merged, strides, strict=True)
        ):
            lengths[-1] *= shape[d]
            for m, steps in zip(merged, strides, strict=True):
                m[-1] = steps[d]
            continue
        lengths.append(shape[d])
        for m, steps in zip(merged, strides, strict=True):
            m.append(steps[d])
    return lengths, merged
