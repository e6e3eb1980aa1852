"""Large batches of host arrays that fail, are interrupted or forked, with the fake driver."""

from __future__ import annotations

import re

import pytest
from childprocess import Failed
from fakedriver import FakeGpuChild
from hostbatches import CALL, SETUP, THREE, count

FAULTS = {
    "FAKE_CUDA_STREAM": ("2", "E-CUDA-003", "creating a stream"),
    "FAKE_CUDA_EVENT": ("2", "E-CUDA-003", "creating an event"),
    "FAKE_CUDA_LOCK": ("2", "E-CUDA-003", r"allocating \d+ bytes of page-locked memory"),
    "FAKE_CUDA_ALLOC": ("2", "E-CUDA-003", r"allocating \d+ bytes on"),
    "FAKE_CUDA_COPY": ("1", "E-CUDA-003", "copying columns to"),
    "FAKE_CUDA_LAUNCH": ("701", "E-CUDA-006", "running a kernel"),
    "FAKE_CUDA_DOWNLOAD": ("1", "E-CUDA-003", "copying results from"),
    "FAKE_CUDA_RECORD": ("1", "E-CUDA-003", "copying results from"),
}


@pytest.mark.parametrize("setting", FAULTS)
def test_a_refusal_is_reported_and_leaves_nothing_behind(child, setting: str) -> None:
    value, code, text = FAULTS[setting]
    with child(**THREE) as process:
        assert process.ask(SETUP + "result = fn.call_batch([[1.0], [2.0]])") == [5.0]
        with pytest.raises(Failed, match=text) as caught:
            process.ask(CALL, **{setting: value})
        assert caught.value.code == code
        assert f"({value})" in caught.value.message
        assert "device 0, Fake GPU 0" in caught.value.message
        assert process.ask(CALL)
    calls = process.calls()
    assert count(calls, "lock") == count(calls, "unlock")
    assert count(calls, "allocate") == count(calls, "release")


def test_a_kernel_that_fails_among_many_chunks_is_reported_as_that(child) -> None:
    with child(FAKE_CUDA_FAILS="700", **THREE) as process:
        for _ in range(2):
            with pytest.raises(
                Failed, match=re.escape("CUDA_ERROR_ILLEGAL_ADDRESS (700)")
            ) as caught:
                process.ask(CALL)
            assert caught.value.code == "E-CUDA-006"
            assert "start a new process" in caught.value.remedy


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_a_number_of_threads_that_is_none_is_refused(child, text: str) -> None:
    with child(ALKAHEST_COPY_THREADS=text) as process:
        with pytest.raises(Failed, match="ALKAHEST_COPY_THREADS=") as caught:
            process.ask(CALL)
        assert caught.value.code == "E-INPUT-011"
        assert process.ask(CALL, ALKAHEST_COPY_THREADS="2")


def test_an_interrupted_call_leaves_nothing_in_flight_and_a_usable_function(child) -> None:
    code = SETUP + (
        "import signal, time\n"
        "fn.call_batch([xs, ys])\n"
        "out = np.zeros(n)\n"
        "os.environ['FAKE_CUDA_SLEEP_MS'] = '5'\n"
        "os.environ['ALKAHEST_CUDA_CHUNK'] = '1000'\n"
        "threading.Timer(0.15, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    fn.call_batch([xs, ys], out=out)\n"
        "except KeyboardInterrupt:\n"
        "    interrupted = True\n"
        "done = int((out != 0).sum())\n"
        "time.sleep(0.1)\n"
        "del os.environ['FAKE_CUDA_SLEEP_MS'], os.environ['ALKAHEST_CUDA_CHUNK']\n"
        "still = int((out != 0).sum()) == done\n"
        "result = [interrupted, done < n, still, right(fn.call_batch([xs, ys], out=out))]"
    )
    with child(**THREE) as process:
        assert process.ask(code) == [True, True, True, True]


def test_arrays_are_let_go_when_a_call_is_over(three_threads: FakeGpuChild) -> None:
    code = SETUP + (
        "import sys, time\n"
        "out = np.empty(n)\n"
        "counts = lambda: [sys.getrefcount(a) for a in (xs, ys, out)]\n"
        "before = counts()\n"
        "fn.call_batch([xs, ys], out=out)\n"
        "time.sleep(0.05)\n"
        "result = [before, counts()]"
    )
    before, after = three_threads.ask(code)
    assert before == after


def test_a_forked_child_is_refused_and_gives_nothing_back(child) -> None:
    code = (
        CALL
        + """
pid = os.fork()
if pid == 0:
    try:
        fn.call_batch([xs, ys])
    except ak.CudaError as error:
        code = 7 if "forked" in error.message else 8
    import atexit
    atexit._run_exitfuncs()
    os._exit(code)
result = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), right(fn.call_batch([xs, ys]))]
"""
    )
    with child(**THREE) as process:
        assert process.ask(code) == [7, True]
        assert count(process.calls(), "unlock") == 0


def test_a_process_may_end_while_its_threads_are_at_work(child) -> None:
    code = SETUP + (
        "import time\n"
        "threading.Thread(target=fn.call_batch, args=([xs, ys],), daemon=True).start()\n"
        "copying = lambda: sum('copy' in t.name for t in threading.enumerate())\n"
        "end = time.monotonic() + 30\n"
        "while copying() < 3 and time.monotonic() < end: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "result = copying()"
    )
    with child(FAKE_CUDA_SLEEP_MS="100", ALKAHEST_CUDA_CHUNK="1000", **THREE) as process:
        assert process.ask(code) == 3
    assert count(process.calls(), "unlock") == 0  # they are still using it
