"""Work on a cluster: two worker processes, and what happens when one of them dies."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import dask.array as da
import numpy as np
import workers
from distributed import Client
from mortal import SubmissionKills
from refusals import refused

import alkahest as ak

X, Y = ak.symbols("x y")

# Compiled from the first call on: what is put off until there is more to do has other last bits.
compiled = partial(ak.compile_expr, tier="compiled")
POINTS = np.linspace(-2.0, 2.0, 100_003)


def processes(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


def test_an_array_is_computed_by_both_workers(client: Client) -> None:
    fn = compiled([ak.exp(-X * X) * Y, X < Y], [X, Y])
    lazy = fn(da.from_array(POINTS, chunks=5000), 0.5)
    for found, expected in zip(client.compute(lazy, sync=True), fn(POINTS, 0.5), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_batch_is_evaluated_by_both_workers(client: Client) -> None:
    fn = compiled(ak.tanh(X) + Y, [X, Y])
    found = fn.call_batch([POINTS, 2.0], executor=client.get_executor(), chunk=2000)
    assert {part["process"] for part in fn.report["parts"]} == set(processes(client))
    np.testing.assert_array_equal(found, fn(POINTS, 2.0))


def test_a_function_is_compiled_once_in_each_worker(client: Client) -> None:
    fn = compiled(ak.sin(ak.sin(X)), [X])
    before = dict(client.run(workers.arrivals).values())
    fn.call_batch([POINTS], executor=client.get_executor(), chunk=1000)
    client.compute(fn(da.from_array(POINTS, chunks=1000)), sync=True)
    after = dict(client.run(workers.arrivals).values())
    assert after == {process: count + 1 for process, count in before.items()}


def test_a_batch_survives_a_worker_that_is_killed_in_mid_run(client: Client) -> None:
    fn = compiled(ak.cos(X) * ak.exp(X), [X])
    executor = client.get_executor()
    victim, _ = processes(client)

    deadly = SubmissionKills(executor, victim, 20)
    found = fn.call_batch([POINTS], executor=deadly, chunk=1000, in_flight=8)
    done_by = {part["process"] for part in fn.report["parts"]}
    np.testing.assert_array_equal(found, fn(POINTS))
    client.wait_for_workers(2, timeout=60)
    assert victim not in processes(client)
    assert done_by - {victim}


def test_an_array_survives_a_worker_that_is_killed_in_mid_run(client: Client) -> None:
    client.wait_for_workers(2, timeout=60)
    fn = compiled([ak.log(X + 3), X * X], [X], derivatives=1)
    victim, _ = processes(client)
    blocks = da.from_array(POINTS, chunks=5000).map_blocks(workers.delayed, dtype=float)
    futures = client.compute(list(fn(blocks)))
    while not all(client.processing().values()):
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    for found, expected in zip(client.gather(futures), fn(POINTS), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_error_on_a_worker_arrives_with_its_code_and_the_points(client: Client) -> None:
    client.wait_for_workers(2, timeout=60)
    fn = compiled(X + 1, [X])
    with refused("E-INPUT-011", "no device 3"):
        fn.call_batch([POINTS], executor=client.get_executor(), chunk=50_000, device=3)
