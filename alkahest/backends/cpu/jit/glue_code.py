"""Machine code of fast calls, as LLVM assembly; see :mod:`alkahest.backends.cpu.jit.glue`.

The same machine code serves every function that is compiled. What differs is in its ``self``, an
array of words of 8 bytes::

     0 kernel          1 inputs           2 outputs           3 scratch bytes of one thread
     4 pool            5 shared from here 6 released from here
     7 chunk           8 threads          9 fallback         10 ndarray     11 dtype of the inputs
    12 "out"          13 tuple           14 item size of an input           15 fresh up to here
    16 PyArray_Empty  17 PyEval_SaveThread 18 PyEval_RestoreThread 19 PyObject_Vectorcall
    20 PyTuple_New    21 Py_IncRef       22 Py_DecRef         23 record     24 whether single
    25 PyMem_RawMalloc 26 PyMem_RawFree
    27 + 2c dtype of output c, and its item size
"""

from __future__ import annotations

HEAD = 27
"""Words before those of the outputs."""

ON_STACK = 4096
"""Bytes of scratch memory that a short call takes from its thread's stack; others use the heap."""

LONG = 80
"""Calls that are so many times longer than those that are just shared are shared in any case."""

CODE = """
; Whether an object is an array that can be used as it is; its data and length if so.
define internal { ptr, i64 } @look_into(ptr %object, ptr %type, ptr %dtype, i32 %flags) nounwind {
entry:
  %p.type = getelementptr i8, ptr %object, i64 8
  %of = load ptr, ptr %p.type
  %is.array = icmp eq ptr %of, %type
  br i1 %is.array, label %array, label %no
array:
  %p.dtype = getelementptr i8, ptr %object, i64 56
  %dtype.of = load ptr, ptr %p.dtype
  %p.ndim = getelementptr i8, ptr %object, i64 24
  %ndim = load i32, ptr %p.ndim
  %p.flags = getelementptr i8, ptr %object, i64 64
  %flags.of = load i32, ptr %p.flags
  %flags.set = and i32 %flags.of, %flags
  %ok.1 = icmp eq ptr %dtype.of, %dtype
  %ok.2 = icmp eq i32 %ndim, 1
  %ok.3 = icmp eq i32 %flags.set, %flags
  %ok.12 = and i1 %ok.1, %ok.2
  %ok = and i1 %ok.12, %ok.3
  br i1 %ok, label %yes, label %no
yes:
  %p.data = getelementptr i8, ptr %object, i64 16
  %data = load ptr, ptr %p.data
  %p.shape = getelementptr i8, ptr %object, i64 32
  %shape = load ptr, ptr %p.shape
  %length = load i64, ptr %shape
  %r.0 = insertvalue { ptr, i64 } undef, ptr %data, 0
  %r.1 = insertvalue { ptr, i64 } %r.0, i64 %length, 1
  ret { ptr, i64 } %r.1
no:
  ret { ptr, i64 } { ptr null, i64 -1 }
}

define ptr @fast_call(ptr %self, ptr %arguments, i64 %count, ptr %keywords) nounwind {
entry:
  %p.self = getelementptr i8, ptr %self, i64 16
  %c = load ptr, ptr %p.self
FIELDS
  %all = add i64 %inputs, %outputs
  %columns = alloca ptr, i64 %all, align 16
  %is.count = icmp eq i64 %count, %inputs
  %is.any = icmp sgt i64 %inputs, 0
  %is.usual = and i1 %is.count, %is.any
  br i1 %is.usual, label %input, label %slow
input:
  %i = phi i64 [ 0, %entry ], [ %i.next, %input.ok ]
  %n.before = phi i64 [ -1, %entry ], [ %n, %input.ok ]
  %p.argument = getelementptr ptr, ptr %arguments, i64 %i
  %argument = load ptr, ptr %p.argument
  %seen = call { ptr, i64 } @look_into(ptr %argument, ptr %ndarray, ptr %dtype, i32 257)
  %data = extractvalue { ptr, i64 } %seen, 0
  %n = extractvalue { ptr, i64 } %seen, 1
  %is.first = icmp eq i64 %i, 0
  %n.wanted = select i1 %is.first, i64 %n, i64 %n.before
  %is.same = icmp eq i64 %n, %n.wanted
  %is.long = icmp sgt i64 %n, 0
  %is.ok = and i1 %is.same, %is.long
  br i1 %is.ok, label %input.ok, label %slow
input.ok:
  %p.column = getelementptr ptr, ptr %columns, i64 %i
  store ptr %data, ptr %p.column
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %inputs
  br i1 %i.more, label %input, label %keywords.look
keywords.look:
  %is.plain = icmp eq ptr %keywords, null
  br i1 %is.plain, label %fresh, label %named
named:
  %p.names = getelementptr i8, ptr %keywords, i64 16
  %names = load i64, ptr %p.names
  %p.name = getelementptr i8, ptr %keywords, i64 24
  %is.one = icmp eq i64 %names, 1
  br i1 %is.one, label %named.one, label %slow
named.one:
  %name = load ptr, ptr %p.name
  %is.out = icmp eq ptr %name, %out.name
  br i1 %is.out, label %out, label %slow
out:
  %p.out = getelementptr ptr, ptr %arguments, i64 %inputs
  %given = load ptr, ptr %p.out
  br i1 %is.single, label %out.check, label %out.tuple
out.tuple:
  %p.given.type = getelementptr i8, ptr %given, i64 8
  %given.type = load ptr, ptr %p.given.type
  %is.tuple = icmp eq ptr %given.type, %tuple
  br i1 %is.tuple, label %out.size, label %slow
out.size:
  %p.size = getelementptr i8, ptr %given, i64 16
  %size = load i64, ptr %p.size
  %is.size = icmp eq i64 %size, %outputs
  br i1 %is.size, label %out.check, label %slow
out.check:
  %p.items.0 = getelementptr i8, ptr %given, i64 24
  %p.items = select i1 %is.single, ptr %p.out, ptr %p.items.0
  br label %output
output:
  %o = phi i64 [ 0, %out.check ], [ %o.next, %output.ok ]
  %p.item = getelementptr ptr, ptr %p.items, i64 %o
  %item = load ptr, ptr %p.item
  %o.twice = shl i64 %o, 1
  %p.output.dtype = getelementptr i64, ptr %p.dtypes, i64 %o.twice
  %output.dtype = load ptr, ptr %p.output.dtype
  %p.output.size = getelementptr i64, ptr %p.output.dtype, i64 1
  %output.size = load i64, ptr %p.output.size
  %seen.o = call { ptr, i64 } @look_into(ptr %item, ptr %ndarray, ptr %output.dtype, i32 1281)
  %data.o = extractvalue { ptr, i64 } %seen.o, 0
  %n.o = extractvalue { ptr, i64 } %seen.o, 1
  %is.n = icmp eq i64 %n.o, %n
  br i1 %is.n, label %apart.all, label %slow
apart.all:
  ; The span of the output against every column before it.
  %bytes.o = mul i64 %n, %output.size
  %begin.o = ptrtoint ptr %data.o to i64
  %end.o = add i64 %begin.o, %bytes.o
  %before = add i64 %inputs, %o
  br label %apart
apart:
  %k = phi i64 [ 0, %apart.all ], [ %k.next, %apart.next ]
  %k.left = icmp slt i64 %k, %before
  br i1 %k.left, label %apart.one, label %output.ok
apart.one:
  %p.other = getelementptr ptr, ptr %columns, i64 %k
  %other = load i64, ptr %p.other
  %k.output.0 = sub i64 %k, %inputs
  %is.input = icmp slt i64 %k, %inputs
  %k.output = select i1 %is.input, i64 0, i64 %k.output.0
  %k.twice = shl i64 %k.output, 1
  %k.word = add i64 %k.twice, 1
  %p.other.size = getelementptr i64, ptr %p.dtypes, i64 %k.word
  %other.size.0 = load i64, ptr %p.other.size
  %other.size = select i1 %is.input, i64 %input.size, i64 %other.size.0
  %bytes.k = mul i64 %n, %other.size
  %end.k = add i64 %other, %bytes.k
  %is.before = icmp ule i64 %end.o, %other
  %is.after = icmp ule i64 %end.k, %begin.o
  %is.apart = or i1 %is.before, %is.after
  %is.same.place = icmp eq i64 %other, %begin.o
  %is.same.size = icmp eq i64 %other.size, %output.size
  %is.same.array.0 = and i1 %is.same.place, %is.same.size
  %is.same.array = and i1 %is.same.array.0, %is.input
  %is.fine = or i1 %is.apart, %is.same.array
  br i1 %is.fine, label %apart.next, label %slow
apart.next:
  %k.next = add i64 %k, 1
  br label %apart
output.ok:
  %p.column.o = getelementptr ptr, ptr %columns, i64 %before
  store ptr %data.o, ptr %p.column.o
  %o.next = add i64 %o, 1
  %o.more = icmp slt i64 %o.next, %outputs
  br i1 %o.more, label %output, label %take
take:
  call void %Py_IncRef(ptr %given)
  br label %compute
fresh:
  %is.small = icmp sle i64 %n, %fresh.limit
  br i1 %is.small, label %fresh.begin, label %slow
fresh.begin:
  %p.length = alloca i64
  store i64 %n, ptr %p.length
  br i1 %is.single, label %fresh.array, label %fresh.tuple
fresh.tuple:
  %results = call ptr %PyTuple_New(i64 %outputs)
  %is.none = icmp eq ptr %results, null
  br i1 %is.none, label %failed, label %fresh.array
fresh.array:
  %result.0 = phi ptr [ null, %fresh.begin ], [ %results, %fresh.tuple ], [ %result.0, %fresh.next ]
  %f = phi i64 [ 0, %fresh.begin ], [ 0, %fresh.tuple ], [ %f.next, %fresh.next ]
  %f.twice = shl i64 %f, 1
  %p.fresh.dtype = getelementptr i64, ptr %p.dtypes, i64 %f.twice
  %fresh.dtype = load ptr, ptr %p.fresh.dtype
  call void %Py_IncRef(ptr %fresh.dtype)
  %array = call ptr %PyArray_Empty(i32 1, ptr %p.length, ptr %fresh.dtype, i32 0)
  %is.null = icmp eq ptr %array, null
  br i1 %is.null, label %fresh.failed, label %fresh.made
fresh.made:
  %p.fresh.data = getelementptr i8, ptr %array, i64 16
  %fresh.data = load ptr, ptr %p.fresh.data
  %f.column = add i64 %inputs, %f
  %p.fresh.column = getelementptr ptr, ptr %columns, i64 %f.column
  store ptr %fresh.data, ptr %p.fresh.column
  br i1 %is.single, label %compute, label %fresh.store
fresh.store:
  %p.fresh.items = getelementptr i8, ptr %result.0, i64 24
  %p.fresh.item = getelementptr ptr, ptr %p.fresh.items, i64 %f
  store ptr %array, ptr %p.fresh.item
  br label %fresh.next
fresh.next:
  %f.next = add i64 %f, 1
  %f.more = icmp slt i64 %f.next, %outputs
  br i1 %f.more, label %fresh.array, label %compute
fresh.failed:
  %is.partial = icmp ne ptr %result.0, null
  br i1 %is.partial, label %fresh.drop, label %failed
fresh.drop:
  call void %Py_DecRef(ptr %result.0)
  br label %failed
failed:
  ret ptr null
compute:
  %result = phi ptr [ %given, %take ], [ %array, %fresh.made ], [ %result.0, %fresh.next ]
  %is.shared = icmp sge i64 %n, %shared.from
  %is.released = icmp sge i64 %n, %released.from
  %is.much = icmp sgt i64 %scratch.size, ON_STACK
  %is.work = or i1 %is.shared, %is.released
  %is.heap = or i1 %is.work, %is.much
  br i1 %is.heap, label %heap, label %short
short:
  %scratch.stack = alloca i8, i64 %scratch.size, align 64
  call void %kernel(ptr %columns, ptr %scratch.stack, i64 0, i64 %n)
  ret ptr %result
heap:
  %p.allocate = getelementptr i64, ptr %c, i64 25
  %allocate = load ptr, ptr %p.allocate
  %scratch.all = mul i64 %scratch.size, %threads
  %scratch.used = select i1 %is.shared, i64 %scratch.all, i64 %scratch.size
  %needed = add i64 %scratch.used, 63
  %block = call ptr %allocate(i64 %needed)
  %is.none.left = icmp eq ptr %block, null
  br i1 %is.none.left, label %no.memory, label %aligned
no.memory:
  call void %Py_DecRef(ptr %result)
  br label %slow
aligned:
  %block.begin = ptrtoint ptr %block to i64
  %block.past = add i64 %block.begin, 63
  %block.line = and i64 %block.past, -64
  %scratch = inttoptr i64 %block.line to ptr
  br i1 %is.shared, label %parallel, label %serial
serial:
  br i1 %is.released, label %release, label %hold
hold:
  call void %kernel(ptr %columns, ptr %scratch, i64 0, i64 %n)
  br label %done
release:
  %state.1 = call ptr %PyEval_SaveThread()
  call void %kernel(ptr %columns, ptr %scratch, i64 0, i64 %n)
  call void %PyEval_RestoreThread(ptr %state.1)
  br label %done
parallel:
  %helpers = sub i64 %threads, 1
  %large = mul i64 %shared.from, LONG
  %is.large = icmp sgt i64 %n, %large
  %judged = select i1 %is.large, ptr null, ptr %record
  %state.2 = call ptr %PyEval_SaveThread()
  %used = call i64 @share(ptr %pool, ptr %kernel, ptr %columns, ptr %scratch, i64 %scratch.size,
                          i64 %n, i64 %chunk, i64 %helpers, ptr %judged)
  call void %PyEval_RestoreThread(ptr %state.2)
  br label %done
done:
  %p.free = getelementptr i64, ptr %c, i64 26
  %free = load ptr, ptr %p.free
  call void %free(ptr %block)
  ret ptr %result
slow:
  %answer = call ptr %PyObject_Vectorcall(ptr %fallback, ptr %arguments, i64 %count, ptr %keywords)
  ret ptr %answer
}
"""

_FIELDS = (
    "ptr kernel, i64 inputs, i64 outputs, i64 scratch.size, ptr pool, i64 shared.from, "
    "i64 released.from, i64 chunk, i64 threads, ptr fallback, ptr ndarray, ptr dtype, ptr out.name, "
    "ptr tuple, i64 input.size, i64 fresh.limit, ptr PyArray_Empty, ptr PyEval_SaveThread, "
    "ptr PyEval_RestoreThread, ptr PyObject_Vectorcall, ptr PyTuple_New, ptr Py_IncRef, "
    "ptr Py_DecRef, ptr record, i64 single"
).split(", ")


def code() -> str:
    """The IR of ``fast_call``, which calls ``share``."""
    lines = []
    for word, field in enumerate(_FIELDS):
        kind, name = field.split(" ")
        lines.append(f"  %f.{name} = getelementptr i64, ptr %c, i64 {word}")
        lines.append(f"  %{name} = load {kind}, ptr %f.{name}")
    lines.append("  %is.single = icmp ne i64 %single, 0")
    lines.append(f"  %p.dtypes = getelementptr i64, ptr %c, i64 {HEAD}")
    words = {"FIELDS": "\n".join(lines), "LONG": str(LONG), "ON_STACK": str(ON_STACK)}
    text = CODE
    for name, stands_for in words.items():
        text = text.replace(name, stands_for)
    return text


__all__ = ["HEAD", "LONG", "ON_STACK", "code"]
