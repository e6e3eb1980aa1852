"""Processes whose CUDA driver is ``tests/nvptx/fake_driver.c``.

Settings of the fake, environment variables that it reads at every call:

=====================  ============================================================================
FAKE_CUDA_INIT         code that cuInit returns
FAKE_CUDA_COUNT        number of devices (1); CUDA_VISIBLE_DEVICES at the time of cuInit wins
FAKE_CUDA_CAPABILITY   compute capabilities, ``"90,75"`` for 9.0 and 7.5
FAKE_CUDA_VERSION      of the driver, 13000; FAKE_CUDA_VERSION_CODE: what asking for it returns
FAKE_CUDA_MISSING      names of functions that it lacks
FAKE_CUDA_CONTEXT      code that creating a context returns
FAKE_CUDA_LOAD_ANY     code for any PTX; FAKE_CUDA_LOAD: for loading machine code of generated kernels
FAKE_CUDA_NEWEST_PTX   78: newer ISA versions than 7.8 give 222
FAKE_CUDA_COMPILE      code that compiling PTX returns; FAKE_CUDA_JIT_LOG: its log
FAKE_CUDA_LAUNCH       code of launches; 719 is sticky. FAKE_CUDA_FAILS: found when synchronising
FAKE_CUDA_ALLOC        code of allocations; FAKE_CUDA_LOCK: of those of page-locked memory
FAKE_CUDA_COPY         code of copies; FAKE_CUDA_DOWNLOAD: only of those from the device
FAKE_CUDA_STREAM       code of creating streams; FAKE_CUDA_EVENT: of creating events,
                       FAKE_CUDA_RECORD: of recording them
FAKE_CUDA_MEMORY       bytes of device memory; FAKE_CUDA_POOLS=0: without memory pools
FAKE_CUDA_OUTPUTS      outputs of the kernel, 1; FAKE_CUDA_TABLE: inputs of one called with a table
FAKE_CUDA_IDLE         kernels write nothing
FAKE_CUDA_LOSES        number of the launch of a hosted kernel after which the context is lost
FAKE_CUDA_PENDING      1: no event is reached yet
FAKE_CUDA_OWNER        device that every address belongs to, 0; -1: none
FAKE_CUDA_CAPTURING    1: streams are being captured into a graph
FAKE_CUDA_SLEEP_MS     how long copies, launches and synchronisations take
FAKE_CUDA_MEET         threads that launches wait for inside of the driver; logs whether they met
FAKE_CUDA_LOG          file that gets one line per call
=====================  ============================================================================
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from childprocess import Child

COMPILER = os.environ.get("CC", "cc")
DIAGNOSE = """
from alkahest.backends.nvptx.doctor import diagnose
result = {row.name: [row.ok, row.detail, row.remedy] for row in diagnose()}
"""
"""Code of which the rows of ``alkahest doctor`` about GPUs are the result."""

SOURCE = Path(__file__).parents[1] / "nvptx" / "fake_driver.c"


def build(folder: Path, source: str | None = None) -> Path:
    """Compile the fake, or ``source``, into ``folder/libcuda.so.1``; returns the folder."""
    text = SOURCE.read_text() if source is None else source
    library = folder / "libcuda.so.1"
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=text, text=True, check=True)
    return folder


class FakeGpuChild(Child):
    """A process that finds the driver library of ``drivers`` first."""

    def __init__(self, drivers: Path, folder: Path, **settings: str) -> None:
        self._log = folder / "calls"
        libraries = [str(drivers), os.environ.get("LD_LIBRARY_PATH", "")]
        paths = {
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
            "FAKE_CUDA_LOG": str(self._log),
        }
        super().__init__(folder, hidden=("CUDA_", "FAKE_CUDA_"), **paths, **settings)

    def calls(self) -> list[str]:
        """Lines that the fake has logged since this was last asked."""
        if not self._log.exists():
            return []
        lines = self._log.read_text().splitlines()
        self._log.unlink()
        return lines
