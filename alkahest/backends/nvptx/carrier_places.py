"""Where things lie that the loop of the copy threads works on, in the words of ``carrier_loop``."""

PLACES = """
define internal ptr @lane(ptr %lanes, i64 %k) {
  %at = getelementptr ptr, ptr %lanes, i64 %k
  %lane = load ptr, ptr %at
  ret ptr %lane
}

; Write down what a kernel gets when its chunk is in this lane: addresses, as arguments or as a
; table at the beginning of the block, and the number of points.
define internal void @equip(ptr %job, ptr %lane) {
entry:
  put lane.chunk -1
  put lane.copied_in 0
  put lane.waited 0
  put lane.copied_out 0
  %copied = get job.copied
  %host = get lane.host
  %device = get lane.device
  %values = get lane.values
  %table = get job.table
  %has.table = icmp ne i64 %table, 0
  %target.i = select i1 %has.table, i64 %host, i64 %values
  %target = inttoptr i64 %target.i to ptr
  %addresses.i = get job.addresses
  %addresses = inttoptr i64 %addresses.i to ptr
  %arrays = get job.arrays
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %is.more = icmp ult i64 %k, %arrays
  br i1 %is.more, label %one, label %written
one:
  %from = getelementptr i64, ptr %addresses, i64 %k
  %given = load i64, ptr %from
  %is.copied = icmp ult i64 %k, %copied
  %base = select i1 %is.copied, i64 %device, i64 %host
  %is.offset = icmp slt i64 %given, 0
  %offset = xor i64 %given, -1
  %place = add i64 %base, %offset
  %address = select i1 %is.offset, i64 %place, i64 %given
  %to = getelementptr i64, ptr %target, i64 %k
  store i64 %address, ptr %to
  %k.next = add i64 %k, 1
  br label %next
written:
  %values.p = inttoptr i64 %values to ptr
  br i1 %has.table, label %tabled, label %pointed
tabled:
  store i64 %device, ptr %values.p
  br label %pointed
pointed:
  %count = phi i64 [ %arrays, %written ], [ 1, %tabled ]
  %pointers.i = get lane.pointers
  %pointers = inttoptr i64 %pointers.i to ptr
  br label %point.next
point.next:
  %p = phi i64 [ 0, %pointed ], [ %p.next, %point.one ]
  %is.pointed = icmp ult i64 %p, %count
  %pointer = getelementptr ptr, ptr %pointers, i64 %p
  br i1 %is.pointed, label %point.one, label %last
point.one:
  %value = getelementptr i64, ptr %values.p, i64 %p
  store ptr %value, ptr %pointer
  %p.next = add i64 %p, 1
  br label %point.next
last:
  %points = at lane.count
  store ptr %points, ptr %pointer
  ret void
}

; The first point of a chunk.
define internal i64 @start(ptr %job, i64 %chunk) {
  %points = get job.points
  %first = get job.first
  %is.first = icmp eq i64 %chunk, 0
  %before = sub i64 %chunk, 1
  %of.others = mul i64 %before, %points
  %behind = add i64 %first, %of.others
  %start = select i1 %is.first, i64 0, i64 %behind
  ret i64 %start
}

define internal ptr @track(ptr %job, i64 %k) {
  %tracks.i = get job.tracks
  %tracks = inttoptr i64 %tracks.i to ptr
  %track = getelementptr %Track, ptr %tracks, i64 %k
  ret ptr %track
}

; Address of the first value of a chunk in the caller's array.
define internal ptr @first(ptr %job, i64 %k, i64 %start) {
  %track = call ptr @track(ptr %job, i64 %k)
  %address = get track.address
  %stride = get track.stride
  %distance = mul i64 %stride, %start
  %sum = add i64 %address, %distance
  %first = inttoptr i64 %sum to ptr
  ret ptr %first
}

; Address of an array's place in the block at %base.
define internal i64 @place(ptr %job, i64 %k, i64 %base) {
  %track = call ptr @track(ptr %job, i64 %k)
  %offset = get track.offset
  %place = add i64 %base, %offset
  ret i64 %place
}

define internal i64 @bytes(ptr %job, i64 %k, i64 %count) {
  %track = call ptr @track(ptr %job, i64 %k)
  %itemsize = get track.itemsize
  %size = mul i64 %itemsize, %count
  ret i64 %size
}

define internal i64 @status(i64 %step, i32 %code) {
  %upper = shl i64 %step, 32
  %lower = zext i32 %code to i64
  %status = or i64 %upper, %lower
  ret i64 %status
}

; Nanoseconds, or 0 without a clock.
define internal i64 @now(ptr %driver) {
entry:
  %time = alloca [2 x i64]
  %clock.i = get driver.clock
  %has.clock = icmp ne i64 %clock.i, 0
  br i1 %has.clock, label %read, label %none
read:
  %clock = inttoptr i64 %clock.i to ptr
  %ignored = call i32 %clock(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.p
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
none:
  ret i64 0
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
!0 = !{i32 1}
"""
