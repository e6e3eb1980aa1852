"""Where libdevice is looked for, and what is taken out of it."""

import re
import shutil

import pytest

from alkahest.backends.nvptx import libdevice
from alkahest.errors import CudaError


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without any libdevice; the folders of its wheels and toolkits are below."""
    for variable in (libdevice.VARIABLE, "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "NVHPC_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    wheels = tmp_path / "site-packages" / "nvidia"
    system = tuple((what, str(tmp_path) + root, p) for what, root, p in libdevice.SYSTEM_PLACES)
    monkeypatch.setattr(libdevice, "_wheel_folders", lambda: [wheels])
    monkeypatch.setattr(libdevice, "SYSTEM_PLACES", system)
    return tmp_path


def put(folder):
    folder.mkdir(parents=True)
    (folder / libdevice.FILE).touch()
    return folder / libdevice.FILE


@pytest.mark.parametrize(
    "folder",
    [
        "site-packages/nvidia/cu13/nvvm/libdevice",
        "site-packages/nvidia/cuda_nvcc/nvvm/libdevice",
        "usr/local/cuda/nvvm/libdevice",
        "usr/local/cuda-12.4/nvvm/libdevice",
        "opt/cuda/nvvm/libdevice",
        "usr/lib/nvidia-cuda-toolkit/libdevice",
        "usr/lib/cuda/nvvm/libdevice",
        "opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/nvvm/libdevice",
        "opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4/nvvm/libdevice",
    ],
)
def test_every_layout_of_wheels_and_toolkits_is_found(nowhere, folder):
    path = put(nowhere / folder)
    assert libdevice.find() == path


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("CUDA_HOME", "nvvm/libdevice"),
        ("CUDA_PATH", "nvvm/libdevice"),
        ("CONDA_PREFIX", "nvvm/libdevice"),
        ("CONDA_PREFIX", "Library/nvvm/libdevice"),
        ("NVHPC_ROOT", "cuda/nvvm/libdevice"),
    ],
)
def test_folders_named_by_variables_are_found(nowhere, monkeypatch, variable, folder):
    path = put(nowhere / "here" / folder)
    monkeypatch.setenv(variable, str(nowhere / "here"))
    assert libdevice.find() == path


def test_wheels_come_first_then_variables_then_the_system(nowhere, monkeypatch):
    system = put(nowhere / "usr/local/cuda/nvvm/libdevice")
    assert libdevice.find() == system
    toolkit = put(nowhere / "home/nvvm/libdevice")
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "home"))
    assert libdevice.find() == toolkit
    wheel = put(nowhere / "site-packages/nvidia/cu12/nvvm/libdevice")
    assert libdevice.find() == wheel


def test_the_newest_of_several_wheels_and_toolkits_wins(nowhere):
    put(nowhere / "usr/local/cuda-9.2/nvvm/libdevice")
    newer = put(nowhere / "usr/local/cuda-12.4/nvvm/libdevice")
    assert libdevice.find() == newer
    put(nowhere / "site-packages/nvidia/cu12/nvvm/libdevice")
    newest = put(nowhere / "site-packages/nvidia/cu13/nvvm/libdevice")
    assert libdevice.find() == newest


def test_the_variable_wins_over_everything_and_may_name_the_folder(nowhere, monkeypatch):
    put(nowhere / "site-packages/nvidia/cu13/nvvm/libdevice")
    mine = put(nowhere / "mine")
    for value in (mine, mine.parent):
        monkeypatch.setenv(libdevice.VARIABLE, str(value))
        assert libdevice.find() == mine


def test_a_wrong_variable_is_an_error_even_where_others_would_be_found(nowhere, monkeypatch):
    put(nowhere / "site-packages/nvidia/cu13/nvvm/libdevice")
    monkeypatch.setenv(libdevice.VARIABLE, str(nowhere / "nothing"))
    with pytest.raises(CudaError, match=r"ALKAHEST_LIBDEVICE_PATH is '.*nothing'") as caught:
        libdevice.find()
    assert caught.value.code == "E-CUDA-005"
    assert "unset it" in caught.value.remediation


def test_without_any_the_error_lists_every_place(nowhere, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/some/toolkit")
    with pytest.raises(CudaError, match="libdevice was not found") as caught:
        libdevice.find()
    assert caught.value.code == "E-CUDA-005"
    assert "pip install nvidia-nvvm" in caught.value.remediation
    places = list(libdevice.places())
    assert len(places) >= 9
    for what, path in places:
        assert f"{path} ({what})" in caught.value.message
    assert "/some/toolkit/nvvm/libdevice/libdevice.10.bc" in caught.value.message


def test_the_wheel_of_this_environment_is_found(monkeypatch):
    monkeypatch.delenv(libdevice.VARIABLE, raising=False)
    assert libdevice.find().is_file()


def test_a_file_that_is_not_bitcode_is_refused(tmp_path, monkeypatch):
    (tmp_path / libdevice.FILE).write_bytes(b"not bitcode")
    monkeypatch.setenv(libdevice.VARIABLE, str(tmp_path))
    with pytest.raises(CudaError, match="cannot be read by LLVM") as caught:
        libdevice.load()
    assert caught.value.code == "E-CUDA-005"


def test_it_is_parsed_once_and_again_when_the_file_changes(tmp_path, monkeypatch):
    copy = tmp_path / libdevice.FILE
    shutil.copy(libdevice.find(), copy)
    monkeypatch.setenv(libdevice.VARIABLE, str(copy))
    first = libdevice.load()
    assert libdevice.load() is first
    shutil.copy(copy, tmp_path / "other")
    (tmp_path / "other").replace(copy)
    assert libdevice.load() is not first


def defined(extract):
    return set(re.findall(r"^define .*@([\w.]+)\(", extract.definitions, re.MULTILINE))


def test_only_what_is_called_is_taken():
    assert defined(libdevice.load().extract(["__nv_cbrt"], "sm_75")) == {"__nv_cbrt"}
    sine = libdevice.load().extract(["__nv_sin"], "sm_75")
    assert defined(sine) == {"__nv_sin", "__internal_trig_reduction_slowpathd"}
    assert "@__cudart_i2opi_d = internal" in sine.definitions
    assert "llvm.nvvm.fma.rn.d" in sine.declarations


def test_nothing_is_asked_at_run_time_and_no_metadata_is_left():
    library = libdevice.load()
    extract = library.extract(["__nv_sqrtf", "__nv_powf", "__nv_tanf", "__nv_lgamma"], "sm_90")
    text = extract.definitions + "".join(extract.declarations.values())
    assert "__nvvm_reflect" not in text
    assert "!" not in re.sub(r'c?"[^"]*"', "", text)


def test_square_roots_of_libdevice_are_correctly_rounded():
    # Unanswered questions count as 0, and the answer 0 to __CUDA_PREC_SQRT means approximate roots.
    text = libdevice.load().extract(["__nv_sqrtf"], "sm_75").definitions
    question, branch = text.index("add i32 1, 0"), text.index("@llvm.nvvm.sqrt.rn.f(")
    assert question < branch


def test_shifts_by_too_many_bits_have_a_meaning():
    # PTX leaves 0 or the sign; LLVM leaves the result undefined, and any use of it.
    library = libdevice.load()
    text = library.extract(["__nv_pow", "__nv_fmod", "__nv_sin"], "sm_75").definitions
    shifts = re.findall(r"%([\w.]+) = (?:shl|lshr|ashr)[a-z ]* i\d+ .*, %([\w.]+)$", text, re.M)
    assert len(shifts) >= 9
    for result, bits in shifts:
        assert result.startswith("shifted.") or bits.startswith("bits."), (result, bits)


def test_functions_are_to_be_inlined():
    library = libdevice.load()
    assert "@__nv_sin(double %a) alwaysinline" in library.extract(["__nv_sin"], "sm_75").definitions


def test_a_function_that_it_lacks_is_refused_by_name():
    with pytest.raises(CudaError, match="has no __nv_zeta") as caught:
        libdevice.load().extract(["__nv_sin", "__nv_zeta"], "sm_75")
    assert caught.value.code == "E-CUDA-002"
