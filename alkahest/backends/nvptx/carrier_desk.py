"""How copy threads find jobs and callers wait for theirs, in the words of ``carrier_loop``.

Neither needs the interpreter: threads of Python that wake each other take turns at its lock, which
takes a sixteenth of them a millisecond and more.
"""

DESK = """
; What a copy thread does until the desk is closed.
define void @serve(ptr %driver, ptr %desk, ptr %lanes, i64 %depth) {
entry:
  %lock = get desk.lock
  %work = get desk.work
  br label %look
look:
  call void @take(ptr %desk, i64 %lock)
  %closed = get desk.closed
  %job = call ptr @join(ptr %desk)
  call void @give(ptr %desk, i64 %lock)
  %is.idle = icmp eq ptr %job, null
  br i1 %is.idle, label %idle, label %work.on
idle:
  %is.open = icmp eq i64 %closed, 0
  br i1 %is.open, label %park, label %done
park:
  call void @take(ptr %desk, i64 %work)
  br label %look
work.on:
  %status = call i64 @carry(ptr %driver, ptr %job, ptr %lanes, i64 %depth)
  call void @take(ptr %desk, i64 %lock)
  call void @leave(ptr %desk, ptr %job, ptr %lanes, i64 %depth, i64 %status)
  call void @give(ptr %desk, i64 %lock)
  br label %look
done:
  ret void
}

; Leave a job at a seat and wake as many threads. Returns 0.
define i64 @post(ptr %desk, ptr %job, i64 %seat, i64 %threads) {
entry:
  %job.i = ptrtoint ptr %job to i64
  call void @sit(ptr %desk, i64 %seat, i64 %job.i)
  %work = get desk.work
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %is.more = icmp ult i64 %k, %threads
  br i1 %is.more, label %one, label %done
one:
  call void @give(ptr %desk, i64 %work)
  %k.next = add i64 %k, 1
  br label %next
done:
  ret i64 0
}

; Wait until nobody is at a job and nobody will be; then its seat is free, and the result is 0.
; Where a signal interrupts an impatient caller it is 1, and nothing has changed.
define i64 @wait(ptr %desk, ptr %job, i64 %seat, i64 %patient) {
entry:
  %is.patient = icmp ne i64 %patient, 0
  br label %look
look:
  %over = get job.over
  %is.over = icmp ne i64 %over, 0
  br i1 %is.over, label %free, label %sleep
sleep:
  %take.i = get desk.take
  %take = inttoptr i64 %take.i to ptr
  %done.i = get job.done
  %done = inttoptr i64 %done.i to ptr
  %r = call i32 %take(ptr %done)
  %is.woken = icmp eq i32 %r, 0
  %goes.on = or i1 %is.woken, %is.patient
  br i1 %goes.on, label %look, label %interrupted
free:
  call void @sit(ptr %desk, i64 %seat, i64 0)
  put job.over 2
  ret i64 0
interrupted:
  ret i64 1
}

; Let no thread join a job any more, and have those that are at it begin no other chunk.
define i64 @stop(ptr %desk, ptr %job) {
  %lock = get desk.lock
  call void @take(ptr %desk, i64 %lock)
  put job.stop 1
  call void @conclude(ptr %desk, ptr %job)
  call void @give(ptr %desk, i64 %lock)
  ret i64 0
}

define internal void @sit(ptr %desk, i64 %seat, i64 %job) {
  %lock = get desk.lock
  call void @take(ptr %desk, i64 %lock)
  %jobs.i = get desk.jobs
  %jobs = inttoptr i64 %jobs.i to ptr
  %at = getelementptr i64, ptr %jobs, i64 %seat
  store i64 %job, ptr %at
  call void @give(ptr %desk, i64 %lock)
  ret void
}

; The job whose turn it is, each giving way to the others, or null. The lock is held.
define internal ptr @join(ptr %desk) {
entry:
  %seats = get desk.seats
  %cursor = get desk.cursor
  %jobs.i = get desk.jobs
  %jobs = inttoptr i64 %jobs.i to ptr
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %pass ]
  %is.more = icmp ult i64 %k, %seats
  br i1 %is.more, label %one, label %none
one:
  %k.next = add i64 %k, 1
  %position = add i64 %cursor, %k
  %seat = urem i64 %position, %seats
  %at = getelementptr i64, ptr %jobs, i64 %seat
  %job.i = load volatile i64, ptr %at
  %job = inttoptr i64 %job.i to ptr
  %is.taken = icmp ne i64 %job.i, 0
  br i1 %is.taken, label %check, label %pass
check:
  %active = get job.active
  %most = get job.most
  %has.room = icmp slt i64 %active, %most
  %goes.on = call i1 @goes_on(ptr %job)
  %may = and i1 %has.room, %goes.on
  br i1 %may, label %found, label %pass
pass:
  br label %next
found:
  %active.next = add i64 %active, 1
  put job.active %active.next
  %cursor.next = add i64 %seat, 1
  put desk.cursor %cursor.next
  ret ptr %job
none:
  ret ptr null
}

; A thread ends its turn at a job. The lock is held.
define internal void @leave(ptr %desk, ptr %job, ptr %lanes, i64 %depth, i64 %status) {
entry:
  %known = get job.status
  %is.first = icmp eq i64 %known, 0
  %kept = select i1 %is.first, i64 %status, i64 %known
  put job.status %kept
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %is.more = icmp ult i64 %k, %depth
  br i1 %is.more, label %one, label %count
one:
  %k.next = add i64 %k, 1
  %lane = call ptr @lane(ptr %lanes, i64 %k)
  %in = get lane.copied_in
  %in.sum = get job.copied_in
  %in.next = add i64 %in.sum, %in
  put job.copied_in %in.next
  %wait = get lane.waited
  %wait.sum = get job.waited
  %wait.next = add i64 %wait.sum, %wait
  put job.waited %wait.next
  %out = get lane.copied_out
  %out.sum = get job.copied_out
  %out.next = add i64 %out.sum, %out
  put job.copied_out %out.next
  br label %next
count:
  %active = get job.active
  %active.next = sub i64 %active, 1
  put job.active %active.next
  call void @conclude(ptr %desk, ptr %job)
  %most = get job.most
  %was.full = icmp sge i64 %active, %most
  br i1 %was.full, label %wake, label %done
wake:
  %work = get desk.work
  call void @give(ptr %desk, i64 %work)
  br label %done
done:
  ret void
}

; Wake the caller when nobody is at the job and nobody will be. The lock is held.
define internal void @conclude(ptr %desk, ptr %job) {
entry:
  %active = get job.active
  %over = get job.over
  %busy = or i64 %active, %over
  %is.busy = icmp ne i64 %busy, 0
  br i1 %is.busy, label %done, label %check
check:
  %goes.on = call i1 @goes_on(ptr %job)
  br i1 %goes.on, label %done, label %over.now
over.now:
  put job.over 1
  %semaphore = get job.done
  call void @give(ptr %desk, i64 %semaphore)
  br label %done
done:
  ret void
}

; Whether another chunk may be begun.
define internal i1 @goes_on(ptr %job) {
  %stop = get job.stop
  %is.unstopped = icmp eq i64 %stop, 0
  %next = get job.next
  %chunks = get job.chunks
  %is.left = icmp slt i64 %next, %chunks
  %goes.on = and i1 %is.unstopped, %is.left
  ret i1 %goes.on
}

define internal void @take(ptr %desk, i64 %semaphore.i) {
entry:
  %take.i = get desk.take
  %take = inttoptr i64 %take.i to ptr
  %semaphore = inttoptr i64 %semaphore.i to ptr
  br label %again
again:
  %r = call i32 %take(ptr %semaphore)
  %is.taken = icmp eq i32 %r, 0
  br i1 %is.taken, label %done, label %again
done:
  ret void
}

define internal void @give(ptr %desk, i64 %semaphore.i) {
  %give.i = get desk.give
  %give = inttoptr i64 %give.i to ptr
  %semaphore = inttoptr i64 %semaphore.i to ptr
  %ignored = call i32 %give(ptr %semaphore)
  ret void
}
"""
