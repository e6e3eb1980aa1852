"""Registration of the ``nvptx`` backend: NVIDIA GPUs through llvmlite and the CUDA driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from alkahest.plugin import BackendInfo, Command, Feature, hookimpl

if TYPE_CHECKING:
    from alkahest.plugin import Artifact, DeviceInfo, Diagnostic, Evaluator, Probe, Support, Tuned
    from alkahest.program import Program

ALKAHEST_PLUGIN_API = 2

BACKEND = "nvptx"

_API = "alkahest.backends.nvptx.api"


def _probe() -> Probe:
    from alkahest.backends.nvptx.probe import probe

    return probe()


def _witness() -> Probe:
    from alkahest.backends.nvptx.probe import witness

    return witness()


def _support() -> Support:
    from alkahest.backends.nvptx.lowerings import SUPPORT

    return SUPPORT


@hookimpl
def alkahest_register_backends() -> tuple[BackendInfo, ...]:
    """One backend, behind the bit ``cuda``."""
    return (
        BackendInfo(
            name=BACKEND,
            features=(Feature(name="cuda", probe=_probe, witness=_witness),),
            exports={
                "compile_cuda": f"{_API}:compile_cuda",
                "CudaCompiledFn": f"{_API}:CudaCompiledFn",
                "cuda_device_count": f"{_API}:cuda_device_count",
            },
            support=_support,
            priority=100,
            placement="cuda",
            refusal_code="E-CUDA-002",
            summary="NVIDIA GPUs: PTX through llvmlite, run by the CUDA driver",
        ),
    )


@hookimpl
def alkahest_codegen(
    backend: str, program: Program, target: str | None, options: Mapping[str, Any]
) -> Artifact:
    """PTX for ``target``; without one, for the first device here, else for the oldest target."""
    from alkahest.backends.nvptx.kernel import compile_for

    return compile_for(program, target, options)


@hookimpl
def alkahest_make_evaluator(backend: str, artifact: Artifact, device: int | None) -> Evaluator:
    """An evaluator that opens the device at its first call."""
    from alkahest.backends.nvptx.evaluator import NvptxEvaluator

    return NvptxEvaluator(artifact, device)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    """The usable GPUs; creates no context."""
    from alkahest.backends.nvptx.device import list_devices

    return list_devices()


@hookimpl
def alkahest_tune(backend: str, quick: bool) -> tuple[Tuned, ...]:
    """The quickest shapes of kernels on every kind of device here."""
    from alkahest.backends.nvptx.bench import tune_devices

    return tune_devices(quick)


@hookimpl
def alkahest_diagnostics() -> tuple[Diagnostic, ...]:
    """Compiler, libdevice, driver and devices, for ``alkahest doctor``."""
    from alkahest.backends.nvptx.doctor import diagnose

    return tuple(diagnose())


@hookimpl
def alkahest_commands() -> tuple[Command, ...]:
    """``alkahest ptx``."""
    return (
        Command(
            name="ptx",
            summary="print the PTX of an expression's kernel",
            target="alkahest.backends.nvptx.command:run",
        ),
    )
