"""A backend that writes C: registration here, everything else imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
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


def _probe() -> Probe:
    from alkahest_cc.compiler import find_compiler

    found = find_compiler()
    if found is None:
        return Probe(ok=False, detail="no C compiler; install one or set CC", code="E-JIT-002")
    return Probe(ok=True, detail=f"compiles with {found}")


def _support() -> Support:
    from alkahest.ops import DTYPES, OPS

    return Support(lowers=dict.fromkeys(OPS, frozenset(DTYPES)))


@hookimpl
def alkahest_register_backends() -> list[BackendInfo]:
    return [
        BackendInfo(
            name="cc",
            features=(Feature(name="cc.compile", probe=_probe),),
            support=_support,
            priority=-5,
            refusal_code="E-JIT-002",
            summary="C through the system's compiler",
        )
    ]


@hookimpl
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    from alkahest_cc.compiler import generate

    return generate(program, options)


@hookimpl
def alkahest_make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    from alkahest_cc.compiler import SharedLibrary

    return SharedLibrary(artifact)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    return (DeviceInfo(ordinal=0, name="this machine's processor"),)
