"""``device="all"`` on the devices that are here, one or several."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import alkahest as ak

N = 3_000_001


@pytest.fixture(scope="module")
def columns() -> tuple[np.ndarray, np.ndarray]:
    xs, ys = np.random.default_rng(7).normal(size=(2, N))
    return xs, ys


@pytest.fixture
def fn() -> ak.CompiledFn:
    x, y = ak.symbols("x y")
    return ak.compile_cuda([ak.sin(x) * y, ak.Lt(x, y)], [x, y])


@pytest.mark.parametrize(
    "n", [*(pytest.param(n, marks=pytest.mark.sanitize) for n in (0, 1, 7, 1001)), N]
)
def test_all_devices_together_give_the_bits_of_one(fn, columns, devices: int, n: int) -> None:
    part = [column[:n] for column in columns]
    want = fn.call_batch(part)
    got = fn.call_batch(part, device="all")
    assert [values.tobytes() for values in got] == [values.tobytes() for values in want]
    facts = fn.report["devices"]
    assert [fact["device"] for fact in facts] == list(range(max(1, min(n, devices))))
    assert sum(fact["n"] for fact in facts) == n


def test_results_land_in_the_callers_arrays_whatever_their_strides(fn, columns) -> None:
    xs, ys = columns
    values, less = np.full(2 * N, -7.0), np.zeros(3 * N, bool)
    fn.call_batch([xs[::-1], ys], device="all", out=[values[::2], less[1::3]])
    want = fn.call_batch([xs[::-1].copy(), ys])
    assert np.array_equal(values[::2], want[0])
    assert np.array_equal(less[1::3], want[1])
    assert (values[1::2] == -7).all()
    assert not less[::3].any()


def test_eight_callers_at_once_share_all_devices(fn, columns) -> None:
    def call(k: int) -> bool:
        part = [column[: N // 4 + k] for column in columns]
        got = fn.call_batch(part, device="all")
        return all(np.array_equal(g, w[: N // 4 + k]) for g, w in zip(got, want, strict=True))

    want = fn.call_batch(columns)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(24)))


def test_a_kernel_that_cannot_be_launched_names_its_device(
    fn, columns, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alkahest.backends.nvptx.kernel import Kernel

    grid = Kernel.grid
    last = devices - 1

    def refused(self: Kernel, n: int) -> int:
        return 2**31 if self.device.ordinal == last else grid(self, n)

    fn.call_batch(columns, device="all")
    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "grid", refused)
        with pytest.raises(ak.CudaError, match="CUDA_ERROR_INVALID_VALUE") as caught:
            fn.call_batch(columns, device="all")
    assert f"device {last}" in caught.value.message
    want = fn.call_batch(columns)
    got = fn.call_batch(columns, device="all")
    assert all(np.array_equal(g, w) for g, w in zip(got, want, strict=True))
