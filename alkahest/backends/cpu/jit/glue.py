"""A call without the interpreter in between: CPython's own calling convention, in machine code.

``@fast_call`` is the C function behind a built-in method. It looks into the arrays itself, makes
the outputs, runs the kernel and returns, in a fraction of a microsecond. It takes exactly the plain
case: one-dimensional contiguous NumPy arrays of the program's dtype and one length, above 0; and
for ``out=`` such arrays again, writeable, none of which overlaps another or an input, unless it is
that input. Everything else is passed on to an ordinary Python function.

The layout of NumPy's arrays is that of its stable C interface; :func:`fits` checks it, since only
the usual build of CPython on 64 bits has it.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

_ARRAY_EMPTY = 184
"""Position of ``PyArray_Empty`` in NumPy's table of functions, the same since its first version."""

_DATA = 16
"""Where an array has the address of its elements, in the layout that :func:`fits` checks."""

MOST_COLUMNS = 512
"""Inputs and outputs whose addresses fit on the stack of a caller; programs with more go slowly."""

_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002

_FUNCTIONS = (
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyObject_Vectorcall",
    "PyTuple_New",
    "Py_IncRef",
    "Py_DecRef",
)
_MEMORY_FUNCTIONS = ("PyMem_RawMalloc", "PyMem_RawFree")


@cache
def fits() -> bool:
    """Whether this interpreter and this NumPy lay out their objects as the code expects it."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if object.__basicsize__ != 16 or tuple.__basicsize__ != 24:
        return False
    probe = np.arange(3.0)
    words = {
        offset: ctypes.c_int64.from_address(id(probe) + offset).value for offset in (8, _DATA, 56)
    }
    shape = ctypes.c_int64.from_address(id(probe) + 32).value
    flags = ctypes.c_int32.from_address(id(probe) + 64).value
    return (
        words == {8: id(np.ndarray), _DATA: probe.ctypes.data, 56: id(np.dtype("float64"))}
        and ctypes.c_int32.from_address(id(probe) + 24).value == 1
        and ctypes.c_int64.from_address(shape).value == 3
        and flags & 0x501 == 0x501
    )


def addresses(arrays: Sequence[NDArray[Any]]) -> list[int]:
    """Where each array has its first element."""
    if fits():
        word = ctypes.c_int64.from_address
        return [word(id(array) + _DATA).value for array in arrays]
    return [array.__array_interface__["data"][0] for array in arrays]


@attrs.frozen(kw_only=True)
class Plain:
    """What the plain case of a program is.

    Attributes:
        kernel: address of the code.
        scratch: bytes of scratch memory of one thread, a multiple of 64.
        dtype: of the inputs.
        inputs: how many.
        outputs: dtypes of the outputs.
        single: whether the one output is returned itself.
        pool: address of the workers' memory.
        record: address of what the kernel remembers of shared calls.
        threads: that a shared call may have.
        chunk: points that a thread takes at once.
        shared_from: number of points from which a call is shared.
        released_from: number of points from which the interpreter's lock is released.
        fresh_limit: most points of outputs that are allocated here.
    """

    kernel: int
    scratch: int
    dtype: np.dtype[Any]
    inputs: int
    outputs: Sequence[np.dtype[Any]]
    single: bool
    pool: int
    record: int
    threads: int
    chunk: int
    shared_from: int
    released_from: int
    fresh_limit: int


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Context(np.ndarray):
    """The words of one function; its attributes keep alive what they are the addresses of."""

    keeps: tuple[Any, ...]


def make(address: int, plain: Plain, fallback: Callable[..., Any], *keeps: Any) -> Any:
    """The built-in method.

    Args:
        address: of ``fast_call``.
        plain: the case that it takes.
        fallback: what takes every other call.
        keeps: objects that have to live as long as the method.
    """
    out_name = sys.intern("out")
    words = [
        *(plain.kernel, plain.inputs, len(plain.outputs), plain.scratch, plain.pool),
        *(plain.shared_from, plain.released_from, plain.chunk, plain.threads),
        *(id(fallback), id(np.ndarray), id(plain.dtype), id(out_name), id(tuple)),
        *(plain.dtype.itemsize, plain.fresh_limit, _numpy_function(_ARRAY_EMPTY)),
        *map(_python_function, _FUNCTIONS),
        *(plain.record, int(plain.single)),
        *map(_python_function, _MEMORY_FUNCTIONS),
    ]
    for dtype in plain.outputs:
        words += [id(dtype), dtype.itemsize]
    context = np.array(words, dtype=np.int64).view(_Context)
    method = _MethodDef(b"fast_call", address, _METH_FASTCALL_KEYWORDS, _DOC)
    context.keeps = (method, plain, fallback, out_name, keeps)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p),
    )
    return new(ctypes.addressof(method), context, None)


_DOC = b"fast_call(*columns, out=None): see alkahest.CompiledFn.fast_call."


def _python_function(name: str) -> int | None:
    """An address of Python's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def _numpy_function(position: int) -> int:
    """An address of the table that NumPy gives to extension modules."""
    name = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    core = importlib.import_module(f"{name}._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(core._ARRAY_API, None)
    return int(ctypes.c_int64.from_address(table + 8 * position).value)


__all__ = ["MOST_COLUMNS", "Plain", "addresses", "fits", "make"]
