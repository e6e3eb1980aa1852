"""Arrays of CuPy, PyTorch, JAX and numba where they are; a library that is absent is a skip."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gpuarrays import MAKERS, Arrays

import alkahest as ak
from alkahest.backends.nvptx.arrays import DeviceArrayEvaluator
from alkahest.plugin import DeviceBatch, DeviceColumn

XS = np.linspace(-3.0, 3.0, 100_001)
YS = np.linspace(5.0, -5.0, 100_001)

x, y = ak.symbols("x y")


@pytest.fixture(params=MAKERS)
def arrays(request: pytest.FixtureRequest) -> Arrays:
    """Each library in turn."""
    return MAKERS[request.param]()


@pytest.fixture
def fn() -> ak.CompiledFn:
    return ak.compile_cuda(x + 2 * y, [x, y])


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DeviceBatch]]:
    """Every batch that reaches the device with everything checked."""
    seen: list[DeviceBatch] = []
    evaluate = DeviceArrayEvaluator.evaluate

    def spy(self: DeviceArrayEvaluator, batch: DeviceBatch) -> dict[str, Any]:
        seen.append(batch)
        return evaluate(self, batch)

    monkeypatch.setattr(DeviceArrayEvaluator, "evaluate", spy)
    yield seen
    seen.clear()


def addresses(batch: DeviceBatch) -> list[int]:
    columns = [c for c in batch.columns if isinstance(c, DeviceColumn)]
    return [column.pointer for column in (*columns, *batch.out)]


def equal(got: np.ndarray, want: np.ndarray) -> bool:
    """``2*y`` is exact, so that ``x + 2*y`` has one right value."""
    return np.array_equal(got, want)


# Kinds, addresses, values


def test_the_callers_kind_comes_out_and_nothing_is_copied(fn, arrays: Arrays, batches) -> None:
    xs, ys = arrays.make(XS), arrays.make(YS)
    result = fn.call_batch([xs, ys])
    assert isinstance(result, arrays.kind)
    assert equal(arrays.back(result), XS + 2 * YS)
    assert addresses(batches[0]) == [arrays.pointer(a) for a in (xs, ys, result)]
    assert fn.report["launches"] == 1


def test_repeated_calls_give_the_same_bits(fn, arrays: Arrays) -> None:
    xs, ys = arrays.make(XS), arrays.make(YS)
    first = arrays.back(fn.call_batch([xs, ys]))
    for _ in range(5):
        assert np.array_equal(arrays.back(fn.call_batch([xs, ys])), first)
    assert np.array_equal(arrays.back(fn(ys, xs)), arrays.back(fn.call_batch([ys, xs])))


def test_auto_goes_to_the_device_without_any_option(arrays: Arrays) -> None:
    fn = ak.compile_expr(x + 2 * y, [x, y])
    result = fn(arrays.make(XS), 0.5)
    assert isinstance(result, arrays.kind)
    assert fn.report["backend"] == "nvptx"
    assert equal(arrays.back(result), XS + 1)


def test_results_go_to_out(fn, arrays: Arrays, batches) -> None:
    out = arrays.make(np.zeros_like(XS))
    columns = [arrays.make(XS), arrays.make(YS)]
    if arrays.library.__name__ == "jax":
        with pytest.raises(ak.AlkahestError, match="read-only") as caught:
            fn.call_batch(columns, out=out)
        assert caught.value.code == "E-INPUT-009"
        return
    assert fn.call_batch(columns, out=out) is out
    assert addresses(batches[0])[2] == arrays.pointer(out)
    assert equal(arrays.back(out), XS + 2 * YS)


def test_arrays_of_another_shape_broadcast(fn, arrays: Arrays) -> None:
    table, row = XS[:600].reshape(30, 20), YS[:20]
    result = fn(arrays.make(table), arrays.make(row))
    assert equal(arrays.back(result), table + 2 * row)
    assert equal(arrays.back(fn(arrays.make(table), 3)), table + 6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32"])
def test_narrower_columns_are_converted_by_the_kernel(fn, arrays: Arrays, batches, dtype) -> None:
    values = (np.abs(XS) * 10).astype(dtype)
    column = arrays.make(values)
    result = fn.call_batch([column, arrays.make(YS)])
    assert equal(arrays.back(result), values.astype(float) + 2 * YS)
    assert addresses(batches[0])[0] == arrays.pointer(column)


def test_empty_and_single_batches(fn, arrays: Arrays) -> None:
    assert arrays.back(fn.call_batch([arrays.make(XS[:0]), 1.0])).shape == (0,)
    assert equal(
        arrays.back(fn.call_batch([arrays.make(XS[:1]), arrays.make(YS[:1])])), XS[:1] + 10
    )


def test_derivatives_come_out_on_the_device(arrays: Arrays) -> None:
    fn = ak.compile_expr(x * x * y, [x, y], derivatives=2)
    results = fn(arrays.make(XS), arrays.make(YS))
    value, gradient, hessian = map(arrays.back, results)
    assert all(isinstance(result, arrays.kind) for result in results)
    assert np.allclose(value, XS * XS * YS, rtol=1e-14)
    assert np.allclose(gradient, [2 * XS * YS, XS * XS], rtol=1e-14)
    assert np.allclose(hessian, [[2 * YS, 2 * XS], [2 * XS, 0 * XS]], rtol=1e-14)


def test_columns_in_host_memory_beside_some_on_the_device_are_refused(fn, arrays: Arrays) -> None:
    with pytest.raises(ak.AlkahestError, match=r"column 1 \('y'\)|column 0 \('x'\)") as caught:
        fn.call_batch([arrays.make(XS), YS])
    assert caught.value.code == "E-INPUT-010"


def test_one_array_may_be_two_columns(fn, arrays: Arrays) -> None:
    xs = arrays.make(XS)
    assert equal(arrays.back(fn(xs, xs)), 3 * XS)


def test_results_outlive_the_function_and_the_columns(arrays: Arrays) -> None:
    fn = ak.compile_cuda(x + 2 * y, [x, y])
    xs, ys = arrays.make(XS), arrays.make(YS)
    results = [fn.call_batch([xs, ys]) for _ in range(3)]
    del fn, xs, ys
    gc.collect()
    others = [arrays.make(np.full_like(XS, k)) for k in range(6)]
    assert all(equal(arrays.back(result), XS + 2 * YS) for result in results)
    assert len(others) == 6


def test_fresh_threads_evaluate_arrays(fn, arrays: Arrays) -> None:
    def work(k: int) -> bool:
        xs = arrays.make(XS + k)
        return equal(arrays.back(fn.call_batch([xs, arrays.make(YS)])), XS + k + 2 * YS)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(12)))


# Layouts


@pytest.mark.sanitize
@pytest.mark.parametrize("n", [1, 2, 3, 129, 257, 10_001])
@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_views_of_cupy_are_read_and_written_where_they_are(fn, cupy, batches, n, step) -> None:
    memory = np.arange(4.0 * n)
    frame = cupy.full(4 * n + 8, -1.0)
    start = 0 if step > 0 else len(memory) - 1
    view = slice(start, None, step)
    xs, out = cupy.asarray(memory)[view][:n], frame[4:-4][view][:n]
    fn.call_batch([xs, 1.0], out=out)
    assert addresses(batches[0]) == [xs.data.ptr, out.data.ptr]
    want = np.full(4 * n + 8, -1.0)
    want[4:-4][view][:n] = memory[view][:n] + 2
    assert np.array_equal(cupy.asnumpy(frame), want)


def test_columns_of_a_table_and_transposed_tensors_are_read_in_place(fn, torch, batches) -> None:
    table = np.arange(8.0).reshape(4, 2)
    tensor = torch.tensor(table, device="cuda")
    assert fn(tensor[:, 0], tensor[:, 1]).tolist() == (table[:, 0] + 2 * table[:, 1]).tolist()
    assert addresses(batches[0])[:2] == [tensor.data_ptr(), tensor.data_ptr() + 8]
    assert np.array_equal(fn(tensor.T, 0.0).cpu().numpy(), table.T)
    assert np.array_equal(fn(tensor.expand(3, 4, 2), 0.0).cpu().numpy(), np.array([table] * 3))


def test_a_view_that_is_not_aligned_to_16_bytes_is_computed(fn, cupy) -> None:
    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
    for n in (1, 2, 3, 1000, 100_000):
        got = fn(xs[1 : n + 1], ys[1 : n + 1])
        assert equal(cupy.asnumpy(got), (XS + 2 * YS)[1 : n + 1])


def test_an_output_may_be_a_column(fn, cupy) -> None:
    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
    assert fn(xs, ys, out=ys) is ys
    assert equal(cupy.asnumpy(ys), XS + 2 * YS)
    with pytest.raises(ak.AlkahestError, match="shares memory with column 0"):
        fn(xs[:-1], 1.0, out=xs[1:])


def test_managed_memory_is_an_array_of_the_device(fn, cupy) -> None:
    memory = cupy.cuda.malloc_managed(8 * len(XS))
    xs = cupy.ndarray(len(XS), memptr=memory)
    xs[...] = cupy.asarray(XS)
    assert xs.__dlpack_device__()[0] == 13
    assert equal(cupy.asnumpy(fn(xs, 1.0)), XS + 2)


def test_views_of_cuda_core_come_back_as_views(fn, cupy) -> None:
    from cuda.core.utils import StridedMemoryView

    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
    cupy.cuda.Device().synchronize()
    views = [StridedMemoryView.from_any_interface(a, stream_ptr=-1) for a in (xs, ys)]
    result = fn.call_batch(views)
    assert isinstance(result, StridedMemoryView)
    assert equal(cupy.asnumpy(cupy.from_dlpack(result)), XS + 2 * YS)


def test_six_hundred_columns_go_through_a_table(cupy) -> None:
    symbols = [ak.symbols(f"x{k}")[0] for k in range(600)]
    fn = ak.compile_cuda(symbols[0].pool.add(symbols), symbols)
    columns = [cupy.arange(300.0) * k for k in range(600)]
    want = np.arange(300.0) * (599 * 600 // 2)
    assert np.array_equal(cupy.asnumpy(fn.call_batch(columns)), want)
    columns[1] = 2.0
    assert np.array_equal(cupy.asnumpy(fn.call_batch(columns)), want - np.arange(300.0) + 2)


# Devices, capsules, addresses


def test_columns_of_two_devices_are_refused(fn, cupy, devices: int) -> None:
    if devices < 2:
        pytest.skip("columns on two devices need two devices, here is one")
    xs = cupy.asarray(XS)
    with cupy.cuda.Device(1):
        ys = cupy.asarray(YS)
    with pytest.raises(ak.AlkahestError, match="is on device 1, column 0") as caught:
        fn.call_batch([xs, ys])
    assert caught.value.code == "E-INPUT-010"
    result = fn(ys, 0.0)
    assert result.data.device_id == 1
    with cupy.cuda.Device(1):
        assert np.array_equal(cupy.asnumpy(result), YS)
    assert fn.report["device"] == 1


def test_a_capsule_is_read_once(fn, torch) -> None:
    tensor = torch.tensor(XS, device="cuda")
    capsule = tensor.__dlpack__()
    result = fn.call_batch([capsule, 1.0])
    assert equal(torch.from_dlpack(result).cpu().numpy(), XS + 2)
    with pytest.raises(ak.AlkahestError, match="has been used already") as caught:
        fn.call_batch([capsule, 1.0])
    assert caught.value.code == "E-INPUT-003"


def test_tensors_that_need_gradients_are_refused(fn, torch) -> None:
    tensor = torch.tensor(XS, device="cuda", requires_grad=True)
    with pytest.raises(ak.AlkahestError, match=r"pass x\.detach\(\)") as caught:
        fn(tensor, 1.0)
    assert caught.value.code == "E-INPUT-003"
    assert equal(fn(tensor.detach(), 1.0).cpu().numpy(), XS + 2)


@pytest.mark.sanitize
def test_addresses_are_evaluated_on_the_stream_asked_for(fn, cupy) -> None:
    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
    out = cupy.zeros(len(XS))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    n = len(XS) - 1
    fn.call_device_ptrs([xs.data.ptr, ys.data.ptr], n, [out.data.ptr], stream=stream)
    stream.synchronize()
    assert equal(cupy.asnumpy(out[:n]), (XS + 2 * YS)[:n])
    assert float(out[n]) == 0


def test_repeated_calls_with_arrays_of_cupy_take_the_short_way(fn, cupy, batches) -> None:
    xs, ys, out = cupy.ones(1000), cupy.ones(1000), cupy.zeros(1000)
    fn(xs, ys, out=out)
    assert len(batches) == 1
    for k in range(3):
        fn(xs + k, ys, out=out)
        assert float(out[999]) == 3 + k
    assert len(batches) == 1
