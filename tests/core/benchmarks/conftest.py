"""The benchmark without a device: CuPy is played by NumPy, and so is our own backend.

What is left is everything that can go wrong before a number is printed: the formulae as other
compilers see them, the checks, who is left out and why, the tables.
"""

from __future__ import annotations

import ctypes
import math
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from gpu_benchmark import contenders, statements  # noqa: E402 - needs the path

import alkahest  # noqa: E402
from alkahest.program import Program, lower  # noqa: E402

NUMPY_NAMES = types.SimpleNamespace(
    **vars(np), erf=np.vectorize(math.erf), erfc=np.vectorize(math.erfc)
)
"""NumPy's names and the two functions that it lacks."""


class DeviceArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of the pretended device."""

    def get(self) -> np.ndarray[Any, np.dtype[Any]]:
        return np.array(self)

    @property
    def data(self) -> Any:  # type: ignore[override]
        return types.SimpleNamespace(ptr=self.ctypes.data)


def _on_device(array: Any) -> DeviceArray:
    return np.asarray(array).view(DeviceArray)


class FakeEvent:
    """An event that remembers when it was recorded."""

    def record(self) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        pass


class FakeElementwiseKernel:
    """Runs statements of CUDA C++ that are also Python once types and semicolons are gone."""

    def __init__(self, inputs: str, outputs: str, body: str, name: str) -> None:
        self._names = [part.split()[1] for part in inputs.split(", ")]
        self._outputs = [part.split()[1] for part in outputs.split(", ")]
        self._code = body.replace("double ", "").replace(";", "")

    def __call__(self, *arrays: Any) -> Any:
        known: dict[str, Any] = {
            **vars(NUMPY_NAMES),
            **dict(zip(self._names, arrays, strict=False)),
        }
        exec(self._code, known)
        results = [known[name] for name in self._outputs]
        for target, result in zip(arrays[len(self._names) :], results, strict=False):
            target[...] = result
        return results[0]


class _Random:
    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def random(self, n: int) -> DeviceArray:
        return _on_device(self._generator.random(n))


class _Pinned:
    def __init__(self, size: int) -> None:
        self._memory = ctypes.create_string_buffer(size)
        self.ptr = ctypes.addressof(self._memory)


class _Stream:
    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def synchronize(self) -> None:
        pass


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module ``cupy`` with what the benchmark uses of it."""
    module: Any = types.ModuleType("cupy")
    for name in "arange array empty full linspace asarray from_dlpack".split():
        make = getattr(np, name)
        setattr(module, name, lambda *a, make=make, **k: _on_device(make(*a, **k)))
    for name in "abs isnan copyto empty_like float64 uint8 uint64".split():
        setattr(module, name, getattr(np, name))
    module.asnumpy = np.array
    module.random = types.SimpleNamespace(default_rng=_Random)
    module.ElementwiseKernel = FakeElementwiseKernel
    module.get_default_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)
    runtime = types.SimpleNamespace(
        memGetInfo=lambda: (1 << 24, 1 << 24),
        deviceSynchronize=lambda: None,
        getDeviceCount=lambda: 1,
        CUDARuntimeError=RuntimeError,
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        memcpyAsync=lambda target, source, size, kind, stream: ctypes.memmove(target, source, size),
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 12090,
        getDeviceProperties=lambda number: {
            "name": b"Pretended GPU",
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 132,
            "totalGlobalMem": 141 << 30,
        },
    )
    module.cuda = types.SimpleNamespace(
        runtime=runtime,
        Event=FakeEvent,
        Stream=_Stream,
        get_elapsed_time=lambda start, stop: (stop.time - start.time) * 1e3,
        alloc_pinned_memory=_Pinned,
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module  # type: ignore[no-any-return]


class NumpyFunction:
    """Evaluates a program with the very statements that peers get."""

    def __init__(self, program: Program, single: bool) -> None:
        source = statements.array_function(program)
        self._function = contenders.define("function", source, m=NUMPY_NAMES)
        self._single = single
        self.report: dict[str, Any] = {"device_name": "pretended"}

    def __call__(self, *columns: Any, out: Any = None) -> Any:
        results = self._function(*columns)
        if out is not None:
            for target, result in zip([out] if self._single else out, results, strict=True):
                target[...] = result
        return results[0] if self._single else results


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """``alkahest.compile_expr`` for both backends that the benchmark names."""

    def compile_expr(expr: Any, inputs: Any, *, backend: str, **options: Any) -> NumpyFunction:
        assert backend in ("nvptx", "cpu-reference")
        single = not isinstance(expr, Sequence)
        return NumpyFunction(lower([expr] if single else expr, inputs), single)

    monkeypatch.setattr(alkahest, "compile_expr", compile_expr, raising=False)
    monkeypatch.setattr(contenders, "register_plugins", lambda: None)
