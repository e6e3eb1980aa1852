"""The threads that carry chunks: who works on what, and what is left behind."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence

import pytest

from alkahest.backends.nvptx import crew as module
from alkahest.backends.nvptx.crew import Crew, Job
from alkahest.errors import InputError


class Lane:
    """A lane that notices when two threads use it."""

    def __init__(self) -> None:
        self.owner: int | None = None

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        me = threading.get_ident()
        assert self.owner in (None, me), "two threads in one lane"
        self.owner = me
        yield


class Chunks:
    """Work that records which thread took which chunk, one chunk a turn."""

    def __init__(self, chunks: int, step: Callable[[int], None] = lambda chunk: None) -> None:
        self.chunks = chunks
        self.step = step
        self.done: list[tuple[int, str]] = []
        self.at_once = 0
        self.most_at_once = 0
        self._begun = 0
        self._stopped = False
        self._lock = threading.Lock()

    @property
    def is_left(self) -> bool:
        return self._begun < self.chunks

    def stop(self) -> None:
        self._stopped = True

    def carry(self, lanes: Sequence[Lane]) -> None:
        with self._lock:
            if self._stopped or self._begun == self.chunks:
                return
            chunk = self._begun
            self._begun += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            with lanes[chunk % len(lanes)].used():
                self.step(chunk)
                self.done.append((chunk, threading.current_thread().name))
        finally:
            with self._lock:
                self.at_once -= 1


class Opener:
    """Opens lanes, as many as there is memory for."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.lanes: list[Lane] = []
        self._lock = threading.Lock()

    def __call__(self) -> Lane:
        with self._lock:
            if len(self.lanes) >= self.most:
                raise MemoryError("no more lanes")
            self.lanes.append(Lane())
            return self.lanes[-1]


CrewMaker = Callable[..., Crew[Lane]]


@pytest.fixture
def make_crew() -> Iterator[CrewMaker]:
    """Makes crews that are closed afterwards."""
    crews: list[Crew[Lane]] = []

    def make(
        threads: int = 3,
        depth: int = 2,
        opener: Callable[[], Lane] | None = None,
        within: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> Crew[Lane]:
        crew = Crew(
            "test-crew",
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
    assert make_crew(threads).run(Job(work))
    assert sorted(chunk for chunk, _ in work.done) == list(range(chunks))


def test_threads_and_lanes_are_made_when_needed_and_kept(make_crew: CrewMaker) -> None:
    opener = Opener()
    crew = make_crew(threads=4, depth=2, opener=opener)
    assert not opener.lanes
    crew.run(Job(Chunks(1)))
    assert len(opener.lanes) == 2
    for _ in range(5):
        crew.run(Job(Chunks(40, lambda chunk: time.sleep(0.001))))
    assert len(opener.lanes) <= 8


def test_a_job_has_no_more_threads_than_it_asked_for(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=6)
    work = Chunks(30, lambda chunk: time.sleep(0.001))
    crew.run(Job(work, 2))
    assert len(work.done) == 30
    assert work.most_at_once <= 2
    wide = Chunks(60, lambda chunk: time.sleep(0.001))
    crew.run(Job(wide))
    assert wide.most_at_once > 2


def test_callers_take_turns_and_a_short_job_does_not_wait_for_a_long_one(
    make_crew: CrewMaker,
) -> None:
    crew = make_crew(threads=2)
    long = Chunks(400, lambda chunk: time.sleep(0.002))
    thread = threading.Thread(target=crew.run, args=(Job(long),))
    thread.start()
    while not long.done:
        time.sleep(0.001)
    crew.run(Job(Chunks(4)))
    assert len(long.done) < 200
    thread.join()
    assert len(long.done) == 400


def test_eight_callers_at_once_are_all_served(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=3)
    works = [Chunks(25) for _ in range(8)]
    threads = [threading.Thread(target=crew.run, args=(Job(work),)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sorted(c for c, _ in work.done) == list(range(25)) for work in works)


# What goes wrong


def failing(at: int, error: BaseException) -> Callable[[int], None]:
    def step(chunk: int) -> None:
        if chunk == at:
            raise error

    return step


@pytest.mark.parametrize("at", [0, 1, 9])
def test_the_first_error_is_raised_and_the_crew_goes_on(make_crew: CrewMaker, at: int) -> None:
    crew = make_crew(threads=2)
    error = ValueError("chunk")
    work = Chunks(10, failing(at, error))
    with pytest.raises(ValueError, match="chunk") as caught:
        crew.run(Job(work))
    assert caught.value is error
    assert work.at_once == 0
    after = Chunks(10)
    crew.run(Job(after))
    assert len(after.done) == 10


def test_after_an_error_no_other_chunk_is_begun(make_crew: CrewMaker) -> None:
    work = Chunks(1000, failing(3, ValueError()))
    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        make_crew(threads=1).run(Job(work))
    assert len(work.done) == 3


def test_an_error_of_one_caller_is_not_anothers(make_crew: CrewMaker) -> None:
    crew = make_crew(threads=2)
    good = Chunks(100, lambda chunk: time.sleep(0.0005))
    thread = threading.Thread(target=crew.run, args=(Job(good),))
    thread.start()
    with pytest.raises(ValueError, match="mine"):
        crew.run(Job(Chunks(5, failing(2, ValueError("mine")))))
    thread.join()
    assert len(good.done) == 100


def test_where_memory_is_short_fewer_lanes_do_the_work(make_crew: CrewMaker) -> None:
    opener = Opener(most=3)
    crew = make_crew(threads=4, depth=2, opener=opener)
    for _ in range(3):
        work = Chunks(30, lambda chunk: time.sleep(0.0005))
        crew.run(Job(work))
        assert len(work.done) == 30
    assert len(opener.lanes) == 3
    opener.most = 8
    for _ in range(20):
        crew.run(Job(Chunks(30, lambda chunk: time.sleep(0.0005))))
    assert len(opener.lanes) > 3


def test_without_any_lane_the_reason_is_raised_and_the_next_call_tries_again(
    make_crew: CrewMaker,
) -> None:
    opener = Opener(most=0)
    crew = make_crew(threads=3, opener=opener)
    for _ in range(3):
        with pytest.raises(MemoryError, match="no more lanes"):
            crew.run(Job(Chunks(9)))
    opener.most = 2
    work = Chunks(9)
    crew.run(Job(work))
    assert len(work.done) == 9


def test_threads_that_cannot_begin_raise_the_reason_and_are_replaced(make_crew: CrewMaker) -> None:
    broken = True

    @contextlib.contextmanager
    def within() -> Iterator[None]:
        if broken:
            raise OSError("no context")
        yield

    crew = make_crew(threads=2, within=within)
    with pytest.raises(OSError, match="no context"):
        crew.run(Job(Chunks(5)))
    broken = False
    work = Chunks(5)
    crew.run(Job(work))
    assert len(work.done) == 5


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
        crew.run(Job(work))
    assert work.at_once == 0
    done = len(work.done)
    assert 3 <= done < 4000
    after = Chunks(10)
    crew.run(Job(after))
    assert len(after.done) == 10
    assert len(work.done) == done


def test_a_closed_crew_does_nothing_and_says_so(make_crew: CrewMaker) -> None:
    closed: list[Lane] = []
    opener = Opener()
    crew = make_crew(threads=2, opener=opener)
    crew.run(Job(Chunks(10)))
    assert crew.close(closed.append)
    assert sorted(map(id, closed)) == sorted(map(id, opener.lanes))
    work = Chunks(3)
    assert crew.run(Job(work)) is False
    assert work.done == []


def test_no_thread_to_be_had_means_nothing_is_done(
    make_crew: CrewMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    crew = make_crew()
    work = Chunks(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert crew.run(Job(work)) is False
    assert work.done == []
    assert crew.run(Job(work))
    assert len(work.done) == 3


@pytest.mark.parametrize("fails", [False, True])
def test_idle_threads_keep_nothing_of_the_caller(make_crew: CrewMaker, fails: bool) -> None:
    crew = make_crew(threads=3)
    work = Chunks(20, failing(5, ValueError()) if fails else lambda chunk: None)
    kept = weakref.ref(work)
    with contextlib.suppress(ValueError):
        crew.run(Job(work))
    del work
    time.sleep(0.02)
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
