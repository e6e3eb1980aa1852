"""What users see when the CUDA driver is absent, broken, old or failing."""

from __future__ import annotations

from pathlib import Path

import pytest
from childprocess import Failed
from fakedriver import DIAGNOSE, FakeGpuChild, build

COMPILE = """
x, y = ak.symbols("x y")
fn = ak.compile_cuda(x + 2*y, [x, y])
"""
CALL = COMPILE + "result = fn.call_batch([[1.0, 2.0], [10.0, 20.0]])"
COUNT = "result = ak.cuda_device_count()"

CU_INIT_CODES = {
    "3": "CUDA_ERROR_NOT_INITIALIZED (3)",
    "34": "CUDA_ERROR_STUB_LIBRARY (34)",
    "100": "CUDA_ERROR_NO_DEVICE (100)",
    "803": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
    "804": "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)",
    "999": "CUDA_ERROR_UNKNOWN (999)",
}


def refusal(process: FakeGpuChild, code: str = CALL, **settings: str) -> Failed:
    with pytest.raises(Failed) as caught:
        process.ask(code, **settings)
    return caught.value


# No driver, or none that starts


@pytest.mark.parametrize(("code", "name"), CU_INIT_CODES.items())
def test_a_driver_that_does_not_start_counts_no_device_and_is_quoted(
    unusable: FakeGpuChild, fake_driver: Path, code: str, name: str
) -> None:
    assert unusable.ask(COUNT, FAKE_CUDA_INIT=code) == 0
    error = refusal(unusable, FAKE_CUDA_INIT=code)
    assert error.code == "E-CUDA-003"
    assert f"cuInit: {name}" in error.message
    assert str(fake_driver / "libcuda.so.1") in error.message
    assert "fork" not in error.message
    assert error.remedy


def test_a_library_that_the_loader_refuses_counts_no_device(child, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    with child(drivers=tmp_path) as process:
        assert process.ask(COUNT) == 0
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert "the NVIDIA driver library cannot be loaded" in error.message
    assert "libcuda.so.1" in error.message


def test_a_library_without_any_driver_function_counts_no_device(child, tmp_path: Path) -> None:
    with child(drivers=build(tmp_path, "int nothing;")) as process:
        assert process.ask(COUNT) == 0
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert str(tmp_path / "libcuda.so.1") in error.message


@pytest.mark.parametrize("function", ["cuInit", "cuDeviceGetCount", "cuLibraryLoadData"])
def test_a_driver_that_lacks_a_function_counts_no_device_and_names_it(child, function: str) -> None:
    with child(FAKE_CUDA_MISSING=function) as process:
        assert process.ask(COUNT) == 0
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert function in error.message


@pytest.mark.parametrize("function", ["cuLaunchKernelEx", "cuDevicePrimaryCtxRetain"])
def test_a_function_that_is_missing_later_is_an_error_and_not_a_crash(child, function: str) -> None:
    with child(FAKE_CUDA_MISSING=function) as process:
        error = refusal(process)
    assert error.code in ("E-CUDA-003", "E-CUDA-006")
    assert function in error.message


def test_a_driver_without_devices_counts_none(child) -> None:
    with child(FAKE_CUDA_COUNT="0") as process:
        assert process.ask(COUNT) == 0
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert "the driver lists no device" in error.message


def test_a_driver_older_than_the_calls_that_are_made_counts_no_device(
    unusable: FakeGpuChild,
) -> None:
    settings = {"FAKE_CUDA_INIT": "0", "FAKE_CUDA_VERSION": "11020"}
    assert unusable.ask(COUNT, **settings) == 0
    error = refusal(unusable, **settings)
    assert error.code == "E-CUDA-003"
    assert "supports CUDA 11.2, 12.0 or newer is needed" in error.message


@pytest.mark.parametrize(
    ("code", "name"),
    [("222", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), ("209", "CUDA_ERROR_NO_BINARY_FOR_GPU")],
)
def test_a_driver_that_takes_no_kernel_counts_no_device(child, code: str, name: str) -> None:
    with child(FAKE_CUDA_LOAD_ANY=code, ALKAHEST_CACHE_DIR="off") as process:
        assert process.ask(COUNT) == 0
        error = refusal(process)
        features = process.ask("result = ak.capabilities(verify=True)['features']")
        rows = process.ask(DIAGNOSE)
    assert error.code == "E-CUDA-003"
    assert f"{name} ({code})" in error.message
    assert features["cuda"] is False
    assert rows["CUDA driver"][0] is False
    assert f"cuLibraryLoadData: {name} ({code})" in rows["CUDA driver"][1]


def test_a_device_that_is_too_old_is_not_counted_nor_those_behind_it(child) -> None:
    with child(FAKE_CUDA_COUNT="3", FAKE_CUDA_CAPABILITY="90,61,90") as process:
        assert process.ask(COUNT) == 1
        assert process.ask(CALL) == [21.0, 42.0]
        error = refusal(process, COMPILE + "fn.call_batch_on(1, [[1.0], [2.0]])")
    assert error.code == "E-CUDA-004"
    assert "device 1 has compute capability 6.1, 7.5 or newer is needed" in error.message


def test_a_hidden_package_is_named_with_the_file_that_hides_it(child, tmp_path: Path) -> None:
    stray = tmp_path / "stray"
    stray.mkdir()
    (stray / "cuda.py").write_text("")
    hide = f"import sys; sys.path.insert(0, {str(stray)!r})\n"
    with child() as process:
        assert process.ask(hide + COUNT) == 0
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert "the CUDA packages cannot be imported" in error.message
    assert str(stray / "cuda.py") in error.message


@pytest.mark.parametrize("package", ["cuda", "cuda.core"])
def test_absent_packages_are_reported_and_count_no_device(child, package: str) -> None:
    block = f"import sys; sys.modules[{package!r}] = None\n"
    with child() as process:
        assert process.ask(block + COUNT) == 0
        error = refusal(process)
        rows = process.ask(DIAGNOSE)
    assert error.code == "E-CUDA-003"
    assert "the CUDA packages cannot be imported: ModuleNotFoundError" in error.message
    assert error.remedy == "pip install 'alkahest[nvptx]==0.1.0'"
    assert rows["CUDA packages"][0] is False


# When the driver is asked


def test_importing_compiling_nothing_and_capabilities_call_no_driver(child) -> None:
    with child() as process:
        features = process.ask("result = ak.capabilities()['features']; dir(ak); ak.compile_cuda")
        assert features["cuda"] is True
        assert process.calls() == []


def test_counting_devices_creates_no_context(child) -> None:
    with child(FAKE_CUDA_COUNT="2") as process:
        assert process.ask(COUNT) == 2
        assert process.ask(COUNT) == 2
        process.ask("result = len(ak._plugins.calls.devices('nvptx'))")
        calls = process.calls()
    assert calls.count("cuInit") == 1
    assert not [call for call in calls if "Ctx" in call]


@pytest.mark.parametrize("visible", ["0", "MIG-5b6d7f0c", "GPU-8932f937-d72c,GPU-1"])
def test_visible_devices_set_after_the_import_take_effect_and_are_not_parsed(
    child, visible: str
) -> None:
    late = f"import os; os.environ['CUDA_VISIBLE_DEVICES'] = {visible!r}\n"
    with child(FAKE_CUDA_COUNT="4") as process:
        process.ask("ak.capabilities(); ak.compile_cuda")
        assert process.ask(late + COUNT) == visible.count(",") + 1
        assert process.ask(CALL) == [21.0, 42.0]


def test_no_visible_device_is_no_device(child) -> None:
    with child(CUDA_VISIBLE_DEVICES="") as process:
        assert process.ask(COUNT) == 0


def test_a_driver_that_starts_late_is_found_then(child) -> None:
    with child(FAKE_CUDA_INIT="3") as process:
        assert process.ask(COUNT) == 0
        assert process.ask(COUNT, FAKE_CUDA_INIT="0") == 1


# Failing calls


def test_code_that_the_driver_is_too_old_for_is_reported_with_versions_and_remedy(child) -> None:
    settings = {"FAKE_CUDA_NEWEST_PTX": "70", "FAKE_CUDA_VERSION": "13000"}
    with child(**settings, ALKAHEST_CACHE_DIR="off") as process:
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)" in error.message
    assert "sm_90 (PTX ISA 7.8)" in error.message
    assert "driver for CUDA 13.0" in error.message
    assert "newer NVIDIA driver" in error.remedy


def test_an_old_driver_gets_code_of_a_target_that_it_knows(child) -> None:
    with child(FAKE_CUDA_CAPABILITY="120", FAKE_CUDA_VERSION="13000") as process:
        process.ask(CALL)
        assert "load sm_120 8.7" in process.calls()
    with child(
        FAKE_CUDA_CAPABILITY="120",
        FAKE_CUDA_VERSION="12040",
        CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING="1",
    ) as process:
        process.ask(CALL)
        assert "load sm_90 7.8" in process.calls()


def test_code_that_does_not_compile_is_reported_with_the_compilers_log(two_gpus) -> None:
    settings = {"FAKE_CUDA_COMPILE": "218", "FAKE_CUDA_JIT_LOG": "ptxas fatal: line 7"}
    error = refusal(two_gpus, ALKAHEST_CACHE_DIR="off", **settings)
    assert error.code == "E-CUDA-003"
    assert "cuLinkAddData: CUDA_ERROR_INVALID_PTX (218)" in error.message
    assert error.message.endswith("the driver's compiler says: ptxas fatal: line 7")
    assert two_gpus.ask(CALL) == [21.0, 42.0]


def test_machine_code_that_does_not_load_is_reported(two_gpus) -> None:
    error = refusal(two_gpus, FAKE_CUDA_LOAD="209")
    assert error.code == "E-CUDA-003"
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU (209)" in error.message
    assert "loading code for sm_90" in error.message
    assert two_gpus.ask(CALL) == [21.0, 42.0]


@pytest.mark.parametrize(
    ("setting", "value", "name"),
    [
        ("FAKE_CUDA_ALLOC", "2", "CUDA_ERROR_OUT_OF_MEMORY (2)"),
        ("FAKE_CUDA_LOCK", "2", "CUDA_ERROR_OUT_OF_MEMORY (2)"),
        ("FAKE_CUDA_MEMORY", "20", "CUDA_ERROR_OUT_OF_MEMORY (2)"),
    ],
)
def test_memory_that_is_short_is_reported_and_nothing_stays_allocated(
    child, setting: str, value: str, name: str
) -> None:
    with child() as process:
        error = refusal(process, **{setting: value})
        assert error.code == "E-CUDA-003"
        assert name in error.message
        assert "device 0, Fake GPU 0" in error.message
        calls = process.calls()
        for taken, given in (("allocate", "release"), ("lock", "unlock")):
            assert sum(c.startswith(taken) for c in calls) == sum(
                c.startswith(given) for c in calls
            )
        assert process.ask(CALL) == [21.0, 42.0]


def test_a_launch_that_is_refused_is_reported_and_the_next_call_works(two_gpus) -> None:
    error = refusal(two_gpus, FAKE_CUDA_LAUNCH="701")
    assert error.code == "E-CUDA-006"
    assert "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)" in error.message
    assert two_gpus.ask(CALL) == [21.0, 42.0]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"FAKE_CUDA_LAUNCH": "719"}, "CUDA_ERROR_LAUNCH_FAILED (719)"),
        ({"FAKE_CUDA_FAILS": "700"}, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
    ],
)
def test_a_kernel_that_ruins_its_context_is_reported_every_time_and_exits_quietly(
    child, settings: dict[str, str], name: str
) -> None:
    with child(**settings) as process:
        first = refusal(process)
        second = refusal(process)
        process.ask(COMPILE + "import sys; sys.modules['kept'] = fn")
    assert first.code == "E-CUDA-006"
    assert name in first.message
    assert "start a new process" in first.remedy
    assert second.code in ("E-CUDA-003", "E-CUDA-006")
    assert name in second.message


def test_a_context_that_cannot_be_created_is_reported(child) -> None:
    with child(FAKE_CUDA_CONTEXT="2") as process:
        error = refusal(process)
    assert error.code == "E-CUDA-003"
    assert "opening device 0" in error.message


# Forks

FORK = """
import os
def in_child(action):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = repr(action())
        except ak.AlkahestError as error:
            text = f"{error.code} {error.message}"
        except BaseException as error:
            text = repr(error)
        os.write(write, text.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(read, 4096).decode()
"""


def test_a_process_forked_after_use_is_refused_with_the_reason(child) -> None:
    code = FORK + CALL + "\nresult = [os.getpid(), in_child(lambda: fn.call_batch([[1.0], [2.0]]))]"
    with child() as process:
        pid, text = process.ask(code)
    assert text.startswith("E-CUDA-003 ")
    assert f"CUDA was started in process {pid} before this process was forked from it" in text


def test_a_process_forked_after_use_counts_no_device(child) -> None:
    with child() as process:
        assert process.ask(FORK + CALL + "\nresult = in_child(ak.cuda_device_count)") == "0"


def test_a_process_forked_before_use_has_its_devices(child) -> None:
    with child() as process:
        action = (
            "lambda: ak.compile_cuda(ak.symbols('x')[0] * 2, ak.symbols('x')).call_batch([[3.0]])"
        )
        assert process.ask(FORK + f"\nresult = in_child({action})") == "[3.0]"
