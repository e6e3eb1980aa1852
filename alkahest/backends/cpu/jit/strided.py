"""Columns that are not contiguous: gathered block by block beside the kernel, in machine code.

The kernel reads and writes contiguous columns. ``@strided`` has the same signature and can be shared
among threads like it; its data say where the kernel is and how each column lies in memory. Only the
columns that need it are copied, a block at a time, so what the kernel reads is still in the cache. A
column of stride 0 is written to its buffer once for all blocks of a call.

The data, in words of 8 bytes::

    0 kernel   1 columns   2 inputs   3 points of a block   4 where in scratch the addresses go
    8 + 4c     address     stride in bytes   item size   where in scratch its buffer is, or -1
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import attrs

CODE = """
; Copy %count items of %size bytes from one stride to another.
define internal void @move(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %size,
                           i64 %count) nounwind {
entry:
  %is.any = icmp sgt i64 %count, 0
  br i1 %is.any, label %which, label %done
which:
  switch i64 %size, label %bytes [ i64 4, label %four
                                   i64 8, label %eight
                                   i64 16, label %sixteen ]
LOOPS
done:
  ret void
}

define void @strided(ptr %data, ptr %scratch, i64 %begin, i64 %end) nounwind {
entry:
  %kernel = load ptr, ptr %data
  %p.columns = getelementptr i64, ptr %data, i64 1
  %columns = load i64, ptr %p.columns
  %p.inputs = getelementptr i64, ptr %data, i64 2
  %inputs = load i64, ptr %p.inputs
  %p.block = getelementptr i64, ptr %data, i64 3
  %block = load i64, ptr %p.block
  %p.addresses = getelementptr i64, ptr %data, i64 4
  %o.addresses = load i64, ptr %p.addresses
  %addresses = getelementptr i8, ptr %scratch, i64 %o.addresses
  br label %next.block
next.block:
  %first = phi i64 [ %begin, %entry ], [ %after, %block.done ]
  %is.left = icmp slt i64 %first, %end
  br i1 %is.left, label %read, label %done
read:
  %after = add i64 %first, %block
  %last = call i64 @llvm.smin.i64(i64 %after, i64 %end)
  %count = sub i64 %last, %first
  %is.first = icmp eq i64 %first, %begin
  br label %column
column:
  %c = phi i64 [ 0, %read ], [ %c.next, %column.done ]
  %c.word.0 = shl i64 %c, 2
  %c.word = add i64 %c.word.0, 8
  %p.address = getelementptr i64, ptr %data, i64 %c.word
  %address = load ptr, ptr %p.address
  %p.stride = getelementptr i64, ptr %p.address, i64 1
  %stride = load i64, ptr %p.stride
  %p.size = getelementptr i64, ptr %p.address, i64 2
  %size = load i64, ptr %p.size
  %p.buffer = getelementptr i64, ptr %p.address, i64 3
  %o.buffer = load i64, ptr %p.buffer
  %start = mul i64 %stride, %first
  %from = getelementptr i8, ptr %address, i64 %start
  %buffer = getelementptr i8, ptr %scratch, i64 %o.buffer
  %is.direct = icmp slt i64 %o.buffer, 0
  %used = select i1 %is.direct, ptr %from, ptr %buffer
  %p.used = getelementptr ptr, ptr %addresses, i64 %c
  store ptr %used, ptr %p.used
  br i1 %is.direct, label %column.done, label %indirect
indirect:
  %is.input = icmp slt i64 %c, %inputs
  %varies = icmp ne i64 %stride, 0
  %is.due = or i1 %varies, %is.first
  %gathers = and i1 %is.input, %is.due
  br i1 %gathers, label %gather, label %column.done
gather:
  call void @move(ptr %buffer, i64 %size, ptr %from, i64 %stride, i64 %size, i64 %count)
  br label %column.done
column.done:
  %c.next = add i64 %c, 1
  %more = icmp slt i64 %c.next, %columns
  br i1 %more, label %column, label %run
run:
  call void %kernel(ptr %addresses, ptr %scratch, i64 0, i64 %count)
  br label %output
output:
  %d = phi i64 [ %inputs, %run ], [ %d.next, %output.done ]
  %is.output = icmp slt i64 %d, %columns
  br i1 %is.output, label %write, label %block.done
write:
  %d.word.0 = shl i64 %d, 2
  %d.word = add i64 %d.word.0, 8
  %p.address.2 = getelementptr i64, ptr %data, i64 %d.word
  %address.2 = load ptr, ptr %p.address.2
  %p.stride.2 = getelementptr i64, ptr %p.address.2, i64 1
  %stride.2 = load i64, ptr %p.stride.2
  %p.size.2 = getelementptr i64, ptr %p.address.2, i64 2
  %size.2 = load i64, ptr %p.size.2
  %p.buffer.2 = getelementptr i64, ptr %p.address.2, i64 3
  %o.buffer.2 = load i64, ptr %p.buffer.2
  %is.indirect = icmp sge i64 %o.buffer.2, 0
  br i1 %is.indirect, label %scatter, label %output.done
scatter:
  %start.2 = mul i64 %stride.2, %first
  %to = getelementptr i8, ptr %address.2, i64 %start.2
  %buffer.2 = getelementptr i8, ptr %scratch, i64 %o.buffer.2
  call void @move(ptr %to, i64 %stride.2, ptr %buffer.2, i64 %size.2, i64 %size.2, i64 %count)
  br label %output.done
output.done:
  %d.next = add i64 %d, 1
  br label %output
block.done:
  br label %next.block
done:
  ret void
}
"""

_LOOP = """
{name}:
  %i.{name} = phi i64 [ 0, %which ], [ %j.{name}, %{name} ]
  %t.{name} = phi ptr [ %to, %which ], [ %u.{name}, %{name} ]
  %f.{name} = phi ptr [ %from, %which ], [ %g.{name}, %{name} ]
  %v.{name} = load {type}, ptr %f.{name}, align 1
  store {type} %v.{name}, ptr %t.{name}, align 1
  %u.{name} = getelementptr i8, ptr %t.{name}, i64 %to.stride
  %g.{name} = getelementptr i8, ptr %f.{name}, i64 %from.stride
  %j.{name} = add i64 %i.{name}, 1
  %m.{name} = icmp slt i64 %j.{name}, %count
  br i1 %m.{name}, label %{name}, label %done
"""

_LOOPS = {"bytes": "i8", "four": "i32", "eight": "i64", "sixteen": "<2 x i64>"}

_BUFFERS = 64 * 1024
"""Bytes of all buffers of a thread, about."""

_LARGEST_BLOCK, _SMALLEST_BLOCK = 1024, 64


def code() -> str:
    """The IR of ``strided``; ``llvm.smin.i64`` is declared elsewhere."""
    loops = "".join(_LOOP.format(name=name, type=kind) for name, kind in _LOOPS.items())
    return CODE.replace("LOOPS", loops.strip())


@attrs.frozen
class Plan:
    """How the columns of one call are reached.

    Attributes:
        data: what ``strided`` is given.
        scratch: bytes of scratch memory of one thread.
    """

    data: Any
    scratch: int


def plan(kernel: int, scratch: int, inputs: int, columns: Sequence[tuple[int, int, int]]) -> Plan:
    """The data for a call.

    Args:
        kernel: address of the code.
        scratch: bytes of scratch memory that it needs.
        inputs: how many of the columns are inputs.
        columns: inputs, then outputs: address, stride and item size in bytes.
    """
    widths = [size if stride != size else 0 for _, stride, size in columns]
    block = min(_LARGEST_BLOCK, max(_SMALLEST_BLOCK, _BUFFERS // (sum(widths) or 1) // 64 * 64))
    end = _rounded(scratch)
    head = [kernel, len(columns), inputs, block, end, 0, 0, 0]
    end += _rounded(8 * len(columns))
    words: list[int] = []
    for (address, stride, size), width in zip(columns, widths, strict=True):
        words += [address, stride, size, end if width else -1]
        end += _rounded(width * block)
    return Plan((ctypes.c_int64 * (len(head) + len(words)))(*head, *words), end)


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


__all__ = ["Plan", "code", "plan"]
