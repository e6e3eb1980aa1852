"""Learning on a device: the processor's record, whatever the shape of the device, or an error."""

import random

import pytest
from polysystems import named, system
from randomideals import KINDS, random_ideal
from tracing import equal

from alkahest import GF, CudaError, GroebnerBasis, SolverError, compute_groebner_basis_gpu
from alkahest.backends.groebner_gpu import reducer as devices
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice, run_twin
from alkahest.backends.groebner_gpu.reducer import GpuReducer
from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.modular import groebner_rational
from alkahest.groebner.engine.records import LARGEST_PRIME, MonomialOrder
from alkahest.groebner.engine.reducers import with_fallback


def learn(polynomials, n, reducer=None, prime=LARGEST_PRIME, seed=0, **options):
    order = MonomialOrder.grevlex(n)
    given = system(polynomials, n)
    return groebner_modp(given, prime, order, seed=seed, reducer=reducer, record=True, **options)


@pytest.mark.parametrize("multiprocessors", [1, 2, 132])
@pytest.mark.parametrize("name", ["katsura-5", "cyclic-5", "noon-4", "eco-6"])
def test_the_record_is_the_processor_s(name, multiprocessors):
    polynomials, n = named(name)
    for seed, prime in ((0, LARGEST_PRIME), (3, 1048583)):
        basis, _, trace = learn(polynomials, n, None, prime, seed)
        device = EmulatedDevice(multiprocessors=multiprocessors, is_gpu=True)
        found, report, learned = learn(polynomials, n, GpuReducer([device]), prime, seed)
        assert equal(found, basis)
        assert equal(learned, trace)
        learned.verify()
        assert report.reductions_on_gpu == len(report.rounds)
        assert report.planned_on_cpu == 0
        assert report.certainty == "probabilistic"
        assert {"fill_randomly", "gather_rows", "enter_row"} <= set(device.launches)


def test_learning_ends_when_nothing_is_left_to_find():
    polynomials, n = named("katsura-6")
    device = EmulatedDevice(multiprocessors=2)
    _, report, trace = learn(polynomials, n, GpuReducer([device]))
    assert equal(trace, learn(polynomials, n)[2])
    assert "reduce_mixtures" in device.launches
    assert any(one.reduced < one.pairs for one in report.rounds)


def test_projections_and_combinations_share_no_random_words():
    """Words of splitmix64 with two seeds are those of one stream, a number of steps apart."""
    steps = pow(0x9E3779B97F4A7C15, -1, 2**64)
    seeds = {"fill_randomly": set(), "reduce_mixtures": set()}
    at = {"fill_randomly": 3, "reduce_mixtures": 8}

    def launch(kernel, group, grid, block, shared, arguments):
        if kernel in seeds:
            low, high = arguments[at[kernel] : at[kernel] + 2]
            seeds[kernel].add((high % 2**32) << 32 | low % 2**32)
        run_twin(kernel, group, grid, block, shared, arguments)

    polynomials, n = named("katsura-6")
    for record in (True, False):
        for seed in (0, 5):
            reducer = GpuReducer([EmulatedDevice(multiprocessors=2, launch=launch)])
            order = MonomialOrder.grevlex(n)
            given = system(polynomials, n)
            groebner_modp(given, LARGEST_PRIME, order, seed=seed, reducer=reducer, record=record)
    assert len(seeds["fill_randomly"]) > 1
    for one in seeds["fill_randomly"]:
        for other in seeds["reduce_mixtures"]:
            apart = (one - other) * steps % 2**64
            assert 2**40 < apart < 2**64 - 2**40


def test_records_of_random_ideals_are_the_processor_s():
    rng = random.Random(6)
    reducer = GpuReducer([EmulatedDevice(multiprocessors=2)])
    for _ in range(25):
        polynomials = random_ideal(rng, rng.choice(KINDS), 3, LARGEST_PRIME)
        assert equal(learn(polynomials, 3, reducer)[2], learn(polynomials, 3)[2])


def test_a_device_that_is_lost_at_any_launch_of_learning_fails_it_or_leaves_it_to_the_processor():
    polynomials, n = named("katsura-3")
    whole = EmulatedDevice()
    expected = learn(polynomials, n, GpuReducer([whole]))[2]
    assert len(whole.launches) > 20
    for number in range(1, len(whole.launches) + 1):
        with pytest.raises(CudaError, match="CUDA_ERROR_LAUNCH_FAILED"):
            learn(polynomials, n, GpuReducer([EmulatedDevice(fails_at=number)]))
        broken = GpuReducer([EmulatedDevice(fails_at=number, is_gpu=True)])
        _, report, trace = learn(polynomials, n, with_fallback(broken))
        assert equal(trace, expected)
        assert report.reductions_on_cpu > 0
        assert report.reductions_on_cpu + report.reductions_on_gpu == len(report.rounds)
        assert "CUDA_ERROR_LAUNCH_FAILED" in report.first_gpu_error


@pytest.mark.parametrize("fallback", ["error", "cpu"])
def test_a_computation_survives_or_names_a_device_that_fails_while_learning(pretend, fallback):
    polynomials, n = named("katsura-4")
    names = [f"x{i}" for i in range(n)]
    pretend(EmulatedDevice(fails_at=25))
    if fallback == "error":
        with pytest.raises(SolverError, match="device='cuda' failed") as caught:
            GroebnerBasis.compute(polynomials, names, device="cuda")
        assert caught.value.code == "E-SOLVE-010"
        return
    basis, report = compute_groebner_basis_gpu(polynomials, names, fallback="cpu")
    assert basis == GroebnerBasis.compute(polynomials, names)
    assert report.fell_back_to_cpu()
    assert report.reductions_on_gpu > 0


def test_memory_that_runs_out_while_learning_is_an_error(pretend):
    polynomials, n = named("katsura-5")
    device = EmulatedDevice(memory=1 << 14)
    with pytest.raises(CudaError, match="CUDA_ERROR_OUT_OF_MEMORY") as caught:
        learn(polynomials, n, GpuReducer([device]))
    assert caught.value.code == "E-CUDA-003"


def test_limits_stop_learning_between_batches_of_rows():
    polynomials, n = named("katsura-6")
    device = EmulatedDevice(multiprocessors=1)
    reducer, calls = GpuReducer([device]), []

    def progress(told):
        calls.append(len(device.launches))
        if len(calls) == 4:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        learn(polynomials, n, reducer, progress=progress)
    assert calls[1] < calls[3] == len(device.launches)
    with pytest.raises(SolverError) as caught:
        learn(polynomials, n, with_fallback(reducer), deadline=0.0)
    assert caught.value.code == "E-SOLVE-012"


def test_small_matrices_are_the_processor_s_by_plan_and_counted(pretend, monkeypatch):
    monkeypatch.setattr(devices, "LEAST_PRODUCTS", 1e4)
    pretend(EmulatedDevice())
    polynomials, n = named("katsura-5")
    names = [f"x{i}" for i in range(n)]
    basis = GroebnerBasis.compute(polynomials, names, device="cuda")
    assert basis == GroebnerBasis.compute(polynomials, names)
    report = basis.report
    assert report.ran_on_gpu()
    assert report.planned_on_cpu > 0
    assert report.reductions_on_gpu > 2  # of learning, of the check, and the replay


@pytest.mark.parametrize("field", [None, GF(65521)], ids=str)
def test_a_device_asked_for_by_name_does_something_of_every_computation(
    pretend, monkeypatch, field
):
    monkeypatch.setattr(devices, "LEAST_PRODUCTS", float("inf"))
    (device,) = pretend(EmulatedDevice())
    basis = GroebnerBasis.compute(["x^2 - y", "x*y - 1"], "x y", field=field, device="cuda")
    assert basis == GroebnerBasis.compute(["x^2 - y", "x*y - 1"], "x y", field=field)
    assert basis.report.ran_on_gpu()
    assert basis.report.reductions_on_gpu >= 1
    assert basis.report.planned_on_cpu > 0
    assert device.launches


class Plain:
    """A reducer of another distribution that knows nothing of learning."""

    name, on_gpu = "plain", True

    def __init__(self, reducer):
        self.lanes, self.echelon = reducer.lanes, reducer.echelon
        self.normal_forms, self.replay = reducer.normal_forms, reducer.replay


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_reducer_without_the_method_leaves_learning_to_the_processor(wrapped):
    polynomials, n = named("katsura-4")
    order, device = MonomialOrder.grevlex(n), EmulatedDevice(is_gpu=True)
    reducer = Plain(GpuReducer([device]))
    basis, report = groebner_rational(
        system(polynomials, n), order, reducer=with_fallback(reducer) if wrapped else reducer
    )
    assert equal(basis, groebner_rational(system(polynomials, n), order)[0])
    assert report.planned_on_cpu == len(report.rounds)
    assert report.reductions_on_gpu > 1  # replays and the check
    assert report.reductions_on_cpu == 0
