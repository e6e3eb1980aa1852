"""From the kernels' sources to machine code, by NVRTC; no driver and no device is needed."""

from __future__ import annotations

import functools
import hashlib
import io
from importlib import metadata
from pathlib import Path

from alkahest import cache
from alkahest.errors import CudaError, install

FOLDER = Path(__file__).parent / "kernels"

_PRODUCTS = ("combine", "subtract_product", "update_squares", "relate", "compare")

SOURCES = {
    "replay.cu": ("reduce_rows", "reduce_long_rows", "collect_terms"),
    "rounds.cu": (
        "reduce_mixtures",
        "reduce_long_mixtures",
        "gather_leads",
        "fill_randomly",
        "gather_rows",
        "enter_row",
        "scale_rows",
    ),
    "lift.cu": (
        "gather_lanes",
        "mix_terms",
        "scale_terms",
        "add_cofactors",
        "check_terms",
        "collect_limbs",
    ),
    "inverse.cu": ("gather_columns", "invert_panel", "exchange_rows", "restore_columns"),
    "conversion.cu": ("enter_elements", "times_variables"),
    "products.cu": _PRODUCTS,
    "tensor.cu": tuple(f"{kernel}_tensor" for kernel in _PRODUCTS),
}
"""Files that are compiled, and the kernels in each."""

FILE_OF = {kernel: file for file, kernels in SOURCES.items() for kernel in kernels}

TENSOR_TARGET = "sm_80"
"""The oldest target of ``tensor.cu``."""

QUICK_DOUBLE = ((8, 0), (9, 0), (10, 0))
"""Capabilities of devices with tensor cores made for double precision; others only imitate it."""

GROUPS = (1, 2, 4, 8, 16, 32)
"""Lanes that a block can work on; the kernels are compiled for each."""

REMEDY = f"{install('groebner-gpu')}; it brings nvidia-cuda-nvrtc."

OLDEST_DRIVER = 13000
"""Lowest ``cuDriverGetVersion`` that loads the machine code of the NVRTC releases required."""


def machine_code(file: str, group: int, target: str) -> bytes:
    """A file's kernels for a target such as ``"sm_90"``, from the cache where they are there.

    Args:
        file: a key of :data:`SOURCES`.
        group: a member of :data:`GROUPS`.
        target: of the device.

    Raises:
        CudaError: E-CUDA-001 without NVRTC, E-CUDA-002 when it refuses the source.
    """
    key = cache.key(
        {
            "kind": "groebner-cuda cubin",
            "file": file,
            "group": str(group),
            "target": target,
            "kernels": digest(),
            "nvrtc": nvrtc_version(),
        }
    )
    code = cache.load(key)
    if code is None:
        code, _ = compiled(file, group, target)
        cache.store(key, code, label=f"Gröbner kernels {file} for {target}, {group} lanes a block")
    return code


def compiled(file: str, group: int, target: str) -> tuple[bytes, str]:
    """Machine code, and what the assembler says of registers and memory; as above, not cached."""
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise _missing(error) from error
    options = ProgramOptions(
        arch=target,
        std="c++17",
        name=file,
        include_path=str(FOLDER),
        define_macro=[("LANES", str(group))],
        ptxas_options="-v",
    )
    log = io.StringIO()
    source = (FOLDER / file).read_text(encoding="utf-8")
    try:
        code = Program(source, "c++", options).compile("cubin", logs=log).code
    except Exception as error:
        if type(error).__name__ == "DynamicLibNotFoundError":
            raise _missing(error) from error
        if "NVRTC" not in str(error):
            raise
        lines = [line for line in str(error).splitlines() if line.strip()]
        said = next((line for line in lines if ": error" in line), lines[0])
        raise CudaError("E-CUDA-002", f"NVRTC refuses {file} for {target}: {said}") from error
    return bytes(code), log.getvalue()


@functools.cache
def digest() -> str:
    """What changes whenever a kernel does."""
    found = hashlib.sha256()
    for path in sorted(FOLDER.glob("*.cu")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@functools.cache
def nvrtc_version() -> str:
    """The version of NVRTC: of its wheel, or else what the library says."""
    try:
        return metadata.version("nvidia-cuda-nvrtc")
    except metadata.PackageNotFoundError:
        pass
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:
        if isinstance(error, (ImportError, RuntimeError)):
            raise _missing(error) from error
        raise
    return f"{major}.{minor}"


def _missing(error: Exception) -> CudaError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return CudaError(
        "E-CUDA-001",
        f"NVRTC, which compiles the kernels, cannot be used: {reason}",
        remediation=REMEDY,
    )


__all__ = [
    "FILE_OF",
    "FOLDER",
    "GROUPS",
    "OLDEST_DRIVER",
    "QUICK_DOUBLE",
    "REMEDY",
    "SOURCES",
    "TENSOR_TARGET",
    "compiled",
    "machine_code",
    "nvrtc_version",
]
