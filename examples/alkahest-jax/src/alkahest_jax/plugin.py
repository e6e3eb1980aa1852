"""What the entry point names: descriptions and hooks; JAX is imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
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

ALKAHEST_PLUGIN_API = 2


def _probe() -> Probe:
    """Trace the rarest function, which neither compiles nor starts a device."""
    try:
        import jax

        from alkahest_jax.operations import OPERATIONS
    except (ImportError, RuntimeError) as error:  # JAX raises the other where jaxlib does not fit
        return Probe(ok=False, detail=f"JAX cannot be imported: {error}", code="E-JIT-004")
    jax.make_jaxpr(OPERATIONS["digamma"])(jax.ShapeDtypeStruct((2,), "float32"))
    return Probe(ok=True, detail=f"JAX {jax.__version__}", facts={"jax": jax.__version__})


def _witness() -> Probe:
    from alkahest.compiled import compile_expr
    from alkahest.expr import ExprPool

    (x,) = ExprPool().symbols("x")
    (value,) = compile_expr(x * x, [x], backend="jax").call_batch([[1.5]])
    return Probe(ok=value == 2.25, detail=f"1.5**2 = {value}")


def _support() -> Support:
    from alkahest_jax.operations import support

    return support()


@hookimpl
def alkahest_register_backends() -> list[BackendInfo]:
    return [
        BackendInfo(
            name="jax",
            features=(Feature(name="jax.compile", probe=_probe, witness=_witness),),
            support=_support,
            priority=-20,  # by name only, wherever one of alkahest's own is installed
            arrays=("jax",),
            summary="XLA through JAX, on the devices that JAX has",
        )
    ]


@hookimpl
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    from alkahest.errors import InputError
    from alkahest.program import dumps

    for name in (*options, *(["target"] if target else [])):
        raise InputError("E-INPUT-011", f"backend 'jax' has no option {name!r}")
    return Artifact(kind="program", code=dumps(program), program=program)


@hookimpl
def alkahest_make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    from alkahest_jax.evaluator import JaxEvaluator

    return JaxEvaluator(artifact.program, device)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    try:
        import jax

        found = jax.local_devices()
    except (ImportError, RuntimeError):  # JAX raises the other where a platform does not start
        return ()
    return tuple(
        DeviceInfo(ordinal=k, name=f"{device.platform}: {device.device_kind}")
        for k, device in enumerate(found)
    )


@hookimpl
def alkahest_diagnostics() -> tuple[Diagnostic, ...]:
    probe = _probe()
    return (
        Diagnostic(
            name="JAX",
            ok=probe.ok,
            detail=probe.detail,
            remedy="" if probe.ok else "pip install jax, of the version that fits jaxlib.",
        ),
    )
