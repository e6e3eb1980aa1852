"""The CUDA driver on this machine: whether it is usable, and for how many devices.

Everything is imported and called inside functions, so importing this module touches nothing. No
function here creates a context. ``CUDA_VISIBLE_DEVICES`` and its relatives are the driver's
business; they are never read here and count until the first call that needs a device.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from typing import Any

import attrs

from alkahest.backends.nvptx import faults, targets
from alkahest.errors import CudaError, install
from alkahest.forks import ForkSafeLock

OLDEST_DRIVER = 12000
"""Lowest ``cuDriverGetVersion`` with the calls that cuda.core makes (libraries, launch records)."""

OLDEST_CAPABILITY = targets.capability(targets.DEFAULT)
"""Lowest compute capability that code is generated for."""

OTHER_LIBRARIES = ("/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1")
"""Driver libraries that the loader does not know of: on WSL, and in some containers."""

UPDATE_DRIVER = "Install a newer NVIDIA driver; `alkahest doctor` shows what is there."
_LOOK = "Run `alkahest doctor`; check that nvidia-smi lists the device."
_HIDE = "Hide the older devices with CUDA_VISIBLE_DEVICES, or use a CPU backend."
_FORK_REMEDY = "Start worker processes with the 'spawn' method, or use CUDA in the workers only."

# The least that any generated kernel asks of a driver: the ISA version of the lowest target.
_SMALLEST_PTX = b"""\
.version 6.3
.target sm_75
.address_size 64
.visible .entry alkahest_nothing() { ret; }
"""

CODE_REFUSALS = frozenset({209, 218, 220, 221, 222, 223})
"""Answers to loading code that no later attempt changes: device, ISA version, compiler."""


@attrs.frozen(kw_only=True)
class Status:
    """What the driver said when it was asked to start.

    Attributes:
        count: devices that can be used; the valid ordinals are ``range(count)``.
        detail: why ``count`` is not larger, or "".
        remedy: what to do about it, or "".
        error: error code for refusals that follow from it.
        version: ``cuDriverGetVersion``, 13000 for CUDA 13.0; 0 where unknown.
        library: path of the loaded driver library, or "".
    """

    count: int = 0
    detail: str = ""
    remedy: str = ""
    error: str = "E-CUDA-003"
    version: int = 0
    library: str = ""


_lock = ForkSafeLock()
_started: Status | None = None
_started_in: int | None = None
_takes_code = False


def started() -> Status:
    """Ask the driver once per process; a refusal is asked again the next time. Never raises."""
    global _started, _started_in
    if forked():
        before = f"CUDA was started in process {_started_in}"
        return Status(
            detail=f"{before} before this process was forked from it", remedy=_FORK_REMEDY
        )
    if _started is not None:
        return _started
    with _lock:
        if _started is None:
            found = _ask()
            if found.count == 0:
                return found
            _started, _started_in = found, os.getpid()
        return _started


def status() -> Status:
    """As :func:`started`, and whether the driver takes code at all. Never raises.

    That takes as long as a small kernel's compilation, so that calls which are about to load code
    of their own leave it out.
    """
    global _takes_code
    found = started()
    if not found.count or _takes_code:
        return found
    try:
        refusal = _refusal_of_any_code()
    except Exception as exc:  # noqa: BLE001 - a driver error, or a function that the library lacks
        refusal, remedy = str(exc), _LOOK
    else:
        refusal, remedy = refusal and f"cuLibraryLoadData: {refusal}", UPDATE_DRIVER
    if refusal:
        detail = f"{refusal} ({found.library})"
        return attrs.evolve(found, count=0, detail=detail, remedy=remedy, error="E-CUDA-003")
    _takes_code = True
    return found


def device_count() -> int:
    """Number of usable devices, 0 where there is none for any reason. Never raises."""
    return status().count


def forked() -> bool:
    """Whether CUDA was started in another process that this one was forked from."""
    return _started_in is not None and _started_in != os.getpid()


def check_ordinal(ordinal: int) -> int:
    """Return ``ordinal`` if a device of that number can be used.

    Raises:
        CudaError: E-CUDA-003 naming the ordinal, the count and what the driver said; E-CUDA-004
            for a device older than :data:`OLDEST_CAPABILITY`.
    """
    found = started()
    if 0 <= ordinal < found.count:
        return ordinal
    found = status()
    devices = f"{found.count} usable device{'' if found.count == 1 else 's'}"
    reason = f": {found.detail}" if found.detail else ""
    raise CudaError(
        found.error,
        f"device {ordinal} was asked for and there are {devices}{reason}",
        remediation=found.remedy or f"Valid ordinals are 0 to {found.count - 1}.",
    )


def library_path() -> str:
    """Path of the driver library, loaded by this call, or "" when there is none.

    The loader's own search decides; where it finds nothing, :data:`OTHER_LIBRARIES` are tried.
    """
    with contextlib.suppress(ImportError, RuntimeError):
        return _find_library()
    for path in OTHER_LIBRARIES:
        # Once loaded by its path, the library is found by its name.
        with contextlib.suppress(ImportError, RuntimeError, OSError):
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            return _find_library()
    return ""


def loader_text() -> str:
    """What the system's loader says about the driver library."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(name)
    except OSError as exc:
        return str(exc)
    return f"{name} loads, but cuda.pathfinder does not find it"


def _find_library() -> str:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return str(load_nvidia_dynamic_lib("cuda").abs_path)


def _ask() -> Status:
    """Start the driver and count; every failure becomes a Status."""
    try:
        from cuda.bindings import driver

        if importlib.util.find_spec("cuda.core") is None:
            raise ModuleNotFoundError("No module named 'cuda.core'")
    except Exception as exc:  # noqa: BLE001 - it may be broken in any way; the reason is told
        return Status(detail=_import_text(exc), remedy=install("nvptx"))
    library = library_path()
    if not library:
        detail = f"the NVIDIA driver library cannot be loaded: {loader_text()}"
        return Status(detail=detail, remedy=_LOOK)
    version = 0
    try:
        unknown, version = driver.cuDriverGetVersion()
        version = 0 if int(unknown) else version
        faults.check(driver.cuInit(0), "cuInit")
        found = _count(driver, version)
    except Exception as exc:  # noqa: BLE001 - a driver error, or a function that the library lacks
        found = Status(detail=str(exc), remedy=_LOOK)
    detail = f"{found.detail} ({library})" if found.detail else ""
    return attrs.evolve(found, detail=detail, version=version, library=library)


def _count(driver: Any, version: int) -> Status:
    """Count the devices of a driver that has started.

    Those before the first that is too old count, so that the ordinals are a range.

    Raises:
        DriverError: the driver refused to say.
    """
    if version < OLDEST_DRIVER:
        have, need = cuda_release(version), cuda_release(OLDEST_DRIVER)
        detail = f"the driver supports CUDA {have}, {need} or newer is needed"
        return Status(detail=detail, remedy=UPDATE_DRIVER)
    total = faults.check(driver.cuDeviceGetCount(), "cuDeviceGetCount")
    if total == 0:
        return Status(detail="the driver lists no device", remedy=_LOOK)
    for ordinal in range(total):
        capability = device_capability(driver, ordinal)
        if capability < OLDEST_CAPABILITY:
            have, need = (".".join(map(str, c)) for c in (capability, OLDEST_CAPABILITY))
            detail = f"device {ordinal} has compute capability {have}, {need} or newer is needed"
            return Status(count=ordinal, detail=detail, remedy=_HIDE, error="E-CUDA-004")
    return Status(count=total)


def device_capability(driver: Any, ordinal: int) -> tuple[int, int]:
    """Compute capability of a device; no context is created.

    Raises:
        DriverError: the driver refused.
    """
    names = driver.CUdevice_attribute
    major, minor = (
        faults.check(driver.cuDeviceGetAttribute(attribute, ordinal), "cuDeviceGetAttribute")
        for attribute in (
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    return int(major), int(minor)


def device_name(driver: Any, ordinal: int) -> str:
    """What the vendor calls a device; no context is created.

    Raises:
        DriverError: the driver refused.
    """
    name = faults.check(driver.cuDeviceGetName(256, ordinal), "cuDeviceGetName")
    return str(name.split(b"\0")[0].decode(errors="replace"))


def _refusal_of_any_code() -> str:
    """What the driver answers to the smallest kernel, if that means that it takes none; or "".

    Libraries belong to no context, so none is created. Other answers are left to the call that
    they matter to.
    """
    from cuda.bindings import driver

    result, library = driver.cuLibraryLoadData(_SMALLEST_PTX, [], [], 0, [], [], 0)
    if int(result) in CODE_REFUSALS:
        return faults.describe(int(result))
    if int(result) == 0:
        faults.check(driver.cuLibraryUnload(library), "cuLibraryUnload")
    return ""


def cuda_release(version: int) -> str:
    """``"12.4"`` for 12040."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _import_text(exc: Exception) -> str:
    """Say which import failed and which ``cuda`` package was found, which may be somebody's file."""
    package = sys.modules.get("cuda")
    where = getattr(package, "__file__", None) or ", ".join(getattr(package, "__path__", []))
    found = f"; `cuda` was imported from {where}" if where else ""
    return f"the CUDA packages cannot be imported: {type(exc).__name__}: {exc}{found}"
