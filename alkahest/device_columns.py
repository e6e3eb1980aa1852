"""One array in the memory of a device, described without copying and without its library.

The protocols are DLPack and the CUDA array interface; libraries that
:mod:`alkahest.array_libraries` knows are asked directly, which is quicker. Streams, as the protocols
number them: 1 is the legacy default stream, 2 the calling thread's, anything else a handle, 0 is
forbidden.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from alkahest import dlpack
from alkahest.array_libraries import library_of
from alkahest.conversion import dtype_on_device
from alkahest.errors import InputTypeError
from alkahest.plugin import DeviceColumn

LARGEST = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}
"""Kind of dtype -> bytes, at most, of an element that kernels load."""

_ADDRESSES = 1 << 64


def describe(value: Any, label: str, stream: int) -> DeviceColumn:
    """Describe one array.

    Work that is queued on ``stream`` after this call sees the array's elements, except that a
    producer's stream named in the result must be waited for first.

    Args:
        value: an array on a CUDA device, or a DLPack capsule of one, which is used up.
        label: how messages name it.
        stream: handle of the stream that will read it.

    Raises:
        InputTypeError: E-INPUT-003 where it cannot be read, naming the producer's reason.
    """
    library = library_of(value)
    try:
        if library.describe is not None:
            column = library.describe(library.module, value)
        elif dlpack.is_capsule(value):
            taken = dlpack.Taken(value)
            column = _of_tensor(taken.tensor, taken)
        elif hasattr(value, "__dlpack__"):
            capsule = _export(value, stream)
            column = _of_tensor(dlpack.read(capsule), capsule)
        else:
            column = _of_interface(value.__cuda_array_interface__, value)
        _check_memory(column)
    except Exception as error:  # the producer's code may raise anything
        raise InputTypeError(
            "E-INPUT-003",
            f"{label}: {type(value).__name__} cannot be read: {error}",
            remediation="Pass a plain array of numbers.",
        ) from error
    if library.writeable:
        return column
    return attrs.evolve(column, readonly=True)


def describe_allocated(array: Any, device: int) -> DeviceColumn:
    """Describe memory that an evaluator has allocated, which ``owner`` then is itself.

    Args:
        array: with ``__cuda_array_interface__``.
        device: ordinal of its device.
    """
    return attrs.evolve(_of_interface(array.__cuda_array_interface__, array), device=device)


def check_column(
    column: DeviceColumn, label: str, dtype: np.dtype[Any], casting: str
) -> DeviceColumn:
    """``column``, if a kernel of ``dtype`` can load and convert it.

    Raises:
        InputTypeError: E-INPUT-003 for a dtype that holds no numbers, or elements that are not
            aligned; E-INPUT-004 for one that does not convert by :mod:`alkahest.conversion`.
    """
    given = dtype_on_device(column.dtype, label, dtype, casting)
    if given.itemsize > LARGEST[given.kind]:
        raise InputTypeError("E-INPUT-003", f"{label} has dtype {given}, which no device reads")
    if any(step % given.alignment for step in (column.pointer, *column.strides)):
        raise InputTypeError(
            "E-INPUT-003",
            f"{label} is not aligned to the {given.alignment} bytes of {given}",
            remediation="Pass a copy of the column.",
        )
    return column


def row(column: DeviceColumn, index: tuple[int, ...]) -> DeviceColumn:
    """What is at ``index`` of the first dimensions of ``column``."""
    offset = sum(i * step for i, step in zip(index, column.strides, strict=False))
    return attrs.evolve(
        column,
        pointer=column.pointer + offset,
        shape=column.shape[len(index) :],
        strides=column.strides[len(index) :],
    )


def spread(column: DeviceColumn, shape: tuple[int, ...]) -> DeviceColumn:
    """``column`` broadcast to ``shape``: repeated dimensions get stride 0."""
    if column.shape == shape:
        return column
    new = len(shape) - len(column.shape)
    steps = [
        0 if length == 1 else step
        for length, step in zip(column.shape, column.strides, strict=True)
    ]
    return attrs.evolve(column, shape=shape, strides=(0,) * new + tuple(steps))


def as_host_array(column: DeviceColumn) -> np.ndarray[Any, np.dtype[Any]]:
    """A NumPy array of the same addresses, for questions of overlap; it must not be read."""
    return np.asarray(_Addresses(column))


class _Addresses:
    def __init__(self, column: DeviceColumn) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": column.shape,
            "typestr": np.dtype(column.dtype).str,
            "strides": column.strides,
            "data": (column.pointer, True),
        }


def _check_memory(column: DeviceColumn) -> None:
    """Refuse what no array can be.

    Raises:
        BufferError: a length, a stride or the address is impossible.
    """
    lengths, strides = column.shape, column.strides
    if not all(isinstance(length, int) and length >= 0 for length in lengths):
        raise BufferError(f"its shape is {lengths}")
    if len(strides) != len(lengths) or not all(isinstance(step, int) for step in strides):
        raise BufferError(f"its strides are {strides} for the shape {lengths}")
    if 0 in lengths:
        return
    ends = [step * (length - 1) for step, length in zip(strides, lengths, strict=True)]
    first = column.pointer + sum(end for end in ends if end < 0)
    last = column.pointer + sum(end for end in ends if end > 0)
    if not (first > 0 and last < _ADDRESSES):
        raise BufferError(
            f"its address is {column.pointer:#x}, with shape {lengths} and strides {strides}"
        )


def _export(value: Any, stream: int) -> Any:
    try:
        return value.__dlpack__(stream=stream, max_version=dlpack.VERSION)
    except TypeError:  # written before the protocol had versions
        return value.__dlpack__(stream=stream)


def _of_tensor(tensor: dlpack.Tensor, owner: object) -> DeviceColumn:
    if tensor.kind not in dlpack.CUDA_DEVICES:
        raise BufferError(f"its memory is of DLPack type {tensor.kind}")
    return DeviceColumn(
        pointer=tensor.pointer,
        dtype=tensor.dtype,
        shape=tensor.shape,
        strides=tensor.strides,
        # The ordinal that is given for managed memory need not be the device it belongs to.
        device=tensor.device if tensor.kind == dlpack.CUDA else None,
        readonly=tensor.readonly,
        owner=owner,
    )


def _of_interface(interface: Mapping[str, Any], owner: object) -> DeviceColumn:
    if interface.get("mask") is not None:
        raise BufferError("it is masked, and its mask would be ignored")
    stream = interface.get("stream")
    if stream is not None and not 0 < operator.index(stream) < _ADDRESSES:
        what = "which the CUDA array interface forbids" if stream == 0 else "which is none"
        raise BufferError(f"it names stream {stream}, {what}")
    dtype = np.dtype(str(interface["typestr"]))
    if not dtype.isnative:
        raise BufferError(f"its byte order is not this machine's ({dtype.str})")
    pointer, readonly = interface["data"]
    shape = tuple(map(operator.index, interface["shape"]))
    strides = interface.get("strides")
    return DeviceColumn(
        pointer=operator.index(pointer or 0),
        dtype=dtype.name,
        shape=shape,
        strides=dlpack.contiguous_strides(shape, dtype.itemsize)
        if strides is None
        else tuple(map(operator.index, strides)),
        device=None,
        readonly=bool(readonly),
        stream=None if stream is None else int(stream),
        owner=owner,
    )


__all__ = [
    "as_host_array",
    "check_column",
    "describe",
    "describe_allocated",
    "row",
    "spread",
]
