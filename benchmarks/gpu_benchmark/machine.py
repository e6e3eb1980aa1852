"""What the numbers were taken on."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_DISTRIBUTIONS = (
    "alkahest alkahest-cpu alkahest-nvptx numpy llvmlite cuda-core cuda-bindings "
    "cupy-cuda13x cupy-cuda12x cupy torch triton jax jaxlib numba numba-cuda"
).split()


def facts() -> dict[str, Any]:
    """Device, driver, versions, host and date, as JSON takes them."""
    import cupy

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    return {
        **host(),
        "device": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "multiprocessors": int(properties["multiProcessorCount"]),
        "memory_gib": round(properties["totalGlobalMem"] / 2**30, 1),
        "driver": _driver_version(),
        "driver_cuda": _dotted(runtime.driverGetVersion()),
        "runtime_cuda": _dotted(runtime.runtimeGetVersion()),
    }


def host() -> dict[str, Any]:
    """What there is to say without a GPU."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of everything that takes part and is installed."""
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _driver_version() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor()
