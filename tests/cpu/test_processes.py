"""Batches over worker processes: what travels, what is compiled there, what a death does."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import workers
from mortal import SubmissionKills
from refusals import refused

import alkahest as ak

X, Y = ak.symbols("x y")


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=workers.prepare) as executor:
        yield executor


def test_two_processes_give_what_one_gives(processes: ProcessPoolExecutor) -> None:
    fn = ak.compile_expr([ak.sin(X) * Y, X < Y], [X, Y])
    points = np.linspace(-3, 3, 100_001)
    there = fn.call_batch([points, 0.5], executor=processes, chunk=10_000)
    parts = fn.report["parts"]
    for found, expected in zip(there, fn(points, 0.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert len(parts) == 11
    assert os.getpid() not in {part["process"] for part in parts}


def test_a_function_is_compiled_once_in_a_process(processes: ProcessPoolExecutor) -> None:
    fn = ak.compile_expr(ak.exp(X) + 1, [X])
    before = dict(processes.submit(workers.arrivals).result() for _ in range(20))
    fn.call_batch([np.zeros(50)], executor=processes, chunk=1)
    after = dict(processes.submit(workers.arrivals).result() for _ in range(20))
    assert all(count <= before.get(process, 0) + 1 for process, count in after.items())


def test_an_error_in_a_process_keeps_its_code(processes: ProcessPoolExecutor) -> None:
    fn = ak.compile_expr(X + 1, [X])
    with refused("E-INPUT-011", "no device 3"):
        fn.call_batch([np.zeros(10)], executor=processes, chunk=4, device=3)


def test_a_process_that_is_killed_is_named_as_the_cause() -> None:
    context = multiprocessing.get_context("spawn")
    fn = ak.compile_expr(ak.cos(X), [X])
    with ProcessPoolExecutor(1, mp_context=context, initializer=workers.prepare) as executor:
        process, _ = executor.submit(workers.arrivals).result()

        deadly = SubmissionKills(executor, process, 5)
        with refused("E-EVAL-005", "a worker was lost"):
            fn.call_batch([np.zeros(10_000)], executor=deadly, chunk=10, in_flight=2)
