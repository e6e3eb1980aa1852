"""The record of a run, its replay modulo other primes, and proofs along it."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from time import monotonic

import attrs
import numpy as np
import pytest
from buchberger import Arithmetic
from polysystems import dictionaries, named, random_ideal, system

from alkahest import CudaError, SolverError
from alkahest.groebner.engine.certify import certify
from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.packing import layout
from alkahest.groebner.engine.prepare import generators
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.records import MonomialOrder
from alkahest.groebner.engine.reducers import host_reducer, with_fallback
from alkahest.groebner.engine.replay import replay
from alkahest.groebner.engine.trace import Images

P = 2147483629


def nothing():
    """A checkpoint that lets everything pass."""


def learned(polynomials, nvars, prime=P):
    order = MonomialOrder.grevlex(nvars)
    given = generators(system(polynomials, nvars), layout(order, 8))
    _, _, trace = groebner_modp(system(polynomials, nvars), prime, order, record=True)
    return given, trace


def replayed(given, trace, primes):
    inputs = given.images(primes)
    return replay(trace, inputs, primes, nothing)


def test_a_run_is_recorded_only_on_request():
    polynomials, nvars = named("cyclic-4")
    order = MonomialOrder.grevlex(nvars)
    assert groebner_modp(system(polynomials, nvars), P, order)[2] is None


@pytest.mark.parametrize("name", ["katsura-5", "cyclic-5", "noon-4", "eco-7"])
def test_a_replay_gives_the_basis_modulo_every_prime(name):
    polynomials, nvars = named(name)
    given, trace = learned(polynomials, nvars)
    trace.verify()
    primes = list(islice(primes_below(2**31 - 1, given.leading()), 8))
    images = replayed(given, trace, primes)
    assert images.lucky == (True,) * 8
    is_tail = np.ones(len(trace.words), np.bool_)
    is_tail[trace.offsets[:-1]] = False
    for lane, p in enumerate(primes):
        basis, _, _ = groebner_modp(system(polynomials, nvars), p, MonomialOrder.grevlex(nvars))
        assert np.array_equal(trace.layout.unpack(trace.words), basis.exponents)
        assert np.array_equal(images.tails[:, lane], basis.residues[is_tail])


def test_only_the_lanes_of_unlucky_primes_are_marked():
    # The leads x*y and x**2 become dependent modulo 1000003 only.
    unlucky = 1000003
    polynomials = [
        {(2, 0): 1, (1, 1): 1, (0, 0): 1},
        {(2, 0): 1, (1, 1): 1 + unlucky, (0, 1): 5},
    ]
    given, trace = learned(polynomials, 2)
    primes = list(islice(primes_below(2**31 - 1, []), 8))
    primes[3] = unlucky
    images = replayed(given, trace, primes)
    assert images.lucky == tuple(lane != 3 for lane in range(8))


def test_a_prime_with_other_terms_is_marked():
    # Learned where the constant term vanishes in the difference of the two.
    polynomials = [
        {(2, 0): 1, (0, 1): 1, (0, 0): 1},
        {(2, 0): 1, (1, 0): 1, (0, 1): 1, (0, 0): P + 1},
    ]
    given, trace = learned(polynomials, 2)
    primes = list(islice(primes_below(2**31 - 100, []), 7))
    images = replayed(given, trace, [*primes, P])
    assert images.lucky == (False,) * 7 + (True,)


def test_an_unlucky_learning_prime_is_replaced():
    order = MonomialOrder.grevlex(2)
    first = next(primes_below(2**31 - 1 - 2 * random.Random(0).randrange(2**24), [1]))
    polynomials = [
        {(2, 0): 1, (0, 1): 1, (0, 0): 1},
        {(2, 0): 1, (1, 0): 1, (0, 1): 1, (0, 0): first + 1},
    ]
    basis, report = groebner_rational(system(polynomials, 2), order, seed=0)
    assert first in report.dropped
    assert dictionaries(basis)[0] == {(1, 0): 1, (0, 0): first}


def test_rows_that_vanish_only_modulo_the_learning_prime_are_noticed():
    # Modulo that prime the second generator is the first: a replay alone would lose it.
    first = next(primes_below(2**31 - 1 - 2 * random.Random(0).randrange(2**24), [1]))
    order = MonomialOrder.grevlex(2)
    polynomials = [
        {(1, 0): 1, (0, 0): -1},
        {(1, 0): 1, (0, 0): -1 - first},
        {(0, 2): 1, (1, 0): 1},
    ]
    basis, report = groebner_rational(system(polynomials, 2), order, seed=0)
    assert dictionaries(basis) == [{(0, 0): 1}]
    assert report.dropped == (first,)
    deeper = [{(2, 0): 1, (0, 1): 1}, {(1, 1): 1, (0, 1): -1}, {(0, 2): 1, (0, 1): first + 1}]
    found, report = groebner_rational(system(deeper, 2), order, seed=0)
    assert dictionaries(found) == Arithmetic(order.weights).groebner(deeper)
    assert report.dropped == (first,)


def test_a_trace_survives_pickling():
    given, trace = learned(*named("cyclic-4"))
    copied = pickle.loads(pickle.dumps(trace))
    copied.verify()
    primes = list(islice(primes_below(2**31 - 1, []), 8))
    again = replayed(given, copied, primes)
    assert np.array_equal(again.tails, replayed(given, trace, primes).tails)


@pytest.mark.parametrize(
    ("field", "change", "rule"),
    [
        ("entries", lambda a: a + 1000, "entries within the columns"),
        ("lower", lambda a: a + 1000, "lower rows within the rows"),
        ("pivot_row", lambda a: a[::-1].copy(), "pivot rows that start with their pivots"),
        ("leads", lambda a: np.zeros_like(a), "distinct leads"),
        ("first_term", lambda n: n + 1, "new terms right after the known ones"),
        ("row_term", lambda a: a + 10**6, "coefficients of earlier rounds only"),
        ("out_row", lambda a: a[:-1], "a column for each new term"),
    ],
)
def test_a_damaged_trace_is_refused_with_the_rule_it_breaks(field, change, rule):
    _, trace = learned(*named("katsura-4"))
    number = next(n for n, one in enumerate(trace.rounds) if len(one.leads) > 1 and one.pivots > 1)
    damaged = attrs.evolve(
        trace.rounds[number], **{field: change(getattr(trace.rounds[number], field))}
    )
    rounds = (*trace.rounds[:number], damaged, *trace.rounds[number + 1 :])
    with pytest.raises(ValueError, match=f"round {number} of the trace breaks the rule: {rule}"):
        attrs.evolve(trace, rounds=rounds).verify()


def test_a_trace_of_another_version_is_refused():
    _, trace = learned(*named("cyclic-4"))
    with pytest.raises(ValueError, match="a trace of version 7"):
        attrs.evolve(trace, version=7).verify()


def test_replays_can_be_spread_over_an_executor():
    polynomials, nvars = named("katsura-5")
    order = MonomialOrder.grevlex(nvars)
    alone, _ = groebner_rational(system(polynomials, nvars), order)
    with ThreadPoolExecutor(2) as pool:
        shared, report = groebner_rational(system(polynomials, nvars), order, executor=pool)
    assert dictionaries(shared) == dictionaries(alone)
    assert report.planned_on_cpu > len(report.rounds) + 2  # the check counts as well
    assert len(report.primes) == 8  # the other eight were not needed


def test_replays_can_be_spread_over_processes():
    polynomials, nvars = named("katsura-4")
    order = MonomialOrder.grevlex(nvars)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        shared, report = groebner_rational(system(polynomials, nvars), order, executor=pool)
    assert dictionaries(shared) == dictionaries(
        groebner_rational(system(polynomials, nvars), order)[0]
    )
    assert report.reducer == "cpu"
    assert report.planned_on_cpu > len(report.rounds) + 2  # the check counts as well


def test_a_deadline_reaches_the_workers_of_an_executor():
    polynomials, nvars = named("katsura-11")
    order = MonomialOrder.grevlex(nvars)
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(SolverError, match="E-SOLVE-012"),
    ):
        groebner_rational(
            system(polynomials, nvars), order, executor=pool, deadline=monotonic() + 0.2
        )


class Recording:
    """A reducer that counts what it is asked, and else is the host's."""

    name = "recording"
    on_gpu = True

    def __init__(self):
        self.host = host_reducer()
        self.lanes = self.host.lanes
        self.calls = []

    def __getattr__(self, name):
        method = getattr(self.host, name)

        def call(*args):
            self.calls.append(name)
            done = method(*args)
            if name == "echelon_with_rows":
                return attrs.evolve(done[0], on_gpu=True), done[1]
            return attrs.evolve(done, on_gpu=True)

        return call


def test_another_reducer_does_the_work_and_is_reported():
    polynomials, nvars = named("katsura-5")
    order = MonomialOrder.grevlex(nvars)
    reducer = Recording()
    basis, report = groebner_rational(system(polynomials, nvars), order, reducer=reducer)
    assert len(reducer.calls) == report.reductions_on_gpu
    learned = reducer.calls[: len(report.rounds)]
    assert learned == ["echelon_with_rows"] * (len(learned) - 1) + ["normal_forms"]
    assert {"replay", "echelon"} == set(reducer.calls[len(learned) :])
    assert report.reducer == "recording"
    assert report.planned_on_cpu == 0
    assert dictionaries(basis) == dictionaries(
        groebner_rational(system(polynomials, nvars), order)[0]
    )
    _, direct, _ = groebner_modp(system(polynomials, nvars), P, order, reducer=reducer)
    assert direct.reductions_on_gpu == len(direct.rounds)
    assert reducer.calls[report.reductions_on_gpu :] == (
        ["echelon"] * (len(direct.rounds) - 1) + ["normal_forms"]
    )


class Failing(Recording):
    """A reducer whose device fails at every second call, or with another error."""

    def __init__(self, error):
        super().__init__()
        self.lanes *= 2
        self.error = error

    def __getattr__(self, name):
        method = super().__getattr__(name)

        def call(*args):
            if len(self.calls) % 2 == 0:
                self.calls.append("failed")
                raise self.error
            if name != "replay":
                return method(*args)
            trace, inputs, primes, checkpoint = args
            halves = [
                method(trace, np.ascontiguousarray(inputs[:, part]), primes[part], checkpoint)
                for part in (slice(8), slice(8, 16))
            ]
            return Images(
                primes=tuple(primes),
                lucky=halves[0].lucky + halves[1].lucky,
                tails=np.concatenate([half.tails for half in halves], axis=1),
                on_gpu=True,
            )

        return call


@pytest.mark.parametrize(
    "error", [CudaError("E-CUDA-006", "lost"), SolverError("E-SOLVE-010", "lost")]
)
def test_with_a_fallback_the_host_does_what_a_device_fails_at(error):
    polynomials, nvars = named("katsura-5")
    order = MonomialOrder.grevlex(nvars)
    expected = groebner_modp(system(polynomials, nvars), P, order)[0]
    with pytest.raises(type(error)):
        groebner_modp(system(polynomials, nvars), P, order, reducer=Failing(error))
    basis, report, _ = groebner_modp(
        system(polynomials, nvars), P, order, reducer=with_fallback(Failing(error))
    )
    assert dictionaries(basis) == dictionaries(expected)
    assert report.reductions_on_cpu + report.reductions_on_gpu == len(report.rounds)
    assert report.reductions_on_cpu > 0
    assert report.reductions_on_gpu > 0
    lifted, report = groebner_rational(
        system(polynomials, nvars), order, reducer=with_fallback(Failing(error))
    )
    assert dictionaries(lifted) == dictionaries(
        groebner_rational(system(polynomials, nvars), order)[0]
    )
    assert report.reductions_on_cpu > 0
    assert report.planned_on_cpu == 0
    assert report.reductions_on_cpu + report.reductions_on_gpu > len(report.rounds)


def test_a_fallback_does_not_hide_other_errors():
    polynomials, nvars = named("katsura-5")
    late = SolverError("E-SOLVE-012", "late")
    with pytest.raises(SolverError, match="late"):
        groebner_rational(
            system(polynomials, nvars),
            MonomialOrder.grevlex(nvars),
            reducer=with_fallback(Failing(late)),
        )


@pytest.mark.parametrize("name", ["katsura-4", "cyclic-5", "noon-4"])
def test_results_are_proved_on_request(name):
    polynomials, nvars = named(name)
    order = MonomialOrder.grevlex(nvars)
    basis, report = groebner_rational(system(polynomials, nvars), order, certify=True)
    assert report.certainty == "certified"
    assert dictionaries(basis) == dictionaries(
        groebner_rational(system(polynomials, nvars), order)[0]
    )


def test_random_results_are_proved_in_every_order():
    rng = random.Random(11)
    orders = [MonomialOrder.grevlex(3), MonomialOrder.lex(3), MonomialOrder.blocks((1, 2))]
    for _ in range(15):
        polynomials = random_ideal(rng, 3)
        for order in orders:
            _, report = groebner_rational(system(polynomials, 3), order, certify=True)
            assert report.certainty == "certified"


def _altered(basis, index):
    limbs = basis.limbs.copy()
    limbs[index, 0] += 1
    return attrs.evolve(basis, limbs=limbs)


def test_a_wrong_basis_is_not_proved():
    polynomials, nvars = named("katsura-4")
    order = MonomialOrder.grevlex(nvars)
    given, trace = learned(polynomials, nvars)
    basis, _ = groebner_rational(system(polynomials, nvars), order)
    primes = primes_below(2**31 - 1, given.leading())
    for index in (1, len(basis.limbs) - 1):
        with pytest.raises(SolverError, match="E-SOLVE-014"):
            certify(
                system(polynomials, nvars), _altered(basis, index), order, trace, given, primes,
                Limits(),
            )  # fmt: skip


def test_a_basis_of_a_larger_ideal_is_not_proved():
    # Everything reduces to zero modulo [x, y]; only the way from the generators is missing.
    order = MonomialOrder.grevlex(2)
    polynomials = [{(2, 0): 1}, {(0, 1): 1}]
    larger, _ = groebner_rational(system([{(1, 0): 1}, {(0, 1): 1}], 2), order)
    given, trace = learned([{(1, 0): 1}, {(0, 1): 1}], 2)
    right, right_trace = learned(polynomials, 2)
    primes = primes_below(2**31 - 1, [])
    with pytest.raises(SolverError, match="could not be traced back"):
        certify(system(polynomials, 2), _with_tail(larger), order, trace, given, primes, Limits())
    assert right_trace.input_terms == len(right.words) == 2


def _with_tail(basis):
    """x + y and y: the same ideal, not what the record gives."""
    return attrs.evolve(
        basis,
        exponents=np.array([[1, 0], [0, 1], [0, 1]], np.uint32),
        offsets=np.array([0, 2, 3]),
        limbs=np.ones((3, 1), np.uint32),
        negative=np.zeros(3, np.bool_),
    )
