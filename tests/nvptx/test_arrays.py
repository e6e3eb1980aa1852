"""Arrays on the device, with a driver whose kernels add: streams, memory, launches, refusals."""

from __future__ import annotations

import re

import pytest
from childprocess import Failed
from fakedriver import FakeGpuChild

SETUP = """
import gc, weakref
import numpy as np
import fakearrays as fake
from alkahest import dlpack
from alkahest.backends.nvptx import order
cupy, torch, jax = fake.cupy(), fake.torch(), fake.jax()
x, y = ak.symbols("x y")
fn = ak.compile_cuda(x + 2*y, [x, y])
XS = np.arange(1000.0)
YS = XS + 0.5
def right(array, xs=XS, ys=YS):
    return bool(np.array_equal(array.values, xs + 2*ys))
def read(array, stream=-1):
    return fake.memory_of(array.__dlpack__(stream=stream))
"""
CUPY = (
    SETUP
    + """
with fake.installed(cupy):
    xs, ys = cupy.asarray(XS), cupy.asarray(YS)
"""
)


def launches(process: FakeGpuChild) -> list[str]:
    """Points and stream of every launch since the last question."""
    return [" ".join(c.split()[3:]) for c in process.calls() if c.startswith("launch")]


def stream_calls(process: FakeGpuChild) -> list[str]:
    """What streams recorded, waited for and launched since the last question, each with stream.

    Streams of our own, which give memory back when Python likes, are left out.
    """
    found = []
    for call in process.calls():
        name, *words = call.split()
        if name == "cuEventRecord":
            found.append(f"record {words[1]}")
        elif name == "cuStreamWaitEvent" and not re.fullmatch(r"0x100[^f]\w\w", words[0]):
            found.append(f"wait {words[0]}")
        elif name == "launch":
            found.append(f"launch {words[3]}")
        elif name == "cuStreamSynchronize":
            found.append("synchronize")
    return found


# In place


def test_arrays_of_libraries_are_evaluated_in_their_memory(two_gpus: FakeGpuChild) -> None:
    code = CUPY + (
        "    got = fn.call_batch([xs, ys])\n"
        "    result = [type(got) is cupy.ndarray, right(got)]\n"
        "with fake.installed(torch):\n"
        "    got = fn.call_batch([fake.TorchTensor(XS), fake.TorchTensor(YS)])\n"
        "    result += [type(got) is torch.Tensor, right(got)]\n"
    )
    assert two_gpus.ask(code) == [True] * 4
    calls = two_gpus.calls()
    assert sum(c.startswith("launch") for c in calls) == 2
    assert not any(c.startswith(("upload", "download", "allocate", "cuStreamSync")) for c in calls)


def test_the_report_says_that_nothing_moved(two_gpus: FakeGpuChild) -> None:
    report = two_gpus.ask(CUPY + "    fn.call_batch([xs, ys]); result = fn.report")
    assert report.pop("seconds") > 0
    assert report == {
        "backend": "nvptx",
        "reason": "asked for by name",
        "device": 0,
        "device_name": "Fake GPU 0",
        "target": "sm_90",
        "dtype": "float64",
        "n": 1000,
        "launches": 1,
        "access": "float64, float64 -> 0 contiguous, 2 points a thread",
    }


def test_columns_run_on_the_device_where_they_are(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "with fake.installed(cupy):\n"
        "    got = fn.call_batch([cupy.asarray(XS, 1), cupy.asarray(YS, 1)])\n"
        "    result = [right(got), got.data.device_id, fn.report['device'], fn.report['target']]"
    )
    assert two_gpus.ask(code) == [True, 1, 1, "sm_75"]


def test_auto_needs_no_option_for_arrays_on_the_device(two_gpus: FakeGpuChild) -> None:
    code = CUPY + (
        "    auto = ak.compile_expr(x + 2*y, [x, y])\n"
        "    result = [right(auto(xs, ys)), auto.report['backend']]"
    )
    assert two_gpus.ask(code) == [True, "nvptx"]


def test_a_strided_view_needs_a_kernel_and_no_memory(two_gpus: FakeGpuChild) -> None:
    code = CUPY + "    fn(xs[::2], ys[1::2]); result = fn.report['access']"
    assert two_gpus.ask(code, FAKE_CUDA_IDLE="1") == (
        "float64 strided, float64 strided -> 0 contiguous"
    )
    calls = two_gpus.calls()
    assert [c for c in calls if c.startswith(("allocate", "upload", "spread"))] == []


def test_an_empty_batch_is_checked_and_not_launched(two_gpus: FakeGpuChild) -> None:
    code = CUPY + "    result = [fn(xs[:0], 1.0).shape, fn.report['launches'], fn.report['n']]"
    assert two_gpus.ask(code) == [[0], 0, 0]
    assert launches(two_gpus) == []


# Streams


@pytest.mark.parametrize(("current", "handle"), [("0", "0x1"), ("2", "0x2"), ("0x1000", "0x1000")])
def test_work_on_the_librarys_own_stream_waits_for_nothing(
    two_gpus: FakeGpuChild, current: str, handle: str
) -> None:
    code = CUPY + f"    cupy.use({current}); fn(xs, ys); result = len(order.KEPT)"
    assert two_gpus.ask(code) == 0
    assert stream_calls(two_gpus) == [f"launch {handle}"]


def test_another_stream_waits_for_the_librarys(two_gpus: FakeGpuChild) -> None:
    two_gpus.ask(CUPY + "    cupy.use(0x100f10); fn(xs, ys, stream=0x1000)")
    assert stream_calls(two_gpus) == [
        "record 0x100f10",
        "wait 0x1000",
        "launch 0x1000",
        "record 0x1000",  # so that the arrays are kept until then
    ]


def test_streams_of_several_producers_are_all_waited_for(two_gpus: FakeGpuChild) -> None:
    two_gpus.ask(
        SETUP
        + "fn.call_batch([fake.Interface(XS, 0x100f10), fake.Interface(YS, 2)], stream=0x1000)"
    )
    calls = stream_calls(two_gpus)
    assert set(calls[:4]) == {
        "record 0x100f10",
        "record 0x2",
        "wait 0x1000",
    }
    assert calls[4] == "launch 0x1000"


def test_a_producer_that_names_no_stream_is_not_waited_for(two_gpus: FakeGpuChild) -> None:
    two_gpus.ask(SETUP + "fn.call_batch([fake.Interface(XS), fake.Interface(YS)])")
    assert stream_calls(two_gpus) == ["launch 0x1", "record 0x1"]


def test_consumers_of_a_result_wait_for_it_on_their_stream(two_gpus: FakeGpuChild) -> None:
    code = SETUP + "got = fn.call_batch([fake.Producer(XS), fake.Producer(YS)])\n"
    for stream, waits in {
        "0x1000": ["wait 0x1000"],
        "None": ["wait 0x1"],
        "1": ["wait 0x1"],
        "2": ["wait 0x2"],
        "-1": [],
    }.items():
        assert two_gpus.ask(
            code + f"values = read(got, {stream})\nresult = bool(np.array_equal(values, XS + 2*YS))"
        )
        assert stream_calls(two_gpus)[2 : 2 + len(waits)] == waits
    code += """
result = []
for options in ({"stream": 0}, {"copy": True}, {"dl_device": (1, 0)}):
    try:
        got.__dlpack__(**options)
    except BufferError as error:
        result.append(str(error))
"""
    assert len(two_gpus.ask(code)) == 3


def test_jax_gets_its_result_through_the_protocol(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "with fake.installed(jax):\n"
        "    got = fn.call_batch([fake.JaxArray(XS), fake.JaxArray(YS)])\n"
        "result = [type(got) is fake.JaxArray,\n"
        "          bool(np.array_equal(read(got.source, 0x100f20), XS + 2*YS))]"
    )
    assert two_gpus.ask(code) == [True, True]
    assert "wait 0x100f20" in stream_calls(two_gpus)


@pytest.mark.parametrize("stream", ["0x1010", "type('S', (), {'cuda_stream': 0x1010})()"])
def test_a_stream_of_another_device_is_refused(two_gpus: FakeGpuChild, stream: str) -> None:
    with pytest.raises(Failed, match="belongs to device 1, the call is for device 0") as caught:
        two_gpus.ask(CUPY + f"    fn(xs, ys, stream={stream})")
    assert caught.value.code == "E-CUDA-003"
    assert launches(two_gpus) == []


def test_a_call_can_be_captured_where_a_library_looks_after_its_memory(
    two_gpus: FakeGpuChild,
) -> None:
    code = CUPY + "    cupy.use(0x1000); fn(xs, ys, out=cupy.empty(1000))"
    two_gpus.ask(code, FAKE_CUDA_CAPTURING="1")
    assert stream_calls(two_gpus) == ["launch 0x1000"]
    with pytest.raises(Failed, match="captured into a graph") as caught:
        two_gpus.ask(
            SETUP + "fn(fake.Producer(XS), fake.Producer(YS), stream=0x1000)",
            FAKE_CUDA_CAPTURING="1",
        )
    assert caught.value.code == "E-CUDA-004"
    assert launches(two_gpus) == []


# Lifetime


def test_arrays_are_kept_until_work_on_another_stream_is_done(two_gpus: FakeGpuChild) -> None:
    code = CUPY + (
        "    import os\n"
        "    gone = weakref.ref(xs)\n"
        "    os.environ['FAKE_CUDA_PENDING'] = '1'\n"
        "    fn(xs, ys, stream=0x1000)\n"
        "    del xs\n"
        "    fn(ys, ys)\n"
        "    gc.collect()\n"
        "    result = [gone() is not None]\n"
        "    del os.environ['FAKE_CUDA_PENDING']\n"
        "    fn(ys, ys)\n"
        "    gc.collect()\n"
        "    result.append(gone() is None)\n"
    )
    assert two_gpus.ask(code) == [True, True]


def test_producers_without_an_order_are_kept_until_the_work_is_done(child) -> None:
    code = SETUP + (
        "values = XS.copy()\n"
        "gone = weakref.ref(values)\n"
        "got = fn.call_batch([fake.Producer(values), fake.Producer(YS)])\n"
        "del values, got\n"
        "gc.collect()\n"
        "result = [gone() is not None, len(order.KEPT)]\n"
        "order.KEPT.let_go()\n"
        "gc.collect()\n"
        "result += [gone() is None, len(order.KEPT)]"
    )
    with child() as process:
        assert process.ask(code) == [True, 1, True, 0]


def test_a_result_outlives_the_function_and_goes_behind_its_work(child) -> None:
    code = SETUP + (
        "import os\n"
        "got = fn.call_batch([fake.Producer(XS), fake.Producer(YS)])\n"
        "capsule = got.__dlpack__(stream=0x1000)\n"
        "del fn, got\n"
        "gc.collect()\n"
        "values = fake.memory_of(capsule)  # which takes the capsule over\n"
        "result = bool(np.array_equal(values, XS + 2*YS))\n"
        "with open(os.environ['FAKE_CUDA_LOG'], 'a') as log:\n"
        "    log.write('still there\\n')\n"
        "del capsule, values\n"
        "gc.collect()"
    )
    with child() as process:
        assert process.ask(code)
        calls = process.calls()
    at = calls.index("still there")
    assert not any(c.startswith("release") for c in calls[:at])
    ours, event = calls[at + 1].split()[1:]
    assert calls[at + 1 : at + 3] == [f"cuStreamWaitEvent {ours} {event}", "release 8000"]
    assert f"cuEventRecord {event} 0x1" in calls
    assert f"cuStreamCreate {ours}" in calls


def test_a_result_fed_back_waits_for_itself(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "got = fn.call_batch([fake.Producer(XS), fake.Producer(YS)])\n"
        "again = fn.call_batch([got, 1.0], stream=0x1000)\n"
        "result = repr(again)"
    )
    assert two_gpus.ask(code, FAKE_CUDA_IDLE="1") == (
        "<DeviceArray shape=(1000,) dtype=float64 device=0>"
    )
    assert "wait 0x1000" in stream_calls(two_gpus)


# Refusals of the driver


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"FAKE_CUDA_LAUNCH": "701"}, "E-CUDA-006", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)"),
        ({"FAKE_CUDA_ALLOC": "2"}, "E-CUDA-003", "allocating 8000 bytes on device 0, Fake GPU 0"),
        ({"FAKE_CUDA_RECORD": "400"}, "E-CUDA-003", "ordering streams of device 0"),
    ],
)
def test_what_the_driver_refuses_is_named(
    two_gpus: FakeGpuChild, settings: dict[str, str], code: str, words: str
) -> None:
    with pytest.raises(Failed) as caught:
        two_gpus.ask(SETUP + "fn.call_batch([fake.Producer(XS), fake.Interface(YS)])", **settings)
    assert caught.value.code == code
    assert words in caught.value.message


def test_an_address_of_no_device_is_refused(two_gpus: FakeGpuChild) -> None:
    with pytest.raises(Failed, match="is in the memory of no device") as caught:
        two_gpus.ask(SETUP + "fn(fake.Interface(XS), 1.0)", FAKE_CUDA_OWNER="-1")
    assert caught.value.code == "E-INPUT-003"


def test_addresses_say_which_device_they_belong_to(two_gpus: FakeGpuChild) -> None:
    code = SETUP + "fn(fake.Interface(XS), fake.Interface(YS)); result = fn.report['device']"
    assert two_gpus.ask(code, FAKE_CUDA_OWNER="1") == 1


# The fast way


def test_the_second_call_of_a_kind_asks_the_driver_for_a_launch_only(
    two_gpus: FakeGpuChild,
) -> None:
    code = CUPY + (
        "    from cuda.core import Device\n"
        "    Device(0).set_current()\n"
        "    out = cupy.empty(1000)\n"
        "    fn(xs, ys)\n"
        "    calls = fn._evaluation._fast[None][0]._plans\n"
        "    result = [fn(xs, ys, out=out) is out, right(out), right(fn.call_batch([xs, ys])),\n"
        "              len(calls), fn.report['n']]\n"
        "    from cuda.bindings import driver\n"
        "    driver.cuCtxSetCurrent(0)"
    )
    assert two_gpus.ask(code) == [True, True, True, 1, 1000]
    assert launches(two_gpus) == ["1000 0x1"] * 3


@pytest.mark.parametrize(
    "call",
    [
        "fn(xs, ys, out=xs)",
        "fn(xs[1:], ys[1:])",
        "fn(xs, 3.0)",
        "fn(xs, cupy.asarray(YS[:1]))",
        "fn(xs, cupy.asarray(YS.astype('f4')))",
        "fn(xs.reshaped(10, 100), ys.reshaped(10, 100))",
        "fn(xs, ys, stream=0x1000)",
        "fn(xs, fake.Producer(YS))",
    ],
)
def test_what_is_not_the_fast_case_is_taken_all_the_same(two_gpus: FakeGpuChild, call: str) -> None:
    code = CUPY + (
        "    from cuda.core import Device\n"
        "    from cuda.bindings import driver\n"
        "    Device(0).set_current()\n"
        "    try:\n"
        "        fn(xs, ys)\n"
        "        fast = fn._evaluation._fast[None][0](xs, ys) is not NotImplemented\n"
        f"        {call}\n"
        "        result = [fast, fn.report['launches']]\n"
        "    finally:\n"
        "        driver.cuCtxSetCurrent(0)"
    )
    assert two_gpus.ask(code, FAKE_CUDA_IDLE="1") == [True, 1]


def test_a_fast_call_with_overlapping_outputs_is_refused_as_any_other(
    two_gpus: FakeGpuChild,
) -> None:
    code = CUPY + (
        "    from cuda.core import Device\n"
        "    from cuda.bindings import driver\n"
        "    Device(0).set_current()\n"
        "    fn(xs, ys)\n"
        "    try:\n"
        "        fn(xs[:500], ys[:500], out=xs[2:502])\n"
        "    finally:\n"
        "        driver.cuCtxSetCurrent(0)"
    )
    with pytest.raises(Failed, match="out array 0 shares memory with column 0") as caught:
        two_gpus.ask(code)
    assert caught.value.code == "E-INPUT-009"


def test_threads_launch_fast_calls_at_once_with_right_values(two_gpus: FakeGpuChild) -> None:
    code = CUPY + (
        "    from concurrent.futures import ThreadPoolExecutor\n"
        "    from cuda.core import Device\n"
        "    fn(xs, ys)\n"
        "    def work(k):\n"
        "        Device(0).set_current()\n"
        "        mine, out = cupy.asarray(XS + k), cupy.empty(1000)\n"
        "        return all(right(fn(mine, ys, out=out), XS + k) for _ in range(20))\n"
        "    with ThreadPoolExecutor(8) as pool:\n"
        "        result = all(pool.map(work, range(32)))"
    )
    assert two_gpus.ask(code)


def test_launches_are_remembered_by_address_and_not_without_end(two_gpus: FakeGpuChild) -> None:
    code = CUPY + (
        "    from alkahest.backends.nvptx import fastcalls\n"
        "    from cuda.core import Device\n"
        "    from cuda.bindings import driver\n"
        "    Device(0).set_current()\n"
        "    fn(xs, ys)\n"
        "    (plan,) = [fn._evaluation._fast[None][0]._plan(type(xs))]\n"
        "    outs = [cupy.empty(1000) for _ in range(fastcalls.REMEMBERED + 44)]\n"
        "    result = [all(plan((xs, ys), out) is not NotImplemented for out in outs)]\n"
        "    result += [all(map(right, outs)), len(plan._ready)]\n"
        "    xs.values[:] = 0\n"
        "    plan((xs, ys), outs[-1])\n"
        "    result += [right(outs[-1], 0*XS), len(plan._ready)]\n"
        "    half = plan((xs[:500], ys[:500]), outs[-1][:500])\n"
        "    result += [half[1], len(plan._ready)]\n"
        "    driver.cuCtxSetCurrent(0)"
    )
    assert two_gpus.ask(code) == [True, True, 44, True, 44, 500, 45]


def test_elements_that_are_not_aligned_are_refused_by_quick_calls_too(
    two_gpus: FakeGpuChild,
) -> None:
    code = SETUP + (
        "names = ak.symbols('a b c d e')\n"
        "fn = ak.compile_cuda(sum((k*s for k, s in enumerate(names[1:], 2)), names[0]), names)\n"
        "result = [fn.artifact.metadata['points']]\n"
        "memory = np.zeros(8*1000 + 4, np.uint8)\n"
        "with fake.installed(cupy):\n"
        "    columns = [cupy.asarray(XS) for _ in names]\n"
        "    result += [bool(np.array_equal(fn(*columns).values, 15*XS)) for _ in range(2)]\n"
        "    columns[1] = cupy.asarray(XS)\n"
        "    columns[1].values = memory[4:].view(float)\n"
        "    columns[1].data.ptr = memory.ctypes.data + 4\n"
        "    try: fn(*columns)\n"
        "    except ak.AlkahestError as error: result += [error.code, error.message]\n"
    )
    assert two_gpus.ask(code) == [
        *(1, True, True, "E-INPUT-003"),
        "column 1 ('b') is not aligned to the 8 bytes of float64",
    ]
