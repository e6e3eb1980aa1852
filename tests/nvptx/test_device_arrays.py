"""Arrays where they are, on the emulated device: the public functions, real kernels, real numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import attrs
import fakearrays
import numpy as np
import pytest
from fakearrays import Interface, NumbaArray, Producer

import alkahest as ak
from alkahest.backends.nvptx.emulate import EmulatedEvaluator, HostMemory
from alkahest.backends.nvptx.lowerings import SUPPORT
from alkahest.plugin import (
    PLUGIN_API,
    Artifact,
    BackendInfo,
    DeviceInfo,
    Feature,
    Probe,
    hookimpl,
)
from alkahest.program import Program
from alkahest.testing.plugins import isolated_plugins

x, y = ak.symbols("x y")
WAVE = ak.sin(x) * ak.cos(y) + ak.exp(-x * x)
XS = np.linspace(-2.0, 2.0, 60)
YS = np.linspace(3.0, 1.0, 60)


def wave(xs: Any, ys: Any) -> np.ndarray:
    return np.sin(xs) * np.cos(ys) + np.exp(-xs * xs)


@attrs.define
class Emulated:
    """A plugin whose only backend is the emulated device."""

    ALKAHEST_PLUGIN_API = PLUGIN_API

    @hookimpl
    def alkahest_register_backends(self) -> list[BackendInfo]:
        feature = Feature(name="emulated.compile", probe=lambda: Probe(ok=True))
        return [
            BackendInfo(
                name="emulated", features=(feature,), support=lambda: SUPPORT, placement="cuda"
            )
        ]

    @hookimpl
    def alkahest_codegen(
        self, backend: str, program: Program, target: str | None, options: Mapping[str, Any]
    ) -> Artifact:
        return Artifact(kind="program", code="", program=program)

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> EmulatedEvaluator:
        return EmulatedEvaluator(artifact.program)

    @hookimpl
    def alkahest_devices(self, backend: str) -> tuple[DeviceInfo, ...]:
        return (DeviceInfo(ordinal=0, name="emulated"),)


@pytest.fixture(autouse=True)
def emulated() -> Iterator[None]:
    with isolated_plugins(Emulated()):
        yield


@pytest.fixture
def cupy() -> Iterator[ModuleType]:
    module = fakearrays.cupy()
    with fakearrays.installed(module):
        yield module


@pytest.fixture
def fn() -> ak.CompiledFn:
    return ak.compile_expr(WAVE, [x, y])


def near(got: np.ndarray, want: np.ndarray) -> bool:
    return got.shape == want.shape and bool(np.allclose(got, want, rtol=1e-14, atol=1e-15))


def test_arrays_of_any_kind_give_their_kind_and_right_values(fn, cupy) -> None:
    result = fn(cupy.asarray(XS), cupy.asarray(YS))
    assert type(result) is cupy.ndarray
    assert near(result.values, wave(XS, YS))
    result = fn(Producer(XS), Interface(YS))
    assert type(result) is HostMemory
    assert near(result.array, wave(XS, YS))
    with fakearrays.installed(fakearrays.numba()):
        result = fn(NumbaArray(XS), 0.5)
    assert type(result) is NumbaArray
    assert near(result.source.array, wave(XS, 0.5))


@pytest.mark.parametrize("view", ["[::2]", "[::-1]", "[1:]", "[40:4:-3]"])
def test_views_are_evaluated_where_they_are(fn, cupy, view: str) -> None:
    def cut(array: Any) -> Any:
        return eval(f"array{view}", {"array": array})

    result = fn(cut(cupy.asarray(XS)), cut(cupy.asarray(YS)))
    assert near(result.values, wave(cut(XS), cut(YS)))


def test_shapes_broadcast(fn, cupy) -> None:
    result = fn(cupy.asarray(XS.reshape(12, 5)), cupy.asarray(YS[:12, None]))
    assert near(result.values, wave(XS.reshape(12, 5), YS[:12, None]))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "int64", "float16", "float32"])
def test_columns_of_other_dtypes_are_converted_by_the_kernel(fn, cupy, dtype: str) -> None:
    values = np.abs(XS).astype(dtype)
    result = fn.call_batch([cupy.asarray(values), cupy.asarray(YS)])
    assert near(result.values, wave(values.astype(float), YS))


def test_derivatives_are_written_by_one_kernel(cupy) -> None:
    fn = ak.compile_expr(ak.sin(x) * y, [x, y], derivatives=2)
    value, gradient, hessian = fn(cupy.asarray(XS), cupy.asarray(YS))
    assert near(value.values, np.sin(XS) * YS)
    assert near(gradient.values, np.array([np.cos(XS) * YS, np.sin(XS)]))
    assert near(
        hessian.values,
        np.array([[-np.sin(XS) * YS, np.cos(XS)], [np.cos(XS), np.zeros_like(XS)]]),
    )


def test_out_may_be_a_column_or_strided(fn, cupy) -> None:
    xs = cupy.asarray(XS)
    fn(xs, cupy.asarray(YS), out=xs)
    assert near(xs.values, wave(XS, YS))
    frame = np.full((60, 3), -1.0)
    out = cupy.asarray(frame[:, 1])
    out.values, out.data.ptr = frame[:, 1], frame[:, 1].ctypes.data
    fn(cupy.asarray(XS), 2, out=out)
    assert near(frame[:, 1], wave(XS, 2.0))
    assert (frame[:, ::2] == -1).all()


def test_conditions_come_out_as_truth_values(cupy) -> None:
    fn = ak.compile_expr([ak.Lt(x, y), x + y], [x, y])
    less, total = fn(cupy.asarray(XS), cupy.asarray(YS[::-1]))
    assert np.array_equal(less.values, YS[::-1] > XS)
    assert np.array_equal(total.values, XS + YS[::-1])


def test_float32_programs_take_float64_columns_where_rounding_is_asked_for(cupy) -> None:
    fn = ak.compile_expr(x * y, [x, y], dtype="float32", casting="same_kind")
    result = fn(cupy.asarray(XS), cupy.asarray(YS.astype("f4")))
    assert result.dtype == np.float32
    assert np.array_equal(result.values, XS.astype("f4") * YS.astype("f4"))
