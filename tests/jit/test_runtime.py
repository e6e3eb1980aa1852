"""The shared machine code: loaded once, and the same text on other processors."""

from __future__ import annotations

import pytest

from alkahest.backends.cpu.jit import engine, glue_code, strided, threads_code
from alkahest.backends.cpu.jit.host import HostTarget
from alkahest.backends.cpu.jit.runtime import runtime

OTHERS = {
    "aarch64-unknown-linux-gnu": "+neon",
    "arm64-apple-darwin": "+neon",
    "riscv64-unknown-linux-gnu": "+m,+a,+f,+d",
}


def test_there_is_one_runtime_in_a_process() -> None:
    assert runtime() is runtime()
    assert 0 not in (runtime().strided, runtime().fast_call, runtime().pool.address)


@pytest.mark.parametrize("triple", OTHERS)
def test_the_runtime_compiles_for_other_processors(triple: str) -> None:
    binding = engine.llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    architecture = "aarch64" if "64-" in triple and triple[0] == "a" else "riscv64"
    text = "\n".join((threads_code.code(architecture), strided.code(), glue_code.code()))
    target = HostTarget(triple, "", OTHERS[triple], 128)
    assert "x86" not in text
    assert len(engine.compile_ir(text, target)) > 1000


def test_the_assembly_of_the_waiting_loop_has_the_processors_pause() -> None:
    target = HostTarget.detect()
    text = threads_code.code(target.triple.partition("-")[0])
    shown = engine.assembly(text, target)
    if target.triple.startswith("x86_64"):
        assert "pause" in shown
    assert "pthread_cond_wait" in shown
