"""The loop of the copy threads, in LLVM IR; see :mod:`alkahest.backends.nvptx.carrier_code`.

``%v = get job.n`` loads a field of the record that ``%job`` points to, ``put lane.chunk %v`` stores
one, and ``%p = at job.next`` gives its address.
"""

LOOP = """
; Carry chunks of a job in these lanes, which are idle before and after; the result is a status.
define internal i64 @carry(ptr %driver, ptr %job, ptr %lanes, i64 %depth) {
entry:
  %chunks = get job.chunks
  %turns = get job.turns
  br label %equip.next
equip.next:
  %e = phi i64 [ 0, %entry ], [ %e.next, %equip.one ]
  %is.bare = icmp ult i64 %e, %depth
  br i1 %is.bare, label %equip.one, label %turn
equip.one:
  %equip.lane = call ptr @lane(ptr %lanes, i64 %e)
  call void @equip(ptr %job, ptr %equip.lane)
  %e.next = add i64 %e, 1
  br label %equip.next
turn:
  %t = phi i64 [ 0, %equip.next ], [ %t.next, %begun ]
  %slot = urem i64 %t, %depth
  %lane = call ptr @lane(ptr %lanes, i64 %slot)
  %ended = call i64 @end(ptr %driver, ptr %job, ptr %lane)
  %is.ended = icmp eq i64 %ended, 0
  br i1 %is.ended, label %free, label %failed
free:
  %stop = get job.stop
  %goes.on = icmp eq i64 %stop, 0
  %has.turns = icmp ult i64 %t, %turns
  %may = and i1 %goes.on, %has.turns
  br i1 %may, label %take, label %drain
take:
  %next = at job.next
  %chunk = atomicrmw add ptr %next, i64 1 monotonic
  %is.left = icmp slt i64 %chunk, %chunks
  br i1 %is.left, label %begin, label %drain
begin:
  put lane.chunk %chunk
  %queued = call i64 @begin(ptr %driver, ptr %job, ptr %lane)
  %is.queued = icmp eq i64 %queued, 0
  br i1 %is.queued, label %begun, label %failed
begun:
  %t.next = add i64 %t, 1
  br label %turn
drain:
  br label %drain.next
drain.next:
  %i = phi i64 [ 1, %drain ], [ %i.next, %drain.done ]
  %is.more = icmp ult i64 %i, %depth
  br i1 %is.more, label %drain.check, label %settle
drain.check:
  %drain.stop = get job.stop
  %drain.on = icmp eq i64 %drain.stop, 0
  br i1 %drain.on, label %drain.one, label %settle
drain.one:
  %drain.t = add i64 %t, %i
  %drain.slot = urem i64 %drain.t, %depth
  %drain.lane = call ptr @lane(ptr %lanes, i64 %drain.slot)
  %drained = call i64 @end(ptr %driver, ptr %job, ptr %drain.lane)
  %is.drained = icmp eq i64 %drained, 0
  br i1 %is.drained, label %drain.done, label %failed
drain.done:
  %i.next = add i64 %i, 1
  br label %drain.next
failed:
  %failure = phi i64 [ %ended, %turn ], [ %queued, %begin ], [ %drained, %drain.one ]
  put job.stop 1
  br label %settle
settle:
  %status = phi i64 [ 0, %drain.next ], [ 0, %drain.check ], [ %failure, %failed ]
  br label %settle.next
settle.next:
  %s = phi i64 [ 0, %settle ], [ %s.next, %settle.one ]
  %is.unsettled = icmp ult i64 %s, %depth
  br i1 %is.unsettled, label %settle.one, label %done
settle.one:
  %settle.lane = call ptr @lane(ptr %lanes, i64 %s)
  call void @settle(ptr %driver, ptr %settle.lane)
  %s.next = add i64 %s, 1
  br label %settle.next
done:
  ret i64 %status
}

; Wait until the device no longer uses a lane whose chunk has not ended, whatever came of it.
define internal void @settle(ptr %driver, ptr %lane) {
entry:
  %chunk = get lane.chunk
  %is.held = icmp sge i64 %chunk, 0
  br i1 %is.held, label %held, label %done
held:
  %settle.i = get driver.settle
  %settle = inttoptr i64 %settle.i to ptr
  %queue.i = get lane.queue
  %queue = inttoptr i64 %queue.i to ptr
  %ignored = call i32 %settle(ptr %queue)
  put lane.chunk -1
  br label %done
done:
  ret void
}

; Copy the inputs of a lane's chunk and queue everything that the device does for it.
define internal i64 @begin(ptr %driver, ptr %job, ptr %lane) {
entry:
  %started = call i64 @now(ptr %driver)
  %chunk = get lane.chunk
  %n = get job.n
  %start = call i64 @start(ptr %job, i64 %chunk)
  %following = add i64 %chunk, 1
  %stop.full = call i64 @start(ptr %job, i64 %following)
  %stop = call i64 @llvm.umin.i64(i64 %stop.full, i64 %n)
  %count = sub i64 %stop, %start
  put lane.start %start
  put lane.count %count
  %host = get lane.host
  %device = get lane.device
  %queue.i = get lane.queue
  %queue = inttoptr i64 %queue.i to ptr
  %host.p = inttoptr i64 %host to ptr
  %staged = get job.staged
  call void @copy_tracks(ptr %job, ptr %lane, i64 0, i64 %staged, i64 %start, i64 %count, i1 true)
  %copied = call i64 @now(ptr %driver)
  %sum = get lane.copied_in
  %took = sub i64 %copied, %started
  %sum.next = add i64 %sum, %took
  put lane.copied_in %sum.next
  %upload.i = get driver.upload
  %upload = inttoptr i64 %upload.i to ptr
  %up = get job.up
  %is.up = icmp ne i64 %up, 0
  br i1 %is.up, label %send, label %sent
send:
  %send.r = call i32 %upload(i64 %device, ptr %host.p, i64 %up, ptr %queue)
  %send.ok = icmp eq i32 %send.r, 0
  br i1 %send.ok, label %sent, label %failed
sent:
  %inputs = get job.inputs
  br label %locked.next
locked.next:
  %k = phi i64 [ %staged, %sent ], [ %k.next, %locked.sent ]
  %is.locked = icmp ult i64 %k, %inputs
  br i1 %is.locked, label %locked.one, label %run
locked.one:
  %from = call ptr @first(ptr %job, i64 %k, i64 %start)
  %size = call i64 @bytes(ptr %job, i64 %k, i64 %count)
  %to = call i64 @place(ptr %job, i64 %k, i64 %device)
  %locked.r = call i32 %upload(i64 %to, ptr %from, i64 %size, ptr %queue)
  %k.next = add i64 %k, 1
  %locked.ok = icmp eq i32 %locked.r, 0
  br i1 %locked.ok, label %locked.sent, label %failed
locked.sent:
  br label %locked.next
run:
  %launch.i = get driver.launch
  %launch = inttoptr i64 %launch.i to ptr
  %kernel.i = get job.kernel
  %kernel = inttoptr i64 %kernel.i to ptr
  %points = get job.points
  %is.full = icmp eq i64 %count, %points
  %is.first = icmp eq i64 %chunk, 0
  %grid.full = get job.grid
  %grid.first = get job.first_grid
  %grid.last = get job.last_grid
  %grid.rest = select i1 %is.first, i64 %grid.first, i64 %grid.last
  %grid.i = select i1 %is.full, i64 %grid.full, i64 %grid.rest
  %grid = trunc i64 %grid.i to i32
  %block.i = get job.block
  %block = trunc i64 %block.i to i32
  %arguments.i = get lane.pointers
  %arguments = inttoptr i64 %arguments.i to ptr
  %run.r = call i32 %launch(ptr %kernel, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 0, ptr %queue, ptr %arguments, ptr null)
  %run.ok = icmp eq i32 %run.r, 0
  br i1 %run.ok, label %ran, label %failed
ran:
  %download.i = get driver.download
  %download = inttoptr i64 %download.i to ptr
  %down = get job.down
  %end = get job.end
  %fetched = sub i64 %end, %down
  %is.down = icmp ne i64 %fetched, 0
  br i1 %is.down, label %fetch, label %fetched.all
fetch:
  %down.host = getelementptr i8, ptr %host.p, i64 %down
  %down.device = add i64 %device, %down
  %fetch.r = call i32 %download(ptr %down.host, i64 %down.device, i64 %fetched, ptr %queue)
  %fetch.ok = icmp eq i32 %fetch.r, 0
  br i1 %fetch.ok, label %fetched.all, label %failed
fetched.all:
  %locked = get job.locked
  br label %out.next
out.next:
  %o = phi i64 [ %inputs, %fetched.all ], [ %o.next, %out.sent ]
  %is.out = icmp ult i64 %o, %locked
  br i1 %is.out, label %out.one, label %mark
out.one:
  %out.to = call ptr @first(ptr %job, i64 %o, i64 %start)
  %out.size = call i64 @bytes(ptr %job, i64 %o, i64 %count)
  %out.from = call i64 @place(ptr %job, i64 %o, i64 %device)
  %out.r = call i32 %download(ptr %out.to, i64 %out.from, i64 %out.size, ptr %queue)
  %o.next = add i64 %o, 1
  %out.ok = icmp eq i32 %out.r, 0
  br i1 %out.ok, label %out.sent, label %failed
out.sent:
  br label %out.next
mark:
  %record.i = get driver.record
  %record = inttoptr i64 %record.i to ptr
  %event.i = get lane.event
  %event = inttoptr i64 %event.i to ptr
  %mark.r = call i32 %record(ptr %event, ptr %queue)
  %mark.ok = icmp eq i32 %mark.r, 0
  br i1 %mark.ok, label %done, label %failed
failed:
  %step = phi i64 [ 1, %send ], [ 1, %locked.one ], [ 2, %run ], [ 3, %fetch ], [ 3, %out.one ], [ 3, %mark ]
  %code = phi i32 [ %send.r, %send ], [ %locked.r, %locked.one ], [ %run.r, %run ], [ %fetch.r, %fetch ], [ %out.r, %out.one ], [ %mark.r, %mark ]
  %status = call i64 @status(i64 %step, i32 %code)
  ret i64 %status
done:
  ret i64 0
}

; Wait for a lane's chunk, if there is one, and copy its results.
define internal i64 @end(ptr %driver, ptr %job, ptr %lane) {
entry:
  %chunk = get lane.chunk
  %is.held = icmp sge i64 %chunk, 0
  br i1 %is.held, label %held, label %done
held:
  %started = call i64 @now(ptr %driver)
  %wait.i = get driver.wait
  %wait = inttoptr i64 %wait.i to ptr
  %event.i = get lane.event
  %event = inttoptr i64 %event.i to ptr
  %wait.r = call i32 %wait(ptr %event)
  %wait.ok = icmp eq i32 %wait.r, 0
  br i1 %wait.ok, label %arrived, label %failed
arrived:
  %came = call i64 @now(ptr %driver)
  put lane.chunk -1
  %start = get lane.start
  %count = get lane.count
  %locked = get job.locked
  %outputs = get job.outputs
  call void @copy_tracks(ptr %job, ptr %lane, i64 %locked, i64 %outputs, i64 %start, i64 %count, i1 false)
  fence seq_cst
  %copied = call i64 @now(ptr %driver)
  %waited = get lane.waited
  %wait.took = sub i64 %came, %started
  %waited.next = add i64 %waited, %wait.took
  put lane.waited %waited.next
  %out = get lane.copied_out
  %out.took = sub i64 %copied, %came
  %out.next = add i64 %out, %out.took
  put lane.copied_out %out.next
  br label %done
failed:
  %status = call i64 @status(i64 4, i32 %wait.r)
  ret i64 %status
done:
  ret i64 0
}
"""
