"""Residues kept by a reducer: lifted there, or here where that fails or is not possible."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from polysystems import dictionaries, named, system

from alkahest.errors import CudaError, SolverError
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.records import MonomialOrder
from alkahest.groebner.engine.reducers import host_reducer, lifting, with_fallback
from alkahest.groebner.engine.trace import KeptImages


class Keeping:
    """A reducer that is the host's, and keeps residues as if it were far away.

    Args:
        able: what it says of liftings.
        keeps: for each replay, whether the residues stay; then the first again.
        fails: the methods that raise ``error``.
    """

    name = "keeping"
    on_gpu = True

    def __init__(self, *, able=True, keeps=(True,), fails=(), error=None):
        self.host = host_reducer()
        self.lanes = self.host.lanes
        self.echelon, self.normal_forms = self.host.echelon, self.host.normal_forms
        self.able, self.keeps, self.fails = able, keeps, fails
        self.error = error or CudaError("E-CUDA-006", "lost")
        self.calls, self.open = [], 0

    def _called(self, name):
        self.calls.append(name)
        if name in self.fails:
            raise self.error

    def for_matrix(self, matrix):
        return self.host

    def replay(self, trace, inputs, primes, checkpoint):
        raise AssertionError("a reducer that lifts is asked for what it keeps")

    def replay_kept(self, trace, inputs, primes, checkpoint):
        keeps = self.keeps[self.calls.count("replay_kept") % len(self.keeps)]
        self._called("replay_kept")
        images = self.host.replay(trace, inputs, primes, checkpoint)
        if not keeps:
            return attrs.evolve(images, on_gpu=True)
        kept = Held(self, images.tails)
        return KeptImages(primes=images.primes, lucky=images.lucky, kept=kept, on_gpu=True)

    def settle(self, lift, kept, primes, checkpoint):
        self._called("settle")
        if self.able:
            residues = np.concatenate([one.tails[:, list(lanes)] for one, lanes in kept], axis=1)
            lift.settle(residues, primes, checkpoint)
        return self.able


class Held:
    """What :class:`Keeping` keeps."""

    def __init__(self, reducer, tails):
        self.reducer, self.tails = reducer, tails
        self.is_open = True
        reducer.open += 1

    def columns(self, lanes):
        self.reducer._called("columns")
        return self.tails[:, list(lanes)]

    def close(self):
        self.reducer.open -= self.is_open
        self.is_open = False


def run(reducer, factor=1, **options):
    polynomials, nvars = named("katsura-4")
    polynomials = [
        {e: c * factor if k % 2 else c for k, (e, c) in enumerate(f.items())} for f in polynomials
    ]
    given, order = system(polynomials, nvars), MonomialOrder.grevlex(nvars)
    expected, plain = groebner_rational(given, order)
    basis, report = groebner_rational(given, order, reducer=reducer, **options)
    assert dictionaries(basis) == dictionaries(expected)
    assert np.array_equal(basis.limbs, expected.limbs)
    assert report.primes == plain.primes
    return report


def replays(reducer):
    return reducer.calls.count("replay_kept")


def test_residues_stay_where_they_are_and_one_column_is_fetched_to_confirm():
    reducer = Keeping()
    report = run(reducer)
    assert reducer.calls.count("columns") == 1
    assert reducer.open == 0
    assert report.reductions_on_gpu == replays(reducer) + 1  # and the lifting
    assert report.reductions_on_cpu == 0


def test_a_reducer_that_cannot_lift_this_time_leaves_it_to_the_host():
    reducer = Keeping(able=False)
    report = run(reducer)
    assert reducer.open == 0
    assert report.reductions_on_gpu == replays(reducer)
    assert report.reductions_on_cpu == 0


def test_residues_that_did_not_all_stay_are_lifted_by_the_host():
    reducer = Keeping(keeps=(True, False))
    report = run(reducer, factor=10**15 + 37)
    assert replays(reducer) > 1
    assert "settle" in reducer.calls
    assert reducer.open == 0
    assert report.reductions_on_gpu == replays(reducer)


@pytest.mark.parametrize("fails", [("settle",), ("settle", "columns"), ("columns",)])
def test_with_a_fallback_what_is_lost_is_replayed_by_the_host_and_counted(fails):
    with pytest.raises(CudaError, match="lost"):
        run(Keeping(fails=fails))
    reducer = Keeping(fails=fails)
    report = run(with_fallback(reducer))
    assert reducer.open == 0
    assert report.reductions_on_cpu >= 1
    assert report.planned_on_cpu == run(Keeping()).planned_on_cpu
    assert report.first_gpu_error == "[E-CUDA-006] lost"


def test_with_a_fallback_replays_that_fail_are_the_host_s():
    report = run(with_fallback(Keeping(fails=("replay_kept",))))
    assert report.reductions_on_gpu == 0
    assert report.reductions_on_cpu >= 1


def test_a_deadline_in_a_lifting_is_no_failure_of_the_device_and_gives_back_what_is_kept():
    reducer = Keeping(fails=("settle",), error=SolverError("E-SOLVE-012", "late"))
    with pytest.raises(SolverError, match="late"):
        run(with_fallback(reducer))
    assert reducer.open == 0


def test_a_reducer_with_nothing_but_replays_stays_what_it_is():
    assert lifting(host_reducer()) is None
    assert lifting(with_fallback(host_reducer())) is None
    keeping = Keeping()
    assert lifting(keeping) is keeping
    assert lifting(with_fallback(keeping)) is not None
