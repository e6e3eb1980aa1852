"""Rows of ``alkahest doctor`` about GPUs; they must come whatever is broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from alkahest import calibration
from alkahest.errors import CudaError, install
from alkahest.plugin import Diagnostic

_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder", "nvidia-nvvm")

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
    """Whether there is a driver; that there is none is a fault where there is a GPU."""
    from alkahest.backends.nvptx import driver, hardware

    path = driver.library_path()
    if path:
        return Diagnostic(name=name, ok=True, detail=path)
    said = driver.loader_text()
    looked = os.environ.get("LD_LIBRARY_PATH") or "unset"
    detail = (
        f"{said}; looked for in the loader's search path (LD_LIBRARY_PATH is {looked}; then the "
        f"system's cache), then {', '.join(driver.OTHER_LIBRARIES)}"
    )
    if not any(text in said.lower() for text in _MISSING):
        return Diagnostic(name=name, ok=False, detail=detail, remedy=_BROKEN)
    kind, start = hardware.container()
    traces = _traces(hardware.gpus(), hardware.kernel_driver())
    if not traces:
        remedy = f"For a GPU of the machine, this being {kind}: {start}" if kind else ""
        detail = f"no NVIDIA GPU is seen here, and no driver: {detail}"
        return Diagnostic(name=name, ok=None, detail=detail, remedy=remedy)
    if kind:
        detail = f"{kind}, and the machine's driver is not mounted ({traces}): {detail}"
        return Diagnostic(name=name, ok=False, detail=detail, remedy=start)
    return Diagnostic(name=name, ok=False, detail=f"{traces}, but {detail}", remedy=_INSTALL_DRIVER)


def _traces(gpus: int, kernel_driver: str) -> str:
    """What shows that the machine has a GPU, in words, or ""."""
    count = f"{gpus} NVIDIA GPU{'' if gpus == 1 else 's'} on the PCI bus" if gpus else ""
    module = f"NVIDIA's kernel module {kernel_driver} is loaded" if kernel_driver else ""
    return ", ".join(filter(None, (count, module)))


def _driver(name: str) -> Diagnostic:
    from alkahest.backends.nvptx import driver, targets

    if not driver.library_path():
        return Diagnostic(name=name, ok=None, detail="not asked: there is no driver library")
    found = driver.status()
    release = driver.cuda_release(found.version) if found.version else "unknown"
    newest = targets.ptx_of_driver(found.version)
    facts = f"CUDA {release}, loads PTX ISA up to {newest // 10}.{newest % 10}"
    if not found.count:
        detail = f"{found.detail}; {facts}" if found.version else found.detail
        return _no_device(name, detail, found.remedy == driver.UPDATE_DRIVER)
    devices = f"{found.count} usable device{'' if found.count == 1 else 's'}"
    detail = "; ".join(text for text in (facts, devices, found.detail) if text)
    return Diagnostic(name=name, ok=True, detail=detail)


def _no_device(name: str, detail: str, is_old: bool) -> Diagnostic:
    """The row of a driver that has no device for us; hiding all of them on purpose is no fault."""
    from alkahest.backends.nvptx import driver, hardware

    remedy = _LOOK
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if "JIT_COMPILATION_DISABLED" in detail:
        remedy = "Unset CUDA_DISABLE_PTX_JIT: kernels are PTX that the driver compiles."
    elif is_old:
        remedy = (
            f"{_INSTALL_DRIVER} It is that of CUDA {driver.cuda_release(driver.OLDEST_DRIVER)}."
        )
    elif any(text in detail for text in _NO_DEVICE):
        start = hardware.container()[1]
        if visible is not None:
            detail = f"CUDA_VISIBLE_DEVICES={visible!r} leaves no device: {detail}"
            remedy = "Unset it, or name devices that `nvidia-smi -L` lists."
            if visible.strip() in _HIDE_ALL:
                return Diagnostic(name=name, ok=None, detail=detail, remedy=remedy)
        elif start:
            remedy = f"{_LOOK} {start}"
    return Diagnostic(name=name, ok=False, detail=detail, remedy=remedy)


def _devices() -> Iterator[Diagnostic]:
    from alkahest.backends.nvptx import driver, targets, tuning
    from alkahest.backends.nvptx.device import list_devices

    newest = targets.ptx_of_driver(driver.status().version)
    for info in list_devices():
        major, minor = info.facts["compute_capability"]
        chosen, best = targets.choose((major, minor), newest), targets.choose((major, minor))
        ptx, wanted = targets.PTX_VERSIONS[chosen], targets.PTX_VERSIONS[best]
        detail = (
            f"{info.name}, compute capability {major}.{minor}, {info.memory / 2**30:.1f} GiB; "
            f"code for {chosen}, PTX ISA {ptx // 10}.{ptx % 10}"
        )
        installed = driver.cuda_release(driver.status().version)
        detail = f"{detail}; {_tuned(tuning.kind(info.name, (major, minor), installed))}"
        name = f"GPU {info.ordinal}"
        if chosen == best:
            yield Diagnostic(name=name, ok=True, detail=detail)
        else:
            release = driver.cuda_release(targets.release_that_loads(wanted))
            yield Diagnostic(
                name=name,
                ok=None,
                detail=f"{detail}; {best} needs PTX ISA {wanted // 10}.{wanted % 10}, "
                "which is newer than what the driver loads",
                remedy=f"It works; a driver of CUDA {release} or newer takes code for {best}.",
            )


def _tuned(device: str) -> str:
    """What was measured about the shapes of kernels on a kind of device."""
    from alkahest.backends.nvptx import tuning

    found = [entry for entry in calibration.tuned(tuning.BACKEND) if entry.device == device]
    if not found:
        return "kernels shaped by built-in tables (`alkahest calibrate` tunes them)"
    better = [entry.case for entry in found if entry.settings]
    return f"{len(found)} shapes of kernels tuned, better: {', '.join(better) or 'none'}"


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
_INSTALL_DRIVER = "Install the NVIDIA driver, 525 or newer (527 on Windows)."
_BROKEN = (
    "Reinstall the NVIDIA driver; if this is no file of the driver, take its folder out of "
    "LD_LIBRARY_PATH."
)
_MISSING = ("no such file", "could not find module")
"""How loaders say that there is no such library, rather than a bad one."""

_NO_DEVICE = ("CUDA_ERROR_NO_DEVICE", "lists no device")
_HIDE_ALL = ("", "-1", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that somebody chose, or a scheduler, to hide every device."""

_QUESTIONS: tuple[tuple[str, Callable[[str], Diagnostic]], ...] = (
    ("GPU compiler", _llvm),
    ("libdevice", _libdevice),
    ("CUDA packages", _packages),
    ("CUDA driver library", _library),
    ("CUDA driver", _driver),
)
