"""Which targets there are, which one a device gets, and what happens without LLVM's."""

import builtins
import sys

import pytest

from alkahest.backends.nvptx import targets
from alkahest.errors import CudaError, InputError


@pytest.mark.parametrize("given", ["sm_90", "SM_90", "90", "9.0", 90, 9.0])
def test_a_target_may_be_written_in_several_ways(given):
    assert targets.resolve(given) == "sm_90"


def test_without_a_target_the_oldest_is_meant():
    assert targets.resolve(None) == targets.DEFAULT == targets.supported()[0] == "sm_75"


@pytest.mark.parametrize("given", ["sm_70", "sm_999", "", "gfx90a", "sm_90a", "nan", 8])
def test_an_unknown_target_is_refused_with_the_known_ones(given):
    with pytest.raises(InputError, match="is not a GPU target") as caught:
        targets.resolve(given)
    assert caught.value.code == "E-INPUT-011"
    assert all(name in caught.value.remediation for name in targets.supported())


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90"),
        ((10, 0), "sm_100"),
        ((10, 1), "sm_100"),
        ((12, 0), "sm_120"),
        ((12, 1), "sm_121"),
        ((15, 0), "sm_121"),
    ],
)
def test_a_device_gets_the_newest_target_that_is_not_newer_than_itself(capability, target):
    assert targets.choose(capability) == target


@pytest.mark.parametrize(
    ("cuda", "target"),
    [
        (10000, "sm_75"),
        (11000, "sm_80"),
        (11080, "sm_90"),
        (12000, "sm_90"),
        (12080, "sm_120"),
        (13000, "sm_120"),
    ],
)
def test_an_older_driver_gets_code_that_it_loads(cuda, target):
    assert targets.choose((12, 0), targets.ptx_of_driver(cuda)) == target


def test_a_driver_of_the_future_loads_what_the_newest_known_one_does():
    newest = max(targets.PTX_VERSIONS.values())
    assert targets.ptx_of_driver(99_000) >= newest
    assert targets.choose((12, 1), targets.ptx_of_driver(99_000)) == "sm_121"


def test_a_device_older_than_every_target_is_refused():
    with pytest.raises(CudaError, match=r"compute capability 7\.0 is older") as caught:
        targets.choose((7, 0))
    assert caught.value.code == "E-CUDA-004"
    assert "CPU backend" in caught.value.remediation


def test_a_driver_too_old_for_every_target_is_refused():
    with pytest.raises(CudaError, match="PTX ISA 0") as caught:
        targets.choose((9, 0), targets.ptx_of_driver(9020))
    assert caught.value.code == "E-CUDA-003"


def test_a_target_and_its_compute_capability_are_one():
    assert targets.capability("sm_75") == (7, 5)
    assert targets.capability("sm_121") == (12, 1)
    assert [targets.capability(t) for t in targets.supported()] == sorted(
        targets.capability(t) for t in targets.supported()
    )


def test_an_llvm_without_the_target_is_reported(monkeypatch):
    from llvmlite import binding

    def refuse(triple):
        raise RuntimeError(f"No available targets are compatible with triple {triple!r}")

    monkeypatch.setattr(binding.Target, "from_triple", refuse)
    with pytest.raises(CudaError, match=r"no NVPTX target.*No available targets") as caught:
        targets.llvm()
    assert caught.value.code == "E-CUDA-001"
    assert "alkahest[nvptx]" in caught.value.remediation


def test_a_missing_llvmlite_is_reported(monkeypatch):
    original = builtins.__import__

    def without_llvmlite(name, *args, **kwargs):
        if name.partition(".")[0] == "llvmlite":
            raise ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite")
        return original(name, *args, **kwargs)

    for name in [n for n in sys.modules if n.partition(".")[0] == "llvmlite"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_llvmlite)
    with pytest.raises(CudaError, match="llvmlite cannot be imported") as caught:
        targets.llvm()
    assert caught.value.code == "E-CUDA-001"


@pytest.mark.parametrize("target", targets.supported())
def test_llvm_uses_the_lowest_ptx_version_that_has_the_target(target):
    binding = targets.llvm()
    text = f'target triple = "{targets.TRIPLE}"\ndefine void @f() {{\n  ret void\n}}'
    module = binding.parse_assembly(text, context=binding.create_context())
    ptx = targets.machine(target, 0).emit_assembly(module)
    version = targets.PTX_VERSIONS[target]
    assert f".version {version // 10}.{version % 10}\n.target {target}\n" in ptx
