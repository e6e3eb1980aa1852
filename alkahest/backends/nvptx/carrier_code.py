"""The records that the copy threads' loop shares with Python, and its whole text."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from alkahest.backends.nvptx.carrier_copies import COPIES, COPY_SPARSE
from alkahest.backends.nvptx.carrier_desk import DESK
from alkahest.backends.nvptx.carrier_loop import LOOP
from alkahest.backends.nvptx.carrier_places import PLACES


class _Record(ctypes.Structure):
    """Fields of 64 bits each, which the code below reads and writes by their names."""


def _fields(names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_int64) for name in names.split()]


class Driver(_Record):
    """Addresses of driver functions, and of ``clock_gettime``, or 0 not to take times.

    Functions: cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuLaunchKernel, cuEventRecord,
    cuEventSynchronize, cuStreamSynchronize.
    """

    _fields_ = _fields("upload download launch record wait settle clock")


class Desk(_Record):
    """Where callers leave jobs, and threads find them.

    ``take``, ``give``: addresses of ``sem_wait`` and ``sem_post``. ``lock``, ``work``: addresses of
    semaphores, the one held while anything of the desk or of who is at a job is read or changed,
    the other given for every thread that may find something to do. ``jobs``: address of an array
    of ``seats`` addresses of :class:`Job`, or 0. ``cursor``: the seat that is looked at first. With
    ``closed`` threads end that find nothing.
    """

    _fields_ = _fields("take give lock work jobs seats cursor closed")


class Track(_Record):
    """An array: address of its first value, bytes from one to the next and of one, and where in
    a block its chunk lies."""

    _fields_ = _fields("address stride itemsize offset")


class Job(_Record):
    """A batch, as all threads see it.

    ``next`` counts the chunks that were begun, up to ``chunks`` and beyond; with ``stop`` none is
    begun any more. The first of them has ``first`` points, the others ``points``, all ``n``. The first ``up`` bytes of a block are
    uploaded, those from ``down`` to ``end`` downloaded. ``tracks`` is the address of an array of
    :class:`Track`: staged inputs up to ``staged``, locked inputs up to ``inputs``, locked outputs
    up to ``locked``, staged outputs up to ``outputs``. ``kernel`` is launched with ``block``
    threads a block; ``grid`` are the blocks for ``points`` points, ``first_grid`` for those of the
    first chunk, ``last_grid`` for those of the last. ``around`` is not 0 where results
    bypass the caches.

    ``addresses`` is that of an array, ``arrays`` long, of what the kernel gets for each array: an
    address, or the complement of an offset in a block: in the device's for the first ``copied``
    of them, in the host's for the others. ``table`` is not 0 where it gets them as a table at the
    beginning of the device's block.

    ``turns`` chunks are carried by a thread before it looks at the jobs of others. ``active``
    threads are at the job, never more than ``most``. When the last has left, ``over`` is 1 and the
    semaphore at ``done`` was given; it is :data:`LEFT` when the caller has taken the job from the
    desk. ``status`` is the first failure, see
    :class:`alkahest.backends.nvptx.carrier.Code`, or 0. The rest are sums of nanoseconds.
    """

    _fields_ = _fields(
        "next stop chunks points n up down end tracks staged inputs locked outputs"
        " first kernel block grid first_grid last_grid around"
        " addresses arrays copied table"
        " turns active most over done status copied_in waited copied_out"
    )


LEFT = 2
"""Value of ``Job.over`` when no thread knows the job any more."""


class Lane(_Record):
    """A block of memory, as one thread uses it for one job.

    ``host``, ``device``: addresses. ``chunk``: the one that is in flight, or -1. ``start``: its
    first point; ``count``: its points, the kernel's last argument. ``pointers`` is the address of the array of pointers to all
    arguments, ``values`` of the array of the others; both have room for as many as a kernel has.
    The rest are sums of nanoseconds.
    """

    _fields_ = _fields(
        "host device queue event chunk start count values pointers copied_in waited copied_out"
    )


_RECORDS: dict[str, type[_Record]] = {
    "driver": Driver,
    "desk": Desk,
    "job": Job,
    "lane": Lane,
    "track": Track,
}
_GET = re.compile(r"^  (%[\w.]+) = get (\w+)\.(\w+)$", re.MULTILINE)
_AT = re.compile(r"^  (%[\w.]+) = at (\w+)\.(\w+)$", re.MULTILINE)
_PUT = re.compile(r"^  put (\w+)\.(\w+) (\S+)$", re.MULTILINE)


def source() -> str:
    """The module, with the accesses to fields of records written out."""

    def at(pointer: str, record: str, field: str) -> str:
        index = [row[0] for row in _RECORDS[record]._fields_].index(field)
        return f"  {pointer} = getelementptr i64, ptr %{record}, i64 {index}"

    # Another thread may change a field at any time, so each access stays where it stands.
    text = _GET.sub(
        lambda m: f"{at(m[1] + '.at', m[2], m[3])}\n  {m[1]} = load volatile i64, ptr {m[1]}.at",
        LOOP + DESK + PLACES + COPIES,
    )
    text = _AT.sub(lambda m: at(m[1], m[2], m[3]), text)
    text = _PUT.sub(
        lambda m: (
            f"{at(f'%at.{m.start()}', m[1], m[2])}\n  store volatile i64 {m[3]}, ptr %at.{m.start()}"
        ),
        text,
    )
    types = [
        f"%{name.capitalize()} = type {{ {', '.join(['i64'] * len(record._fields_))} }}"
        for name, record in _RECORDS.items()
    ]
    sparse = [COPY_SPARSE.format(size=size, bits=8 * size) for size in (1, 2, 4, 8, 16)]
    return "\n".join([*types, text, *sparse])
