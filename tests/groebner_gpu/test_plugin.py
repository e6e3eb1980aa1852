"""The bit ``groebner_cuda``, its names, and what is said where something is missing."""

import pytest

import alkahest
from alkahest import CudaError, GroebnerBasis
from alkahest.backends.groebner_gpu import compiling, gpu, probe
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.backends.nvptx import driver
from alkahest.plugin import make_reducer


def test_the_bit_stands_for_kernels_that_compile_and_a_call_that_reaches_them():
    found = alkahest.capabilities()
    assert found["features"]["groebner_cuda"] is True
    entry = found["backends"]["groebner-cuda"]
    assert "kernels for sm_75 and sm_80 compiled" in entry["detail"]
    assert callable(alkahest.compute_groebner_basis_gpu)
    assert alkahest.GpuBackendReport.__module__ == "alkahest.backends.groebner_gpu.api"


def test_without_a_compiler_the_probe_says_what_to_install(monkeypatch):
    def missing(*arguments):
        raise compiling._missing(ImportError("no libnvrtc.so.13\nin any of many folders"))

    monkeypatch.setattr(compiling, "machine_code", missing)
    found = probe.probe()
    assert (found.ok, found.code) == (False, "E-CUDA-001")
    assert "no libnvrtc.so.13" in found.detail
    assert "\n" not in found.detail
    row = probe.diagnose()
    assert row.ok is False
    assert "alkahest[groebner-gpu]" in row.remedy


def test_a_kernel_that_does_not_compile_turns_the_bit_off(monkeypatch):
    def refused(*arguments):
        raise CudaError("E-CUDA-002", "NVRTC refuses replay.cu")

    monkeypatch.setattr(compiling, "machine_code", refused)
    assert probe.probe().code == "E-CUDA-002"


def test_the_witness_computes_on_a_device_and_compares(pretend):
    pretend(EmulatedDevice(name="Some GPU"))
    found = probe.witness()
    assert found.ok
    assert found.facts["device_name"] == "Some GPU"


def test_the_witness_fails_where_the_device_fails_or_is_none(pretend, monkeypatch):
    pretend(EmulatedDevice(fails_at=1))
    assert probe.witness().code == "E-SOLVE-010"
    (emulated,) = pretend(EmulatedDevice())
    emulated.is_gpu = False
    assert probe.witness().ok is False


@pytest.mark.skipif(driver.started().count > 0, reason="a device is here")
def test_without_a_device_asking_for_one_is_refused_and_listing_gives_none():
    for device in (None, 0, 3):
        with pytest.raises(CudaError) as caught:
            make_reducer("groebner-cuda", device)
        assert caught.value.code == "E-CUDA-003"
    for fallback in ("error", "cpu"):
        with pytest.raises(CudaError) as caught:
            GroebnerBasis.compute(["x*y - 1", "y - 2"], "x y", device="cuda", fallback=fallback)
        assert caught.value.code == "E-CUDA-003"
    from alkahest.backends.groebner_gpu.plugin import alkahest_devices

    assert alkahest_devices("groebner-cuda") == ()


def test_a_driver_that_is_too_old_for_the_machine_code_is_refused(monkeypatch):
    monkeypatch.setattr(gpu, "open_device", lambda ordinal: None)
    monkeypatch.setattr(driver, "started", lambda: driver.Status(count=1, version=12040))
    with pytest.raises(CudaError, match=r"CUDA 12.4; .* need 13.0") as caught:
        gpu.open_gpu(0)
    assert caught.value.code == "E-CUDA-003"


def test_the_doctor_has_a_row():
    row = probe.diagnose()
    assert row.ok
    assert "NVRTC" in row.detail
