"""``device="auto"``: where a calibration says that a device wins, and nowhere else."""

import pytest
from polysystems import named
from traces import learned

import alkahest
from alkahest import GF, CudaError, GroebnerBasis
from alkahest.backends.groebner_gpu import gpu, model, reducer
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.groebner.engine.work import work_of

SYSTEM = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
QUICK_DEVICE = {"step": 1e-12, "product": 1e-15, "host_product": 1e-6}
SLOW_DEVICE = {"step": 1e-3, "product": 1e-6, "host_product": 1e-12}


@pytest.fixture
def figures(monkeypatch):
    def known(values, obstacle=""):
        monkeypatch.setattr(reducer, "calibrated", lambda backend: (values, obstacle))

    return known


def auto(**options):
    basis = GroebnerBasis.compute(SYSTEM, "x y z", device="auto", **options)
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z", field=options.get("field"))
    return basis.report


def test_a_device_that_is_expected_to_win_replays(pretend, figures):
    pretend(EmulatedDevice(name="Some GPU"))
    figures(QUICK_DEVICE)
    report = auto()
    assert report.ran_on_gpu()
    assert report.device_name == "Some GPU"
    assert report.choice.startswith("expected: ")
    assert "for 64 primes on Some GPU" in report.choice
    assert "for 8 on the processor" in report.choice


def test_a_device_that_is_expected_to_win_takes_matrices_of_one_prime_too(pretend, figures):
    pretend(EmulatedDevice(name="Some GPU"))
    figures(QUICK_DEVICE)
    report = auto(field=GF(65521))
    assert report.ran_on_gpu()
    assert report.reductions_on_gpu > report.planned_on_cpu
    assert report.device_name == "Some GPU"
    assert report.choice.startswith("expected for the largest matrix: ")


@pytest.mark.parametrize("field", [None, GF(65521)], ids=str)
def test_a_device_that_is_expected_to_lose_is_left_alone(pretend, figures, field):
    (device,) = pretend(EmulatedDevice())
    figures(SLOW_DEVICE)
    report = auto(field=field)
    assert not report.ran_on_gpu()
    assert not report.fell_back_to_cpu()
    assert report.device_name == "cpu"
    assert report.choice.startswith("expected")
    assert device.launches == []


def test_without_calibration_device_or_model_the_processor_computes_and_says_why(
    pretend, figures, monkeypatch
):
    pretend(EmulatedDevice())
    figures({}, "no calibration")
    assert auto().choice == "no calibration; run `alkahest calibrate`"

    def none():
        raise CudaError("E-CUDA-003", "the driver lists no device")

    monkeypatch.setattr(gpu, "open_all", none)
    report = auto()
    assert report.choice == "the driver lists no device"
    assert report.device_name == "cpu"


def test_a_device_that_was_chosen_and_fails_is_an_error_or_falls_back(pretend, figures):
    figures(QUICK_DEVICE)
    pretend(EmulatedDevice(fails_at=1))
    with pytest.raises(alkahest.SolverError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
        GroebnerBasis.compute(SYSTEM, "x y z", device="auto")
    assert caught.value.code == "E-SOLVE-010"
    pretend(EmulatedDevice(fails_at=1))
    report = auto(fallback="cpu")
    assert report.fell_back_to_cpu()
    assert "CUDA_ERROR_LAUNCH_FAILED" in report.first_gpu_error
    (whole,) = pretend(EmulatedDevice())
    expected = auto()
    pretend(EmulatedDevice(fails_at=whole.launches.index("add_cofactors") + 1))
    report = auto(fallback="cpu")
    assert report.reductions_on_gpu == expected.reductions_on_gpu - 1
    assert report.reductions_on_cpu == 2  # lifting, residues
    assert report.planned_on_cpu == expected.planned_on_cpu


@pytest.mark.parametrize(
    ("polynomials", "order"),
    [
        (SYSTEM, "elimination(1)"),
        # The fields of eight bits overflow, and the run begins anew.
        (["x^70*y - z^2", "x^30*y^40 - z^3 + x", "z^2*y - y"], "grevlex"),
    ],
    ids=["two phases", "two attempts"],
)
def test_what_failed_is_counted_once(pretend, figures, polynomials, order):
    figures(QUICK_DEVICE)

    def run(device):
        pretend(device)
        names = "x y z"
        basis = GroebnerBasis.compute(polynomials, names, order, device="auto", fallback="cpu")
        assert basis == GroebnerBasis.compute(polynomials, names, order)
        return basis.report

    whole, failed = run(EmulatedDevice()), run(EmulatedDevice(fails_at=1))
    assert failed.reductions_on_gpu == 0
    assert failed.planned_on_cpu == whole.planned_on_cpu
    assert whole.reductions_on_gpu - failed.reductions_on_cpu in (1, 2)  # liftings


def test_figures_are_measured_on_a_device_and_predict_what_was_measured(pretend):
    pretend(EmulatedDevice())
    found = model.measured(reducer.GpuReducer([EmulatedDevice()]), quick=True)
    assert found.keys() == QUICK_DEVICE.keys()
    assert all(value > 0 for value in found.values())
    work = work_of(learned("katsura-6")[1])
    device, host = model.predicted(found, 1, work, 64, 8)
    # NumPy's twin is far slower than compiled code.
    assert device > host > 0
    halves, _ = model.predicted(found, 2, work, 64, 8)
    assert halves < device


def test_the_system_that_is_measured_is_katsura_s():
    terms = [{} for _ in range(4)]
    for total, polynomial in zip(terms, model.katsura(3), strict=True):
        for monomial, c in polynomial:
            total[monomial] = total.get(monomial, 0) + c
    assert terms == named("katsura-3")[0]
