"""The plugin of ``alkahest-cpu``: evaluation on the CPU, with NumPy and SciPy or as machine code."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alkahest.plugin import (
    Artifact,
    BackendInfo,
    DeviceInfo,
    Diagnostic,
    Evaluator,
    Feature,
    Probe,
    Support,
    hookimpl,
)

if TYPE_CHECKING:
    from alkahest.program import Program

ALKAHEST_PLUGIN_API = 1

_REFERENCE = "cpu-reference"
_JIT = "cpu-jit"
_ERF_ONE = 0.8427007929497149


def _probe() -> Probe:
    """Evaluate erf, the operation that needs most: NumPy, SciPy and the interpreter."""
    try:
        import numpy as np
        import scipy

        from alkahest.backends.cpu.reference import ReferenceEvaluator
    except ImportError as error:
        return Probe(ok=False, detail=f"{error.name or error} cannot be imported", code="E-JIT-004")
    from alkahest.plugin import Batch
    from alkahest.program import Instruction, Program

    program = Program(
        dtype="float64",
        inputs=("x",),
        constants=(),
        code=(Instruction("erf", (0,)),),
        outputs=(1,),
    )
    batch = Batch(columns=(np.ones(3),), n=3)
    (values,) = ReferenceEvaluator(program).evaluate(batch).outputs
    return _verdict(values, {"numpy": np.__version__, "scipy": scipy.__version__})


def _witness() -> Probe:
    """The same through ``compile_expr``."""
    from alkahest.compiled import compile_expr
    from alkahest.expr import ExprPool

    pool = ExprPool()
    x = pool.symbol("x")
    fn = compile_expr(pool.func("erf", [x]), [x], backend=_REFERENCE)
    return _verdict(fn.call_batch([[1.0, 1.0, 1.0]]), {})


def _verdict(values: Any, facts: Mapping[str, str]) -> Probe:
    ok = all(abs(value - _ERF_ONE) < 1e-15 for value in values)
    detail = f"erf(1) = {values[0]}"
    return Probe(ok=ok, detail=detail, code="" if ok else "E-JIT-002", facts=facts)


def _jit_probe() -> Probe:
    from alkahest.backends.cpu.jit.probe import probe

    return probe()


def _jit_witness() -> Probe:
    from alkahest.backends.cpu.jit.probe import witness

    return witness()


def _support() -> Support:
    from alkahest.backends.cpu.kernels import support

    return support()


def _jit_support() -> Support:
    from alkahest.backends.cpu.jit.support import support

    return support()


@hookimpl
def alkahest_register_backends() -> list[BackendInfo]:
    """The reference, which every other one is compared with, and compiled code."""
    return [
        BackendInfo(
            name=_REFERENCE,
            features=(Feature(name="cpu", probe=_probe, witness=_witness),),
            support=_support,
            priority=0,
            group="cpu",
            summary="NumPy and SciPy, block by block: the reference",
        ),
        BackendInfo(
            name=_JIT,
            features=(Feature(name="llvm_jit", probe=_jit_probe, witness=_jit_witness),),
            support=_jit_support,
            priority=50,
            group="cpu",
            summary="machine code through llvmlite: SIMD vectors, threads",
        ),
    ]


@hookimpl
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    """The program itself; machine code is made for the first call that is worth it.

    The reference has no options and no target but this machine.
    """
    from alkahest.program import dumps

    if backend == _JIT:
        from alkahest.backends.cpu.jit.compile import target as resolve
        from alkahest.backends.cpu.jit.options import Options

        chosen = Options.of(options, target)
        return Artifact(
            kind="program",
            code=dumps(program),
            program=program,
            target=resolve(chosen.target).cpu,
            metadata={"options": dict(options), "target": target},
        )
    from alkahest.errors import InputError

    if options:
        raise InputError(
            "E-INPUT-011",
            f"backend {_REFERENCE!r} has no option {', '.join(map(repr, sorted(options)))}",
            remediation="It takes no options.",
        )
    if target:
        raise InputError(
            "E-INPUT-011",
            f"backend {_REFERENCE!r} has no target {target!r}",
            remediation="Leave target= out.",
        )
    return Artifact(kind="program", code=dumps(program), program=program)


@hookimpl
def alkahest_make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    """An evaluator for the artifact's program; the only device is 0."""
    if backend == _JIT:
        from alkahest.backends.cpu.jit.evaluator import JitEvaluator
        from alkahest.backends.cpu.jit.options import Options

        facts = artifact.metadata
        return JitEvaluator(artifact.program, Options.of(facts["options"], facts["target"]))
    from alkahest.backends.cpu.reference import ReferenceEvaluator

    return ReferenceEvaluator(artifact.program)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    """This machine's processor."""
    return (DeviceInfo(ordinal=0, name=_processor()),)


@hookimpl
def alkahest_diagnostics() -> tuple[Diagnostic, ...]:
    """Compiler and threads, for ``alkahest doctor``."""
    from alkahest.backends.cpu.jit.doctor import diagnose

    return tuple(diagnose())


def _processor() -> str:
    """The processor's marketing name on Linux, else what the platform calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine() or "CPU"
