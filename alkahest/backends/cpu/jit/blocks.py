"""The frame of a kernel: whole blocks in place, the last points through a padded copy.

A block is as many points as all vectors of a value hold. The kernel is a loop over whole blocks. What
is left, fewer points than a block, is copied into the scratch memory and filled up with copies of
itself; the kernel is called for that block, and the results are copied back. So every point is
computed by the same instructions wherever it stands, and nothing outside of the batch is read or
written.

Scratch memory, from its first address divisible by 64 on::

    values of cut programs | table of addresses | one block of every column

The functions that copy are the same for all kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from alkahest.backends.cpu.jit.lanes import Symbols

ENTRY = "alkahest_kernel"

ALIGNMENT = 64

_SCALAR, _OUTPUT = 256, 512
"""Beside the size of an element, in the description of a column."""


@attrs.frozen
class Column:
    """One array of the table that a kernel is called with.

    Attributes:
        size: bytes of an element.
        is_scalar: whether it is one element that counts for every point.
        is_output: whether it is written.
    """

    size: int
    is_scalar: bool = False
    is_output: bool = False


@attrs.frozen
class Surroundings:
    """What is around the code of a block.

    Attributes:
        columns: inputs, then outputs.
        points: in a block.
        values: bytes for the values of cut programs.
    """

    columns: Sequence[Column]
    points: int
    values: int = 0

    @property
    def scratch_bytes(self) -> int:
        """Bytes that a call needs, wherever they begin."""
        blocks = sum(_aligned(c.size * self.points) for c in self.columns if not c.is_scalar)
        return _aligned(self.values) + _aligned(8 * len(self.columns)) + blocks + ALIGNMENT

    def kernel(
        self, symbols: Symbols, head: Sequence[str], body: Sequence[str], last: str
    ) -> list[str]:
        """The kernel, and what it needs in ``symbols``.

        Args:
            symbols: of the module.
            head: code before the loop; it knows ``%columns`` and ``%scratch``.
            body: code of the block ``block``, without the label; it knows ``%i``, too.
            last: label of the block with which it ends.
        """
        symbols.functions.update(_COPIES)
        codes = ", ".join(f"i64 {_code(column)}" for column in self.columns)
        count = len(self.columns)
        symbols.globals["ak.columns"] = f"@ak.columns = internal constant [{count} x i64] [{codes}]"
        return [
            f"define void @{ENTRY}(ptr %columns, ptr %memory, i64 %begin, i64 %end) nounwind {{",
            "entry:",
            "  %address = ptrtoint ptr %memory to i64",
            f"  %beyond = add i64 %address, {ALIGNMENT - 1}",
            f"  %aligned = and i64 %beyond, {-ALIGNMENT}",
            "  %scratch = inttoptr i64 %aligned to ptr",
            "  %count = sub i64 %end, %begin",
            f"  %whole = and i64 %count, {-self.points}",
            "  %middle = add i64 %begin, %whole",
            *head,
            "  %any = icmp sgt i64 %whole, 0",
            "  br i1 %any, label %block, label %rest",
            "block:",
            f"  %i = phi i64 [ %begin, %entry ], [ %next, %{last} ]",
            *body,
            f"  %next = add nuw nsw i64 %i, {self.points}",
            "  %more = icmp ult i64 %next, %middle",
            "  br i1 %more, label %block, label %rest",
            "rest:",
            "  %left = sub i64 %end, %middle",
            "  %some = icmp sgt i64 %left, 0",
            "  br i1 %some, label %padded, label %exit",
            "padded:",
            f"  %area = getelementptr i8, ptr %scratch, i64 {_aligned(self.values)}",
            "  call void @ak.rest(ptr %columns, ptr %scratch, ptr %area, i64 %middle, i64 %left,"
            f" ptr @ak.columns, i64 {count}, i64 {self.points}, ptr @{ENTRY})",
            "  br label %exit",
            "exit:",
            "  ret void",
            "}",
        ]


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _code(column: Column) -> int:
    return column.size + _SCALAR * column.is_scalar + _OUTPUT * column.is_output


# Element k of a copy is element k of the source, then elements from the first on again.
_LOOP = """\
loop.{size}:
  %k.{size} = phi i64 [ 0, %entry ], [ %next.{size}, %loop.{size} ]
  %from.{size} = phi i64 [ 0, %entry ], [ %source.{size}, %loop.{size} ]
  %read.{size} = getelementptr {kind}, ptr %source, i64 %from.{size}
  %value.{size} = load {kind}, ptr %read.{size}, align {align}
  %write.{size} = getelementptr {kind}, ptr %target, i64 %k.{size}
  store {kind} %value.{size}, ptr %write.{size}, align {align}
  %next.{size} = add nuw nsw i64 %k.{size}, 1
  %raised.{size} = add nuw nsw i64 %from.{size}, 1
  %is.last.{size} = icmp eq i64 %raised.{size}, %rest
  %source.{size} = select i1 %is.last.{size}, i64 0, i64 %raised.{size}
  %more.{size} = icmp ult i64 %next.{size}, %count
  br i1 %more.{size}, label %loop.{size}, label %exit"""

_SIZES = (1, 4, 8, 16)

_COPY = "\n".join(
    [
        "define internal void @ak.copy(ptr %target, ptr %source, i64 %rest, i64 %count, i64 %size)"
        " noinline cold nounwind {",
        "entry:",
        "  switch i64 %size, label %exit [",
        *[f"    i64 {size}, label %loop.{size}" for size in _SIZES],
        "  ]",
        *[_LOOP.format(size=s, kind=f"i{8 * s}", align=min(s, 4)) for s in _SIZES],
        "exit:",
        "  ret void",
        "}",
    ]
)

# Two rounds over the columns: inputs are copied in, then the kernel runs, then outputs are copied back.
_REST = f"""\
define internal void @ak.rest(ptr %columns, ptr %scratch, ptr %table, i64 %middle, i64 %rest, \
ptr %codes, i64 %count, i64 %points, ptr %kernel) noinline cold nounwind {{
entry:
  %table.bytes = shl i64 %count, 3
  %table.beyond = add i64 %table.bytes, {ALIGNMENT - 1}
  %first = and i64 %table.beyond, {-ALIGNMENT}
  br label %column
column:
  %k = phi i64 [ 0, %entry ], [ %k.next, %placed ]
  %offset = phi i64 [ %first, %entry ], [ %offset.again, %placed ]
  %is.back = phi i1 [ false, %entry ], [ %is.back.next, %placed ]
  %code.at = getelementptr i64, ptr %codes, i64 %k
  %code = load i64, ptr %code.at, align 8
  %size = and i64 %code, 255
  %column.at = getelementptr ptr, ptr %columns, i64 %k
  %array = load ptr, ptr %column.at, align 8
  %entry.at = getelementptr ptr, ptr %table, i64 %k
  %before = mul i64 %middle, %size
  %here = getelementptr i8, ptr %array, i64 %before
  %block = getelementptr i8, ptr %table, i64 %offset
  %bytes = mul i64 %points, %size
  %bytes.beyond = add i64 %bytes, {ALIGNMENT - 1}
  %bytes.aligned = and i64 %bytes.beyond, {-ALIGNMENT}
  %offset.after = add i64 %offset, %bytes.aligned
  %scalar.bit = and i64 %code, {_SCALAR}
  %is.scalar = icmp ne i64 %scalar.bit, 0
  %output.bit = and i64 %code, {_OUTPUT}
  %is.output = icmp ne i64 %output.bit, 0
  %shown = select i1 %is.scalar, ptr %array, ptr %block
  store ptr %shown, ptr %entry.at, align 8
  %offset.next = select i1 %is.scalar, i64 %offset, i64 %offset.after
  %same = icmp eq i1 %is.output, %is.back
  %is.array = xor i1 %is.scalar, true
  %is.copied = and i1 %same, %is.array
  br i1 %is.copied, label %copied, label %done
copied:
  %target = select i1 %is.back, ptr %here, ptr %block
  %source = select i1 %is.back, ptr %block, ptr %here
  %many = select i1 %is.back, i64 %rest, i64 %points
  call void @ak.copy(ptr %target, ptr %source, i64 %rest, i64 %many, i64 %size)
  br label %done
done:
  %k.raised = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %k.raised, %count
  br i1 %more, label %placed, label %all
all:
  br i1 %is.back, label %exit, label %compute
compute:
  call void %kernel(ptr %table, ptr %scratch, i64 0, i64 %points)
  br label %placed
placed:
  %k.next = phi i64 [ %k.raised, %done ], [ 0, %compute ]
  %offset.again = phi i64 [ %offset.next, %done ], [ %first, %compute ]
  %is.back.next = phi i1 [ %is.back, %done ], [ true, %compute ]
  br label %column
exit:
  ret void
}}"""

_COPIES = {"ak.copy": _COPY, "ak.rest": _REST}
"""Functions that copy, by name."""
