"""GPU targets: which exist, which one a device gets, and LLVM's code generator for them."""

from __future__ import annotations

from functools import cache
from typing import Any

from alkahest.errors import CudaError, InputError

PTX_VERSIONS: dict[str, int] = {
    "sm_75": 63,
    "sm_80": 70,
    "sm_86": 71,
    "sm_87": 74,
    "sm_88": 90,
    "sm_89": 78,
    "sm_90": 78,
    "sm_100": 86,
    "sm_103": 88,
    "sm_110": 90,
    "sm_120": 87,
    "sm_121": 88,
}
"""Every target, oldest first, with the lowest PTX ISA version that has it (78 is 7.8)."""

DEFAULT = "sm_75"
"""The target without a device: the oldest, because every supported device runs its code."""

TRIPLE = "nvptx64-nvidia-cuda"

# First CUDA release (major * 1000 + minor * 10, as cuDriverGetVersion counts) whose driver
# compiles a PTX ISA version.
_DRIVERS = (
    (13000, 90),
    (12090, 88),
    (12080, 87),
    (12070, 86),
    (12050, 85),
    (12040, 84),
    (12030, 83),
    (12020, 82),
    (12010, 81),
    (12000, 80),
    (11080, 78),
    (11070, 77),
    (11060, 76),
    (11050, 75),
    (11040, 74),
    (11030, 73),
    (11020, 72),
    (11010, 71),
    (11000, 70),
    (10020, 65),
    (10010, 64),
    (10000, 63),
)


def supported() -> tuple[str, ...]:
    """Every target that code can be generated for, oldest first."""
    return tuple(PTX_VERSIONS)


def resolve(target: str | float | None) -> str:
    """The canonical name of ``target``: ``"sm_90"``, ``"90"``, ``"9.0"``, 90 and 9.0 are one.

    None is :data:`DEFAULT`.

    Raises:
        InputError: E-INPUT-011 for a target that is not one of :func:`supported`.
    """
    if target is None:
        return DEFAULT
    text = str(target).strip().lower()
    name = text if text.startswith("sm_") else f"sm_{text.replace('.', '')}"
    if name not in PTX_VERSIONS:
        raise InputError(
            "E-INPUT-011",
            f"target {target!r} is not a GPU target of this backend",
            remediation=f"Use one of {', '.join(PTX_VERSIONS)}, or omit target.",
        )
    return name


def capability(target: str) -> tuple[int, int]:
    """Compute capability of a canonical target: ``"sm_103"`` is (10, 3)."""
    return divmod(int(target.removeprefix("sm_")), 10)


def ptx_of_driver(cuda_version: int) -> int:
    """Newest PTX ISA version (78 is 7.8) that a driver loads.

    Args:
        cuda_version: what ``cuDriverGetVersion`` reports, for instance 12040; newer releases
            than this table knows count as the newest it knows.
    """
    return next((ptx for release, ptx in _DRIVERS if cuda_version >= release), 0)


def release_that_loads(ptx: int) -> int:
    """First CUDA release, as ``cuDriverGetVersion`` counts, whose driver loads a PTX ISA version.

    Args:
        ptx: a version of :data:`PTX_VERSIONS`.
    """
    return min(release for release, newest in _DRIVERS if newest >= ptx)


def choose(compute_capability: tuple[int, int], driver_ptx: int | None = None) -> str:
    """The newest target that a device runs and its driver loads.

    Args:
        compute_capability: (major, minor) of the device.
        driver_ptx: newest PTX ISA version that the driver loads, or None to not ask.

    Raises:
        CudaError: E-CUDA-004 for a device older than the oldest target, E-CUDA-003 for a driver
            too old to load code for any.
    """
    shown = ".".join(map(str, compute_capability))
    fits = [name for name in PTX_VERSIONS if capability(name) <= compute_capability]
    if not fits:
        raise CudaError(
            "E-CUDA-004",
            f"a device of compute capability {shown} is older than the oldest target, {DEFAULT}",
            remediation="Use a device of compute capability 7.5 or newer, or a CPU backend.",
        )
    loads = [name for name in fits if driver_ptx is None or PTX_VERSIONS[name] <= driver_ptx]
    if not loads:
        raise CudaError(
            "E-CUDA-003",
            f"the driver loads PTX ISA {driver_ptx}, {DEFAULT} needs {PTX_VERSIONS[DEFAULT]}",
            remediation="Update the NVIDIA driver.",
        )
    return max(loads, key=capability)


def llvm() -> Any:
    """``llvmlite.binding`` with its NVPTX target initialised.

    Raises:
        CudaError: E-CUDA-001 where llvmlite is missing or was built without the target.
    """
    try:
        from llvmlite import binding
    except ImportError as error:
        raise CudaError("E-CUDA-001", f"llvmlite cannot be imported: {error}") from error
    _initialise()
    try:
        binding.Target.from_triple(TRIPLE)
    except RuntimeError as error:
        raise CudaError("E-CUDA-001", f"LLVM has no NVPTX target: {error}") from error
    return binding


@cache
def _initialise() -> None:
    """Make every target known; harmless where two threads do."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


def machine(target: str, level: int) -> Any:
    """LLVM's code generator for a canonical target.

    The PTX ISA version is left to LLVM, whose choice is the lowest that has the target, so that
    old drivers load the code.

    Args:
        target: one of :func:`supported`.
        level: optimisation level of instruction selection, 0 to 3.
    """
    return llvm().Target.from_triple(TRIPLE).create_target_machine(cpu=target, opt=level)
