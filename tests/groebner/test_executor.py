"""Spreading the primes of a rational computation over threads and processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from groebner_benchmark.systems import system
from mortal import FirstTaskKills

from alkahest import GroebnerBasis, SolverError, solve


@pytest.fixture(scope="module")
def alone():
    return GroebnerBasis.compute(*system("katsura-6"))


def spawned():
    """Two fresh processes."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_processes_and_threads_give_the_basis_of_one_thread(alone):
    polys, names = system("katsura-6")
    with ThreadPoolExecutor(2) as threads:
        assert GroebnerBasis.compute(polys, names, executor=threads) == alone
    with spawned() as processes:
        spread = GroebnerBasis.compute(polys, names, executor=processes)
        assert spread == alone
        assert spread.report.certainty == alone.report.certainty
        found = solve(["x^2 - 2", "y - x"], "x y", executor=processes)
        assert [str(s["x"]) for s in found] == ["-sqrt(2)", "sqrt(2)"]
        with pytest.raises(SolverError) as caught:
            GroebnerBasis.compute(*system("katsura-11"), executor=processes, deadline=0.5)
        assert caught.value.code == "E-SOLVE-012"


def test_a_process_that_is_killed_in_the_middle_is_an_error(tmp_path):
    polys, names = system("katsura-4")
    with spawned() as processes:
        mortal = FirstTaskKills(processes, tmp_path / "killed")
        with pytest.raises(SolverError, match="BrokenProcessPool") as caught:
            GroebnerBasis.compute(polys, names, executor=mortal)
        assert caught.value.code == "E-SOLVE-016"
        with pytest.raises(SolverError, match="BrokenProcessPool"):
            GroebnerBasis.compute(polys, names, executor=processes)


def test_what_is_left_is_cancelled_when_a_task_fails():
    futures = []

    class Failing:
        def submit(self, function, /, *arguments):
            futures.append(Future())
            if len(futures) == 1:
                futures[0].set_exception(OSError("the line is dead"))
            return futures[-1]

    with pytest.raises(SolverError, match="the line is dead") as caught:
        GroebnerBasis.compute(*system("katsura-4"), executor=Failing())
    assert caught.value.code == "E-SOLVE-016"
    assert len(futures) > 1
    assert all(future.cancelled() for future in futures[1:])


def test_a_worker_that_never_answers_is_not_waited_for_beyond_the_deadline():
    class Silent:
        def submit(self, function, /, *arguments):
            return Future()

    with pytest.raises(SolverError) as caught:
        GroebnerBasis.compute(*system("katsura-4"), executor=Silent(), deadline=0.2)
    assert caught.value.code == "E-SOLVE-012"
