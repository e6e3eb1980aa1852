"""What a DLPack capsule says, read without the libraries that make and take them.

A capsule from ``__dlpack__`` is read and kept, not renamed: whoever drops the last reference makes
the producer's own destructor give the memory back. A capsule that the user made is taken over, as
the protocol says: it is renamed, so that nobody reads it twice, and its deleter is called here.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import attrs

CUDA = 2
MANAGED = 13
CUDA_DEVICES = frozenset({CUDA, MANAGED})
"""DLPack device types whose memory CUDA devices read: their own, and managed memory."""

HOST_DEVICES = frozenset({1, 3, 11})
"""DLPack device types whose memory the host reads: CPU, and pinned memory of CUDA and ROCm."""

VERSION = (1, 0)
"""Newest version of the structures that is read."""

_READ_ONLY = 1
_NAMES = (b"dltensor_versioned", b"dltensor")
_USED = {name: b"used_" + name for name in _NAMES}
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


@attrs.frozen
class Tensor:
    """What a capsule describes.

    Attributes:
        pointer: address of the element at index 0 of every dimension.
        dtype: name of the dtype, as NumPy says where NumPy has it (``"float64"``, ``"bool"``).
        shape: number of elements per dimension.
        strides: bytes per dimension.
        kind: DLPack's number for the kind of memory.
        device: ordinal of the device.
        readonly: whether the producer forbids writing; capsules before version 1 do not say.
    """

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: int
    device: int
    readonly: bool


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def is_capsule(value: object) -> bool:
    """Whether ``value`` is a capsule itself, not an object that makes one."""
    return type(value).__name__ == "PyCapsule"


def read(capsule: Any) -> Tensor:
    """What ``capsule`` describes; it must live as long as the memory is used.

    Raises:
        BufferError: it is no DLPack capsule, it was used before, or its version, dtype or number
            of dimensions is unknown.
    """
    address, is_versioned = _address(capsule)
    readonly = False
    if is_versioned:
        versioned = _Versioned.from_address(address)
        if versioned.major > VERSION[0]:
            raise BufferError(f"DLPack version {versioned.major}.{versioned.minor} is not known")
        readonly = bool(versioned.flags & _READ_ONLY)
        tensor = versioned.tensor
    else:
        tensor = _Managed.from_address(address).tensor
    if tensor.ndim < 0:
        raise BufferError(f"the DLPack tensor has {tensor.ndim} dimensions")
    size = tensor.bits // 8
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(size * s for s in tensor.strides[: tensor.ndim]) if tensor.strides else ()
    return Tensor(
        pointer=(tensor.data or 0) + tensor.offset,
        dtype=_dtype(tensor.code, tensor.bits, tensor.lanes),
        shape=shape,
        strides=strides if len(strides) == len(shape) else contiguous_strides(shape, size),
        kind=tensor.kind,
        device=tensor.device,
        readonly=readonly,
    )


class Taken:
    """The memory of a capsule that was taken over, given back when this object goes."""

    def __init__(self, capsule: Any) -> None:
        """Take ``capsule`` over; reading it again is an error from now on.

        Raises:
            BufferError: as :func:`read`.
        """
        self.tensor = read(capsule)
        address, is_versioned = _address(capsule)
        record = (_Versioned if is_versioned else _Managed).from_address(address)
        deleter = record.deleter
        name = _NAMES[0 if is_versioned else 1]
        # The capsule keeps the pointer to its name, which therefore has to live for ever.
        _set_name(capsule, _USED[name])
        if deleter:
            weakref.finalize(self, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter), address)


def contiguous_strides(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Bytes per dimension of an array in C order whose elements have ``size`` bytes."""
    strides = []
    for length in reversed(shape):
        strides.append(size)
        size *= max(length, 1)
    return tuple(reversed(strides))


def _address(capsule: Any) -> tuple[int, bool]:
    """Address of the structure in ``capsule``, and whether it is the one with a version."""
    for name in _NAMES:
        if _is_valid(capsule, name):
            return int(_get_pointer(capsule, name)), name == _NAMES[0]
    used = any(_is_valid(capsule, name) for name in _USED.values())
    raise BufferError(
        "the DLPack capsule has been used already" if used else "the capsule is none of DLPack's"
    )


def _dtype(code: int, bits: int, lanes: int) -> str:
    kind = _KINDS.get(code)
    if kind is None or lanes != 1 or bits % 8 or not bits or (kind == "bool" and bits != 8):
        raise BufferError(f"DLPack type code {code} of {bits} bits, {lanes} lanes, is not known")
    return "bool" if kind == "bool" else f"{kind}{bits}"


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer.restype = ctypes.c_void_p
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes, _set_name.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int

__all__ = [
    "CUDA",
    "CUDA_DEVICES",
    "HOST_DEVICES",
    "VERSION",
    "Taken",
    "Tensor",
    "contiguous_strides",
    "is_capsule",
    "read",
]
