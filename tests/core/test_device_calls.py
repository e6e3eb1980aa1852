"""Columns that live on a device: what is taken, what comes out, in which shapes and places."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import fakearrays
import numpy as np
import pytest
from arithmetic import Arithmetic
from devicebackend import Adder, DeviceMemory
from fakearrays import (
    CoreView,
    Interface,
    JaxArray,
    NumbaArray,
    Producer,
    TorchTensor,
    on_device,
)
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr, numpy_eval
from alkahest.expr import ExprPool
from alkahest.testing.plugins import isolated_plugins

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
XS, YS = np.arange(6.0), np.arange(6.0) + 0.5


@pytest.fixture
def weigh(plugin: Adder) -> CompiledFn:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y], backend="adder")


def pointers(plugin: Adder) -> list[int]:
    """Addresses that the last call gave to the backend: of columns, then of outputs."""
    batch = plugin.queued[-1]
    return [column.pointer for column in (*batch.columns, *batch.out)]


def address(values: np.ndarray) -> int:
    return values.ctypes.data


# The caller's kind of array, in place


def test_arrays_of_cupy_give_one_without_a_copy(plugin, weigh, cupy) -> None:
    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
    result = weigh.call_batch([xs, ys])
    assert type(result) is cupy.ndarray
    assert np.array_equal(result.values, XS + 2 * YS)
    assert pointers(plugin) == [a.data.ptr for a in (xs, ys, result)]


def test_tensors_give_a_tensor_without_a_copy(plugin, weigh, torch) -> None:
    xs, ys = TorchTensor(XS), TorchTensor(YS)
    result = weigh(xs, ys)
    assert type(result) is torch.Tensor
    assert np.array_equal(result.values, XS + 2 * YS)
    assert pointers(plugin) == [t.data_ptr() for t in (xs, ys, result)]


def test_arrays_of_jax_are_handed_memory_of_the_backend(plugin, weigh) -> None:
    xs, ys = JaxArray(XS), JaxArray(YS)
    with fakearrays.installed(fakearrays.jax()):
        result = weigh.call_batch([xs, ys])
    assert type(result) is JaxArray
    assert np.array_equal(result.source.values, XS + 2 * YS)
    assert pointers(plugin)[:2] == [address(XS), address(YS)]


def test_views_of_cuda_core_are_handed_memory_of_the_backend(plugin, weigh) -> None:
    xs, ys = CoreView(XS), CoreView(np.repeat(YS, 2)[::2])
    with fakearrays.installed(fakearrays.cuda_core()):
        result = weigh.call_batch([xs, ys])
    assert type(result) is CoreView
    assert np.array_equal(result.source.values, XS + 2 * YS)
    assert pointers(plugin)[:2] == [xs.ptr, ys.ptr]
    assert [column.strides for column in plugin.queued[-1].columns] == [(8,), (16,)]


def test_arrays_of_numba_are_handed_memory_of_the_backend(plugin, weigh) -> None:
    with fakearrays.installed(fakearrays.numba()):
        result = weigh.call_batch([NumbaArray(XS), NumbaArray(YS)])
    assert type(result) is NumbaArray
    assert np.array_equal(result.source.values, XS + 2 * YS)
    assert result.stream is None  # numba's word for the legacy default stream


def test_objects_of_no_library_give_what_the_backend_allocated(weigh) -> None:
    for xs, ys in ((Producer(XS), Producer(YS)), (Interface(XS), Interface(YS))):
        result = weigh.call_batch([xs, ys])
        assert type(result) is DeviceMemory
        assert np.array_equal(result.values, XS + 2 * YS)


def test_the_first_array_decides_the_kind(weigh, cupy, torch) -> None:
    xs, ys = cupy.asarray(XS), TorchTensor(YS)
    assert type(weigh(xs, ys)) is cupy.ndarray
    assert type(weigh(ys, xs)) is torch.Tensor
    assert type(weigh(1.0, ys)) is torch.Tensor


def test_classes_derived_from_a_librarys_are_of_that_library(weigh, torch) -> None:
    derived = type("Parameter", (TorchTensor,), {"__module__": "mine"})
    assert type(weigh(derived(XS), derived(YS))) is torch.Tensor


def test_several_expressions_give_a_tuple_and_conditions_truth_values(plugin, cupy) -> None:
    fn = compile_expr([x + y, pool.lt(x, y)], [x, y], backend="adder")
    total, less = fn.call_batch([cupy.asarray(XS), cupy.asarray(XS[::-1])])
    assert np.array_equal(total.values, np.full(6, 5.0))
    assert less.dtype == np.bool_
    assert less.values.tolist() == [True] * 3 + [False] * 3


def test_versions_of_dlpack_before_1_are_read(weigh) -> None:
    result = weigh.call_batch([Producer(XS, versioned=False), Producer(YS)])
    assert np.array_equal(result.values, XS + 2 * YS)


def test_managed_memory_is_taken_where_the_driver_says_it_is(plugin, weigh) -> None:
    result = weigh.call_batch([Producer(XS, fakearrays.MANAGED, 7), Producer(YS)])
    assert np.array_equal(result.values, XS + 2 * YS)
    assert plugin.queued[-1].device == 0


def test_page_locked_memory_is_host_memory(plugin, weigh) -> None:
    result = weigh.call_batch([Producer(XS, 3), Producer(YS, 11)])
    assert np.array_equal(result, XS + 2 * YS)
    assert plugin.queued == []


def test_a_capsule_is_taken_once(plugin, weigh) -> None:
    capsule = on_device(XS.__dlpack__())
    assert np.array_equal(weigh.call_batch([capsule, Producer(YS)]).values, XS + 2 * YS)
    assert pointers(plugin)[0] == address(XS)
    with refused("E-INPUT-003", "column 0 ('x')", "has been used already"):
        weigh.call_batch([capsule, Producer(YS)])
    host = XS.__dlpack__()
    assert np.array_equal(weigh.call_batch([host, YS]), XS + 2 * YS)
    with refused("E-INPUT-003", "has been used already"):
        weigh.call_batch([host, YS])


def test_memory_lives_as_long_as_the_backend_holds_the_column(plugin, weigh) -> None:
    values = np.arange(6.0)
    gone = weakref.ref(values)
    weigh.call_batch([Producer(values), Producer(YS)])
    del values
    gc.collect()
    assert gone() is not None
    plugin.queued.clear()
    gc.collect()
    assert gone() is None


# Shapes and layouts


@pytest.mark.parametrize("view", ["[::2]", "[::-1]", "[1:]", "[3:0:-2]"])
def test_views_are_described_by_their_strides(plugin, weigh, cupy, view: str) -> None:
    values = eval(f"XS{view}")
    xs = eval(f"cupy.asarray(XS){view}", {"cupy": cupy, "XS": XS})
    result = weigh.call_batch([xs, cupy.asarray(YS[: len(values)])])
    assert np.array_equal(result.values, values + 2 * YS[: len(values)])
    assert plugin.queued[-1].columns[0].strides == values.strides
    assert pointers(plugin)[0] == xs.data.ptr


def test_shapes_broadcast_by_strides_of_0(plugin, weigh, cupy) -> None:
    table, row = cupy.asarray(XS.reshape(3, 2)), cupy.asarray(YS[:2])
    result = weigh(table, row)
    assert np.array_equal(result.values, XS.reshape(3, 2) + 2 * YS[:2])
    assert [c.strides for c in plugin.queued[-1].columns] == [(16, 8), (0, 8)]
    column = cupy.asarray(YS[:3, None])
    assert np.array_equal(weigh(table, column).values, XS.reshape(3, 2) + 2 * YS[:3, None])
    with refused("E-INPUT-002", "do not broadcast", "column 0 ('x') (3, 2)"):
        weigh(table, cupy.asarray(YS[:3]))


def test_a_batch_takes_1d_columns_of_one_length_and_0d_arrays(plugin, weigh, cupy) -> None:
    xs = cupy.asarray(XS)
    scalar = cupy.asarray(np.array(3.0))
    assert np.array_equal(weigh.call_batch([xs, scalar]).values, XS + 6)
    with refused("E-INPUT-005", "column 1 ('y') has shape (3, 2)"):
        weigh.call_batch([xs, cupy.asarray(XS.reshape(3, 2))])
    with refused("E-INPUT-002", "column 1 ('y') has 1 rows, column 0 ('x') has 6"):
        weigh.call_batch([xs, cupy.asarray(YS[:1])])
    with refused("E-INPUT-006", "n=5"):
        weigh.call_batch([xs, xs], n=5)
    with refused("E-INPUT-001", "got 1"):
        weigh.call_batch([xs])
    with refused("E-INPUT-011", "n must be"):
        weigh.call_batch([xs, xs], n=-1)


@pytest.mark.parametrize("scalar", [3, 3.0, True, np.float32(3), np.array(3), np.int8(3)])
def test_numbers_of_the_host_stand_beside_columns(plugin, weigh, cupy, scalar) -> None:
    result = weigh(cupy.asarray(XS), scalar)
    assert np.array_equal(result.values, XS + 2 * float(scalar))
    value = plugin.queued[-1].columns[1]
    assert (value.shape, value.dtype) == ((), np.float64)


def test_empty_columns_give_empty_results(weigh, cupy) -> None:
    assert weigh.call_batch([cupy.asarray(XS[:0]), 1.0]).shape == (0,)
    assert weigh(cupy.asarray(XS[:0].reshape(0, 3)), 1.0).shape == (0, 3)


# Places


@pytest.mark.parametrize("other", [XS, [1.0] * 6, (1.0,) * 6])
def test_columns_in_host_memory_beside_some_on_a_device_are_refused(weigh, cupy, other) -> None:
    words = "column 1 ('y') is a cupy.ndarray on a device (CUDA) while column 0 ('x') is in host"
    with refused("E-INPUT-010", words):
        weigh.call_batch([other, cupy.asarray(YS)])


def test_buffers_in_host_memory_beside_columns_on_a_device_are_refused(weigh, cupy) -> None:
    with refused("E-INPUT-010", "column 1 ('y') is in host memory"):
        weigh.call_batch([cupy.asarray(XS), memoryview(YS)])


def test_columns_of_two_devices_are_refused_by_name(plugin, weigh, cupy) -> None:
    with refused("E-INPUT-010", "column 1 ('y') is on device 1, column 0 ('x') is on device 0"):
        weigh.call_batch([cupy.asarray(XS), cupy.asarray(YS, device=1)])
    with refused("E-INPUT-010", "column 0 ('x') is on device 0, the call is for device 1"):
        weigh.call_batch([cupy.asarray(XS), cupy.asarray(YS)], device=1)
    assert plugin.queued == []


def test_columns_of_another_device_run_there(plugin, weigh, cupy) -> None:
    result = weigh.call_batch([cupy.asarray(XS, device=1), cupy.asarray(YS, device=1)])
    assert result.data.device_id == 1
    assert plugin.queued[-1].device == 1
    assert weigh.report["device"] == 1


def test_the_driver_is_asked_where_the_protocol_does_not_tell(plugin, cupy) -> None:
    plugin.owner = 1
    fn = compile_expr(x + 2 * y, [x, y], backend="adder")
    with refused("E-INPUT-010", "column 1 ('y') is on device 1, column 0 ('x') is on device 0"):
        fn.call_batch([cupy.asarray(XS), Interface(YS)])


def test_devices_of_other_makers_are_refused(weigh) -> None:
    words = "backend 'adder' takes columns in host memory or on cuda"
    with refused("E-INPUT-010", "column 0 ('x')", "DLPack type 10", words):
        weigh.call_batch([Producer(XS, 10), Producer(YS, 10)])


def test_every_device_at_once_takes_no_columns_on_one(weigh, cupy) -> None:
    with refused("E-INPUT-010", 'device="all"'):
        weigh.call_batch([cupy.asarray(XS), 1.0], device="all")


def test_auto_goes_where_the_columns_are(plugin, cupy) -> None:
    with isolated_plugins(plugin, Arithmetic()):
        fn = compile_expr(x + 2 * y, [x, y])
        assert np.array_equal(fn.call_batch([XS, YS]), XS + 2 * YS)
        assert fn.report["backend"] == "arithmetic"
        result = fn.call_batch([cupy.asarray(XS), 2.0])
        assert np.array_equal(result.values, XS + 4)
        assert fn.report["backend"] == "adder"
        assert fn.report["reason"] == "columns on cuda"


def test_a_host_backend_takes_no_columns_on_a_device(cupy) -> None:
    with isolated_plugins(Arithmetic()):
        fn = compile_expr(x + 2 * y, [x, y], backend="arithmetic")
        with refused("E-INPUT-010", "column 0 ('x')", "on a device (CUDA)"):
            fn.call_batch([cupy.asarray(XS), cupy.asarray(YS)])


def test_numpy_eval_makes_no_array_of_columns_on_a_device(weigh, cupy) -> None:
    with refused("E-INPUT-010", "numpy_eval gives NumPy arrays"):
        numpy_eval(weigh, cupy.asarray(XS), 1.0)


# The fast way


def test_the_fast_call_is_tried_once_a_call_has_succeeded(plugin, cupy) -> None:
    asked = []

    def fast(*columns: Any, out: Any, stream: Any) -> Any:
        asked.append((columns, out, stream))
        return NotImplemented if out is None else ((out,), 6, {"kind": "fast"})

    plugin.fast = fast
    fn = compile_expr(x + 2 * y, [x, y], backend="adder")
    xs, out = cupy.asarray(XS), cupy.empty(6)
    fn(xs, xs, out=out)
    assert asked == []
    assert fn(xs, xs, out=out) is out
    assert fn.report["kind"] == "fast"
    assert fn.report["n"] == 6
    assert np.array_equal(fn.call_batch([xs, xs]).values, 3 * XS)
    assert fn.report["kind"] == "adder"
    assert asked == [((xs, xs), out, None), ((xs, xs), None, None)]


def test_no_library_is_imported_for_its_arrays(weigh, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = {"cupy", "torch", "jax", "numba"}
    for name in libraries:  # plugins and other tests may have imported one already
        monkeypatch.delitem(sys.modules, name, raising=False)
    weigh.call_batch([Interface(XS), 1.0])
    assert not libraries & sys.modules.keys()
