"""Pieces of code that child processes run on large batches of host arrays."""

from __future__ import annotations

SETUP = """
import os, threading
import numpy as np
from alkahest.backends.nvptx import hostbatch
hostbatch.MAPPED_CREW_BYTES, hostbatch.LOCKED_BYTES = 0, 1 << 20
x, y = ak.symbols("x y")
fn = ak.compile_cuda(x + 2*y, [x, y])
n = 200_003
xs = np.arange(float(n))
ys = xs + 0.5
def right(values, xs=xs, ys=ys):
    return bool(np.array_equal(values, xs + 2*ys))
"""
CALL = SETUP + "result = right(fn.call_batch([xs, ys]))"

LOCK = """
from cuda.bindings import driver
driver.cuDevicePrimaryCtxRetain(0)
class Locked:
    def __init__(self, *arrays):
        self.arrays = arrays
    def __enter__(self):
        driver.cuCtxPushCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
        for a in self.arrays: driver.cuMemHostRegister(a.ctypes.data, a.nbytes, 0)
    def __exit__(self, *exc):
        for a in self.arrays: driver.cuMemHostUnregister(a.ctypes.data)
        driver.cuCtxPopCurrent()
"""
"""Code with a context manager that registers arrays as page-locked."""

THREE = {"ALKAHEST_COPY_THREADS": "3"}
"""Settings of a child with three copy threads."""


def count(calls: list[str], name: str) -> int:
    """How many calls of the fake driver have this name."""
    return sum(call.split()[0] == name for call in calls)
