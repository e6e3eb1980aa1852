"""Machine code of the worker threads, as LLVM assembly; see :mod:`alkahest.backends.cpu.jit.threads`.

The pool is one block of memory, in words of 8 bytes::

      0 generation     1 is open       2 at work         3 may still join
      4 asleep         5 have joined   6 spins
      8 next point
     16 function      17 data         18 scratch        19 bytes of scratch per thread
     20 points        21 points of a chunk
     24 is taken
     32 mutex         48 condition: a job is there      64 condition: nobody is at work
"""

from __future__ import annotations

WORDS = 80
MUTEX, HAS_JOB, IS_IDLE = 32, 48, 64
SPINS = 6
"""Where things are in the pool, in words of 8 bytes."""

CODE = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i64 @llvm.smin.i64(i64, i64)

; Take chunks until none is left.
define internal void @take_chunks(ptr %pool, i64 %index) nounwind {
entry:
  %next = getelementptr i64, ptr %pool, i64 8
  %p.function = getelementptr i64, ptr %pool, i64 16
  %function = load ptr, ptr %p.function
  %p.data = getelementptr i64, ptr %pool, i64 17
  %data = load ptr, ptr %p.data
  %p.scratch = getelementptr i64, ptr %pool, i64 18
  %scratch.0 = load ptr, ptr %p.scratch
  %p.stride = getelementptr i64, ptr %pool, i64 19
  %stride = load i64, ptr %p.stride
  %p.points = getelementptr i64, ptr %pool, i64 20
  %points = load i64, ptr %p.points
  %p.chunk = getelementptr i64, ptr %pool, i64 21
  %chunk = load i64, ptr %p.chunk
  %offset = mul i64 %stride, %index
  %scratch = getelementptr i8, ptr %scratch.0, i64 %offset
  br label %take
take:
  %begin = atomicrmw add ptr %next, i64 %chunk monotonic
  %is.left = icmp slt i64 %begin, %points
  br i1 %is.left, label %run, label %done
run:
  %after = add i64 %begin, %chunk
  %end = call i64 @llvm.smin.i64(i64 %after, i64 %points)
  call void %function(ptr %data, ptr %scratch, i64 %begin, i64 %end)
  br label %take
done:
  ret void
}

; What every worker does for ever.
define ptr @worker(ptr %pool) nounwind {
entry:
  %p.open = getelementptr i64, ptr %pool, i64 1
  %p.active = getelementptr i64, ptr %pool, i64 2
  %p.room = getelementptr i64, ptr %pool, i64 3
  %p.asleep = getelementptr i64, ptr %pool, i64 4
  %p.joined = getelementptr i64, ptr %pool, i64 5
  %p.spins = getelementptr i64, ptr %pool, i64 6
  %mutex = getelementptr i64, ptr %pool, i64 32
  %has.job = getelementptr i64, ptr %pool, i64 48
  %is.idle = getelementptr i64, ptr %pool, i64 64
  %spins = load i64, ptr %p.spins
  br label %idle
idle:
  %seen = phi i64 [ -1, %entry ], [ %generation, %no.room ], [ %generation, %left ]
  br label %spin
spin:
  %k = phi i64 [ 0, %idle ], [ %k.next, %pause ]
  %now = load atomic i64, ptr %pool acquire, align 8
  %is.new = icmp ne i64 %now, %seen
  br i1 %is.new, label %look, label %pause
pause:
  PAUSE
  %k.next = add i64 %k, 1
  %goes.on = icmp slt i64 %k.next, %spins
  br i1 %goes.on, label %spin, label %sleep
sleep:
  %l.1 = call i32 @pthread_mutex_lock(ptr %mutex)
  %asleep.0 = load i64, ptr %p.asleep
  %asleep.1 = add i64 %asleep.0, 1
  store i64 %asleep.1, ptr %p.asleep
  br label %check
check:
  %now.2 = load atomic i64, ptr %pool monotonic, align 8
  %is.new.2 = icmp ne i64 %now.2, %seen
  br i1 %is.new.2, label %wake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %has.job, ptr %mutex)
  br label %check
wake:
  %asleep.2 = load i64, ptr %p.asleep
  %asleep.3 = sub i64 %asleep.2, 1
  store i64 %asleep.3, ptr %p.asleep
  br label %locked
look:
  %l.2 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %locked
locked:
  %generation = load atomic i64, ptr %pool monotonic, align 8
  %open = load i64, ptr %p.open
  %room = load i64, ptr %p.room
  %is.open = icmp ne i64 %open, 0
  %is.room = icmp sgt i64 %room, 0
  %may.join = and i1 %is.open, %is.room
  br i1 %may.join, label %join, label %no.room
no.room:
  %u.1 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle
join:
  %room.1 = sub i64 %room, 1
  store i64 %room.1, ptr %p.room
  %active = load i64, ptr %p.active
  %active.1 = add i64 %active, 1
  store atomic i64 %active.1, ptr %p.active release, align 8
  %joined = load i64, ptr %p.joined
  %index = add i64 %joined, 1
  store i64 %index, ptr %p.joined
  %u.2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @take_chunks(ptr %pool, i64 %index)
  %l.3 = call i32 @pthread_mutex_lock(ptr %mutex)
  store i64 0, ptr %p.open
  %active.2 = load i64, ptr %p.active
  %active.3 = sub i64 %active.2, 1
  store atomic i64 %active.3, ptr %p.active release, align 8
  %is.last = icmp eq i64 %active.3, 0
  br i1 %is.last, label %tell, label %left
tell:
  %s = call i32 @pthread_cond_signal(ptr %is.idle)
  br label %left
left:
  %u.3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %idle
}

; Share a job with at most %helpers workers; returns the number of threads that took part. The record
; of the kernel, where calls are judged: cycles of 1024 points in one thread, calls not to share, how
; many after the next bad one, calls.
define i64 @share(ptr %pool, ptr %function, ptr %data, ptr %scratch, i64 %stride, i64 %points,
                  i64 %chunk, i64 %helpers, ptr %record) nounwind {
entry:
  %p.open = getelementptr i64, ptr %pool, i64 1
  %p.active = getelementptr i64, ptr %pool, i64 2
  %p.room = getelementptr i64, ptr %pool, i64 3
  %p.asleep = getelementptr i64, ptr %pool, i64 4
  %p.joined = getelementptr i64, ptr %pool, i64 5
  %p.next = getelementptr i64, ptr %pool, i64 8
  %p.function = getelementptr i64, ptr %pool, i64 16
  %p.data = getelementptr i64, ptr %pool, i64 17
  %p.scratch = getelementptr i64, ptr %pool, i64 18
  %p.stride = getelementptr i64, ptr %pool, i64 19
  %p.points = getelementptr i64, ptr %pool, i64 20
  %p.chunk = getelementptr i64, ptr %pool, i64 21
  %p.taken = getelementptr i64, ptr %pool, i64 24
  %mutex = getelementptr i64, ptr %pool, i64 32
  %has.job = getelementptr i64, ptr %pool, i64 48
  %is.idle = getelementptr i64, ptr %pool, i64 64
  %x = cmpxchg ptr %p.taken, i64 0, i64 1 acquire monotonic
  %is.ours = extractvalue { i64, i1 } %x, 1
  br i1 %is.ours, label %ours, label %alone
alone:
  call void %function(ptr %data, ptr %scratch, i64 0, i64 %points)
  ret i64 1
ours:
  %is.judged = JUDGED
  br i1 %is.judged, label %judge, label %publish
judge:
  %p.rests = getelementptr i64, ptr %record, i64 1
  %p.count = getelementptr i64, ptr %record, i64 3
  %best = load i64, ptr %record
  %rests = load i64, ptr %p.rests
  %count = load i64, ptr %p.count
  %count.1 = add i64 %count, 1
  store i64 %count.1, ptr %p.count
  %turn = and i64 %count, 63
  %is.turn = icmp eq i64 %turn, 0
  %is.resting = icmp sgt i64 %rests, 0
  %is.rest = or i1 %is.turn, %is.resting
  br i1 %is.rest, label %rest, label %publish
rest:
  %rests.1 = sub i64 %rests, 1
  %rests.2 = select i1 %is.resting, i64 %rests.1, i64 0
  store i64 %rests.2, ptr %p.rests
  store atomic i64 0, ptr %p.taken release, align 8
  %t.alone = CLOCK
  call void %function(ptr %data, ptr %scratch, i64 0, i64 %points)
  %t.alone.end = CLOCK
  %alone.time = sub i64 %t.alone.end, %t.alone
  %alone.scaled = shl i64 %alone.time, 10
  %alone.each = udiv i64 %alone.scaled, %points
  %best.part = lshr i64 %best, 4
  %best.more = add i64 %best, %best.part
  %best.less = call i64 @llvm.smin.i64(i64 %best.more, i64 %alone.each)
  %is.first = icmp eq i64 %best, 0
  %best.1 = select i1 %is.first, i64 %alone.each, i64 %best.less
  store i64 %best.1, ptr %record
  ret i64 1
publish:
  %t.begin = CLOCK
  %l.1 = call i32 @pthread_mutex_lock(ptr %mutex)
  store ptr %function, ptr %p.function
  store ptr %data, ptr %p.data
  store ptr %scratch, ptr %p.scratch
  store i64 %stride, ptr %p.stride
  store i64 %points, ptr %p.points
  store i64 %chunk, ptr %p.chunk
  store atomic i64 0, ptr %p.next monotonic, align 8
  store i64 1, ptr %p.open
  store i64 %helpers, ptr %p.room
  store i64 0, ptr %p.joined
  %generation = load i64, ptr %pool
  %generation.1 = add i64 %generation, 1
  store atomic i64 %generation.1, ptr %pool release, align 8
  %asleep = load i64, ptr %p.asleep
  %u.1 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %is.asleep = icmp sgt i64 %asleep, 0
  br i1 %is.asleep, label %call, label %work
call:
  %is.one = icmp eq i64 %helpers, 1
  br i1 %is.one, label %call.one, label %call.all
call.one:
  %s.1 = call i32 @pthread_cond_signal(ptr %has.job)
  br label %work
call.all:
  %s.2 = call i32 @pthread_cond_broadcast(ptr %has.job)
  br label %work
work:
  call void @take_chunks(ptr %pool, i64 0)
  %l.2 = call i32 @pthread_mutex_lock(ptr %mutex)
  store i64 0, ptr %p.open
  %u.2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %spin
spin:
  %k = phi i64 [ 0, %work ], [ %k.next, %pause ]
  %active = load atomic i64, ptr %p.active acquire, align 8
  %is.over = icmp eq i64 %active, 0
  br i1 %is.over, label %over, label %pause
pause:
  PAUSE
  %k.next = add i64 %k, 1
  %goes.on = icmp slt i64 %k.next, 2000
  br i1 %goes.on, label %spin, label %sleep
sleep:
  %l.3 = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %check
check:
  %active.2 = load atomic i64, ptr %p.active acquire, align 8
  %is.over.2 = icmp eq i64 %active.2, 0
  br i1 %is.over.2, label %awake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %is.idle, ptr %mutex)
  br label %check
awake:
  %u.3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %over
over:
  %t.end = CLOCK
  br i1 %is.judged, label %learn, label %finish
learn:
  %p.penalty = getelementptr i64, ptr %record, i64 2
  %p.rests.2 = getelementptr i64, ptr %record, i64 1
  %best.2 = load i64, ptr %record
  %time = sub i64 %t.end, %t.begin
  %scaled = shl i64 %time, 10
  %each = udiv i64 %scaled, %points
  %is.bad = icmp ugt i64 %each, %best.2
  %penalty = load i64, ptr %p.penalty
  %half = lshr i64 %penalty, 1
  %double = shl i64 %penalty, 1
  %more = add i64 %double, 2
  %most = call i64 @llvm.smin.i64(i64 %more, i64 126)
  %penalty.1 = select i1 %is.bad, i64 %most, i64 %half
  store i64 %penalty.1, ptr %p.penalty
  %rests.3 = select i1 %is.bad, i64 %penalty.1, i64 0
  store i64 %rests.3, ptr %p.rests.2
  br label %finish
finish:
  %joined = load i64, ptr %p.joined
  %used = add i64 %joined, 1
  store atomic i64 0, ptr %p.taken release, align 8
  ret i64 %used
}
"""

_PAUSES = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
}


ALONE = """
define ptr @worker(ptr %pool) nounwind {
  ret ptr null
}
define i64 @share(ptr %pool, ptr %function, ptr %data, ptr %scratch, i64 %stride, i64 %points,
                  i64 %chunk, i64 %helpers, ptr %record) nounwind {
  call void %function(ptr %data, ptr %scratch, i64 0, i64 %points)
  ret i64 1
}
"""
"""The same two functions where the system has no POSIX threads."""


def code(architecture: str) -> str:
    """The IR of ``worker`` and ``share`` for a processor, ``"x86_64"`` for instance."""
    words = {
        "PAUSE": _PAUSES.get(architecture, 'call void asm sideeffect "", "~{memory}"()'),
        "CLOCK": "add i64 0, 0",
        "JUDGED": "icmp ne ptr null, null",
    }
    text = _DECLARED.get(architecture, "") + CODE
    if architecture == "x86_64":  # elsewhere the counter may be closed to user programs
        words["CLOCK"] = "call i64 @llvm.readcyclecounter()"
        words["JUDGED"] = "icmp ne ptr %record, null"
    for word, instruction in words.items():
        text = text.replace(word, instruction)
    return text


_DECLARED = {
    "x86_64": "declare void @llvm.x86.sse2.pause()\ndeclare i64 @llvm.readcyclecounter()\n",
    "aarch64": "declare void @llvm.aarch64.hint(i32)\n",
}


__all__ = ["ALONE", "HAS_JOB", "IS_IDLE", "MUTEX", "SPINS", "WORDS", "code"]
