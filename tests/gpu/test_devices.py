"""Devices, threads, streams, memory and processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from childprocess import Child
from cuda.bindings import driver
from cuda.core import Device

import alkahest as ak
from alkahest.backends.nvptx import device as device_module
from alkahest.backends.nvptx.kernel import Kernel

XS = np.linspace(0, 10, 10_001)


@pytest.fixture
def fn() -> ak.CompiledFn:
    x = ak.symbols("x")[0]
    return ak.compile_cuda(ak.sin(x) * x, [x])


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """A process that has not touched the device."""
    with Child(tmp_path) as process:
        yield process


# Ordinals


@pytest.mark.sanitize
def test_every_ordinal_below_the_count_launches_with_equal_bits(fn, devices: int) -> None:
    first = fn.call_batch_on(0, [XS])
    for ordinal in range(devices):
        assert np.array_equal(fn.call_batch_on(ordinal, [XS]), first)
        assert fn.report["device"] == ordinal


@pytest.mark.parametrize("columns", [[XS], [XS[:0]], [[]]], ids=["points", "none", "empty list"])
def test_ordinals_from_the_count_on_and_negative_ones_are_refused(fn, devices, columns) -> None:
    for ordinal in (devices, devices + 1, 4096, -1):
        with pytest.raises(ak.CudaError, match=f"device {ordinal} .* {devices} usable") as caught:
            fn.call_batch_on(ordinal, columns)
        assert caught.value.code == "E-CUDA-003"


def test_the_devices_hook_and_the_count_agree(devices: int) -> None:
    found = device_module.list_devices()
    assert [info.ordinal for info in found] == list(range(devices))
    assert all(info.memory > 2**30 and info.target.startswith("sm_") for info in found)


def test_the_code_is_for_the_device(fn) -> None:
    major, minor = Device(0).compute_capability
    assert fn.target == f"sm_{major}{minor}"
    assert f".target {fn.target}" in fn.ptx
    fn.call_batch([XS])
    assert fn.report["target"] == fn.target
    assert fn.report["device_name"] == Device(0).name


def test_code_compiled_without_a_device_becomes_the_devices_own(fn) -> None:
    import attrs

    from alkahest.backends.nvptx.evaluator import NvptxEvaluator
    from alkahest.backends.nvptx.module import generate
    from alkahest.plugin import Batch

    old = attrs.evolve(generate(fn.program, "sm_75", {}))
    outcome = NvptxEvaluator(old, None).evaluate(Batch(columns=(XS,), n=len(XS)))
    assert outcome.report["target"] == fn.target
    assert np.array_equal(outcome.outputs[0], fn.call_batch([XS]))


def test_the_capability_bit_has_a_witness() -> None:
    assert ak.capabilities(verify=True)["features"]["cuda"] is True


def test_counting_and_compiling_create_no_context(child: Child) -> None:
    code = (
        "count = ak.cuda_device_count(); ak.capabilities()\n"
        "x = ak.symbols('x')[0]; ak.compile_cuda(ak.sin(x), [x])\n"
        "from cuda.bindings import driver\n"
        "result = [count, *(int(driver.cuDevicePrimaryCtxGetState(k)[2]) for k in range(count))]"
    )
    count, *active = child.ask(code)
    assert count >= 1
    assert active == [0] * count


@pytest.mark.parametrize(("visible", "count"), [("0", 1), ("", 0), ("GPU-{uuid}", 1)])
def test_visible_devices_chosen_after_the_import_are_those_that_count(
    child: Child, visible: str, count: int
) -> None:
    text = visible.format(uuid=Device(0).uuid)
    late = f"import os; os.environ['CUDA_VISIBLE_DEVICES'] = {text!r}\n"
    assert child.ask(f"{late}result = ak.cuda_device_count()") == count


# Threads and contexts


@pytest.mark.sanitize
def test_fresh_threads_get_right_values(fn) -> None:
    want = fn.call_batch([XS])

    def work(seed: int) -> bool:
        mine = ak.compile_cuda(ak.exp(ak.symbols("x")[0]), ak.symbols("x")) if seed % 4 == 0 else fn
        got = mine.call_batch([XS / 10 if mine is not fn else XS])
        return bool(np.allclose(got, np.exp(XS / 10)) if mine is not fn else (got == want).all())

    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(32)))


def test_other_threads_run_while_a_batch_is_on_the_device(fn) -> None:
    xs = np.zeros(1 << 25)
    fn.call_batch([xs])
    done = threading.Event()
    ticks = 0

    def batch() -> None:
        for _ in range(5):
            fn.call_batch([xs])
        done.set()

    thread = threading.Thread(target=batch)
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    thread.join()
    assert ticks > 20  # a held interpreter lock would leave one or two for every batch


def test_the_callers_context_is_current_again_afterwards(fn, devices: int) -> None:
    def current() -> int:
        return int(driver.cuCtxGetCurrent()[1])

    def check() -> None:
        assert current() == 0
        fn.call_batch([XS])
        assert current() == 0
        Device(devices - 1).set_current()
        mine = current()
        fn.call_batch([XS])
        assert current() == mine != 0
        driver.cuCtxSetCurrent(0)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(check).result()


# Streams


@pytest.mark.sanitize
def test_work_goes_to_the_callers_stream_and_is_complete(fn) -> None:
    want = fn.call_batch([XS])
    before = driver.cuCtxGetCurrent()[1]
    core = Device(0)
    core.set_current()
    stream = core.create_stream()
    try:
        for given in (stream, int(stream.handle), 0, 1, 2, core.default_stream):
            assert np.array_equal(fn.call_batch([XS], stream=given), want)
    finally:
        stream.close()
        driver.cuCtxSetCurrent(before)


def test_work_is_ordered_behind_what_the_stream_holds(fn) -> None:
    x = ak.symbols("x")[0]
    slow = ak.compile_cuda(sum((ak.sin(x * k) for k in range(1, 60)), x), [x])
    before = driver.cuCtxGetCurrent()[1]
    core = Device(0)
    core.set_current()
    stream = core.create_stream()
    try:
        event = stream.record()
        slow.call_batch([np.zeros(1 << 20)], stream=stream)
        assert event.is_done
    finally:
        stream.close()
        driver.cuCtxSetCurrent(before)


def test_a_stream_of_another_device_is_refused(fn, devices: int) -> None:
    if devices == 1:
        with pytest.raises(ak.InputTypeError, match="not a CUDA stream"):
            fn.call_batch([XS], stream="0")
        return
    before = driver.cuCtxGetCurrent()[1]
    core = Device(1)
    core.set_current()
    stream = core.create_stream()
    driver.cuCtxSetCurrent(before)
    with pytest.raises(ak.CudaError, match="belongs to device 1, the call is for device 0"):
        fn.call_batch([XS], stream=stream)
    assert np.array_equal(fn.call_batch_on(1, [XS], stream=stream), fn.call_batch([XS]))


# Memory and processes


def free_bytes() -> int:
    device = device_module.open_device(0)
    with device.current():
        return device.free_bytes()


@pytest.mark.parametrize("n", [1000, 1 << 24])
def test_nothing_more_is_allocated_by_later_calls_and_errors(
    fn, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    xs = np.zeros(n)
    fn.call_batch([xs])
    before = free_bytes()
    for _ in range(20):
        fn.call_batch([xs])
        with monkeypatch.context() as patch:
            patch.setattr(Kernel, "grid", lambda self, n: 2**31)  # more than there can be
            with pytest.raises(ak.CudaError, match="CUDA_ERROR_INVALID_VALUE") as caught:
                fn.call_batch([xs])
        assert caught.value.code == "E-CUDA-006"
    assert before - free_bytes() < 64 << 20
    assert np.array_equal(fn.call_batch([XS]), fn.call_batch([XS]))


def test_a_process_forked_after_use_is_refused_and_the_parent_goes_on(child: Child) -> None:
    code = """
import os
x = ak.symbols("x")[0]
fn = ak.compile_cuda(x + 1, [x])
fn.call_batch([[1.0]])
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    try:
        text = str(fn.call_batch([[1.0]]))
    except ak.CudaError as error:
        text = f"{error.code} {error.message} {ak.cuda_device_count()}"
    os.write(write, text.encode())
    os._exit(0)
os.waitpid(pid, 0)
result = [os.read(read, 4096).decode(), fn.call_batch([[2.0]])]
"""
    text, parents = child.ask(code)
    assert text.startswith("E-CUDA-003")
    assert "before this process was forked" in text
    assert text.endswith(" 0")
    assert parents == [3.0]


def test_a_lost_context_is_reported_and_the_process_ends_quietly(child: Child) -> None:
    # The launch gets an address that is nobody's; later calls get the same answer.
    code = """
import numpy as np
from alkahest.backends.nvptx.kernel import Kernel
x = ak.symbols("x")[0]
fn = ak.compile_cuda(x + 1, [x])
fn.call_batch([[1.0]])
launch = Kernel.launch
Kernel.launch = lambda self, addresses, n, stream: launch(self, [1 << 12] * len(addresses), n, stream)
try:
    fn.call_batch([np.ones(1000)])
except ak.CudaError as error:
    first = [error.code, error.message, error.remediation]
Kernel.launch = launch
try:
    fn.call_batch([np.ones(1000)])
except ak.CudaError as error:
    result = [first, error.message]
"""
    (number, message, remedy), second = child.ask(code)
    assert number == "E-CUDA-006"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in message
    assert "start a new process" in remedy
    assert "(700)" in second
