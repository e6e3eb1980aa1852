"""Memory that is known by its addresses, with a driver whose kernels add."""

from __future__ import annotations

import re

import pytest
from childprocess import Failed
from fakedriver import FakeGpuChild

SETUP = """
import numpy as np
x, y = ak.symbols("x y")
fn = ak.compile_cuda(x + 2*y, [x, y])
XS = np.arange(1000.0)
YS = XS + 0.5
"""


def launches(process: FakeGpuChild) -> list[str]:
    """Points and stream of every launch since the last question."""
    return [" ".join(c.split()[3:]) for c in process.calls() if c.startswith("launch")]


def test_addresses_are_evaluated_on_the_stream_and_device_asked_for(two_gpus: FakeGpuChild) -> None:
    code = SETUP + (
        "out = np.empty(1000)\n"
        "addresses = [XS.ctypes.data, YS.ctypes.data]\n"
        "given = fn.call_device_ptrs(addresses, 1000, [out.ctypes.data])\n"
        "result = [given is None and bool(np.array_equal(out, XS + 2*YS))]\n"
        "fn.call_device_ptrs(addresses, 10, [out.ctypes.data], stream=0x1010, device=1)\n"
        "fn.call_device_ptrs(np.array(addresses), np.int64(0), [0])"
    )
    assert two_gpus.ask(code) == [True]
    assert launches(two_gpus) == ["1000 0x1", "10 0x1010"]


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("[8], 5, [8]", "E-INPUT-001", "expected the addresses of 2 inputs, got 1"),
        ("[8, 8], 5, []", "E-INPUT-009", "expected the addresses of 1 outputs, got 0"),
        ("[8, 8], -1, [8]", "E-INPUT-011", "n must be an integer of at least 0, got -1"),
        ("[8, 8], 1.5, [8]", "E-INPUT-011", "got 1.5"),
        ("[8, 8], True, [8]", "E-INPUT-011", "got True"),
        ("8, 5, [8]", "E-INPUT-008", "the addresses of the inputs must be integers, got 8"),
        ("[8, 8], 5, [None]", "E-INPUT-008", "the addresses of the outputs must be integers"),
        ("[8, 8.0], 5, [8]", "E-INPUT-008", "must be integers, got [8, 8.0]"),
        ("[8, 0], 5, [8]", "E-INPUT-011", "input 1: 0x0 is no address of 5 aligned"),
        ("[8, 8], 5, [12]", "E-INPUT-011", "output 0: 0xc is no address of 5 aligned"),
        ("[-8, 8], 5, [8]", "E-INPUT-011", "input 0: -0x8 is no address"),
        ("[8, 2**64 - 8], 5, [8]", "E-INPUT-011", "input 1: 0xfffffffffffffff8 is no address"),
        ("[8, 8], 2**70, [8]", "E-INPUT-011", "elements of float64"),
        ("[8, 8], 2**46, [8]", "E-CUDA-004", "more than one launch computes"),
        ("[8, 8], 5, [8], stream='s'", "E-INPUT-008", "not a CUDA stream"),
        ("[8, 8], 5, [8], device='s'", "E-INPUT-008", "not a device ordinal"),
        ("[8, 8], 5, [8], device=2", "E-CUDA-003", "device 2 was asked for"),
    ],
)
def test_what_cannot_be_addresses_is_refused_before_the_device_is_touched(
    two_gpus: FakeGpuChild, call: str, code: str, words: str
) -> None:
    with pytest.raises(Failed, match=re.escape(words)) as caught:
        two_gpus.ask(SETUP + f"fn.call_device_ptrs({call})")
    assert caught.value.code == code
    assert launches(two_gpus) == []
