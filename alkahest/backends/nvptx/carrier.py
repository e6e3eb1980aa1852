"""The loop of a copy thread, in machine code: a thread that runs it never needs the interpreter.

Python threads that copy and call the driver chunk by chunk would wait for the interpreter's lock
a dozen times per chunk, which costs more than the copies of a fast link. So the loop is a function
of LLVM IR, compiled once per process for its processor. It calls the driver through the addresses
of its functions, and shares nothing with other threads but the counter of chunks.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from alkahest.backends.nvptx import faults, targets
from alkahest.backends.nvptx.carrier_code import Driver, Lane, source

Carry = Callable[[int, int, int, int, int], int]
"""``carry(driver, job, lanes, depth, turns) -> status``.

Takes the addresses of a :class:`Driver`, of a :class:`Job`, and of an array of the addresses of
``depth`` instances of :class:`Lane`. Begins up to ``turns`` chunks, each in the lane that is free for
the longest time, and ends them all. A status that is not 0 holds a step (1 upload, 2 launch,
3 download, 4 wait) in its upper half and the driver's code in its lower one. After an error, or when
the job stops, lanes whose ``chunk`` is not -1 may still be in use by the device.
"""


class Rig:
    """What the loop knows of a lane; kept with the lane and filled in for every job.

    Args:
        host: address of the lane's page-locked memory.
        device: of its memory on the device.
        queue: handle of its stream.
        event: handle of its event.

    Attributes:
        record: for the loop.
        address: of the record.
    """

    def __init__(self, *, host: int, device: int, queue: int, event: int) -> None:
        self.record = Lane(host=host, device=device, queue=queue, event=event, chunk=-1)
        self.address = ctypes.addressof(self.record)
        self._count = -1
        self._table: Any = None

    def fill(self, addresses: list[int], *, with_table: bool) -> None:
        """Have the kernel called with the addresses of all arrays, or with one of their table."""
        record = self.record
        if with_table:
            self._table = (ctypes.c_uint64 * len(addresses))(*addresses)
            record.table = ctypes.addressof(self._table)
            addresses = [record.device]
        if len(addresses) != self._count:
            self._allocate(len(addresses))
        self._values[:] = [*addresses]
        record.chunk = -1
        record.copied_in = record.waited = record.copied_out = 0

    def _allocate(self, count: int) -> None:
        """Memory for the arguments, and for the pointers to them and to the number of points."""
        self._values = (ctypes.c_uint64 * count)()
        places = [ctypes.addressof(self._values) + 8 * k for k in range(count)]
        self._pointers = (ctypes.c_uint64 * (count + 1))(*places, self.address + Lane.count.offset)
        self.record.arguments = ctypes.addressof(self._pointers)
        self._count = count


_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64
)

_lock = threading.Lock()
_compiled: tuple[Carry, Any] | None = None  # the function, and the engine that owns its code


def carry() -> Carry:
    """The compiled loop; the first call in a process compiles it, in some milliseconds.

    Raises:
        CudaError: E-CUDA-001 where LLVM cannot be used.
    """
    global _compiled
    if _compiled is None:
        with _lock:
            if _compiled is None:
                engine = _compile(source())
                _compiled = (_PROTOTYPE(engine.get_function_address("carry")), engine)
    return _compiled[0]


def _compile(text: str) -> Any:
    """An execution engine that owns the code of ``text``.

    Not optimised: memory is slower than its loops as they stand, and whoever calls is waiting.
    """
    binding = targets.llvm()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=0,
        jit=True,
    )
    module = binding.parse_assembly(text, context=binding.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


@lru_cache(maxsize=1)
def of_driver() -> Driver:
    """The functions of the driver that this process has loaded.

    Raises:
        CudaError: E-CUDA-003, it lacks one.
    """
    from cuda.bindings import driver as cu

    def find(name: str) -> int:
        # The release of the oldest driver that is supported, so that signatures are those above.
        with faults.translated("E-CUDA-003", f"asking the driver for {name}"):
            result = cu.cuGetProcAddress(name.encode(), 12000, 0)
            return int(faults.check(result[:2], "cuGetProcAddress"))

    return Driver(
        upload=find("cuMemcpyHtoDAsync"),
        download=find("cuMemcpyDtoHAsync"),
        launch=find("cuLaunchKernel"),
        record=find("cuEventRecord"),
        wait=find("cuEventSynchronize"),
        clock=clock(),
    )


def clock() -> int:
    """Address of ``clock_gettime``, or 0 where the C library has none or cannot be asked."""
    try:
        function = ctypes.CDLL(None).clock_gettime
    except (AttributeError, OSError, TypeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0
