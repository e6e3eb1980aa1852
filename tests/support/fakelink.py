"""A device made of Python: its memory is the host's, its copies are copies, its kernels any function.

What the copy threads' machine code calls are the functions below, so that the code that runs on a
GPU runs here, and any call of it can be made to fail.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from alkahest.backends.nvptx import carrier
from alkahest.backends.nvptx.carrier import Rig
from alkahest.backends.nvptx.carrier_code import Driver

Kernel = Callable[[Sequence[int], int], None]
"""Called with the address of every array and the number of points."""

FAILED = 719

_P, _U, _Z = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
_SIGNATURES = {
    "upload": (_P, _P, _Z, _P),
    "download": (_P, _P, _Z, _P),
    "launch": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "record": (_P, _P),
    "wait": (_P,),
    "settle": (_P,),
}


class FakeLane:
    """A lane whose memory on the device is other memory of the host."""

    def __init__(self, size: int) -> None:
        self.host = np.full(size + 256, 0xFF, np.uint8)
        self.on_device = np.full(size + 256, 0xFF, np.uint8)
        host, device = (array.ctypes.data for array in (self.host, self.on_device))
        self.rig = Rig(host=host, device=device, queue=1, event=2)

    def is_intact(self) -> bool:
        """Whether nothing was written behind the memory."""
        ends = (self.host[-256:], self.on_device[-256:])
        return all(bool((end == 0xFF).all()) for end in ends)


class FakeDriver:
    """Functions of a driver that does everything at once.

    Args:
        kernel: what a launch does.
        arguments: number of arrays of the kernel.
        with_table: whether it gets their addresses as one array.

    Attributes:
        record: for the machine code.
        calls: how often each function was called.
        copied: bytes of each copy, by function.
        grids: blocks of each launch.
        failing: function -> the number of the call, from 1 on, that fails.
    """

    def __init__(self, kernel: Kernel, arguments: int, *, with_table: bool = False) -> None:
        self.calls: Counter[str] = Counter()
        self.copied: dict[str, list[int]] = {"upload": [], "download": []}
        self.grids: list[int] = []
        self.failing: dict[str, int] = {}
        self.load(kernel, arguments, with_table=with_table)
        self._lock = threading.Lock()
        self._functions = {
            name: ctypes.CFUNCTYPE(ctypes.c_int, *types)(getattr(self, f"_{name}"))
            for name, types in _SIGNATURES.items()
        }
        addresses = {
            name: ctypes.cast(function, _P).value for name, function in self._functions.items()
        }
        self.record = Driver(**addresses, clock=carrier.clock())

    def load(self, kernel: Kernel, arguments: int, *, with_table: bool = False) -> None:
        """Have launches do something else from now on."""
        self._kernel = kernel
        self._arguments = arguments
        self._with_table = with_table

    def _fails(self, name: str) -> bool:
        with self._lock:
            self.calls[name] += 1
            return self.calls[name] == self.failing.get(name)

    def _upload(self, to: int, source: int, size: int, stream: int) -> int:
        return self._copy("upload", to, source, size)

    def _download(self, to: int, source: int, size: int, stream: int) -> int:
        return self._copy("download", to, source, size)

    def _copy(self, name: str, to: int, source: int, size: int) -> int:
        if self._fails(name):
            return FAILED
        ctypes.memmove(to, source, size)
        self.copied[name].append(size)
        return 0

    def _launch(self, function: int, grid: int, *rest: int) -> int:
        if self._fails("launch"):
            return FAILED
        self.grids.append(grid)
        count = 1 if self._with_table else self._arguments
        pointers = ctypes.cast(rest[-2], ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
        addresses = [int(pointers[k][0]) for k in range(count)]
        if self._with_table:
            table = ctypes.cast(addresses[0], ctypes.POINTER(ctypes.c_uint64))
            addresses = [int(table[k]) for k in range(self._arguments)]
        self._kernel(addresses, int(pointers[count][0]))
        return 0

    def _record(self, event: int, stream: int) -> int:
        return FAILED if self._fails("record") else 0

    def _wait(self, event: int) -> int:
        return FAILED if self._fails("wait") else 0

    def _settle(self, stream: int) -> int:
        return FAILED if self._fails("settle") else 0


def at(address: int, dtype: str, n: int) -> np.ndarray:
    """The ``n`` values at an address."""
    size = np.dtype(dtype).itemsize * n
    memory = (ctypes.c_ubyte * size).from_address(address)
    return np.frombuffer(memoryview(memory), dtype)
