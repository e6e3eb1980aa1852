"""Deadlines, memory bounds, progress and cancellation leave nothing behind."""

from __future__ import annotations

import time

import pytest
from polysystems import dictionaries, named, system

from alkahest import SolverError
from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.normal_form import reduce_rational
from alkahest.groebner.engine.records import MonomialOrder

P = 2**31 - 1
POLYNOMIALS, NVARS = named("katsura-5")
GIVEN = system(POLYNOMIALS, NVARS)
ORDER = MonomialOrder.grevlex(NVARS)


def test_a_deadline_that_has_passed_stops_every_kind_of_work():
    past = time.monotonic() - 1
    with pytest.raises(SolverError, match=r"E-SOLVE-012.*deadline"):
        groebner_modp(GIVEN, P, ORDER, deadline=past)
    with pytest.raises(SolverError, match="E-SOLVE-012"):
        groebner_rational(GIVEN, ORDER, deadline=past)
    basis, _ = groebner_rational(GIVEN, ORDER)
    with pytest.raises(SolverError, match="E-SOLVE-012"):
        reduce_rational(GIVEN, basis, ORDER, deadline=past)


def test_a_deadline_stops_a_long_run_soon():
    polynomials, nvars = named("katsura-11")
    started = time.monotonic()
    with pytest.raises(SolverError, match="E-SOLVE-012"):
        groebner_modp(
            system(polynomials, nvars), P, MonomialOrder.grevlex(nvars), deadline=started + 0.3
        )
    assert time.monotonic() - started < 30


def test_a_memory_bound_stops_the_run():
    polynomials, nvars = named("katsura-10")
    with pytest.raises(SolverError, match=r"E-SOLVE-012.*memory=1000"):
        groebner_modp(system(polynomials, nvars), P, MonomialOrder.grevlex(nvars), memory=1000)


def test_limits_that_are_not_reached_change_nothing():
    basis, _, _ = groebner_modp(GIVEN, P, ORDER, deadline=time.monotonic() + 600, memory=2**40)
    assert dictionaries(basis) == dictionaries(groebner_modp(GIVEN, P, ORDER)[0])


def test_more_memory_than_allowed_is_foreseen():
    with pytest.raises(SolverError, match="memory=1000000"):
        Limits(memory=10**6).foresee(10**7)


def test_progress_is_told_phase_by_phase():
    seen = []
    groebner_rational(GIVEN, ORDER, progress=seen.append, certify=True)
    assert list(dict.fromkeys(p.phase for p in seen)) == ["learn", "replay", "certify"]
    learning = [p for p in seen if p.phase == "learn"]
    assert [p.step for p in learning] == list(range(len(learning)))
    assert [p.degree for p in learning] == sorted(p.degree for p in learning)


@pytest.mark.parametrize("cause", [KeyboardInterrupt, RuntimeError])
def test_a_run_that_was_interrupted_can_be_repeated(cause):
    def interrupt(progress):
        if progress.step == 2:
            raise cause

    with pytest.raises(cause):
        groebner_modp(GIVEN, P, ORDER, progress=interrupt)
    assert len(groebner_modp(GIVEN, P, ORDER)[0]) == 22
