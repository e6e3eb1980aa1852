"""Large batches of host arrays: threads, chunks, page-locked memory, with the fake driver."""

from __future__ import annotations

import pytest
from childprocess import Failed
from fakedriver import FakeGpuChild
from hostbatches import CALL, LOCK, SETUP, THREE, count

from alkahest.backends.nvptx.hostlink import LANE_BYTES, LANES_PER_THREAD

# How it goes


def test_a_large_batch_goes_in_chunks_through_streams_of_its_own(
    three_threads: FakeGpuChild,
) -> None:
    report = three_threads.ask(
        SETUP + "assert right(fn.call_batch([xs, ys]))\nresult = [fn.report, len(xs)]"
    )
    report, n = report
    calls = three_threads.calls()
    launches = [call.split() for call in calls if call.startswith("launch")]
    assert report["chunks"] == report["launches"] == len(launches) > 1
    assert sum(int(points) for _, _, _, points, _ in launches) == n
    assert {stream for *_, stream in launches} & {"0x1", "0x2"} == set()
    assert len({stream for *_, stream in launches}) <= 6
    assert count(calls, "upload") == count(calls, "download") == len(launches)
    assert report["staging"] == "pinned"
    assert (report["bytes_up"], report["bytes_down"]) == (16 * n, 8 * n)
    assert all(report[f"seconds_{phase}"] > 0 for phase in ("copying_in", "copying_out"))
    assert report["seconds_waiting"] >= 0


def test_buffers_are_allocated_once_and_given_back_at_exit(child) -> None:
    with child(**THREE) as process:
        process.ask(CALL)
        first = process.calls()
        for _ in range(3):
            assert process.ask(CALL)
            assert process.ask(
                SETUP + "result = right(fn.call_batch([xs[:9], ys[:9]]), xs[:9], ys[:9])"
            )
        later = process.calls()
    at_exit = process.calls()
    assert 0 < count(first, "lock") <= 6
    # Threads that had not been needed before may join, and one block serves small batches.
    assert count(first + later, "lock") <= 7
    every = first + later + at_exit
    assert count(every, "lock") == count(every, "unlock")
    assert count(every, "allocate") == count(every, "release")
    assert count(every, "cuEventCreate") == count(every, "cuEventDestroy")


def test_a_large_result_takes_over_the_memory_of_one_that_is_gone(child) -> None:
    code = (
        SETUP
        + """
big = np.arange(1e6)
places = set()
for _ in range(3):
    product = fn.call_batch([big, big])
    assert right(product, big, big)
    places.add(product.ctypes.data)
    del product
result = len(places)
"""
    )
    with child(**THREE) as process:
        assert process.ask(code) == 1


def test_page_locked_memory_is_bounded_whatever_the_batch(child) -> None:
    with child(**THREE) as process:
        code = SETUP + "big = np.arange(5e6); result = right(fn.call_batch([big, big]), big, big)"
        assert process.ask(code)
        sizes = [int(call.split()[1]) for call in process.calls() if call.startswith("lock")]
        assert sum(sizes) <= 3 * LANES_PER_THREAD * LANE_BYTES


def test_device_memory_is_bounded_whatever_the_batch(child) -> None:
    with child(FAKE_CUDA_MEMORY=str(5 * LANE_BYTES // 2), **THREE) as process:
        code = SETUP + "big = np.arange(5e6); result = right(fn.call_batch([big, big]), big, big)"
        assert process.ask(code)
        sizes = [int(call.split()[1]) for call in process.calls() if call.startswith("allocate")]
        # The third does not fit; whether it is asked for depends on which thread comes first.
        assert sizes in ([LANE_BYTES] * 2, [LANE_BYTES] * 3)


@pytest.mark.parametrize("points", ["1000", "65536", "200003", "10000000"])
def test_the_environment_limits_the_points_of_a_chunk(
    three_threads: FakeGpuChild, points: str
) -> None:
    report = three_threads.ask(
        CALL + "\nresult = [result, fn.report['chunks']]", ALKAHEST_CUDA_CHUNK=points
    )
    assert report[0] is True
    assert report[1] >= -(-200_003 // int(points))
    if points == "1000":
        assert report[1] == 201


@pytest.mark.parametrize(
    "column",
    [
        "np.repeat(xs, 3)[::3]",
        "xs[::-1].copy()[::-1]",
        "np.array([xs, ys]).T[:, 0]",
        "np.frombuffer(b'?' + xs.tobytes(), offset=1)",
    ],
)
def test_large_columns_of_any_layout_give_the_same_values(
    three_threads: FakeGpuChild, column: str
) -> None:
    code = SETUP + (
        "table = np.full((n, 3), -1.0)\n"
        f"fn.call_batch([{column}, ys], out=table[:, 1])\n"
        "result = [right(table[:, 1]), bool((table[:, [0, 2]] == -1).all())]"
    )
    assert three_threads.ask(code) == [True, True]


def test_one_value_is_uploaded_once_for_a_large_batch(three_threads: FakeGpuChild) -> None:
    code = SETUP + (
        "big = np.arange(1.5e6)\n"
        "got = fn.call_batch([big, 3.0])\n"
        "result = [right(got, big, 3.0), fn.report['bytes_up']]"
    )
    assert three_threads.ask(code) == [True, 8 * (1_500_000 + 65_536)]
    spread = [int(call.split()[1]) for call in three_threads.calls() if call.startswith("spread")]
    assert spread[0] == 8 * 65_536
    assert sum(spread) < 8 * 250_000


def test_many_columns_go_through_a_table_in_every_chunk(three_threads: FakeGpuChild) -> None:
    code = """
import numpy as np
symbols = [ak.symbols(f"x{k}")[0] for k in range(520)]
fn = ak.compile_cuda(symbols[0].pool.add(symbols), symbols)
columns = [np.arange(1000.0) + k for k in range(520)]
want = sum((k + 1) * column for k, column in enumerate(columns))
result = [np.array_equal(fn.call_batch(columns), want), fn.report["chunks"] > 1]
"""
    assert three_threads.ask(code, FAKE_CUDA_TABLE="520") == [True, True]


def test_a_batch_that_is_not_large_is_not_copied_by_the_device(
    three_threads: FakeGpuChild,
) -> None:
    mapped = SETUP + "hostbatch.MAPPED_CREW_BYTES = 24 * n\n"
    assert three_threads.ask(mapped + "result = right(fn.call_batch([xs, ys]))")
    calls = three_threads.calls()
    assert count(calls, "launch") > 1
    assert count(calls, "upload") == count(calls, "download") == 0
    assert three_threads.ask(mapped + "result = right(fn.call_batch([xs, 3.0]), xs, 3.0)")
    assert count(three_threads.calls(), "upload") == 1
    longer = "more = np.arange(n + 1.0)\nresult = right(fn.call_batch([more, more]), more, more)"
    assert three_threads.ask(mapped + longer)
    calls = three_threads.calls()
    assert count(calls, "upload") == count(calls, "download") == count(calls, "launch")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_may_ask_for_fewer_threads(three_threads: FakeGpuChild, threads: int) -> None:
    code = SETUP + f"result = right(fn.call_batch([xs, ys], threads={threads}))"
    assert three_threads.ask(code)
    streams = {call.split()[-1] for call in three_threads.calls() if call.startswith("launch")}
    assert len(streams) <= 2 * threads


def test_two_devices_share_a_large_batch(child) -> None:
    with child(FAKE_CUDA_COUNT="2", **THREE) as process:
        code = SETUP + (
            "out = np.empty(n)\n"
            "fn.call_batch([xs, ys], device='all', out=out)\n"
            "parts = fn.report['devices']\n"
            "result = [right(out), [p['device'] for p in parts], [p['n'] for p in parts]]"
        )
        for _ in range(2):
            assert process.ask(code) == [True, [0, 1], [100_001, 100_002]]


def test_the_work_waits_for_the_callers_stream(three_threads: FakeGpuChild) -> None:
    assert three_threads.ask(SETUP + "result = right(fn.call_batch([xs, ys], stream=0x1000))")
    calls = three_threads.calls()
    waited = calls.index("cuStreamSynchronize 0x1000")
    assert waited < next(i for i, call in enumerate(calls) if call.startswith("upload"))


# In the calling thread

COPIED = """
from alkahest.backends.nvptx import hostbatch
hostbatch.MAPPED_BYTES, before = 0, hostbatch.MAPPED_BYTES
try:
    result = right(fn.call_batch([xs[:999], ys[:999]]), xs[:999], ys[:999])
finally:
    hostbatch.MAPPED_BYTES = before
"""


def test_a_small_batch_is_not_copied_by_the_device(three_threads: FakeGpuChild) -> None:
    code = SETUP + "result = right(fn.call_batch([xs[:999], ys[:999]]), xs[:999], ys[:999])"
    assert three_threads.ask(code)
    calls = three_threads.calls()
    assert [call.split()[-2:] for call in calls if "launch" in call] == [["999", "0x2"]]
    assert count(calls, "upload") == count(calls, "download") == 0


def test_a_small_batch_can_go_through_the_devices_memory(three_threads: FakeGpuChild) -> None:
    assert three_threads.ask(SETUP + COPIED)
    calls = [call.split()[0] for call in three_threads.calls() if call.endswith(" 0x2")]
    assert calls[-4:] == ["upload", "launch", "download", "cuStreamSynchronize"]


@pytest.mark.parametrize("setting", ["FAKE_CUDA_COPY", "FAKE_CUDA_DOWNLOAD"])
def test_a_copy_that_is_refused_there_is_reported(
    three_threads: FakeGpuChild, setting: str
) -> None:
    with pytest.raises(Failed, match=r"copying (columns to|results from) device 0") as caught:
        three_threads.ask(SETUP + COPIED, **{setting: "1"})
    assert caught.value.code == "E-CUDA-003"
    assert three_threads.ask(SETUP + COPIED)


@pytest.mark.parametrize("inputs", ["xs, ys", "xs, 3.0"])
def test_a_large_batch_without_threads_goes_through_one_block(
    three_threads: FakeGpuChild, inputs: str
) -> None:
    code = SETUP + (
        "from alkahest.backends.nvptx.crew import Crew\n"
        "run, Crew.run = Crew.run, lambda self, job: False\n"
        "try:\n"
        f"    got = fn.call_batch([{inputs}])\n"
        "finally:\n"
        "    Crew.run = run\n"
        f"result = [right(got, {inputs}), fn.report['chunks']]"
    )
    values, chunks = three_threads.ask(code)
    assert values
    assert chunks == -(-24 * 200_003 // (1 << 20))


# Page-locked arrays of the caller


def test_page_locked_arrays_are_not_staged(three_threads: FakeGpuChild) -> None:
    code = (
        SETUP
        + LOCK
        + (
            "out = np.empty(n)\n"
            "with Locked(xs, ys, out):\n"
            "    fn.call_batch([xs, ys], out=out)\n"
            "result = [right(out), fn.report['staging'], fn.report['chunks']]"
        )
    )
    values, staging, chunks = three_threads.ask(code)
    assert (values, staging) == (True, "direct")
    calls = three_threads.calls()
    assert count(calls, "upload") == 2 * chunks
    sizes = [int(call.split()[1]) for call in calls if call.startswith("download")]
    assert sum(sizes) == 8 * 200_003


@pytest.mark.parametrize("locked", ["xs", "ys", "out"])
def test_page_locked_arrays_go_beside_others(three_threads: FakeGpuChild, locked: str) -> None:
    code = (
        SETUP
        + LOCK
        + (
            "out = np.empty(n)\n"
            f"with Locked({locked}):\n"
            "    fn.call_batch([xs, ys], out=out)\n"
            "result = [right(out), fn.report['staging']]"
        )
    )
    assert three_threads.ask(code) == [True, "pinned"]


@pytest.mark.parametrize(
    ("made", "part"),
    [("np.empty(2 * n)", "[::2]"), ("np.empty(n)", "[::-1]")],
    ids=["strided", "reversed"],
)
def test_page_locked_arrays_with_gaps_are_staged(
    three_threads: FakeGpuChild, made: str, part: str
) -> None:
    code = (
        SETUP
        + LOCK
        + (
            f"memory = {made}\nmemory{part} = xs\n"
            "with Locked(memory, ys):\n"
            f"    got = fn.call_batch([memory{part}, ys])\n"
            "result = [right(got), fn.report['staging']]"
        )
    )
    assert three_threads.ask(code) == [True, "pinned"]


def test_an_array_of_which_only_a_part_is_page_locked_is_staged(
    three_threads: FakeGpuChild,
) -> None:
    code = (
        SETUP
        + LOCK
        + (
            "with Locked(xs[: n // 2], ys):\n"
            "    got = fn.call_batch([xs, ys])\n"
            "    whole = fn.report['staging']\n"
            "    half = fn.call_batch([xs[: n // 2], ys[: n // 2]])\n"
            "result = [right(got), right(half, xs[: n // 2], ys[: n // 2])]"
        )
    )
    assert three_threads.ask(code) == [True, True]


# Several callers


def test_eight_threads_at_once_get_their_own_results(three_threads: FakeGpuChild) -> None:
    code = SETUP + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def work(k):\n"
        "    part = slice(0, n - 1000 * k)\n"
        "    return right(fn.call_batch([xs[part] + k, ys[part]]), xs[part] + k, ys[part])\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    result = all(pool.map(work, range(32)))"
    )
    assert three_threads.ask(code)
    assert count(three_threads.calls(), "lock") <= 7


def test_two_devices_have_links_of_their_own(child) -> None:
    with child(FAKE_CUDA_COUNT="2", **THREE) as process:
        code = SETUP + (
            "results = [fn.call_batch_on(k, [xs, ys]) for k in (0, 1)]\n"
            "result = all(map(right, results))"
        )
        assert process.ask(code)
        streams = {call.split()[-1] for call in process.calls() if call.startswith("launch")}
        assert {int(stream, 16) >> 16 for stream in streams} == {0x10, 0x11}
    calls = process.calls()
    assert count(calls, "unlock") <= 12
