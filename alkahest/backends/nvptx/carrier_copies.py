"""Copies between arrays of the host and blocks, in LLVM IR, in the words of ``carrier_loop``."""

COPIES = """
; Copy a chunk of each track from %k.first on into the lane's block, or out of it.
define internal void @copy_tracks(ptr %job, ptr %lane, i64 %k.first, i64 %k.end, i64 %start, i64 %count, i1 %in) {
entry:
  %host = get lane.host
  %stream.i = get job.around
  %stream = icmp ne i64 %stream.i, 0
  br label %next
next:
  %k = phi i64 [ %k.first, %entry ], [ %k.next, %copied ]
  %is.more = icmp ult i64 %k, %k.end
  br i1 %is.more, label %one, label %done
one:
  %k.next = add i64 %k, 1
  %track = call ptr @track(ptr %job, i64 %k)
  %stride = get track.stride
  %itemsize = get track.itemsize
  %array = call ptr @first(ptr %job, i64 %k, i64 %start)
  %place.i = call i64 @place(ptr %job, i64 %k, i64 %host)
  %place = inttoptr i64 %place.i to ptr
  %size = mul i64 %itemsize, %count
  %is.dense = icmp eq i64 %stride, %itemsize
  br i1 %is.dense, label %dense, label %sparse
dense:
  br i1 %in, label %dense.in, label %dense.out
dense.in:
  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %array, i64 %size, i1 false)
  br label %copied
dense.out:
  br i1 %stream, label %streamed, label %cached
streamed:
  call void @store_around_caches(ptr %array, ptr %place, i64 %size)
  br label %copied
cached:
  call void @llvm.memcpy.p0.p0.i64(ptr %array, ptr %place, i64 %size, i1 false)
  br label %copied
sparse:
  br i1 %in, label %sparse.in, label %sparse.out
sparse.in:
  call void @copy_sparse(ptr %place, i64 %itemsize, ptr %array, i64 %stride, i64 %itemsize, i64 %count)
  br label %copied
sparse.out:
  call void @copy_sparse(ptr %array, i64 %stride, ptr %place, i64 %itemsize, i64 %itemsize, i64 %count)
  br label %copied
copied:
  br label %next
done:
  ret void
}

; Results are not read again soon: writing whole lines around the caches saves reading them first.
define internal void @store_around_caches(ptr noalias %to, ptr noalias %from, i64 %size) {
entry:
  %address = ptrtoint ptr %to to i64
  %negative = sub i64 0, %address
  %odd = and i64 %negative, 63
  %head = call i64 @llvm.umin.i64(i64 %odd, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %head, i1 false)
  %rest = sub i64 %size, %head
  %tail = and i64 %rest, 63
  %lines.end = sub i64 %size, %tail
  br label %next
next:
  %i = phi i64 [ %head, %entry ], [ %i.next, %line ]
  %is.more = icmp ult i64 %i, %lines.end
  br i1 %is.more, label %line, label %done
line:
  %from.i = getelementptr i8, ptr %from, i64 %i
  %to.i = getelementptr i8, ptr %to, i64 %i
  %value = load <8 x i64>, ptr %from.i, align 1
  store <8 x i64> %value, ptr %to.i, align 64, !nontemporal !0
  %i.next = add i64 %i, 64
  br label %next
done:
  %from.tail = getelementptr i8, ptr %from, i64 %lines.end
  %to.tail = getelementptr i8, ptr %to, i64 %lines.end
  call void @llvm.memcpy.p0.p0.i64(ptr %to.tail, ptr %from.tail, i64 %tail, i1 false)
  ret void
}

define internal void @copy_sparse(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %itemsize, i64 %count) {
entry:
  switch i64 %itemsize, label %done [ i64 1, label %b1 i64 2, label %b2 i64 4, label %b4 i64 8, label %b8 i64 16, label %b16 ]
b1:
  call void @copy_sparse_1(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %count)
  ret void
b2:
  call void @copy_sparse_2(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %count)
  ret void
b4:
  call void @copy_sparse_4(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %count)
  ret void
b8:
  call void @copy_sparse_8(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %count)
  ret void
b16:
  call void @copy_sparse_16(ptr %to, i64 %to.stride, ptr %from, i64 %from.stride, i64 %count)
  ret void
done:
  ret void
}
"""

COPY_SPARSE = """
define internal void @copy_sparse_{size}(ptr noalias %to, i64 %to.stride, ptr noalias %from, i64 %from.stride, i64 %count) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %is.more = icmp ult i64 %i, %count
  br i1 %is.more, label %one, label %done
one:
  %from.o = mul i64 %i, %from.stride
  %from.i = getelementptr i8, ptr %from, i64 %from.o
  %to.o = mul i64 %i, %to.stride
  %to.i = getelementptr i8, ptr %to, i64 %to.o
  %value = load i{bits}, ptr %from.i, align 1
  store i{bits} %value, ptr %to.i, align 1
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}}
"""
"""Copies values of ``size`` bytes, of ``bits`` bits, one by one."""
