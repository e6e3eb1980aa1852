"""The plugin of ``alkahest-cpu``: evaluation on the CPU with NumPy and SciPy."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alkahest.plugin import (
    Artifact,
    BackendInfo,
    DeviceInfo,
    Evaluator,
    Feature,
    Probe,
    Support,
    hookimpl,
)

if TYPE_CHECKING:
    from alkahest.program import Program

ALKAHEST_PLUGIN_API = 1

_NAME = "cpu-reference"
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
    values = compile_expr(pool.func("erf", [x]), [x], backend=_NAME).call_batch([[1.0, 1.0, 1.0]])
    return _verdict(values, {})


def _verdict(values: Any, facts: Mapping[str, str]) -> Probe:
    ok = all(abs(value - _ERF_ONE) < 1e-15 for value in values)
    detail = f"erf(1) = {values[0]}"
    return Probe(ok=ok, detail=detail, code="" if ok else "E-JIT-002", facts=facts)


def _support() -> Support:
    from alkahest.backends.cpu.kernels import support

    return support()


@hookimpl
def alkahest_register_backends() -> list[BackendInfo]:
    """One backend, which every other one is compared with."""
    return [
        BackendInfo(
            name=_NAME,
            features=(Feature(name="cpu", probe=_probe, witness=_witness),),
            support=_support,
            priority=0,
            group="cpu",
            summary="NumPy and SciPy, block by block: the reference",
        )
    ]


@hookimpl
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    """The program is its own code; there are no options, and the only target is this machine."""
    from alkahest.errors import InputError

    if options:
        raise InputError(
            "E-INPUT-011",
            f"backend {_NAME!r} has no option {', '.join(map(repr, sorted(options)))}",
            remediation="It takes no options.",
        )
    if target:
        raise InputError(
            "E-INPUT-011",
            f"backend {_NAME!r} has no target {target!r}",
            remediation="Leave target= out.",
        )
    from alkahest.program import dumps

    return Artifact(kind="program", code=dumps(program), program=program)


@hookimpl
def alkahest_make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    """An interpreter for the artifact's program; the only device is 0."""
    from alkahest.backends.cpu.reference import ReferenceEvaluator
    from alkahest.errors import InputError

    if device not in (None, 0):
        raise InputError(
            "E-INPUT-011",
            f"backend {_NAME!r} has no device {device}",
            remediation="Its only device is 0.",
        )
    return ReferenceEvaluator(artifact.program)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    """This machine's processor."""
    return (DeviceInfo(ordinal=0, name=_processor()),)


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
