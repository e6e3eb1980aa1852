"""Rows of ``alkahest doctor`` about GPUs; they must come whatever is broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from alkahest.errors import CudaError, install
from alkahest.plugin import Diagnostic

_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder", "cuda-python", "nvidia-nvvm")

# Read by the driver, by libraries below us, or by the loader; shown, never interpreted.
_ENVIRONMENT = (
    "ALKAHEST_CUDA_CHUNK",
    "ALKAHEST_LIBDEVICE_PATH",
    "CONDA_PREFIX",
    "CUDA_CACHE_DISABLE",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_HOME",
    "CUDA_MODULE_LOADING",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_VISIBLE_DEVICES",
)


def diagnose() -> Iterator[Diagnostic]:
    """Every row, in the order in which things are needed."""
    for name, question in _QUESTIONS:
        try:
            yield question(name)
        except Exception as exc:  # noqa: BLE001 - a broken machine is what the rows are for
            yield Diagnostic(name=name, ok=False, detail=f"{type(exc).__name__}: {exc}")
    yield from _devices()
    yield _environment("GPU environment")


def _llvm(name: str) -> Diagnostic:
    from alkahest.backends.nvptx import targets

    try:
        binding = targets.llvm()
    except CudaError as error:
        return Diagnostic(name=name, ok=False, detail=error.message, remedy=error.remediation)
    version = ".".join(map(str, binding.llvm_version_info))
    names = targets.supported()
    detail = f"llvmlite {_version('llvmlite')}, LLVM {version}, targets {names[0]} to {names[-1]}"
    return Diagnostic(name=name, ok=True, detail=detail)


def _libdevice(name: str) -> Diagnostic:
    from alkahest.backends.nvptx import libdevice

    try:
        return Diagnostic(name=name, ok=True, detail=str(libdevice.find()))
    except CudaError as error:
        return Diagnostic(name=name, ok=False, detail=error.message, remedy=error.remediation)


def _packages(name: str) -> Diagnostic:
    found = ", ".join(f"{package} {_version(package)}" for package in _PACKAGES)
    try:
        import cuda.bindings
        import cuda.core
    except ImportError as error:
        detail = f"{found}; {type(error).__name__}: {error}"
        return Diagnostic(name=name, ok=False, detail=detail, remedy=_INSTALL)
    folder = Path(cuda.bindings.__file__).parent
    return Diagnostic(name=name, ok=True, detail=f"{found}; in {folder}")


def _library(name: str) -> Diagnostic:
    from alkahest.backends.nvptx import driver

    path = driver.library_path()
    if path:
        return Diagnostic(name=name, ok=True, detail=path)
    looked = os.environ.get("LD_LIBRARY_PATH") or "unset"
    others = ", ".join(driver.OTHER_LIBRARIES)
    detail = (
        f"not found: the loader's search path (LD_LIBRARY_PATH is {looked}; then the system's "
        f"cache), then {others}"
    )
    remedy = "Install the NVIDIA driver, or add the folder of libcuda.so.1 to LD_LIBRARY_PATH."
    return Diagnostic(name=name, ok=False, detail=detail, remedy=remedy)


def _driver(name: str) -> Diagnostic:
    from alkahest.backends.nvptx import driver, targets

    found = driver.status()
    release = driver.cuda_release(found.version) if found.version else "unknown"
    newest = targets.ptx_of_driver(found.version)
    facts = f"CUDA {release}, loads PTX ISA up to {newest // 10}.{newest % 10}"
    if not found.count:
        detail = f"{found.detail}; {facts}" if found.version else found.detail
        return Diagnostic(name=name, ok=False, detail=detail, remedy=_LOOK)
    devices = f"{found.count} usable device{'' if found.count == 1 else 's'}"
    detail = "; ".join(text for text in (facts, devices, found.detail) if text)
    return Diagnostic(name=name, ok=True, detail=detail)


def _devices() -> Iterator[Diagnostic]:
    from alkahest.backends.nvptx import driver, targets
    from alkahest.backends.nvptx.device import list_devices

    newest = targets.ptx_of_driver(driver.status().version)
    for info in list_devices():
        major, minor = info.facts["compute_capability"]
        chosen = targets.choose((major, minor), newest)
        ptx = targets.PTX_VERSIONS[chosen]
        detail = (
            f"{info.name}, compute capability {major}.{minor}, {info.memory / 2**30:.1f} GiB; "
            f"code for {chosen}, PTX ISA {ptx // 10}.{ptx % 10}"
        )
        yield Diagnostic(name=f"GPU {info.ordinal}", ok=True, detail=detail)


def _environment(name: str) -> Diagnostic:
    values = [f"{key}={os.environ[key]}" for key in _ENVIRONMENT if key in os.environ]
    return Diagnostic(name=name, ok=None, detail="; ".join(values) or "nothing set")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


_INSTALL = install("nvptx")
_LOOK = "Check that nvidia-smi lists a device; reinstall or update the NVIDIA driver."

_QUESTIONS: tuple[tuple[str, Callable[[str], Diagnostic]], ...] = (
    ("GPU compiler", _llvm),
    ("libdevice", _libdevice),
    ("CUDA packages", _packages),
    ("CUDA driver library", _library),
    ("CUDA driver", _driver),
)
