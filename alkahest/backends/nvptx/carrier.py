"""What a copy thread does, in machine code: a thread that runs it never needs the interpreter.

Python threads that copy and call the driver chunk by chunk would wait for the interpreter's lock
a dozen times per chunk, which costs more than the copies of a fast link, and a millisecond or two to
begin and to end. So all of it is functions of LLVM IR, compiled once per process for its processor.
They call the driver and the C library through the addresses of their functions. What threads share is
the counter of a job's chunks and, under a lock, who is at which job.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import attrs

from alkahest.backends.nvptx import faults, targets
from alkahest.backends.nvptx.carrier_code import Driver, Lane, source
from alkahest.backends.nvptx.layout import MAX_SLOTS


@attrs.frozen(kw_only=True, eq=False)
class Code:
    """The compiled functions. Arguments are addresses of records of ``carrier_code``, and numbers.

    Carrying a job is to begin up to ``turns`` chunks, each in the lane that is free for the longest
    time, and to end them all. The status of a job that was stopped by a failure has a step (1 upload,
    2 launch, 3 download, 4 wait) in its upper half and the driver's code in its lower one.

    Attributes:
        serve: ``serve(driver, desk, lanes, depth)`` carries the jobs of a desk until it is closed,
            in lanes given by the address of an array of the addresses of ``depth`` of them, which
            the device uses no longer when another job is looked for.
        post: ``post(desk, job, seat, threads)`` leaves a job at a free seat and wakes the threads.
        wait: ``wait(desk, job, seat, patient)`` gives 0 when nobody is at the job any more and nobody
            will be; 1 where a signal has interrupted a caller that is not patient.
        stop: ``stop(desk, job)`` has no other chunk begun.
        engine: owns the code.
    """

    serve: Callable[[int, int, int, int], int]
    post: Callable[[int, int, int, int], int]
    wait: Callable[[int, int, int, int], int]
    stop: Callable[[int, int], int]
    engine: Any


class Rig:
    """What the loop knows of a lane, and memory for the arguments of a kernel.

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
        self._values = (ctypes.c_uint64 * MAX_SLOTS)()
        self._pointers = (ctypes.c_uint64 * (MAX_SLOTS + 1))()
        self.record = Lane(
            host=host,
            device=device,
            queue=queue,
            event=event,
            chunk=-1,
            values=ctypes.addressof(self._values),
            pointers=ctypes.addressof(self._pointers),
        )
        self.address = ctypes.addressof(self.record)


def _prototype(records: int, numbers: int) -> Any:
    """Type of a function of that many addresses of records, and of numbers."""
    return ctypes.CFUNCTYPE(
        ctypes.c_int64, *[ctypes.c_void_p] * records, *[ctypes.c_int64] * numbers
    )


_PROTOTYPES = {
    "serve": _prototype(3, 1),
    "post": _prototype(2, 2),
    "wait": _prototype(2, 2),
    "stop": _prototype(2, 0),
}

_lock = threading.Lock()
_compiled: Code | None = None


def code() -> Code:
    """The compiled functions; the first call in a process compiles them, in some milliseconds.

    Raises:
        CudaError: E-CUDA-001 where LLVM cannot be used.
    """
    global _compiled
    if _compiled is None:
        with _lock:
            if _compiled is None:
                engine = _compile(source())
                functions = {
                    name: prototype(engine.get_function_address(name))
                    for name, prototype in _PROTOTYPES.items()
                }
                _compiled = Code(**functions, engine=engine)
    return _compiled


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
        settle=find("cuStreamSynchronize"),
        clock=clock(),
    )


def clock() -> int:
    """Address of ``clock_gettime``, or 0 where the C library has none or cannot be asked."""
    try:
        function = ctypes.CDLL(None).clock_gettime
    except (AttributeError, OSError, TypeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0
