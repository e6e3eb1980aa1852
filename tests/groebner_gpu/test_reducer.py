"""Bases computed with device=: the same as the processor's, reported truthfully, or an error."""

from types import SimpleNamespace

import numpy as np
import pytest
from polysystems import named
from traces import learned, on_the_processor, some_primes

from alkahest import (
    GF,
    CudaError,
    GroebnerBasis,
    SolverError,
    compute_groebner_basis_gpu,
    solve,
    triangularize,
)
from alkahest.backends.groebner_gpu import reducer as devices
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice, run_twin
from alkahest.backends.groebner_gpu.record import record_of, stretches
from alkahest.backends.groebner_gpu.reducer import LANES_OF_A_DEVICE, GpuReducer

SYSTEM = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
FIELDS = [None, GF(3), GF(65521), GF(2147483647)]


@pytest.mark.parametrize("field", FIELDS, ids=str)
@pytest.mark.parametrize("order", ["grevlex", "lex", "elimination(1)"])
def test_the_basis_is_the_processor_s_and_the_report_says_where_it_came_from(pretend, field, order):
    (device,) = pretend(EmulatedDevice(name="Some GPU"))
    basis = GroebnerBasis.compute(SYSTEM, "x y z", order, field, device="cuda")
    expected = GroebnerBasis.compute(SYSTEM, "x y z", order, field)
    assert basis == expected
    report = basis.report
    assert report.ran_on_gpu()
    assert not report.fell_back_to_cpu()
    assert report.device_name == "Some GPU"
    assert report.first_gpu_error == ""
    assert report.primes == expected.report.primes
    assert device.launches


@pytest.mark.parametrize("name", ["katsura-5", "cyclic-5", "noon-4", "eco-6"])
def test_standard_systems_over_the_rationals(pretend, name):
    pretend(EmulatedDevice())
    polynomials, n = named(name)
    names = [f"x{i}" for i in range(n)]
    basis = GroebnerBasis.compute(polynomials, names, device="cuda")
    assert basis.report.ran_on_gpu()
    assert basis == GroebnerBasis.compute(polynomials, names)


def test_solving_and_triangularizing_reach_the_device(pretend):
    (device,) = pretend(EmulatedDevice())
    assert [dict(s) for s in solve(SYSTEM, "x y z", device="cuda")] == [
        dict(s) for s in solve(SYSTEM, "x y z")
    ]
    assert device.launches
    device.launches.clear()
    parts = ["x^2 - 1", "(y - x)^2"]
    assert triangularize(parts, "x y", device="cuda") == triangularize(parts, "x y")
    assert device.launches


def test_the_function_for_gpus_returns_the_basis_and_a_report_of_its_own(pretend):
    pretend(EmulatedDevice(name="Some GPU"), EmulatedDevice(name="Some GPU"))
    basis, report = compute_groebner_basis_gpu(SYSTEM, "x y z", "lex")
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z", "lex")
    assert report.ran_on_gpu()
    assert not report.fell_back_to_cpu()
    assert (report.reductions_on_cpu, report.first_gpu_error) == (0, "")
    assert report.reductions_on_gpu >= 1
    assert report.planned_on_cpu == 1  # learning the change of order
    assert report.device_name == "2 devices: Some GPU"
    assert {"learn", "replay", "lift"} <= report.seconds.keys()
    assert report.primes == basis.report.primes
    shown = report.to_dict()
    assert shown["ran_on_gpu"] is True
    assert shown["certainty"] == "probabilistic"
    _, report = compute_groebner_basis_gpu(SYSTEM, "x y z", "grevlex", 1, field=GF(101))
    assert report.device_name == "Some GPU"
    assert report.ran_on_gpu()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_several_devices_share_the_primes(count):
    given, trace = learned("eco-6")
    devices = [EmulatedDevice(ordinal=i, is_gpu=True) for i in range(count)]
    reducer = GpuReducer(devices)
    assert reducer.lanes == LANES_OF_A_DEVICE * count
    assert reducer.on_gpu
    primes = some_primes(given, 16)
    images = reducer.replay(trace, given.images(primes), primes, lambda: None)
    assert images.on_gpu
    assert images.primes == tuple(primes)
    assert images.lucky == (True,) * 16
    for column in (0, 7, 15):
        expected, _ = on_the_processor(trace, given, primes[column])
        assert images.tails[:, column].tolist() == expected.tolist()
    assert all(device.launches for device in devices)


def test_one_of_several_devices_that_fails_fails_the_replay():
    given, trace = learned("katsura-3")
    reducer = GpuReducer([EmulatedDevice(), EmulatedDevice(ordinal=1, fails_at=3)])
    primes = some_primes(given, 8)
    with pytest.raises(CudaError, match=r"device 1: .*CUDA_ERROR_LAUNCH_FAILED"):
        reducer.replay(trace, given.images(primes), primes, lambda: None)


@pytest.mark.parametrize("field", [None, GF(65521)], ids=str)
@pytest.mark.parametrize(
    ("broken", "said"),
    [({"fails_at": 2}, "CUDA_ERROR_LAUNCH_FAILED"), ({"memory": 64}, "CUDA_ERROR_OUT_OF_MEMORY")],
)
def test_a_device_that_fails_midway_is_an_error_or_with_fallback_the_processor_finishes(
    pretend, field, broken, said
):
    pretend(EmulatedDevice(**broken))
    with pytest.raises(SolverError, match=rf"device='cuda' failed: .*{said}") as caught:
        GroebnerBasis.compute(SYSTEM, "x y z", field=field, device="cuda")
    assert caught.value.code == "E-SOLVE-010"
    pretend(EmulatedDevice(**broken))
    basis, report = compute_groebner_basis_gpu(SYSTEM, "x y z", field=field, fallback="cpu")
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z", field=field)
    assert report.fell_back_to_cpu()
    assert not report.ran_on_gpu()
    assert said in report.first_gpu_error
    assert report.reductions_on_cpu >= 1


def test_fields_that_no_kernel_computes_over_are_refused(pretend):
    pretend(EmulatedDevice())
    with pytest.raises(SolverError, match="GF\\(2\\)") as caught:
        GroebnerBasis.compute(
            ["x*y + z", "y*z + x", "x*z + y + 1"], "x y z", "grevlex", GF(2), device="cuda"
        )
    assert caught.value.code == "E-SOLVE-010"
    with pytest.raises(CudaError, match="not reduced on a GPU") as refused:
        GroebnerBasis.compute(["x*y - 1"], "x y", field=GF(2**61 - 1), device="cuda")
    assert refused.value.code == "E-CUDA-004"


def test_ten_seeds_give_one_basis(pretend):
    pretend(EmulatedDevice())
    for field in (None, GF(2147483647)):
        expected = GroebnerBasis.compute(SYSTEM, "x y z", field=field)
        for seed in range(10):
            found = GroebnerBasis.compute(SYSTEM, "x y z", field=field, seed=seed, device="cuda")
            assert found == expected


def test_a_deadline_is_not_taken_for_a_failed_device(pretend):
    pretend(EmulatedDevice())
    polynomials, n = named("katsura-6")
    names = [f"x{i}" for i in range(n)]
    with pytest.raises(SolverError) as caught:
        GroebnerBasis.compute(polynomials, names, device="cuda", fallback="cpu", deadline=1e-9)
    assert caught.value.code == "E-SOLVE-012"


LIFTED = "katsura-5"


@pytest.fixture
def learned_on_the_processor(monkeypatch):
    """Matrices are small, so that what a device does are replays and liftings."""
    monkeypatch.setattr(devices, "LEAST_PRODUCTS", float("inf"))


def rational(**options):
    polynomials, n = named(LIFTED)
    names = [f"x{i}" for i in range(n)]
    basis, report = compute_groebner_basis_gpu(polynomials, names, **options)
    assert basis == GroebnerBasis.compute(polynomials, names)
    return report


def test_a_rational_basis_is_lifted_on_the_device(pretend, learned_on_the_processor):
    (device,) = pretend(EmulatedDevice())
    report = rational()
    assert report.ran_on_gpu()
    assert report.reductions_on_gpu == 2  # a replay and the lifting
    assert {"mix_terms", "add_cofactors", "collect_limbs"} <= set(device.launches)
    assert "lift" in report.seconds
    assert device.kept == 0


@pytest.mark.parametrize(
    "kernel", ["gather_lanes", "mix_terms", "scale_terms", "check_terms", "collect_limbs"]
)
def test_a_device_that_fails_in_the_lifting_is_an_error_or_with_fallback_the_processor_lifts(
    pretend, learned_on_the_processor, kernel
):
    (whole,) = pretend(EmulatedDevice())
    rational()
    number = whole.launches.index(kernel) + 1
    (device,) = pretend(EmulatedDevice(fails_at=number))
    with pytest.raises(SolverError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
        rational()
    assert caught.value.code == "E-SOLVE-010"
    del caught
    assert device.kept == 0
    (device,) = pretend(EmulatedDevice(fails_at=number))
    report = rational(fallback="cpu")
    assert report.fell_back_to_cpu()
    assert report.reductions_on_gpu == 1
    assert "CUDA_ERROR_LAUNCH_FAILED" in report.first_gpu_error
    assert device.kept == 0


def test_memory_that_runs_out_in_the_lifting_is_a_failure_and_with_fallback_nothing_is_lost(
    pretend,
):
    def launch(kernel, *rest):
        run_twin(kernel, *rest)
        if kernel == "mix_terms":
            device.memory = 0

    (device,) = pretend(EmulatedDevice(launch=launch))
    with pytest.raises(SolverError, match="CUDA_ERROR_OUT_OF_MEMORY") as caught:
        rational()
    assert caught.value.code == "E-SOLVE-010"
    (device,) = pretend(EmulatedDevice(launch=launch))
    report = rational(fallback="cpu")
    assert report.reductions_on_cpu == 1
    assert "CUDA_ERROR_OUT_OF_MEMORY" in report.first_gpu_error


def test_where_memory_is_short_from_the_start_the_processor_lifts_by_plan(pretend):
    record = record_of(learned(LIFTED)[1])
    need = 2 * record.terms - record.first_result + record.dense_words + record.square_rows**2
    (device,) = pretend(EmulatedDevice(memory=4 * len(record.words) + 4 * need * 10))
    report = rational()
    assert report.ran_on_gpu()
    assert "add_cofactors" not in device.launches
    assert device.kept == 0


def test_an_unlucky_prime_is_dropped_and_its_lane_not_lifted_from(
    pretend, learned_on_the_processor
):
    def launch(kernel, group, grid, block, shared, arguments):
        run_twin(kernel, group, grid, block, shared, arguments)
        if kernel == "reduce_rows":
            arguments[-1][2] = 1

    (device,) = pretend(EmulatedDevice(launch=launch))
    report = rational()
    assert len(report.dropped) == 1
    assert "add_cofactors" in device.launches
    assert report.ran_on_gpu()


def test_residues_that_would_leave_too_little_memory_come_down(
    pretend, learned_on_the_processor, monkeypatch
):
    from alkahest.backends.groebner_gpu import replay

    monkeypatch.setattr(replay, "_SHARES_OF_KEPT", 1 << 40)
    (device,) = pretend(EmulatedDevice())
    assert rational().reductions_on_gpu == 1
    assert "add_cofactors" not in device.launches
    one, other = EmulatedDevice(), EmulatedDevice(memory=1 << 40)
    pretend(one, other)
    monkeypatch.setattr(replay, "_SHARES_OF_KEPT", 1 << 16)
    assert rational().ran_on_gpu()  # the second keeps its share, the first does not
    assert one.kept == other.kept == 0
    assert not {"mix_terms", "add_cofactors"} & {*one.launches, *other.launches}


@pytest.mark.parametrize("count", [1, 2])
def test_primes_of_several_replays_and_devices_are_lifted_from_together(
    pretend, monkeypatch, count
):
    from alkahest.backends.groebner_gpu import reducer

    monkeypatch.setattr(reducer, "LANES_OF_A_DEVICE", 8)
    first, *others = pretend(*(EmulatedDevice() for _ in range(count)))
    long = [
        "123456789012345678901*x^2 + y*z - 98765432109876543217",
        "x*z + 1122334455667788990011*y^2 - 3",
        "x*y + 5*z^2 - 55443322110099887766",
    ]
    basis, report = compute_groebner_basis_gpu(long, "x y z")
    assert basis == GroebnerBasis.compute(long, "x y z")
    assert len(report.primes) > 8
    assert report.ran_on_gpu()
    assert "add_cofactors" in first.launches
    assert first.kept == 0
    for other in others:
        assert "mix_terms" in other.launches
        assert "add_cofactors" not in other.launches
        assert other.kept == 0


def test_what_one_device_keeps_goes_back_when_another_fails(pretend, learned_on_the_processor):
    first, second = EmulatedDevice(fails_at=1), EmulatedDevice()
    pretend(first, second)
    with pytest.raises(SolverError) as caught:
        rational()
    assert caught.value.code == "E-SOLVE-010"
    assert (first.kept, second.kept) == (0, 0)  # while the error lives


def test_numbers_and_matrices_beyond_32_bits_are_refused():
    device = EmulatedDevice()
    with device.session() as session, pytest.raises(CudaError, match="32 bits") as caught:
        session.launch("fill_randomly", 1, (1,), (1,), 0, session.allocate(1), 2**31)
    assert caught.value.code == "E-CUDA-003"
    matrix = SimpleNamespace(
        row_start=np.array([2**31]), row_term=np.array([0]), row_length=np.array([3])
    )
    with pytest.raises(CudaError, match="entries or terms"):
        stretches(matrix, np.array([0]), 0)
