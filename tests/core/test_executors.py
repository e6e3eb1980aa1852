"""Batches in parts over an executor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic
from refusals import refused

from alkahest import executors
from alkahest.compiled import compile_expr
from alkahest.expr import ExprPool

pytestmark = pytest.mark.usefixtures("arithmetic")

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


class Desk(Executor):
    """Keeps what it is given until the newest is asked for: the last part is done first."""

    def __init__(self) -> None:
        self.open: list[tuple[Future[Any], Any]] = []
        self.most_open = 0
        self.done = 0
        self._changed = threading.Condition()

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._changed:
            self.open.append((future, lambda: call(*arguments, **options)))
            self.most_open = max(self.most_open, len(self.open))
        threading.Timer(0.001, self._finish_one).start()
        return future

    def _finish_one(self) -> None:
        with self._changed:
            future, call = self.open.pop()
        if future.set_running_or_notify_cancel():
            self.done += 1
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001  it is the future's
                future.set_exception(error)


def test_results_are_in_the_order_of_the_points_whatever_is_done_first() -> None:
    fn = compile_expr(x * x + y, [x, y])
    points = np.arange(1000.0)
    result = fn.call_batch([points, 5], executor=Desk(), chunk=7)
    np.testing.assert_array_equal(result, points * points + 5)


def test_no_more_parts_are_out_than_allowed() -> None:
    desk = Desk()
    fn = compile_expr(x + 1, [x])
    fn.call_batch([np.arange(100.0)], executor=desk, chunk=1, in_flight=3)
    assert desk.most_open <= 3
    assert desk.done == 100


def test_the_default_is_two_parts_for_each_worker_that_the_executor_says_it_has(
    threads: ThreadPoolExecutor,
) -> None:
    assert executors._meant_in_flight(threads) == 6
    assert executors._meant_in_flight(Desk()) == executors.MEANT_IN_FLIGHT


def test_results_land_in_out_and_may_overwrite_their_column(threads: ThreadPoolExecutor) -> None:
    fn = compile_expr(x * 3, [x])
    values = np.arange(100.0)
    assert fn.call_batch([values], out=values, executor=threads, chunk=9) is values
    np.testing.assert_array_equal(values, 3 * np.arange(100.0))
    backwards = np.arange(10.0)
    fn.call_batch([backwards], out=backwards[::-1], executor=threads, chunk=3)
    assert backwards.tolist() == [27.0, 24, 21, 18, 15, 12, 9, 6, 3, 0]


def test_several_results_derivatives_and_lists(threads: ThreadPoolExecutor) -> None:
    points = np.arange(20.0)
    product, smaller = compile_expr([x * y, x < y], [x, y]).call_batch(
        [points, 7.0], executor=threads, chunk=3
    )
    assert smaller.dtype == bool
    np.testing.assert_array_equal(product, points * 7)
    np.testing.assert_array_equal(smaller, points < 7)
    fn = compile_expr(x * x * y, [x, y], derivatives=2)
    there = fn.call_batch([points, 2.0], executor=threads, chunk=6)
    for found, expected in zip(there, fn.call_batch([points, 2.0]), strict=True):
        np.testing.assert_array_equal(found, expected)
    doubled = compile_expr(x * 2, [x])
    assert doubled.call_batch([[1, 2, 3]], executor=threads, chunk=2) == [2.0, 4.0, 6.0]


def test_a_spread_number_travels_as_one(
    arithmetic: Arithmetic, threads: ThreadPoolExecutor
) -> None:
    sent: list[Any] = []

    class Watching(Desk):
        def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            sent.append(arguments[1])
            return super().submit(call, *arguments, **options)

    compile_expr(x + y, [x, y]).call_batch([np.zeros(4), 1.5], executor=Watching(), chunk=2)
    assert [[column.shape for column in columns] for columns in sent] == [[(2,), ()]] * 2
    assert all(batch.columns[1].tolist() == [1.5, 1.5] for batch in arithmetic.batches)


def test_batches_without_points_or_inputs(
    arithmetic: Arithmetic, threads: ThreadPoolExecutor
) -> None:
    assert compile_expr(x, [x]).call_batch([np.zeros(0)], executor=threads).shape == (0,)
    assert compile_expr(x + y, [x, y]).call_batch([np.zeros(0), 1.0], executor=threads).size == 0
    assert compile_expr(7, []).call_batch([], n=3, executor=threads, chunk=2).tolist() == [7.0] * 3


def test_the_report_lists_the_parts(threads: ThreadPoolExecutor) -> None:
    fn = compile_expr(x, [x])
    fn.call_batch([np.zeros(10)], executor=threads, chunk=4)
    report = fn.report
    assert (report["backend"], report["n"]) == ("arithmetic", 10)
    assert report["reason"] == "in parts by ThreadPoolExecutor"
    assert [part["n"] for part in report["parts"]] == [4, 4, 2]


def test_progress_is_told_until_all_points_are_done(threads: ThreadPoolExecutor) -> None:
    told: list[tuple[int, int]] = []
    compile_expr(x, [x]).call_batch(
        [np.zeros(10)], executor=threads, chunk=3, progress=lambda *done: told.append(done)
    )
    assert told[-1] == (10, 10)
    assert told == sorted(told)


class Failing:
    """In the place of a worker: fails at one part, and counts how many parts were begun."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.begun = error, 0

    def __call__(self, function: Any, columns: Any, *rest: Any) -> Any:
        self.begun += 1
        if columns[0][0] == 6:
            raise self.error
        return executors.evaluate_part(function, columns, *rest)


def test_an_error_names_the_points_and_cancels_the_rest() -> None:
    failing = Failing(RuntimeError("no luck"))

    class InOrder(ThreadPoolExecutor):
        def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            return super().submit(failing, *arguments, **options)

    with InOrder(1) as executor, pytest.raises(RuntimeError, match="no luck") as caught:
        compile_expr(x, [x]).call_batch(
            [np.arange(10_000.0)], executor=executor, chunk=3, in_flight=4
        )
    assert caught.value.__notes__ == ["while evaluating points 6 to 8 of the batch"]
    assert failing.begun < 10


def test_a_lost_worker_is_an_error_that_says_what_to_do() -> None:
    class Broken(Desk):
        def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            raise BrokenExecutor("a process died")

    with refused("E-EVAL-005", "points 0 to 1", "a process died"):
        compile_expr(x, [x]).call_batch([np.zeros(10)], executor=Broken(), chunk=2)


def test_an_interruption_cancels_what_nobody_has_begun(threads: ThreadPoolExecutor) -> None:
    release = threading.Event()
    begun: list[int] = []

    class Stuck(Executor):
        def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            if len(handed) == 5:
                raise KeyboardInterrupt
            handed.append(threads.submit(self._wait))
            return handed[-1]

        def _wait(self) -> None:
            begun.append(1)
            release.wait(10)

    handed: list[Future[Any]] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            compile_expr(x, [x]).call_batch(
                [np.zeros(100)], executor=Stuck(), chunk=1, in_flight=50
            )
        assert all(future.cancelled() or future.running() for future in handed)
    finally:
        release.set()


@pytest.mark.parametrize(
    ("options", "code", "shown"),
    [
        ({"executor": 4}, "E-INPUT-008", "not int"),
        ({"chunk": 5}, "E-INPUT-011", "there is none"),
        ({"executor": Desk(), "chunk": 0}, "E-INPUT-011", "chunk must be"),
        ({"executor": Desk(), "chunk": True}, "E-INPUT-011", "chunk must be"),
        ({"executor": Desk(), "in_flight": 1.5}, "E-INPUT-011", "in_flight must be"),
        ({"executor": Desk(), "stream": 1}, "E-INPUT-011", "stream"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], code: str, shown: str
) -> None:
    with refused(code, shown):
        compile_expr(x, [x]).call_batch([np.zeros(3)], **options)


def test_columns_are_checked_before_anything_is_handed_out() -> None:
    desk = Desk()
    with refused("E-INPUT-002", "column 1 ('y') has 2 rows"):
        compile_expr(x + y, [x, y]).call_batch([np.zeros(3), np.zeros(2)], executor=desk)
    assert desk.done == desk.most_open == 0
