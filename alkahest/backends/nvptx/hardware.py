"""Traces of NVIDIA hardware on this machine, and of the container around this process.

They tell a machine without a GPU from one whose driver is missing. Only small files of the system
are read, and nothing is loaded.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path("/")
"""Where the file system begins; tests have one of their own."""

_TOOLKIT = "with the NVIDIA Container Toolkit installed on the machine"
CONTAINERS = (
    (
        "KUBERNETES_SERVICE_HOST",
        "a Kubernetes pod",
        "Ask for a GPU in the pod's resources: limits: nvidia.com/gpu: 1.",
    ),
    ("APPTAINER_NAME", "an Apptainer container", "Start it with `apptainer run --nv`."),
    ("SINGULARITY_NAME", "a Singularity container", "Start it with `singularity run --nv`."),
    ("/.dockerenv", "a Docker container", f"Start it with `docker run --gpus all`, {_TOOLKIT}."),
    (
        "/run/.containerenv",
        "a Podman container",
        f"Start it with `podman run --device nvidia.com/gpu=all`, {_TOOLKIT}.",
    ),
)
"""(file or environment variable that shows it, what it is, how it is given the machine's GPUs)."""


def gpus() -> int:
    """NVIDIA display controllers on the PCI bus; 0 where there is none or no such bus."""
    return sum(
        _text(device / "vendor") == "0x10de" and _text(device / "class").startswith("0x03")
        for device in (ROOT / "sys/bus/pci/devices").glob("*")
    )


def kernel_driver() -> str:
    """Version of NVIDIA's kernel module that is loaded, ``"580.65.06"``; "" for none."""
    found = re.search(
        r"Kernel Module.*?\s(\d+\.\d[\d.]*)\s", _text(ROOT / "proc/driver/nvidia/version")
    )
    return found[1] if found else ""


def container() -> tuple[str, str]:
    """What container this process runs in, and how that is given GPUs; "" twice for none."""
    for sign, kind, remedy in CONTAINERS:
        if (ROOT / sign[1:]).exists() if sign.startswith("/") else os.environ.get(sign):
            return kind, remedy
    return "", ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
