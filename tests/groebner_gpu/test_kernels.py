"""The kernels as sources and as machine code; NVRTC needs no GPU."""

import re

import pytest

from alkahest import CudaError, cache
from alkahest.backends.groebner_gpu import compiling, twin


def kernels_in(file):
    """Names of the kernels that a file defines; those on tensor cores have another ending."""
    text = (compiling.FOLDER / file).read_text(encoding="utf-8")
    found = re.findall(r'^extern "C" __global__ void (?:FORM\()?(\w+)', text, re.MULTILINE)
    if "#define TENSOR_CORES" in text:
        found += [f"{kernel}_tensor" for kernel in kernels_in("products.cu")]
    return found


@pytest.mark.parametrize("file", compiling.SOURCES)
def test_the_table_names_the_kernels_of_each_file_and_every_kernel_has_a_twin(file):
    assert sorted(kernels_in(file)) == sorted(compiling.SOURCES[file])
    assert all(callable(getattr(twin, kernel)) for kernel in compiling.SOURCES[file])


def test_every_source_is_compiled_or_included():
    included = {
        name
        for path in compiling.FOLDER.iterdir()
        for name in re.findall(r'#include "(\S+)"', path.read_text(encoding="utf-8"))
    }
    assert {path.name for path in compiling.FOLDER.iterdir()} == {*compiling.SOURCES, *included}


@pytest.mark.parametrize(
    ("file", "group", "target"),
    [("replay.cu", group, "sm_90") for group in compiling.GROUPS]
    + [("replay.cu", 8, "sm_75"), ("replay.cu", 8, "sm_80")]
    + [
        (file, 1, target)
        for file in ("rounds.cu", "lift.cu", "inverse.cu", "conversion.cu", "products.cu")
        for target in ("sm_75", "sm_80", "sm_90", "sm_120")
    ]
    + [("tensor.cu", 1, target) for target in ("sm_80", "sm_90", "sm_100", "sm_120")]
    + [("products.cu", 8, "sm_90"), ("tensor.cu", 8, "sm_90")],
)
def test_kernels_assemble_without_spilling_and_leave_room_for_the_largest_blocks(
    file, group, target
):
    code, log = compiling.compiled(file, group, target)
    assert code[:4] == b"\x7fELF"
    found = {
        name: (int(frame), int(stores), int(registers))
        for name, frame, stores, registers in re.findall(
            r"entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
            r".*?Used (\d+) registers",
            log,
            re.DOTALL,
        )
    }
    assert sorted(found) == sorted(compiling.SOURCES[file])
    for kernel, (frame, stores, registers) in found.items():
        assert (frame, stores) == (0, 0), kernel
        # A block inverts with 1024 threads, reduces a row with 512 and multiplies on tensor cores
        # with 256; a multiprocessor has 65536 registers.
        most = 64 if file == "inverse.cu" else 255 if file == "tensor.cu" else 128
        assert registers <= most, kernel


def test_machine_code_is_cached_by_kernel_target_and_group(monkeypatch, tmp_path):
    monkeypatch.setenv("ALKAHEST_CACHE_DIR", str(tmp_path / "cache"))
    compilations = []

    def compiled(file, group, target):
        compilations.append((file, group, target))
        return f"{file} {group} {target}".encode(), ""

    monkeypatch.setattr(compiling, "compiled", compiled)
    asked = [("replay.cu", 8, "sm_90"), ("replay.cu", 4, "sm_90"), ("rounds.cu", 8, "sm_80")]
    for _ in range(2):
        for one in asked:
            assert compiling.machine_code(*one) == "{} {} {}".format(*one).encode()
    assert compilations == asked
    assert len(list(cache.entries())) == 3
    monkeypatch.setattr(compiling, "digest", lambda: "other kernels")
    compiling.machine_code(*asked[0])
    assert compilations == [*asked, asked[0]]


def test_a_source_that_does_not_compile_is_named_with_the_line(monkeypatch, tmp_path):
    (tmp_path / "broken.cu").write_text("__global__ void f() { nonsense; }\n")
    monkeypatch.setattr(compiling, "FOLDER", tmp_path)
    with pytest.raises(CudaError, match=r"NVRTC refuses broken.cu for sm_90: .*nonsense") as caught:
        compiling.compiled("broken.cu", 1, "sm_90")
    assert caught.value.code == "E-CUDA-002"
