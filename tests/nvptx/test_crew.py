"""The threads that carry chunks: who works on what, and what is left behind."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest
from crewjobs import Chunks, Opener, TestCrew, in_thread, until
from fakelink import FakeLane

from alkahest.backends.nvptx import carrier_code as records
from alkahest.backends.nvptx import crew as module
from alkahest.backends.nvptx import desk as desk_module
from alkahest.errors import InputError

CrewMaker = Callable[..., TestCrew]


@pytest.fixture
def make_crew() -> Iterator[CrewMaker]:
    """Makes crews that are closed afterwards."""
    crews: list[TestCrew] = []

    def make(
        threads: int = 3,
        depth: int = 2,
        opener: Callable[[], FakeLane] | None = None,
        within: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> TestCrew:
        crew = TestCrew(
            open_lane=Opener() if opener is None else opener,
            within=within,
            threads=threads,
            depth=depth,
        )
        crews.append(crew)
        return crew

    yield make
    for crew in crews:
        assert crew.close(lambda lane: None), "a thread is still at work"
    assert not [t for t in threading.enumerate() if t.name.startswith("test-crew")]


# What is done


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chunks", [1, 2, 3, 50])
def test_every_chunk_is_carried_once(make_crew: CrewMaker, threads: int, chunks: int) -> None:
    work = Chunks(chunks)
    assert make_crew(threads).run(work)
    assert len(work.done) == chunks
    assert work.record.over == records.LEFT
    assert work.failure == 0


def test_threads_and_lanes_are_made_when_needed_and_kept(make_crew: CrewMaker) -> None:
    opener = Opener()
    crew = make_crew(threads=4, depth=2, opener=opener)
    assert not opener.lanes
    crew.run(Chunks(1))
    assert len(opener.lanes) == 2
    for _ in range(5):
        crew.run(Chunks(40, lambda chunk: time.sleep(0.001)))
    assert len(opener.lanes) <= 8


def test_all_threads_work_at_a_long_job(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=4)
    work = Chunks(10_000, lambda chunk: time.sleep(0.001) if work.most_at_once < 4 else None)
    crew.run(work)
    assert {name for _, name in work.done} == {f"test-crew-{k}" for k in range(4)}


def test_a_job_has_no_more_threads_than_it_asked_for(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=6)
    work = Chunks(30, lambda chunk: time.sleep(0.001), threads=2)
    crew.run(work)
    assert len(work.done) == 30
    assert work.most_at_once <= 2
    wide = Chunks(10_000, lambda chunk: time.sleep(0.001) if wide.most_at_once < 3 else None)
    crew.run(wide)
    assert wide.most_at_once > 2


def test_a_job_that_a_thread_leaves_for_another_gets_one_that_waits(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=3)
    crew.run(Chunks(500, lambda chunk: time.sleep(0.0005)))
    narrow = [Chunks(60, lambda chunk: time.sleep(0.001), threads=1) for _ in range(3)]
    callers = [in_thread(crew, job) for job in narrow]
    for caller in callers:
        caller.join(10)
    assert [len(job.done) for job in narrow] == [60] * 3
    assert [job.most_at_once for job in narrow] == [1] * 3


def test_callers_take_turns_and_a_short_job_does_not_wait_for_a_long_one(
    make_crew: CrewMaker,
) -> None:
    crew = make_crew(threads=2)
    long = Chunks(400, lambda chunk: time.sleep(0.002))
    thread = in_thread(crew, long)
    until(lambda: long.done)
    crew.run(Chunks(4))
    assert len(long.done) < 200
    thread.join()
    assert len(long.done) == 400


def test_eight_callers_at_once_are_all_served(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=3)
    works = [Chunks(25) for _ in range(8)]
    for caller in [in_thread(crew, work) for work in works]:
        caller.join()
    assert [len(work.done) for work in works] == [25] * 8


def test_more_callers_than_seats_do_their_jobs_themselves(
    make_crew: CrewMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEATS", 2)
    crew = make_crew(threads=1)
    release = threading.Event()
    works = [Chunks(1, lambda chunk: release.wait(10) is False) for _ in range(2)]
    callers = [in_thread(crew, work) for work in works]
    until(lambda: works[0].done or works[1].done)
    time.sleep(0.02)
    assert crew.run(Chunks(1)) is False
    release.set()
    for caller in callers:
        caller.join()
    assert crew.run(Chunks(1))


def test_many_short_jobs_of_many_callers_lose_no_wake(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=4)
    counts: list[int] = []

    def call() -> None:
        for size in range(1, 120):
            work = Chunks(1 + size % 7, threads=1 + size % 3)
            assert crew.run(work)
            counts.append(len(work.done) - work.chunks)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert counts == [0] * (4 * 119)


# What goes wrong


@pytest.mark.parametrize("at", [0, 1, 9])
def test_the_first_failure_is_kept_and_the_crew_goes_on(make_crew: CrewMaker, at: int) -> None:
    crew = make_crew(threads=2)
    work = Chunks(10, lambda chunk: chunk == at)
    assert crew.run(work)
    assert work.failure == 700
    assert work.at_once == 0
    after = Chunks(10)
    crew.run(after)
    assert len(after.done) == 10
    assert after.failure == 0


def test_after_a_failure_no_other_chunk_is_begun(make_crew: CrewMaker) -> None:
    work = Chunks(1000, lambda chunk: chunk == 3)
    make_crew(threads=1).run(work)
    assert len(work.done) == 4


def test_a_failure_of_one_caller_is_not_anothers(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=2)
    good = Chunks(100, lambda chunk: time.sleep(0.0005))
    caller = in_thread(crew, good)
    mine = Chunks(5, lambda chunk: chunk == 2)
    crew.run(mine)
    assert mine.failure == 700
    caller.join()
    assert (len(good.done), good.failure) == (100, 0)


def test_where_memory_is_short_fewer_lanes_do_the_work(make_crew: CrewMaker) -> None:
    opener = Opener(most=3)
    crew = make_crew(threads=4, depth=2, opener=opener)
    for _ in range(3):
        work = Chunks(30, lambda chunk: time.sleep(0.0005))
        crew.run(work)
        assert len(work.done) == 30
    until(lambda: len(opener.lanes) == 3)
    opener.most = 8
    crew.run(Chunks(10_000, lambda chunk: time.sleep(0.001) if len(opener.lanes) < 4 else None))
    assert len(opener.lanes) > 3


def test_without_any_lane_the_reason_is_raised_and_the_next_call_tries_again(
    make_crew: CrewMaker,
) -> None:
    opener = Opener(most=0)
    crew = make_crew(threads=3, opener=opener)
    for _ in range(3):
        with pytest.raises(MemoryError, match="no more lanes"):
            crew.run(Chunks(9))
    opener.most = 2
    work = Chunks(9)
    crew.run(work)
    assert len(work.done) == 9


class Entrance:
    """Lets threads begin, or not; those of ``waits`` wait for ``opened`` first."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.waits: set[str] = set()
        self.opened = threading.Event()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        name = threading.current_thread().name
        if name in self.waits:
            assert self.opened.wait(10)
        if name in self.broken:
            raise OSError(f"no context for {name}")
        yield


def test_threads_that_cannot_begin_raise_the_reason_and_are_replaced(make_crew: CrewMaker) -> None:
    entrance = Entrance()
    entrance.broken = {"test-crew-0", "test-crew-1"}
    crew = make_crew(threads=2, within=entrance)
    with pytest.raises(OSError, match="no context"):
        crew.run(Chunks(5))
    entrance.broken.clear()
    work = Chunks(5)
    crew.run(work)
    assert len(work.done) == 5


def test_a_thread_that_cannot_begin_is_no_failure_while_another_works(make_crew: CrewMaker) -> None:
    entrance = Entrance()
    entrance.broken = {"test-crew-1"}
    crew = make_crew(threads=2, within=entrance)
    for _ in range(3):
        work = Chunks(20, lambda chunk: time.sleep(0.0005))
        assert crew.run(work)
        assert {name for _, name in work.done} == {"test-crew-0"}


@pytest.mark.parametrize("late", ["test-crew-0", "test-crew-1"])
def test_the_last_thread_that_cannot_begin_fails_the_job(make_crew: CrewMaker, late: str) -> None:
    entrance = Entrance()
    entrance.broken = {"test-crew-0", "test-crew-1"}
    entrance.waits = {late}
    crew = make_crew(threads=2, within=entrance)
    errors: list[OSError] = []

    def call() -> None:
        try:
            crew.run(Chunks(5))
        except OSError as error:
            errors.append(error)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    until(lambda: sum(job is not None for job in crew._seated) == 2)
    time.sleep(0.02)
    assert not errors
    entrance.opened.set()
    for caller in callers:
        caller.join(10)
    assert [str(error) for error in errors] == [f"no context for {late}"] * 2


def test_an_old_failure_to_begin_is_not_of_a_later_job(make_crew: CrewMaker) -> None:
    entrance = Entrance()
    entrance.broken = entrance.waits = {"test-crew-1"}
    crew = make_crew(threads=2, within=entrance)
    first = Chunks(5)
    assert crew.run(first)
    later = Chunks(200, lambda chunk: entrance.opened.set() if chunk == 20 else time.sleep(0.0005))
    assert crew.run(later)
    assert (len(later.done), later.failure) == (200, 0)


def test_an_interrupted_wait_leaves_nobody_at_work_and_a_usable_crew(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=2)
    main = threading.main_thread().ident
    assert main is not None

    def step(chunk: int) -> None:
        if chunk == 3:
            signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.002)

    work = Chunks(5000, step)
    with pytest.raises(KeyboardInterrupt):
        crew.run(work)
    assert work.at_once == 0
    done = len(work.done)
    assert 3 <= done < 4000
    after = Chunks(10)
    crew.run(after)
    assert len(after.done) == 10
    assert len(work.done) == done


def test_a_signal_that_raises_nothing_does_not_end_the_wait(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=2)
    main = threading.main_thread().ident
    assert main is not None
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:

        def step(chunk: int) -> None:
            if chunk == 3:
                signal.pthread_kill(main, signal.SIGUSR1)
            time.sleep(0.001)

        work = Chunks(100, step)
        assert crew.run(work)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]
    assert len(work.done) == 100


# What is left behind


def test_a_closed_crew_does_nothing_and_says_so(make_crew: CrewMaker) -> None:
    closed: list[FakeLane] = []
    opener = Opener()
    crew = make_crew(threads=2, opener=opener)
    crew.run(Chunks(10))
    assert crew.close(closed.append)
    assert sorted(map(id, closed)) == sorted(map(id, opener.lanes))
    work = Chunks(3)
    assert crew.run(work) is False
    assert work.done == []


def test_a_crew_that_is_closed_meanwhile_ends_its_jobs_first(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=2)
    work = Chunks(40, lambda chunk: time.sleep(0.002))
    caller = in_thread(crew, work)
    until(lambda: work.done)
    assert crew.close(lambda lane: None)
    caller.join(10)
    assert len(work.done) == 40


def test_a_crew_whose_threads_are_at_work_keeps_its_lanes(
    make_crew: CrewMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = make_crew(threads=1)
    release = threading.Event()
    work = Chunks(1, lambda chunk: release.wait(10) is False)
    caller = in_thread(crew, work)
    until(lambda: work.done)
    closed: list[FakeLane] = []
    with monkeypatch.context() as patch:
        patch.setattr(module, "_PATIENCE", 0.01)
        assert crew.close(closed.append) is False
    assert closed == []
    release.set()
    caller.join(10)


def test_no_thread_to_be_had_means_nothing_is_done(
    make_crew: CrewMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    crew = make_crew()
    work = Chunks(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert crew.run(work) is False
    assert work.done == []
    assert crew.run(work)
    assert len(work.done) == 3


def test_without_semaphores_nothing_is_done(
    make_crew: CrewMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str | None) -> None:
        raise OSError("no such library")

    crew = make_crew()
    work = Chunks(3)
    with monkeypatch.context() as patch:
        patch.setattr(desk_module.ctypes, "CDLL", refuse)
        assert crew.run(work) is False
    assert work.done == []
    assert not crew._hands


@pytest.mark.parametrize("fails", [False, True])
def test_idle_threads_keep_nothing_of_the_caller(make_crew: CrewMaker, fails: bool) -> None:
    crew = make_crew(threads=3)
    work = Chunks(20, lambda chunk: fails and chunk == 5)
    kept = weakref.ref(work)
    crew.run(work)
    del work
    gc.collect()
    assert kept() is None


# How many threads


def test_the_environment_says_how_many_threads_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.THREADS_VARIABLE, "3")
    assert module.copy_threads() == 3
    monkeypatch.setenv(module.THREADS_VARIABLE, "many")
    with pytest.raises(InputError, match="ALKAHEST_COPY_THREADS='many'") as caught:
        module.copy_threads()
    assert caught.value.code == "E-INPUT-011"


def test_by_default_there_is_a_thread_per_processor_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(module.THREADS_VARIABLE, raising=False)
    assert 1 <= module.copy_threads() <= module.MOST_THREADS
    monkeypatch.setattr(module, "_processors", lambda: 500)
    assert module.copy_threads() == module.MOST_THREADS
