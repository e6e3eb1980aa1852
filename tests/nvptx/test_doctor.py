"""The rows of ``alkahest doctor`` about GPUs, for every way in which one cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fakedriver import DIAGNOSE, FakeGpuChild

from alkahest.backends.nvptx import doctor, driver, hardware, libdevice, targets
from alkahest.errors import CudaError
from alkahest.plugin import Diagnostic

NO_LIBRARY = "libcuda.so.1: cannot open shared object file: No such file or directory"
MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"


def row_of(name: str) -> Diagnostic:
    """The doctor's row of that name, in this process."""
    return next(row for row in doctor.diagnose() if row.name == name)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of the files of a machine without driver library, GPU and container."""
    monkeypatch.setattr(hardware, "ROOT", tmp_path)
    monkeypatch.setattr(driver, "library_path", lambda: "")
    monkeypatch.setattr(driver, "loader_text", lambda: NO_LIBRARY)
    for sign, _, _ in hardware.CONTAINERS:
        monkeypatch.delenv(sign, raising=False)
    return tmp_path


@pytest.fixture
def put(machine: Path) -> Callable[[str, str], None]:
    """Put a file of the system onto that machine."""

    def call(name: str, text: str = "") -> None:
        (machine / name).parent.mkdir(parents=True, exist_ok=True)
        (machine / name).write_text(text)

    return call


def test_the_doctor_lists_compiler_driver_and_devices(two_gpus, fake_driver: Path) -> None:
    rows = two_gpus.ask(DIAGNOSE, CUDA_VISIBLE_DEVICES="0,1")
    assert rows["CUDA driver library"][:2] == [True, str(fake_driver / "libcuda.so.1")]
    assert "CUDA 13.0, loads PTX ISA up to 9.0; 2 usable devices" in rows["CUDA driver"][1]
    assert "Fake GPU 1, compute capability 7.5, 1.0 GiB" in rows["GPU 1"][1]
    assert "code for sm_75, PTX ISA 6.3" in rows["GPU 1"][1]
    assert re.search(r"llvmlite \d+\.\d+.*targets sm_75 to sm_", rows["GPU compiler"][1])
    assert "CUDA_VISIBLE_DEVICES=0,1" in rows["GPU environment"][1]
    assert f"LD_LIBRARY_PATH={fake_driver}" in rows["GPU environment"][1]


# No driver


@pytest.mark.usefixtures("machine")
def test_no_driver_on_a_machine_without_a_gpu_is_no_fault() -> None:
    row = row_of("CUDA driver library")
    assert row.ok is None
    assert row.detail.startswith("no NVIDIA GPU is seen here, and no driver: libcuda.so.1: ")
    assert "/usr/lib/wsl/lib/libcuda.so.1" in row.detail
    assert row.remedy == ""
    assert row_of("CUDA driver").ok is None


def test_a_gpu_without_a_driver_is_a_fault(put) -> None:
    for place, vendor, kind in (("0", "0x10de", "0x030200"), ("1", "0x10de", "0x040300")):
        put(f"sys/bus/pci/devices/{place}/vendor", f"{vendor}\n")
        put(f"sys/bus/pci/devices/{place}/class", f"{kind}\n")
    row = row_of("CUDA driver library")
    assert row.ok is False
    assert row.detail.startswith("1 NVIDIA GPU on the PCI bus, but libcuda.so.1: ")
    assert row.remedy == "Install the NVIDIA driver, 525 or newer (527 on Windows)."


@pytest.mark.parametrize(
    ("sign", "kind", "remedy"),
    [
        ("/.dockerenv", "a Docker container", "docker run --gpus all"),
        ("/run/.containerenv", "a Podman container", "--device nvidia.com/gpu=all"),
        ("KUBERNETES_SERVICE_HOST", "a Kubernetes pod", "limits: nvidia.com/gpu: 1"),
        ("APPTAINER_NAME", "an Apptainer container", "apptainer run --nv"),
        ("SINGULARITY_NAME", "a Singularity container", "singularity run --nv"),
    ],
)
def test_a_container_without_the_driver_of_its_machine_says_how_to_start_it(
    put, monkeypatch: pytest.MonkeyPatch, sign: str, kind: str, remedy: str
) -> None:
    if sign.startswith("/"):
        put(sign[1:])
    else:
        monkeypatch.setenv(sign, "here")
    without = row_of("CUDA driver library")
    assert without.ok is None
    assert remedy in without.remedy
    put("proc/driver/nvidia/version", MODULE)
    row = row_of("CUDA driver library")
    assert row.ok is False
    assert row.detail.startswith(
        f"{kind}, and the machine's driver is not mounted "
        "(NVIDIA's kernel module 580.65.06 is loaded)"
    )
    assert remedy in row.remedy


def test_a_library_that_is_no_driver_is_a_fault_and_says_where_it_was_looked_for(
    child, tmp_path: Path
) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    with child(drivers=tmp_path) as process:
        rows = process.ask(DIAGNOSE)
    ok, detail, remedy = rows["CUDA driver library"]
    assert ok is False
    assert f"LD_LIBRARY_PATH is {tmp_path}" in detail
    assert "/usr/lib/wsl/lib/libcuda.so.1" in detail
    assert "LD_LIBRARY_PATH" in remedy
    assert rows["CUDA driver"][0] is None
    assert rows["GPU compiler"][0] is True


# A driver that is too old, that does not start, or that has no device


def test_a_driver_that_does_not_start_is_quoted(unusable: FakeGpuChild) -> None:
    rows = unusable.ask(DIAGNOSE, FAKE_CUDA_INIT="34")
    assert rows["CUDA driver"][0] is False
    assert "CUDA_ERROR_STUB_LIBRARY (34)" in rows["CUDA driver"][1]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"FAKE_CUDA_VERSION": "11040"}, "the driver supports CUDA 11.4, 12.0 or newer is needed"),
        ({"FAKE_CUDA_NEWEST_PTX": "62"}, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"),
    ],
    ids=["CUDA release", "PTX version"],
)
def test_a_driver_that_is_too_old_says_which_one_to_install(
    child, settings: dict[str, str], reason: str
) -> None:
    with child() as process:
        ok, detail, remedy = process.ask(DIAGNOSE, **settings)["CUDA driver"]
    assert ok is False
    assert reason in detail
    assert remedy.startswith("Install the NVIDIA driver, 525 or newer (527 on Windows).")


def test_a_driver_that_is_older_than_its_device_gets_older_code_and_a_hint(child) -> None:
    with child(FAKE_CUDA_CAPABILITY="120", FAKE_CUDA_VERSION="12040") as process:
        ok, detail, remedy = process.ask(DIAGNOSE)["GPU 0"]
    assert ok is None
    assert "code for sm_90, PTX ISA 7.8; " in detail
    assert "sm_120 needs PTX ISA 8.7, which is newer than what the driver loads" in detail
    assert remedy == "It works; a driver of CUDA 12.8 or newer takes code for sm_120."


def test_a_driver_that_may_not_compile_says_which_variable_forbids_it(child) -> None:
    with child() as process:
        ok, detail, remedy = process.ask(DIAGNOSE, FAKE_CUDA_LOAD_ANY="223")["CUDA driver"]
    assert ok is False
    assert "JIT_COMPILATION_DISABLED" in detail
    assert remedy.startswith("Unset CUDA_DISABLE_PTX_JIT")


@pytest.mark.parametrize(
    ("visible", "answer"), [("", None), ("-1", None), ("7", False), ("GPU-0", False)]
)
def test_devices_that_a_variable_hides_are_a_fault_unless_all_are_hidden_on_purpose(
    unusable: FakeGpuChild, visible: str, answer: bool | None
) -> None:
    rows = unusable.ask(DIAGNOSE, FAKE_CUDA_INIT="100", CUDA_VISIBLE_DEVICES=visible)
    ok, detail, remedy = rows["CUDA driver"]
    assert ok is answer
    assert detail.startswith(f"CUDA_VISIBLE_DEVICES={visible!r} leaves no device: ")
    assert remedy == "Unset it, or name devices that `nvidia-smi -L` lists."


def test_a_driver_without_devices_in_a_container_says_how_to_start_it(
    unusable: FakeGpuChild,
) -> None:
    rows = unusable.ask(DIAGNOSE, FAKE_CUDA_INIT="100", APPTAINER_NAME="here")
    ok, detail, remedy = rows["CUDA driver"]
    assert ok is False
    assert "CUDA_ERROR_NO_DEVICE (100)" in detail
    assert "nvidia-smi" in remedy


# Compiler and libdevice


def test_libdevice_that_is_not_where_the_variable_says_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALKAHEST_LIBDEVICE_PATH", "/nowhere")
    row = row_of("libdevice")
    assert row.ok is False
    assert "ALKAHEST_LIBDEVICE_PATH is '/nowhere'" in row.detail
    assert row.remedy.startswith("Correct ALKAHEST_LIBDEVICE_PATH, or unset it")


def test_libdevice_that_is_nowhere_is_a_fault_with_the_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ALKAHEST_LIBDEVICE_PATH", raising=False)
    monkeypatch.setattr(libdevice, "places", lambda: iter([("pip wheel", Path("/a/x.bc"))]))
    row = row_of("libdevice")
    assert (row.ok, row.detail) == (
        False,
        "libdevice was not found; tried: /a/x.bc (pip wheel)",
    )
    assert row.remedy.startswith("pip install nvidia-nvvm")


def test_a_compiler_without_the_target_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise CudaError("E-CUDA-001", "LLVM has no NVPTX target: unable to find it")

    monkeypatch.setattr(targets, "llvm", missing)
    row = row_of("GPU compiler")
    assert (row.ok, row.detail) == (False, "LLVM has no NVPTX target: unable to find it")
    assert "pip install 'alkahest[nvptx]==" in row.remedy
