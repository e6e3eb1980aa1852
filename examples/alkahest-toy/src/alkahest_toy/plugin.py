"""What the entry point names: descriptions and hooks, nothing heavy."""

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
    from alkahest_toy.evaluator import OPERATIONS

    seen = OPERATIONS["sin"](0.0)
    return Probe(ok=seen == 0.0, detail=f"{len(OPERATIONS)} operations in plain Python")


def _support() -> Support:
    from alkahest_toy.evaluator import OPERATIONS, REFUSED

    real = frozenset({"float64"})
    return Support(lowers=dict.fromkeys(OPERATIONS, real), refuses=REFUSED)


@hookimpl
def alkahest_register_backends() -> list[BackendInfo]:
    return [
        BackendInfo(
            name="toy",
            features=(Feature(name="toy.python", probe=_probe),),
            support=_support,
            priority=-10,  # never chosen automatically over a real backend
            summary="plain Python, one point at a time",
        )
    ]


@hookimpl
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    from alkahest_toy.evaluator import check_options

    check_options(options)
    return Artifact(kind="program", code="", program=program)


@hookimpl
def alkahest_make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    from alkahest_toy.evaluator import ToyEvaluator

    return ToyEvaluator(artifact.program)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    return (DeviceInfo(ordinal=0, name="Python interpreter"),)
