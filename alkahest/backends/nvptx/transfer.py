"""Host columns to device buffers and back, and how many points go at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.backends.nvptx import faults
from alkahest.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK_VARIABLE = "ALKAHEST_CUDA_CHUNK"
"""Environment variable: the largest number of points on the device at once."""

USED_SHARE = 0.8
"""Share of the free device memory that one call takes."""

# A spread scalar is uploaded this often and then doubled on the device.
_SPREAD_POINTS = 1 << 16


@attrs.define
class Traffic:
    """Bytes that one call has moved."""

    up: int = 0
    down: int = 0


def chunk_points(n: int, bytes_per_point: int, free: int | None) -> int:
    """Points of one chunk: all ``n``, or what fits into the memory and the environment allows.

    Args:
        n: points of the batch, at least 1.
        bytes_per_point: of every input and output together.
        free: bytes of device memory that can be allocated, or None where it is plenty.

    Raises:
        InputError: E-INPUT-011 where the environment variable is not a positive integer.
    """
    points = n
    if free is not None:
        points = min(n, max(1, int(free * USED_SHARE) // bytes_per_point))
    text = os.environ.get(CHUNK_VARIABLE, "").strip()
    if not text:
        return points
    if not text.isdecimal() or int(text) == 0:
        raise InputError(
            "E-INPUT-011",
            f"{CHUNK_VARIABLE}={text!r} is not a positive integer",
            remediation=f"Unset {CHUNK_VARIABLE}, or give the largest number of points per launch.",
        )
    return min(points, int(text))


def upload(column: NDArray[Any], address: int, stream: Any, traffic: Traffic) -> NDArray[Any]:
    """Queue the copy of ``column`` to ``address`` on the device.

    Args:
        column: shape (n,), any stride; stride 0 is one value spread over the batch.
        address: of at least ``column.nbytes`` bytes of device memory.
        stream: ``cuda.core.Stream`` to queue on.
        traffic: counts the bytes.

    Returns:
        The array that is read, which must stay alive until the stream has been synchronised.

    Raises:
        DriverError: the driver refused the copy.
    """
    import numpy as np
    from cuda.bindings import driver as cu

    source = np.ascontiguousarray(column[:_SPREAD_POINTS] if is_spread(column) else column)
    faults.check(
        cu.cuMemcpyHtoDAsync(address, source.ctypes.data, source.nbytes, stream.handle),
        "cuMemcpyHtoDAsync",
    )
    traffic.up += source.nbytes
    done = source.nbytes
    while done < column.nbytes:
        size = min(done, column.nbytes - done)
        faults.check(
            cu.cuMemcpyDtoDAsync(address + done, address, size, stream.handle), "cuMemcpyDtoDAsync"
        )
        done += size
    return source


def download(address: int, out: NDArray[Any], stream: Any, traffic: Traffic) -> NDArray[Any]:
    """Queue the copy from ``address`` into ``out``, or a new array where ``out`` has gaps.

    Returns:
        The array that is written; where it is not ``out``, copy it there after synchronising.

    Raises:
        DriverError: the driver refused the copy.
    """
    import numpy as np
    from cuda.bindings import driver as cu

    target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    faults.check(
        cu.cuMemcpyDtoHAsync(target.ctypes.data, address, target.nbytes, stream.handle),
        "cuMemcpyDtoHAsync",
    )
    traffic.down += target.nbytes
    return target


def is_spread(column: NDArray[Any]) -> bool:
    """Whether ``column`` is one value, repeated."""
    return len(column) > 1 and column.strides[0] == 0
