"""The records that the copy threads' loop shares with Python, and its whole text."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from alkahest.backends.nvptx.carrier_copies import COPIES, COPY_SPARSE
from alkahest.backends.nvptx.carrier_loop import LOOP


class _Record(ctypes.Structure):
    """Fields of 64 bits each, which the code below reads and writes by their names."""


def _fields(names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_int64) for name in names.split()]


class Driver(_Record):
    """Addresses of driver functions, and of ``clock_gettime``, or 0 not to take times.

    Functions: cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuLaunchKernel, cuEventRecord,
    cuEventSynchronize.
    """

    _fields_ = _fields("upload download launch record wait clock")


class Track(_Record):
    """An array: address of its first value, bytes from one to the next and of one, and where in
    a block its chunk lies."""

    _fields_ = _fields("address stride itemsize offset")


class Job(_Record):
    """A batch, as all threads see it.

    ``next`` counts the chunks that were begun, up to ``chunks`` and beyond; with ``stop`` none is
    begun any more. Chunks have ``points`` points, all ``n``. The first ``up`` bytes of a block are
    uploaded, those from ``down`` to ``end`` downloaded. ``tracks`` is the address of an array of
    :class:`Track`: staged inputs up to ``staged``, locked inputs up to ``inputs``, locked outputs
    up to ``locked``, staged outputs up to ``outputs``. ``kernel`` is launched with ``block``
    threads a block and ``grid`` blocks, ``last_grid`` for the last chunk. ``table`` bytes of
    addresses begin each block. ``stream`` is not 0 where results bypass the caches.
    """

    _fields_ = _fields(
        "next stop chunks points n up down end tracks staged inputs locked outputs"
        " kernel block grid last_grid table stream"
    )


class Lane(_Record):
    """A block of memory, as one thread uses it for one job.

    ``host``, ``device``: addresses. ``chunk``: the one that is in flight, or -1. ``count``: its
    points, the kernel's last argument; ``arguments`` is the address of the array of pointers to
    all arguments. ``table``: address of the addresses that begin the block. The rest are sums of
    nanoseconds.
    """

    _fields_ = _fields(
        "host device queue event chunk count arguments table copied_in waited copied_out"
    )


_RECORDS: dict[str, type[_Record]] = {"driver": Driver, "job": Job, "lane": Lane, "track": Track}
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
        LOOP + COPIES,
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
