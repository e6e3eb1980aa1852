"""One call of a kernel: addresses of the columns, scratch memory, threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from alkahest.backends.cpu.jit import glue, strided
from alkahest.backends.cpu.jit.glue_code import LONG
from alkahest.backends.cpu.jit.runtime import runtime
from alkahest.backends.cpu.jit.threads import default_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.cpu.jit.compile import Kernel

_CYCLES = 3e9
"""Cycles of a second, about, of any processor of today."""

_SHARED_FROM = 60e-6
"""Seconds of work from which a call is shared; waking a worker costs the caller some 3e-6."""

_CHUNK, _SMALLEST_CHUNK = 25e-6, 5e-6
"""Seconds that a thread works before it takes the next points."""

_RELEASED_FROM = 20e-6
"""Seconds of work from which a fast call lets other threads of Python run."""

_ROUND = 64
"""Chunks are multiples of so many points, so that threads write to different lines of the cache."""

NEVER = 1 << 62

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Sharing(NamedTuple):
    """How calls of one kernel are shared.

    Attributes:
        threads: at most.
        shared_from: number of points from which they are.
        chunk: points that a thread takes at once.
    """

    threads: int
    shared_from: int
    chunk: int


ALONE = Sharing(1, NEVER, NEVER)


def seconds_per_point(kernel: Kernel) -> float:
    """Estimated time of one point in one thread."""
    return max(kernel.cost, 0.25) / _CYCLES


def released_from(kernel: Kernel) -> int:
    """Number of points from which the interpreter's lock is released."""
    return int(_RELEASED_FROM / seconds_per_point(kernel))


def shared_from(kernel: Kernel) -> int:
    """Number of points from which calls are shared."""
    return int(_SHARED_FROM / seconds_per_point(kernel))


def sharing(kernel: Kernel) -> Sharing:
    """How fast calls are shared, for as many threads as calls have by default."""
    threads = runtime().pool.have(default_threads())
    if threads == 1:
        return ALONE
    return Sharing(threads, shared_from(kernel), _rounded(_CHUNK / seconds_per_point(kernel)))


def run(
    kernel: Kernel,
    columns: Sequence[NDArray[Any]],
    outputs: Sequence[NDArray[Any]],
    n: int,
    threads: int | None,
) -> int:
    """Compute ``outputs``; returns the number of threads that took part.

    Args:
        kernel: loaded.
        columns: of the program's inputs, shape ``(n,)``, any stride.
        outputs: of the program's dtypes, shape ``(n,)``, any stride; one that is a column too is
            that very column.
        n: number of points.
        threads: at most; None leaves it to the amount of work.
    """
    if n == 0:
        return 1
    arrays = (*columns, *outputs)
    function, scratch = kernel.address, kernel.scratch
    starts = glue.addresses(arrays)
    data: Any
    if n == 1 or all(array.strides[0] == array.itemsize for array in arrays):
        data = (ctypes.c_void_p * len(arrays))(*starts)
    else:
        found = strided.plan(
            kernel.address,
            kernel.scratch,
            len(columns),
            [
                (start, array.strides[0], array.itemsize)
                for start, array in zip(starts, arrays, strict=True)
            ],
        )
        function, data, scratch = runtime().strided, found.data, found.scratch
    used, chunk = 1, n
    seconds = n * seconds_per_point(kernel)
    if threads != 1 and seconds >= (_SHARED_FROM if threads is None else 2 * _SMALLEST_CHUNK):
        used, chunk = _shares(n, seconds, threads)
    memory = ctypes.create_string_buffer(scratch * used + 64) if scratch else None
    start = -(-ctypes.addressof(memory) // 64) * 64 if memory is not None else 0
    if used == 1:
        entry(function)(data, start, 0, n)
        return 1
    record = ctypes.addressof(kernel.record) if seconds < LONG * _SHARED_FROM else 0
    return runtime().pool.share(
        function, ctypes.addressof(data), start, scratch, n, chunk, used, record
    )


def _shares(n: int, seconds: float, threads: int | None) -> tuple[int, int]:
    """Threads of a call, and the points of a chunk."""
    wanted = threads or default_threads()
    if wanted == 1:
        return 1, n
    each = seconds / n
    longest = min(_CHUNK, max(_SMALLEST_CHUNK, seconds / (2 * wanted)))
    chunk = _rounded(longest / each)
    wanted = min(wanted, -(-n // chunk))
    return (runtime().pool.have(wanted), chunk) if wanted > 1 else (1, n)


def _rounded(points: float) -> int:
    return -(-max(1, int(points)) // _ROUND) * _ROUND


def entry(address: int) -> Any:
    """The function at ``address`` for ``ctypes``, which releases the interpreter's lock."""
    return _Entry(address)


__all__ = ["ALONE", "Sharing", "entry", "released_from", "run", "shared_from", "sharing"]
