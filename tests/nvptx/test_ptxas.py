"""NVIDIA's assembler accepts the code for every target; it needs no GPU."""

import importlib.util
import re
import subprocess
from pathlib import Path

import attrs
import pytest

from alkahest import ExprPool, parse
from alkahest.backends.nvptx import module, targets
from alkahest.backends.nvptx.accuracy import MODES
from alkahest.backends.nvptx.lowerings import DTYPES
from alkahest.backends.nvptx.machinecode import is_changed_by_linking
from alkahest.backends.nvptx.probe import every_operation
from alkahest.program import lower

TARGETS = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


@pytest.fixture(scope="module")
def ptxas():
    """The assembler of the nvidia-cuda-nvcc wheel; this tier requires it."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    found = sorted(path for f in folders for path in Path(f).glob("*/bin/ptxas*"))
    assert found, "there is no ptxas: pip install nvidia-cuda-nvcc"
    return found[-1]


@pytest.fixture
def assemble(ptxas, tmp_path):
    """Assembles an artifact for its target; returns what ptxas says."""

    def run(artifact):
        (tmp_path / "kernel.ptx").write_text(artifact.code)
        command = [ptxas, "-v", f"-arch={artifact.target}", "-o", tmp_path / "kernel.cubin"]
        result = subprocess.run(
            [*command, tmp_path / "kernel.ptx"], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        return result.stderr

    return run


def kernel(text, target, names="x"):
    pool = ExprPool()
    program = lower([parse(text, pool)], [pool.symbol(n) for n in names.split()])
    return module.generate(program, target, {})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_operation_assembles(dtype, target, assemble):
    assert "alkahest_eval" in assemble(module.generate(every_operation(dtype), target, {}))


@pytest.mark.parametrize("mode", MODES)
def test_every_operation_assembles_in_every_accuracy_mode(mode, assemble):
    options = {"accuracy": mode}
    assert "alkahest_eval" in assemble(module.generate(every_operation("float64"), None, options))


@pytest.mark.parametrize("target", targets.supported())
def test_every_target_assembles(target, assemble):
    assemble(kernel("sin(x)*gamma(x) + x**7", target))


@pytest.mark.parametrize("target", ["sm_75", "sm_120"])
def test_forty_branches_and_a_nest_of_forty_assemble(target, assemble):
    branches = ", ".join(f"({k}*x + {k}, x < {k})" for k in range(40))
    assemble(kernel(f"Piecewise({branches})", target))
    nest = "x"
    for k in range(40):
        nest = f"Piecewise(({nest}, x < {k}), ({k}*x, True))"
    assemble(kernel(nest, target))


@pytest.mark.parametrize("target", ["sm_75", "sm_120"])
def test_six_hundred_columns_assemble(target, assemble):
    names = " ".join(f"c{k}" for k in range(600))
    artifact = kernel(" + ".join(names.split()), target, names)
    assert artifact.metadata["abi"] == "table"
    assemble(artifact)


def test_a_kernel_without_large_arguments_needs_no_stack(assemble):
    assert "0 bytes stack frame, 0 bytes spill stores" in assemble(kernel("exp(x)*erf(x)", "sm_75"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_linked_is_the_same_to_the_register(dtype, mode, ptxas, tmp_path):
    def code(instructions):
        outputs = tuple(range(first, first + 1 + len(instructions)))
        program = attrs.evolve(whole, code=(whole.code[0], *instructions), outputs=outputs)
        return module.generate(program, "sm_90", {"accuracy": mode}).code

    whole = every_operation(dtype)
    first = whole.first_instruction
    alone = [i for i in whole.code[1:] if not is_changed_by_linking(code([i]).encode())]
    assert len(alone) > 20
    (tmp_path / "kernel.ptx").write_text(code(alone))
    command = [ptxas, "-v", "-arch=sm_90", tmp_path / "kernel.ptx", "-o", tmp_path / "kernel.cubin"]
    said = [
        subprocess.run([*command, *how], capture_output=True, text=True, check=True).stderr
        for how in ([], ["--compile-only"])
    ]
    loaded, linked = (re.findall(r"Used \d+ registers|\d+ bytes stack frame", s) for s in said)
    assert loaded == linked
    assert len(loaded) == 2
