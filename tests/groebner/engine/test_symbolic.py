"""Matrices depend neither on how many threads look monomials up nor on the rows of earlier ones."""

import weakref

import pytest
from polysystems import dictionaries, named, system
from tracing import equal

from alkahest.groebner.engine import earlier, f4, linear_algebra, symbolic, threads
from alkahest.groebner.engine.packing import layout
from alkahest.groebner.engine.records import LARGEST_PRIME, MonomialOrder
from alkahest.groebner.engine.reducers import host_reducer


@pytest.fixture
def eager(monkeypatch):
    """Let a few entries be worth earlier rows and several threads, whose use is counted."""
    monkeypatch.setattr(earlier, "_WORTH", 1)
    monkeypatch.setattr(symbolic, "_BATCH", 16)
    monkeypatch.setattr(threads, "_SHARE", 4)
    calls, team = [], threads.Team.each

    def each(self, work, bounds):
        calls.append(len(bounds) - 1)
        team(self, work, bounds)

    monkeypatch.setattr(threads.Team, "each", each)
    return calls


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("name", ["katsura-5", "noon-4", "cyclic-5"])
def test_every_matrix_of_a_run_is_the_same_for_any_number_of_threads_and_without_earlier_rows(
    monkeypatch, eager, name, bits
):
    polynomials, n = named(name)
    given, order = system(polynomials, n), MonomialOrder.grevlex(n)
    build = symbolic.build_matrix

    def compared(basis, seeds, limits, count, rows):
        one = build(basis, seeds, limits)
        for many in (1, 2, 3, 16):
            assert equal(one, build(basis, seeds, limits, many, rows))
        assert equal(one, build(basis, seeds, limits, 3))
        return one

    monkeypatch.setattr(f4, "build_matrix", compared)
    packing = layout(order, bits)
    run = f4.Run(
        packing, LARGEST_PRIME, order, 0, f4.Limits(),
        linear_algebra.LinearAlgebra(host_reducer()), record=False,
    )  # fmt: skip
    run.compute(f4.generators(given, packing))
    assert max(eager) > 2
    assert (packing.words > 2) == (bits == 32)  # words that are compared in memory


@pytest.mark.parametrize("record", [False, True])
def test_a_run_with_threads_gives_the_same_basis_and_trace(monkeypatch, eager, record):
    systems = [named(name) for name in ("katsura-6", "eco-6")]
    # Exponents beyond what fits into eight bits, which a look-up has to leave to be noticed.
    systems.append(([{(100, 0): 1, (0, 3): 1, (0, 0): 1}, {(3, 90): 1, (0, 0): -1}], 2))
    for polynomials, n in systems:
        given, order = system(polynomials, n), MonomialOrder.grevlex(n)
        for seed in (0, 1):
            one = f4.groebner_modp(given, LARGEST_PRIME, order, seed=seed, record=record)
            with monkeypatch.context() as patched:
                patched.setattr(linear_algebra, "threads_beside", lambda reducer: 3)
                many = f4.groebner_modp(given, LARGEST_PRIME, order, seed=seed, record=record)
            assert dictionaries(one[0]) == dictionaries(many[0])
            assert not record or equal(one[2], many[2])
    assert max(eager) > 1


def test_earlier_rows_are_gone_while_the_next_matrix_is_reduced(monkeypatch, eager):
    polynomials, n = named("katsura-5")
    echelon, held = f4.Run._echelon, []

    def reduced(self, matrix, basis):
        assert not any(entries() is not None for entries in held)
        held.append(weakref.ref(matrix.entries))
        return echelon(self, matrix, basis)

    monkeypatch.setattr(f4.Run, "_echelon", reduced)
    f4.groebner_modp(system(polynomials, n), LARGEST_PRIME, MonomialOrder.grevlex(n))
    assert len(held) > 3
