"""One batch over several devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from arithmetic import Arithmetic, ArithmeticEvaluator
from refusals import refused

from alkahest import splitting
from alkahest.compiled import compile_expr
from alkahest.errors import CudaError
from alkahest.expr import ExprPool
from alkahest.plugin import Artifact, Batch, DeviceInfo, Evaluator, Outcome, hookimpl
from alkahest.program import lower
from alkahest.splitting import SplitEvaluator, shares
from alkahest.testing.plugins import NullPlugin, isolated_plugins

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
SUM = lower([x + y, x * y], [x, y])


@pytest.mark.parametrize(
    ("n", "devices", "lengths"),
    [
        (12, 4, [3, 3, 3, 3]),
        (10, 4, [2, 3, 2, 3]),
        (3, 8, [1, 1, 1]),
        (5, 1, [5]),
        (0, 3, [0]),
        (2**40 + 1, 2, [2**39, 2**39 + 1]),
    ],
)
def test_shares_are_even_and_cover_the_batch(n: int, devices: int, lengths: list[int]) -> None:
    parts = shares(n, devices)
    assert [part.stop - part.start for part in parts] == lengths
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == n


@attrs.frozen
class Device:
    """One of several devices, all of which are this machine's processor."""

    ordinal: int
    batches: list[Batch] = attrs.field(factory=list)
    barrier: threading.Barrier | None = None
    error: Exception | None = None
    ignores_out: bool = False

    def evaluate(self, batch: Batch) -> Outcome:
        self.batches.append(batch)
        if self.barrier is not None:
            self.barrier.wait(30)
        if self.error is not None:
            raise self.error
        if self.ignores_out:
            batch = attrs.evolve(batch, out=None)
        outcome = ArithmeticEvaluator(SUM, self.ordinal, []).evaluate(batch)
        return attrs.evolve(outcome, report={"device_name": f"fake {self.ordinal}"})


def over(devices: list[Device]) -> SplitEvaluator:
    return SplitEvaluator("fake", SUM, devices)


def batch(n: int, **fields: Any) -> Batch:
    return Batch(columns=(np.arange(float(n)), np.full(n, 2.0)), n=n, **fields)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_outputs_are_those_of_one_device(count: int) -> None:
    devices = [Device(k) for k in range(count)]
    outcome = over(devices).evaluate(batch(101))
    total, product = outcome.outputs
    assert np.array_equal(total, np.arange(101.0) + 2)
    assert np.array_equal(product, np.arange(101.0) * 2)
    assert [len(device.batches) for device in devices] == [1] * count
    assert sum(device.batches[0].n for device in devices) == 101


@pytest.mark.parametrize(
    ("processors", "count", "threads"), [(16, 1, None), (16, 2, 8), (16, 3, 5), (2, 8, 1)]
)
def test_devices_share_the_processors(
    monkeypatch: pytest.MonkeyPatch, processors: int, count: int, threads: int | None
) -> None:
    monkeypatch.setattr(splitting, "_processors", lambda: processors)
    devices = [Device(k) for k in range(count)]
    over(devices).evaluate(batch(100))
    assert {device.batches[0].threads for device in devices} == {threads}
    over(devices).evaluate(batch(100, threads=7))
    assert {device.batches[1].threads for device in devices} == {7}


def test_every_device_writes_into_the_callers_arrays() -> None:
    out = tuple(np.full((2, 20), -1.0)[:, ::2])
    devices = [Device(0), Device(1, ignores_out=True), Device(2)]
    outcome = over(devices).evaluate(batch(10, out=out, threads=3))
    assert all(got is given for got, given in zip(outcome.outputs, out, strict=True))
    assert out[0].tolist() == (np.arange(10.0) + 2).tolist()
    assert out[1].tolist() == (np.arange(10.0) * 2).tolist()
    for device in devices:
        (part,) = device.batches
        assert part.threads == 3
        assert part.out is not None
        assert all(np.shares_memory(a, b) for a, b in zip(part.out, out, strict=True))


def test_spread_columns_stay_spread() -> None:
    devices = [Device(0), Device(1)]
    columns = (np.arange(8.0), np.broadcast_to(np.array(2.0), (8,)))
    over(devices).evaluate(Batch(columns=columns, n=8))
    assert [device.batches[0].columns[1].strides for device in devices] == [(0,), (0,)]


def test_the_report_says_what_every_device_did() -> None:
    report = over([Device(k) for k in range(3)]).evaluate(batch(10)).report
    assert report["device"] == "all"
    assert [entry.pop("seconds") >= 0 for entry in report["devices"]] == [True] * 3
    assert report["devices"] == [
        {"device": 0, "n": 3, "device_name": "fake 0"},
        {"device": 1, "n": 3, "device_name": "fake 1"},
        {"device": 2, "n": 4, "device_name": "fake 2"},
    ]


def test_the_devices_work_at_the_same_time() -> None:
    barrier = threading.Barrier(3)  # breaks, and fails the test, unless all three arrive
    outcome = over([Device(k, barrier=barrier) for k in range(3)]).evaluate(batch(9))
    assert outcome.outputs[0].tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("culprit", [0, 2])
def test_a_failure_names_the_device_and_waits_for_the_others(culprit: int) -> None:
    error = CudaError("E-CUDA-006", "the kernel failed", remediation="Try again.")
    devices = [Device(k, error=error if k == culprit else None) for k in range(3)]
    with pytest.raises(CudaError) as caught:
        over(devices).evaluate(batch(9))
    assert caught.value.code == "E-CUDA-006"
    assert caught.value.message == f"device {culprit} of backend 'fake': the kernel failed"
    assert caught.value.remediation == "Try again."
    assert caught.value.__cause__ is error
    assert [len(device.batches) for device in devices] == [1, 1, 1]


def test_the_first_of_several_failures_is_raised() -> None:
    devices = [Device(k, error=CudaError("E-CUDA-003", f"no {k}")) for k in range(3)]
    with refused("E-CUDA-003", "device 0 of backend 'fake': no 0"):
        over(devices).evaluate(batch(9))


def test_other_exceptions_get_a_note() -> None:
    devices = [Device(0), Device(1, error=ZeroDivisionError("oops"))]
    with pytest.raises(ZeroDivisionError) as caught:
        over(devices).evaluate(batch(9))
    assert caught.value.__notes__ == ["while running on device 1 of backend 'fake'"]


# Through a compiled function


@pytest.fixture
def adders() -> Iterator[Arithmetic]:
    """A backend with two devices, which notes its batches."""
    plugin = Arithmetic()
    with isolated_plugins(plugin):
        yield plugin


def test_a_function_compiled_for_all_devices_splits_every_call(adders: Arithmetic) -> None:
    fn = compile_expr([x + y, x < y], [x, y], device="all")
    assert fn.device == "all"
    total, less = fn(np.arange(6.0).reshape(2, 3), 2.5)
    assert total.tolist() == [[2.5, 3.5, 4.5], [5.5, 6.5, 7.5]]
    assert less.tolist() == [[True, True, True], [False, False, False]]
    assert less.dtype == np.bool_
    assert [b.n for b in adders.batches] == [3, 3]
    assert [entry["device"] for entry in fn.report["devices"]] == [0, 1]
    assert fn.report["device"] == "all"
    assert fn.call_batch([[1.0, 2.0], [3.0, 4.0]]) == ([4.0, 6.0], [True, True])


def test_a_batch_may_be_split_by_a_function_for_one_device(adders: Arithmetic) -> None:
    fn = compile_expr(x + y, [x, y])
    columns = [np.arange(5.0), np.ones(5)]
    out = np.empty(5)
    assert fn.call_batch(columns, device="all", out=out) is out
    assert out.tolist() == [1, 2, 3, 4, 5]
    assert len(fn.report["devices"]) == 2
    fn.call_batch(columns)
    assert "devices" not in fn.report
    assert fn.call_batch([np.empty(0), np.empty(0)], device="all").shape == (0,)


def test_a_backend_without_devices_says_so_itself() -> None:
    with isolated_plugins(NullPlugin(backend="gpu", placement="cuda", devices=0)):
        fn = compile_expr(x, [x], backend="gpu", device="all")
        assert fn([1.0, 2.0]).tolist() == [0, 0]
        assert [entry["device"] for entry in fn.report["devices"]] == [0]


def test_a_stream_belongs_to_one_device() -> None:
    with isolated_plugins(NullPlugin(backend="gpu", placement="cuda", devices=2)):
        fn = compile_expr(x, [x], backend="gpu", device="all")
        with refused("E-INPUT-011", "a stream belongs to one device"):
            fn([1.0, 2.0], stream=7)


class OnDevice:
    """An array of some other library, in device memory."""

    __cuda_array_interface__: ClassVar = {"shape": (3,), "typestr": "<f8", "data": (1, True)}


@pytest.mark.parametrize("backend", ["auto", "arithmetic"])
def test_columns_on_a_device_are_not_split(adders: Arithmetic, backend: str) -> None:
    fn = compile_expr(x + y, [x, y], backend=backend)
    with refused("E-INPUT-010", 'device="all" splits columns in host memory', "cuda"):
        fn.call_batch([OnDevice(), 1.0], device="all")


@pytest.mark.parametrize("device", ["ALL", "0", "every", b"all"])
def test_no_other_text_is_a_device(adders: Arithmetic, device: Any) -> None:
    with refused("E-INPUT-008", "device must be an ordinal, 'all' or None"):
        compile_expr(x, [x], device=device)


@attrs.frozen(kw_only=True, eq=False)
class Fleet(NullPlugin):
    """A backend whose devices are counted when it is asked for an evaluator."""

    made: list[int | None] = attrs.field(factory=list)

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> Evaluator:
        self.made.append(device)
        return Device(device or 0)

    @hookimpl
    def alkahest_devices(self, backend: str) -> tuple[DeviceInfo, ...]:
        return tuple(DeviceInfo(ordinal=k, name=f"ship {k}") for k in range(self.devices))


@pytest.mark.parametrize("count", [1, 4])
def test_an_evaluator_is_made_once_for_each_device(count: int) -> None:
    fleet = Fleet(backend="fleet", devices=count)
    with isolated_plugins(fleet):
        fn = compile_expr([x + y, x * y], [x, y], device="all")
        for _ in range(3):
            fn(np.arange(8.0), np.ones(8))
    assert fleet.made == list(range(count))
