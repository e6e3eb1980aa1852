"""Rational bases whose primes are spread over the workers of a Dask cluster."""

from __future__ import annotations

import pytest
from groebner_benchmark.systems import system
from mortal import FirstTaskKills

from alkahest import GroebnerBasis, SolverError, solve


@pytest.fixture(scope="module")
def alone():
    return GroebnerBasis.compute(*system("katsura-6"))


def test_workers_give_the_basis_of_one_process(client, alone, monkeypatch):
    futures = []
    with client.get_executor() as executor:
        submit = executor.submit
        monkeypatch.setattr(
            executor, "submit", lambda *task: futures.append(submit(*task)) or futures[-1]
        )
        spread = GroebnerBasis.compute(*system("katsura-6"), executor=executor)
    assert spread == alone
    assert spread.report.certainty == "probabilistic"
    assert len(futures) >= len(client.scheduler_info()["workers"]) == 2
    assert all(future.done() for future in futures)


def test_a_proof_and_solutions_are_had_as_well(client):
    executor = client.get_executor()
    basis = GroebnerBasis.compute(*system("katsura-4"), executor=executor, certify=True)
    assert basis.report.certainty == "certified"
    found = solve(["x^2 - 2", "y - x"], "x y", executor=executor)
    assert [str(s["x"]) for s in found] == ["-sqrt(2)", "sqrt(2)"]


def test_a_worker_that_is_killed_in_the_middle_is_made_up_for(client, alone, tmp_path):
    executor = FirstTaskKills(client.get_executor(), tmp_path / "killed")
    assert GroebnerBasis.compute(*system("katsura-6"), executor=executor) == alone
    assert (tmp_path / "killed").exists()
    client.wait_for_workers(2, timeout=60)
    assert GroebnerBasis.compute(*system("katsura-6"), executor=client.get_executor()) == alone


def test_a_deadline_stops_workers_too(client):
    with pytest.raises(SolverError) as caught:
        GroebnerBasis.compute(
            *system("katsura-11"), executor=client.get_executor(), deadline=0.5, memory=2**33
        )
    assert caught.value.code == "E-SOLVE-012"


def test_a_task_that_the_cluster_gives_up_on_is_an_error_with_its_reason(client):
    class Refusing:
        def submit(self, function, /, *arguments):
            return client.get_executor(retries=0).submit(int, "no number")

    with pytest.raises(SolverError, match="no number") as caught:
        GroebnerBasis.compute(*system("katsura-4"), executor=Refusing())
    assert caught.value.code == "E-SOLVE-016"
    assert isinstance(caught.value.__cause__, ValueError)
