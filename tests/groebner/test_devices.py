"""Asking for a GPU: it is used, refused, or seen to have failed; never silently replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from alkahest import GF, CudaError, GroebnerBasis, InputError, SolverError, solve
from alkahest.groebner import settings
from alkahest.groebner.engine.reducers import host_reducer

SYSTEM = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]


class PretendedGpu:
    """The host's reducer under another name; optionally it fails at every call after some."""

    name = "pretended"
    on_gpu = True

    def __init__(self, works: int | None = None):
        self.host = host_reducer()
        self.lanes = self.host.lanes
        self.works = works
        self.calls = 0

    def __getattr__(self, name):
        method = getattr(self.host, name)

        def call(*args):
            self.calls += 1
            if self.works is not None and self.calls > self.works:
                raise CudaError("E-CUDA-006", "the launch failed")
            done = method(*args)
            if name == "echelon_with_rows":
                return attrs.evolve(done[0], on_gpu=True), done[1]
            return attrs.evolve(done, on_gpu=True)

        return call


@pytest.fixture
def plug(monkeypatch):
    """Make a reducer the one that the plugin for GPUs brings."""

    def install(reducer):
        asked = []

        def make_reducer(backend, device):
            asked.append((backend, device))
            return reducer

        monkeypatch.setattr(settings, "make_reducer", make_reducer)
        return asked

    return install


@pytest.mark.parametrize("field", [None, GF(65521)])
def test_a_gpu_that_works_gives_the_same_basis_and_the_report_proves_it(plug, field):
    expected = GroebnerBasis.compute(SYSTEM, "x y z", field=field)
    asked = plug(PretendedGpu())
    basis = GroebnerBasis.compute(SYSTEM, "x y z", field=field, device="cuda:2")
    assert asked == [("groebner-cuda", 2)]
    assert basis == expected
    assert basis.report.ran_on_gpu()
    assert not basis.report.fell_back_to_cpu()
    assert basis.report.to_dict()["ran_on_gpu"] is True
    assert basis.report.requested_device == "cuda:2"
    assert not expected.report.ran_on_gpu()
    found = solve(SYSTEM, "x y z", device="cuda")
    assert found.report.ran_on_gpu()


@pytest.mark.parametrize("works", [0, 1])
def test_a_gpu_that_fails_is_an_error_that_names_the_cause(plug, works):
    plug(PretendedGpu(works))
    with pytest.raises(SolverError, match=r"device='cuda' failed: the launch failed") as caught:
        GroebnerBasis.compute(SYSTEM, "x y z", field=GF(65521), device="cuda")
    assert caught.value.code == "E-SOLVE-010"
    assert isinstance(caught.value.__cause__, CudaError)


def test_with_a_fallback_the_processor_finishes_and_the_report_says_so(plug):
    plug(PretendedGpu(1))
    basis = GroebnerBasis.compute(SYSTEM, "x y z", field=GF(65521), device="cuda", fallback="cpu")
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z", field=GF(65521))
    assert basis.report.fell_back_to_cpu()
    assert not basis.report.ran_on_gpu()
    assert basis.report.reductions_on_gpu == 1


def test_a_device_that_is_missing_at_the_start_is_refused_with_and_without_a_fallback(plug):
    plug(None)
    for fallback in ("error", "cpu"):
        with pytest.raises(CudaError) as caught:
            GroebnerBasis.compute(SYSTEM, "x y z", device="cuda", fallback=fallback)
        assert caught.value.code == "E-CUDA-003"


def test_a_field_beyond_the_engine_is_refused_and_not_computed_on_the_processor(plug):
    plug(PretendedGpu())
    with pytest.raises(CudaError, match="are not reduced on a GPU") as caught:
        GroebnerBasis.compute(["x*y - 1"], "x y", field=GF(2**61 - 1), device="cuda")
    assert caught.value.code == "E-CUDA-004"


def test_an_executor_is_the_processor_s_and_refused_beside_a_gpu(plug):
    plug(PretendedGpu())
    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="executor") as caught:
        GroebnerBasis.compute(SYSTEM, "x y z", device="cuda", executor=pool)
    assert caught.value.code == "E-INPUT-011"


def test_auto_without_a_plugin_is_the_processor_and_says_so(plug):
    plug(None)
    basis = GroebnerBasis.compute(SYSTEM, "x y z", device="auto")
    assert basis == GroebnerBasis.compute(SYSTEM, "x y z")
    assert basis.report.device_name == "cpu"
    assert basis.report.choice == "no plugin here reduces matrices on a GPU"
    assert not basis.report.fell_back_to_cpu()


def test_what_a_gpu_failed_at_is_reported_with_its_words(plug):
    plug(PretendedGpu(1))
    basis = GroebnerBasis.compute(SYSTEM, "x y z", field=GF(65521), device="cuda", fallback="cpu")
    assert basis.report.first_gpu_error == "[E-CUDA-006] the launch failed"
    assert basis.report.device_name == "pretended"
    shown = str(basis.report).splitlines()
    assert shown[1].startswith("device='cuda': 1 reductions on a GPU, ")
    assert shown[2] == "first failure: [E-CUDA-006] the launch failed"


def test_the_text_of_a_report_says_why_the_processor_was_chosen_and_nothing_of_devices_else(plug):
    plug(None)
    chosen = str(GroebnerBasis.compute(SYSTEM, "x y z", device="auto").report)
    assert "\nno plugin here reduces matrices on a GPU\n" in chosen
    assert "device" not in str(GroebnerBasis.compute(SYSTEM, "x y z").report)
