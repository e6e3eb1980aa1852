"""Entry point of ``alkahest-groebner-gpu``: one backend, behind the bit ``groebner_cuda``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alkahest.plugin import BackendInfo, Feature, hookimpl

if TYPE_CHECKING:
    from alkahest.plugin import DeviceInfo, Diagnostic, Probe

ALKAHEST_PLUGIN_API = 2

BACKEND = "groebner-cuda"

_API = "alkahest.backends.groebner_gpu.api"


def _probe() -> Probe:
    from alkahest.backends.groebner_gpu.probe import probe

    return probe()


def _witness() -> Probe:
    from alkahest.backends.groebner_gpu.probe import witness

    return witness()


@hookimpl
def alkahest_register_backends() -> tuple[BackendInfo, ...]:
    """One backend, which evaluates no programs: it does linear algebra for Gröbner bases."""
    return (
        BackendInfo(
            name=BACKEND,
            features=(Feature(name="groebner_cuda", probe=_probe, witness=_witness),),
            exports={
                "compute_groebner_basis_gpu": f"{_API}:compute_groebner_basis_gpu",
                "GpuBackendReport": f"{_API}:GpuBackendReport",
            },
            placement="cuda",
            summary="Gröbner bases with their linear algebra on NVIDIA GPUs",
        ),
    )


@hookimpl
def alkahest_make_reducer(backend: str, device: int | None) -> object:
    """Linear algebra on one GPU, or on all of them."""
    from alkahest.backends.groebner_gpu.reducer import make_reducer

    return make_reducer(device)


@hookimpl
def alkahest_calibrate(backend: str, quick: bool) -> dict[str, float]:
    """How long replays take, on the first GPU and on the processor."""
    from alkahest.backends.groebner_gpu.model import measured
    from alkahest.backends.groebner_gpu.reducer import make_reducer

    return measured(make_reducer(0), quick=quick)


@hookimpl
def alkahest_devices(backend: str) -> tuple[DeviceInfo, ...]:
    """The usable GPUs; creates no context."""
    from alkahest.backends.nvptx.device import list_devices

    return list_devices()


@hookimpl
def alkahest_diagnostics() -> tuple[Diagnostic, ...]:
    """NVRTC and the kernels, for ``alkahest doctor``."""
    from alkahest.backends.groebner_gpu.probe import diagnose

    return (diagnose(),)
