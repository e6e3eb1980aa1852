"""The first call: compile and run, in a process of its own.

Imports and the context's creation are over before the clock starts. ``cold`` starts with empty
caches, those of the driver and of the library; ``cached`` is a new process that finds what the cold
one left on disk.

As a script, with a contender's name and a row's, this is the process that measures.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # alone, it has to find the others of its package
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_benchmark.contenders import (
    ENVIRONMENT,
    OURS,
    PEERS,
    Problem,
    alkahest_arrays,
    describe,
    import_numba,
    register_plugins,
)
from gpu_benchmark.formulae import ROWS

ROW = "waves"
POINTS = 1000
PROCESSES = 3
"""For us; every peer has one, because some need ten seconds and more."""

_LIMIT = 120.0
_MARK = "first call: "

_CACHES = {
    "ALKAHEST_CACHE_DIR": "alkahest",
    "CUDA_CACHE_PATH": "driver",
    "CUPY_CACHE_DIR": "cupy",
    "TORCHINDUCTOR_CACHE_DIR": "torch",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
    "NUMBA_CACHE_DIR": "numba",
}
_SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

# Packages of which everything is imported beforehand, and modules that are imported late.
_PACKAGES = ("alkahest", "alkahest.program", "alkahest.cache", "alkahest.backends.nvptx")
_LATE = {
    OURS: ("numpy", "llvmlite.binding", "cuda.core", "cuda.bindings.driver"),
    "torch": ("torch._dynamo", "torch._inductor.compile_fx", "triton"),
}


def measure(peers: Sequence[str], say: Callable[[str], None]) -> dict[str, Any]:
    """Median milliseconds of every contender, cold and cached."""
    record: dict[str, Any] = {"row": ROW, "points": POINTS, "contenders": {}}
    for name in (OURS, *peers):
        say(f"first call of {name}")
        processes = PROCESSES if name == OURS else 1
        try:
            pairs = [_pair(name) for _ in range(processes)]
        except Exception as error:  # noqa: BLE001 - one that fails must not end the others' run
            record["contenders"][name] = {"error": describe(error)}
            say(f"  {name}: {record['contenders'][name]['error']}")
            continue
        cold, cached = zip(*pairs, strict=True)
        record["contenders"][name] = {
            "processes": processes,
            "cold_ms": statistics.median(cold),
            "cached_ms": statistics.median(cached),
        }
    return record


def _pair(name: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        return _process(name, Path(folder)), _process(name, Path(folder))


def _process(name: str, folder: Path) -> float:
    caches = {variable: str(folder / place) for variable, place in _CACHES.items()}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), name, ROW],
        env={**ENVIRONMENT, **os.environ, **caches, **_SETTINGS},
        capture_output=True,
        text=True,
        timeout=_LIMIT,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            return float(json.loads(line.removeprefix(_MARK)))
    lines = (done.stderr.strip() or "the process said nothing").splitlines()
    raise RuntimeError(lines[-1])


def _import_all(name: str) -> None:
    if name == OURS:
        for package in _PACKAGES:
            module = importlib.import_module(package)
            for found in pkgutil.iter_modules(module.__path__, f"{package}."):
                if not found.ispkg and not found.name.endswith("__main__"):
                    _import_if_complete(found.name)
    elif name == "numba":
        import_numba()
    else:
        importlib.import_module(PEERS[name].module)
    for late in _LATE.get(name, ()):
        importlib.import_module(late)


def _import_if_complete(module: str) -> None:
    """Import a module of ours, unless it needs an optional package that is not here."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == OURS:
            raise


def main(name: str, row_name: str) -> None:
    """Measure one first call and print milliseconds."""
    import cupy

    register_plugins()
    _import_all(name)
    (row,) = (row for row in ROWS if row.name == row_name)
    program = row.program
    inputs = [cupy.linspace(low, high, POINTS) for low, high in row.ranges]
    outputs = [cupy.empty(POINTS) for _ in program.outputs]
    if name in ("torch", "jax"):  # their own part of the context
        array = importlib.import_module(PEERS[name].module)
        _ = (array.from_dlpack if name == "torch" else array.dlpack.from_dlpack)(inputs[0]) + 1
    cupy.cuda.runtime.deviceSynchronize()
    problem = Problem(row=row, program=program, inputs=inputs, outputs=outputs)
    make = alkahest_arrays if name == OURS else PEERS[name].make
    start = time.perf_counter()
    contender = make(problem)
    contender.results(contender.run())
    cupy.cuda.runtime.deviceSynchronize()
    print(f"{_MARK}{(time.perf_counter() - start) * 1e3}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
