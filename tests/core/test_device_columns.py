"""Reading one array of a device: its dtype, and the streams of its producer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import fakearrays
import numpy as np
import pytest
from devicebackend import Adder
from fakearrays import CoreBuffer, Interface, JaxArray, Producer, TorchTensor
from refusals import refused

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.expr import ExprPool

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
XS, YS = np.arange(6.0), np.arange(6.0) + 0.5


@pytest.fixture
def weigh(plugin: Adder) -> CompiledFn:
    """``x + 2*y``, where exchanged columns show."""
    return compile_expr(x + 2 * y, [x, y], backend="adder")


# Dtypes


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "f2", "f4"]
)
def test_narrower_columns_are_left_to_the_kernel_to_convert(plugin, weigh, cupy, dtype) -> None:
    xs = XS.astype(dtype)
    result = weigh.call_batch([cupy.asarray(xs), cupy.asarray(YS)])
    assert np.array_equal(result.values, xs.astype(float) + 2 * YS)
    assert plugin.queued[-1].columns[0].dtype == xs.dtype.name


def test_wider_columns_need_same_kind(plugin, cupy) -> None:
    xs = cupy.asarray(XS)
    with refused("E-INPUT-004", "column 0 ('x') has dtype float64, wider than float32"):
        compile_expr(x + 1, [x], backend="adder", dtype="float32")(xs)
    fn = compile_expr(x + 1, [x], backend="adder", dtype="float32", casting="same_kind")
    assert fn(xs).dtype == np.float32


def test_complex_columns_are_never_let_into_real_programs(plugin, cupy) -> None:
    zs = cupy.asarray(XS + 0j)
    with refused("E-INPUT-004", "column 0 ('x') has dtype complex128, float64 is real"):
        compile_expr(x + 1, [x], backend="adder")(zs)
    with refused("E-INPUT-004", "imaginary parts on a device are not looked at"):
        compile_expr(x + 1, [x], backend="adder", casting="same_kind")(zs)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Interface(XS, typestr=">f8"), "byte order is not this machine's"),
        (Interface(XS, mask=Interface(XS)), "it is masked"),
        (Interface(XS, stream=0), "stream 0, which the CUDA array interface forbids"),
        (Interface(XS, typestr="|V8"), "has dtype void64, which is not read"),
        (Interface(XS, data=(XS.ctypes.data + 1, False)), "not aligned to the 8 bytes of float64"),
        (Interface(XS, strides=(12,)), "not aligned"),
        (Interface(XS, data=(0, False)), "its address is 0x0"),
        (Interface(XS, data=(1 << 64, False)), "its address is 0x10000000000000000"),
        (Interface(XS, data=(16, False), strides=(-8,)), "its address is 0x10"),
        (Interface(XS, shape=(-1,)), "its shape is (-1,)"),
        (Interface(XS, shape=(1 << 62,)), "with shape (4611686018427387904,)"),
        (Interface(XS, strides=(8, 8)), "its strides are (8, 8) for the shape (6,)"),
        (Interface(XS, typestr=None), "not understood"),
        (Interface(XS, stream=-1), "it names stream -1, which is none"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(weigh, column, words: str) -> None:
    with refused("E-INPUT-003", "column 1 ('y')", words):
        weigh.call_batch([Producer(XS), column])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"requires_grad": True}, "x.detach()"),
        ({"layout": "sparse"}, "x.to_dense()"),
        ({"conjugated": True}, "x.resolve_conj()"),
        ({"negated": True}, "x.resolve_neg()"),
    ],
)
def test_tensors_that_are_not_plain_memory_are_refused(weigh, torch, change, words) -> None:
    tensor = TorchTensor(XS)
    vars(tensor).update(change)
    with refused("E-INPUT-003", "column 0 ('x')", words):
        weigh(tensor, 1.0)


def test_bytes_of_cuda_core_are_not_taken_for_small_integers(plugin, weigh) -> None:
    memory = CoreBuffer(XS.view(np.int8))
    with (
        fakearrays.installed(fakearrays.cuda_core()),
        refused("E-INPUT-003", "column 0 ('x'): Buffer", "StridedMemoryView.from_buffer"),
    ):
        weigh.call_batch([memory, Producer(YS)])
    assert plugin.queued == []


def test_numbers_wider_than_a_device_has_are_refused_whatever_the_casting(plugin) -> None:
    fn = compile_expr(x + 1, [x], backend="adder", casting="same_kind")
    wide = Interface(XS.astype(np.longdouble))
    with refused("E-INPUT-003", "column 0 ('x') has dtype float128, which no device reads"):
        fn(wide)
    assert plugin.queued == []


@pytest.mark.parametrize("error", [ZeroDivisionError, OSError, MemoryError, StopIteration])
def test_whatever_a_producer_raises_names_the_column(weigh, error) -> None:
    class Broken(Producer):
        def __dlpack__(self, **_: Any) -> Any:
            raise error("the library is out of order")

    class Fading:
        asked = 0

        @property
        def __cuda_array_interface__(self) -> Any:
            self.asked += 1
            if self.asked == 1:
                return Interface(XS).__cuda_array_interface__
            raise error("gone")

    with refused("E-INPUT-003", "column 1 ('y'): Broken cannot be read: the library is out of"):
        weigh.call_batch([Producer(XS), Broken(YS)])
    with refused("E-INPUT-003", "Fading no longer says that it is on a device"):
        weigh.call_batch([Fading(), 1.0])


@pytest.mark.parametrize("place", [(2,), (2, None), (2, "first")])
def test_a_device_that_is_told_wrongly_is_read_from_the_capsule(weigh, place) -> None:
    xs = Producer(XS)
    xs.__dlpack__ = Producer(XS).__dlpack__  # type: ignore[method-assign]
    xs.place = place
    assert np.array_equal(weigh(xs, 1.0).values, XS + 2)


def test_a_producers_own_refusal_is_quoted_and_chained(weigh) -> None:
    class Unwilling(Producer):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("not today")

    with pytest.raises(TypeError, match="Unwilling cannot be read: not today") as caught:
        weigh.call_batch([Unwilling(XS), 1.0])
    assert isinstance(caught.value.__cause__, BufferError)


def test_results_that_jax_would_round_are_refused(plugin, weigh) -> None:
    with (
        fakearrays.installed(fakearrays.jax(x64=False)),
        refused("E-INPUT-004", "results are float64, and jax would hold them as float32"),
    ):
        weigh.call_batch([JaxArray(XS.astype("f4")), 1.0])
    assert plugin.queued == []


# Streams


def test_work_goes_to_the_librarys_current_stream(plugin, weigh, cupy, torch) -> None:
    for module, xs in ((cupy, cupy.asarray(XS)), (torch, TorchTensor(XS))):
        for handle in (0, 0x1230, 2):
            module.use(handle)
            weigh(xs, 1.0)
            batch = plugin.queued[-1]
            assert batch.stream == (handle or 1)
            assert batch.columns[0].stream == batch.stream
            assert batch.columns[0].in_order


def test_the_current_stream_is_that_of_the_columns_device(plugin, weigh, cupy) -> None:
    cupy.use(0x1230, device=0)
    cupy.use(0x4560, device=1)
    weigh(cupy.asarray(XS, device=1), 1.0)
    assert plugin.queued[-1].stream == 0x4560


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (0, 1),
        (1, 1),
        (2, 2),
        (0x1230, 0x1230),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 0x1230)), 0x1230),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 0)), 1),
        (SimpleNamespace(cuda_stream=0x1230), 0x1230),
        (SimpleNamespace(ptr=0x1230), 0x1230),
        (np.int64(0x1230), 0x1230),
    ],
)
def test_the_callers_stream_is_used_and_told_to_producers(plugin, weigh, stream, handle) -> None:
    xs, ys = Producer(XS), Producer(YS)
    weigh.call_batch([xs, ys], stream=stream)
    assert plugin.queued[-1].stream == handle
    assert xs.streams == ys.streams == [handle]


def test_producers_of_no_library_are_told_the_legacy_default_stream(plugin, weigh) -> None:
    xs = Producer(XS)
    weigh(xs, 1.0)
    assert xs.streams == [1]
    assert plugin.queued[-1].stream == 1
    assert not plugin.queued[-1].columns[0].in_order


def test_producers_beside_arrays_of_a_library_are_told_its_stream(weigh, cupy) -> None:
    cupy.use(0x1230)
    ys = Producer(YS)
    weigh.call_batch([cupy.asarray(XS), ys])
    assert ys.streams == [0x1230]


@pytest.mark.parametrize("handle", [None, 1, 2, 0x1230])
def test_the_stream_of_the_array_interface_is_to_be_waited_for(plugin, weigh, handle) -> None:
    weigh.call_batch([Interface(XS, stream=handle), 1.0], stream=0x4560)
    assert plugin.queued[-1].columns[0].stream == handle
    assert plugin.queued[-1].stream == 0x4560


@pytest.mark.parametrize(
    "stream",
    [
        "0",
        1.5,
        True,
        -1,
        1 << 64,
        object(),
        SimpleNamespace(__cuda_stream__=lambda: 5),
        SimpleNamespace(__cuda_stream__=lambda: (0, "handle")),
        SimpleNamespace(__cuda_stream__=lambda: 1 // 0),
    ],
)
def test_what_is_no_stream_is_refused(plugin, weigh, stream) -> None:
    with refused("E-INPUT-008", "not a CUDA stream"):
        weigh.call_batch([Producer(XS), 1.0], stream=stream)
