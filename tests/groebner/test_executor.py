"""Spreading the primes of a rational computation over other processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from groebner_benchmark.systems import system

from alkahest import GroebnerBasis, solve


def test_processes_and_threads_give_the_basis_of_one_thread():
    polys, names = system("katsura-6")
    alone = GroebnerBasis.compute(polys, names)
    with ThreadPoolExecutor(2) as threads:
        assert GroebnerBasis.compute(polys, names, executor=threads) == alone
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as processes:
        spread = GroebnerBasis.compute(polys, names, executor=processes)
        assert spread == alone
        assert spread.report.certainty == alone.report.certainty
        found = solve(["x^2 - 2", "y - x"], "x y", executor=processes)
        assert [str(s["x"]) for s in found] == ["-sqrt(2)", "sqrt(2)"]
