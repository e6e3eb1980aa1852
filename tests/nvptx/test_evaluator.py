"""Columns through the device and back, with a driver whose kernels add (see fake_driver.c)."""

from __future__ import annotations

import pytest
from childprocess import Failed
from fakedriver import FakeGpuChild

SETUP = """
import numpy as np
x, y = ak.symbols("x y")
fn = ak.compile_cuda(x + 2*y, [x, y])
xs = np.arange(1000.0)
ys = xs + 0.5
def right(values, xs=xs, ys=ys):
    return bool(np.array_equal(values, xs + 2*ys))
"""


def launches(process: FakeGpuChild) -> list[list[str]]:
    """Grid, block, points and stream of every launch since the last question."""
    return [call.split()[1:] for call in process.calls() if call.startswith("launch")]


# Layouts


def test_arrays_give_an_array_and_lists_a_list(two_gpus: FakeGpuChild) -> None:
    assert two_gpus.ask(SETUP + "result = right(fn.call_batch([xs, ys]))")
    assert two_gpus.ask(SETUP + "result = fn.call_batch([[1.0, 2.0], (10, 20)])") == [21.0, 42.0]
    assert two_gpus.ask(
        SETUP + "result = right(fn(xs.reshape(10, 100), ys.reshape(10, 100)).ravel())"
    )


@pytest.mark.parametrize(
    "column",
    [
        "np.repeat(xs, 3)[::3]",
        "xs[::-1].copy()[::-1]",
        "np.frombuffer(b'?' + xs.tobytes(), offset=1)",
        "np.array([xs, ys]).T[:, 0]",
        "xs.astype('f4')",
    ],
)
def test_columns_of_any_layout_give_the_same_values(two_gpus: FakeGpuChild, column: str) -> None:
    assert two_gpus.ask(SETUP + f"result = right(fn.call_batch([{column}, ys]))")


def test_results_go_to_out_of_any_layout_and_nowhere_else(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "table = np.full((1000, 3), -1.0)\n"
        "got = fn.call_batch([xs, ys], out=table[:, 1])\n"
        "result = [got.base is table, right(table[:, 1]), bool((table[:, [0, 2]] == -1).all())]"
    )
    assert two_gpus.ask(code) == [True, True, True]


def test_out_may_be_a_column(two_gpus: FakeGpuChild) -> None:
    code = SETUP + "zs = xs.copy(); fn.call_batch([zs, ys], out=zs); result = right(zs)"
    assert two_gpus.ask(code)
    assert two_gpus.ask(code, ALKAHEST_CUDA_CHUNK="7")


def test_many_outputs_come_in_order(two_gpus: FakeGpuChild) -> None:
    code = (
        SETUP
        + "two = ak.compile_cuda([x + 2*y, x + 2*y + 1], [x, y])\nf, g = two.call_batch([xs, ys])\n"
        + "result = [right(f), right(g - 1)]"
    )
    assert two_gpus.ask(code, FAKE_CUDA_OUTPUTS="2") == [True, True]


def test_more_columns_than_parameters_go_through_a_table(two_gpus: FakeGpuChild) -> None:
    code = """
import numpy as np
symbols = [ak.symbols(f"x{k}")[0] for k in range(520)]
pool = symbols[0].pool
fn = ak.compile_cuda(pool.add(symbols), symbols)
columns = [np.full(5, float(k)) for k in range(520)]
result = [fn.artifact.metadata["abi"], *fn.call_batch(columns)]
"""
    value = float(sum((k + 1) * k for k in range(520)))
    assert two_gpus.ask(code, FAKE_CUDA_TABLE="520") == ["table"] + [value] * 5


def test_constants_need_only_a_length(two_gpus: FakeGpuChild) -> None:
    code = SETUP + "result = ak.compile_cuda(x*0 + 1, [x]).call_batch([3.0], n=3).tolist()"
    assert two_gpus.ask(code) == [3.0] * 3
    code = "result = ak.compile_cuda(2, []).call_batch([], n=3).tolist()"
    assert two_gpus.ask(code) == [0.0] * 3


# Launches and chunks


def test_the_grid_has_a_thread_for_every_two_points(two_gpus: FakeGpuChild) -> None:
    for n, grid in ((1, 1), (256, 1), (257, 2), (9 * 256 + 1, 10)):
        two_gpus.calls()
        two_gpus.ask(SETUP + f"fn.call_batch([np.ones({n}), 1.0])")
        assert launches(two_gpus) == [[str(grid), "128", str(n), "0x2"]]


@pytest.mark.parametrize("chunk", [1, 7, 999, 1000, 1001])
def test_forced_chunks_change_nothing_but_the_launches(two_gpus: FakeGpuChild, chunk: int) -> None:
    code = SETUP + (
        "table = np.full((1000, 2), -1.0)\n"
        "fn.call_batch([np.repeat(xs, 2)[::2], ys], out=table[:, 0])\n"
        "spread = fn.call_batch([xs, 3.0])\n"
        "result = [right(table[:, 0]), right(spread, xs, 3.0), fn.report['chunks']]"
    )
    want = -(-1000 // chunk)
    assert two_gpus.ask(code, ALKAHEST_CUDA_CHUNK=str(chunk)) == [True, True, want]
    sizes = [int(points) for _, _, points, _ in launches(two_gpus)[:want]]
    assert sum(sizes) == 1000
    assert max(sizes) == min(chunk, 1000)


# Devices


def test_ordinals_below_the_count_launch_and_others_are_refused(two_gpus: FakeGpuChild) -> None:
    for ordinal in (0, 1):
        code = f"result = [right(fn.call_batch_on({ordinal}, [xs, ys])), fn.report['device']]"
        assert two_gpus.ask(SETUP + code) == [True, ordinal]
    for ordinal in (2, 3, -1, 4096, 2**40):
        for columns in ("[xs, ys]", "[[], []]", "[xs[:0], ys[:0]]"):
            with pytest.raises(Failed, match=f"device {ordinal} was asked for") as caught:
                two_gpus.ask(SETUP + f"fn.call_batch_on({ordinal}, {columns})")
            assert caught.value.code == "E-CUDA-003"
            assert "2 usable devices" in caught.value.message
            assert "0 to 1" in caught.value.remedy


def test_empty_batches_on_valid_ordinals_come_back_empty(two_gpus: FakeGpuChild) -> None:
    code = SETUP + "result = [fn.call_batch_on(1, [[], []]), len(fn.call_batch([xs[:0], ys[:0]]))]"
    assert two_gpus.ask(code) == [[], 0]
    assert launches(two_gpus) == []


def test_the_device_chosen_when_compiling_is_used(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "on1 = ak.compile_cuda(x + 2*y, [x, y], device=1)\non1.call_batch([xs, ys])\n"
        "result = [on1.report['device'], on1.report['device_name']]"
    )
    assert two_gpus.ask(code) == [1, "Fake GPU 1"]


def test_the_code_is_for_the_first_device_and_others_get_their_own(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "fn.call_batch_on(0, [xs, ys]); first = fn.report['target']\n"
        "fn.call_batch_on(1, [xs, ys]); result = [fn.target, first, fn.report['target']]"
    )
    assert two_gpus.ask(code) == ["sm_90", "sm_90", "sm_75"]
    assert [c for c in two_gpus.calls() if c.startswith("load")] == [
        "load sm_90 7.8",
        "load sm_75 6.3",
    ]


def test_a_chosen_target_is_kept_and_refused_where_it_is_too_new(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "old = ak.compile_cuda(x + 2*y, [x, y], target='sm_80')\n"
        "result = [right(old.call_batch([xs, ys])), old.report['target']]\n"
    )
    assert two_gpus.ask(code) == [True, "sm_80"]
    with pytest.raises(
        Failed, match="code for sm_80 does not run on device 1, Fake GPU 1"
    ) as caught:
        two_gpus.ask(code + "old.call_batch_on(1, [xs, ys])")
    assert caught.value.code == "E-CUDA-003"


@pytest.mark.parametrize(
    ("capability", "target"),
    [("75", "sm_75"), ("80", "sm_80"), ("86", "sm_86"), ("120", "sm_120"), ("152", "sm_121")],
)
def test_the_target_follows_the_device(child, capability: str, target: str) -> None:
    with child(FAKE_CUDA_CAPABILITY=capability) as process:
        lines = process.ask(SETUP + "result = fn.ptx.splitlines()")
        assert f".target {target}" in lines
        process.ask(SETUP + "fn.call_batch([xs, ys])")
        assert any(call.startswith(f"load {target} ") for call in process.calls())


def test_devices_without_memory_pools_work(child) -> None:
    with child(FAKE_CUDA_POOLS="0") as process:
        assert process.ask(SETUP + "result = right(fn.call_batch([xs, ys]))")
        calls = process.calls()
    names = [call.split()[0] for call in calls]
    assert [names.count(name) for name in ("lock", "allocate", "release", "unlock")] == [1] * 4


def test_little_freed_memory_is_kept_and_in_a_pool_of_our_own(child) -> None:
    with child() as process:
        process.ask(SETUP + "fn.call_batch([xs, ys])")
        assert f"cuMemPoolSetAttribute 4 {256 << 20}" in process.calls()


# Threads, contexts, streams


def test_threads_share_one_kernel_and_get_right_values(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def work(k):\n"
        "    return right(fn.call_batch_on(k % 2, [xs + k, ys]), xs + k)\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    result = all(pool.map(work, range(64)))"
    )
    assert two_gpus.ask(code)
    assert sum(call.startswith("load") for call in two_gpus.calls()) == 2


def test_nothing_is_locked_while_the_driver_works(child) -> None:
    code = SETUP + (
        "import threading\n"
        "threads = [threading.Thread(target=fn.call_batch, args=([xs, ys],)) for _ in range(6)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "result = right(fn.call_batch([xs, ys]))"
    )
    with child(FAKE_CUDA_MEET="6") as process:
        assert process.ask(code) is True
        calls = process.calls()
    assert calls.count("met") == 7
    assert "missed" not in calls


def test_the_callers_context_is_current_again_afterwards(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "from cuda.bindings import driver\n"
        "from cuda.core import Device\n"
        "current = lambda: int(driver.cuCtxGetCurrent()[1])\n"
        "before = current()\n"
        "fn.call_batch([xs, ys])\n"
        "none = current()\n"
        "Device(1).set_current()\n"
        "mine = current()\n"
        "ok = right(fn.call_batch_on(0, [xs, ys]))\n"
        "after = current()\n"
        "driver.cuCtxSetCurrent(0)\n"
        "result = [before, none, mine == after != 0, ok]"
    )
    assert two_gpus.ask(code) == [0, 0, True, True]


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        ("None", "0x2"),
        ("0", "0x1"),
        ("1", "0x1"),
        ("2", "0x2"),
        ("0x1000", "0x1000"),
        ("type('S', (), {'__cuda_stream__': lambda self: (0, 0x1000)})()", "0x1000"),
        ("__import__('cuda.core').core.LEGACY_DEFAULT_STREAM", "0x1"),
        ("__import__('cuda.core').core.Stream.from_handle(0x1000)", "0x1000"),
    ],
)
def test_work_is_queued_on_the_callers_stream_and_complete(
    two_gpus: FakeGpuChild, stream: str, handle: str
) -> None:
    assert two_gpus.ask(SETUP + f"result = right(fn.call_batch([xs, ys], stream={stream}))")
    calls = [
        c for c in two_gpus.calls() if c.startswith(("upload", "launch", "download", "cuStream"))
    ]
    assert {call.split()[-1] for call in calls} == {handle}


def test_a_stream_of_another_device_is_refused(two_gpus: FakeGpuChild) -> None:
    with pytest.raises(Failed, match="belongs to device 1, the call is for device 0") as caught:
        two_gpus.ask(SETUP + "fn.call_batch([xs, ys], stream=0x1010)")
    assert caught.value.code == "E-CUDA-003"
    assert launches(two_gpus) == []
    assert two_gpus.ask(SETUP + "result = right(fn.call_batch_on(1, [xs, ys], stream=0x1010))")


def test_a_stream_that_is_being_captured_is_refused_before_anything_is_queued(
    two_gpus: FakeGpuChild,
) -> None:
    with pytest.raises(Failed, match="captured into a graph") as caught:
        two_gpus.ask(SETUP + "fn.call_batch([xs, ys], stream=0x1000)", FAKE_CUDA_CAPTURING="1")
    assert caught.value.code == "E-CUDA-004"
    assert launches(two_gpus) == []


@pytest.mark.parametrize("stream", ["'stream'", "1.5", "True", "-1", "object()"])
def test_what_is_no_stream_is_refused(two_gpus: FakeGpuChild, stream: str) -> None:
    with pytest.raises(Failed, match="not a CUDA stream") as caught:
        two_gpus.ask(SETUP + f"fn.call_batch([xs, ys], stream={stream})")
    assert caught.value.code == "E-INPUT-008"


def test_the_report_says_where_and_how_the_last_call_ran(two_gpus: FakeGpuChild) -> None:
    report = two_gpus.ask(SETUP + "fn.call_batch([xs, ys]); result = fn.report")
    seconds = report.pop("seconds")
    assert seconds > 0
    assert report == {
        "backend": "nvptx",
        "reason": "asked for by name",
        "device": 0,
        "device_name": "Fake GPU 0",
        "target": "sm_90",
        "dtype": "float64",
        "n": 1000,
        "launches": 1,
        "chunks": 1,
        "bytes_up": 16000,
        "bytes_down": 8000,
        "staging": "pinned",
    }
