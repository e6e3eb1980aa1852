"""Stand-ins for array libraries, whose device memory is the host's.

Each has the part of its original's interface that alkahest uses, so that tests without a GPU see
what is asked of whom. :func:`installed` puts one where an import would have left it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

CUDA, MANAGED = 2, 13


def on_device(capsule: Any, kind: int = CUDA, device: int = 0) -> Any:
    """A capsule of NumPy that claims to be in the memory of a device."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    called = name(capsule)
    start = pointer(capsule, called)
    # struct DLTensor begins with a pointer; before it, version 1 has 32 bytes.
    field = start + (32 if called == b"dltensor_versioned" else 0) + 8
    ctypes.cast(field, ctypes.POINTER(ctypes.c_int32))[0] = kind
    ctypes.cast(field, ctypes.POINTER(ctypes.c_int32))[1] = device
    return capsule


def memory_of(capsule: Any) -> np.ndarray:
    """The elements that a capsule describes, whatever memory it says they are in."""
    return np.from_dlpack(_Host(on_device(capsule, 1)))


class _Host:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule


class Producer:
    """An array of no library, exported by DLPack; records the streams it is asked for.

    Args:
        values: its elements.
        kind: DLPack's number for its memory.
        device: ordinal.
        versioned: whether it knows version 1 of the protocol.
    """

    def __init__(
        self, values: Any, kind: int = CUDA, device: int = 0, versioned: bool = True
    ) -> None:
        self.values = np.asarray(values)
        self.place = kind, device
        self.streams: list[int | None] = []
        self._versioned = versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        if options and not self._versioned:
            raise TypeError(f"unexpected arguments {sorted(options)}")
        self.streams.append(stream)
        return on_device(self.values.__dlpack__(**options), *self.place)


class Interface:
    """An array of no library, exported by the CUDA array interface alone."""

    def __init__(self, values: Any, stream: int | None = None, **changes: Any) -> None:
        self.values = np.asarray(values)
        self.__cuda_array_interface__ = {
            **self.values.__array_interface__,
            "version": 3,
            "stream": stream,
            **changes,
        }


# CuPy


class CupyArray:
    """``cupy.ndarray``."""

    def __init__(self, shape: Any, dtype: Any = "float64", values: Any = None) -> None:
        self.values = np.empty(shape, dtype) if values is None else values
        self.data = SimpleNamespace(ptr=self.values.ctypes.data, device_id=_state.device)

    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: self.values.shape)
    strides = property(lambda self: self.values.strides)
    size = property(lambda self: self.values.size)
    ndim = property(lambda self: self.values.ndim)
    flags = property(lambda self: self.values.flags)
    device = property(lambda self: CupyDevice(self.data.device_id))

    def __getitem__(self, key: Any) -> CupyArray:
        view = CupyArray((), values=self.values[key])
        view.data.device_id = self.data.device_id
        return view

    def reshaped(self, *shape: int) -> CupyArray:
        view = self[:]
        view.values = self.values.reshape(shape)
        return view

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.data.device_id

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AssertionError("CuPy's arrays are asked directly")

    __dlpack__ = __cuda_array_interface__


class CupyDevice:
    """``cupy.cuda.Device``."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        self._before, _state.device = _state.device, self.number

    def __exit__(self, *_: object) -> None:
        _state.device = self._before


_state = SimpleNamespace(device=0, streams={})


def cupy() -> ModuleType:
    """A module ``cupy``; ``cupy.use(handle)`` sets the current stream."""
    module = ModuleType("cupy")
    _state.device, _state.streams = 0, {}
    CupyArray.__module__, CupyArray.__name__ = "cupy", "ndarray"
    module.ndarray = CupyArray
    module.empty = CupyArray
    module.asarray = lambda values, device=0: _made(np.array(values), device)
    module.use = lambda handle, device=0: _state.streams.update({device: handle})
    module.cuda = SimpleNamespace(
        Device=CupyDevice,
        get_current_stream=lambda device: SimpleNamespace(ptr=_state.streams.get(device, 0)),
        runtime=SimpleNamespace(getDevice=lambda: _state.device),
    )
    return module


def _made(values: Any, device: int) -> CupyArray:
    array = CupyArray((), values=values)
    array.data.device_id = device
    return array


# PyTorch


class TorchTensor:
    """``torch.Tensor``."""

    requires_grad = False
    layout = "strided"
    conjugated = negated = False

    def __init__(self, values: Any, device: int = 0) -> None:
        self.values = np.asarray(values)
        self.device = SimpleNamespace(type="cuda", index=device)

    dtype = property(lambda self: _torch_dtype(self.values.dtype))
    shape = property(lambda self: self.values.shape)
    is_cuda = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device.index

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("tensors are asked directly")

    def is_conj(self) -> bool:
        return self.conjugated

    def is_neg(self) -> bool:
        return self.negated

    def element_size(self) -> int:
        return self.values.itemsize

    def data_ptr(self) -> int:
        return self.values.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.values.itemsize for step in self.values.strides)

    def dim(self) -> int:
        return self.values.ndim

    def numel(self) -> int:
        return self.values.size

    def is_contiguous(self) -> bool:
        return self.values.flags.c_contiguous

    def get_device(self) -> int:
        return self.device.index


class _TorchDtype(str):
    """Prints as torch's dtypes do."""

    def __str__(self) -> str:
        return f"torch.{self[:]}"


_torch_dtypes = {
    name: _TorchDtype(name)
    for name in ("bool", "int32", "int64", "float16", "float32", "float64", "complex128")
}


def _torch_dtype(dtype: Any) -> _TorchDtype:
    return _torch_dtypes[np.dtype(dtype).name]


def torch() -> ModuleType:
    """A module ``torch``; ``torch.use(handle)`` sets the current stream."""
    module = ModuleType("torch")
    streams: dict[int, int] = {}
    TorchTensor.__module__, TorchTensor.__name__ = "torch", "Tensor"
    module.Tensor = TorchTensor
    module.strided = "strided"
    module.device = lambda kind, index: SimpleNamespace(type=kind, index=index)
    module.empty = lambda shape, dtype, device: TorchTensor(np.empty(shape, dtype[:]), device.index)
    module.use = lambda handle, device=0: streams.update({device: handle})
    module.cuda = SimpleNamespace(
        current_stream=lambda device: SimpleNamespace(cuda_stream=streams.get(device, 0))
    )
    for name, dtype in _torch_dtypes.items():
        setattr(module, name, dtype)
    return module


# JAX, numba, cuda.core


class JaxArray(Producer):
    """``jax.Array``, an immutable one."""


def jax(x64: bool = True) -> ModuleType:
    """A module ``jax``; arrays made by ``from_dlpack`` keep what they were made of."""
    module = ModuleType("jax")
    JaxArray.__module__, JaxArray.__name__ = "jaxlib._jax", "ArrayImpl"

    def from_dlpack(array: Any) -> JaxArray:
        made = JaxArray(np.empty(array.__cuda_array_interface__["shape"]))
        made.source = array
        return made

    module.dlpack = SimpleNamespace(from_dlpack=from_dlpack)
    module.dtypes = SimpleNamespace(
        canonicalize_dtype=lambda name: name if x64 else name.replace("64", "32")
    )
    return module


class NumbaArray(Interface):
    """``numba.cuda.devicearray.DeviceNDArray``."""


def numba() -> ModuleType:
    """A module ``numba``."""
    module = ModuleType("numba")
    NumbaArray.__module__ = "numba.cuda.cudadrv.devicearray"

    class Current:
        def __getitem__(self, device: int) -> CupyDevice:
            return CupyDevice(device)

    def from_interface(interface: dict[str, Any], owner: Any, sync: bool) -> NumbaArray:
        assert not sync
        made = NumbaArray(np.empty(interface["shape"]))
        made.source, made.stream = owner, interface["stream"]
        return made

    module.cuda = SimpleNamespace(gpus=Current(), from_cuda_array_interface=from_interface)
    return module


class CoreView(Producer):
    """``cuda.core.utils.StridedMemoryView``; its strides count elements, None where contiguous."""

    def __init__(self, values: Any, device: int = 0, readonly: bool = False) -> None:
        super().__init__(values, device=device)
        steps = tuple(step // self.values.itemsize for step in self.values.strides)
        self.ptr, self.device_id = self.values.ctypes.data, device
        self.shape, self.dtype, self.readonly = self.values.shape, self.values.dtype, readonly
        self.strides = None if self.values.flags.c_contiguous else steps


class CoreBuffer(Producer):
    """``cuda.core.Buffer``: bytes, which DLPack exports as int8."""


def cuda_core() -> ModuleType:
    """A module ``cuda.core.utils``; views made of arrays keep what they were made of."""
    module = ModuleType("cuda.core.utils")
    CoreView.__module__, CoreView.__name__ = "cuda.core._memoryview", "StridedMemoryView"
    CoreBuffer.__module__, CoreBuffer.__name__ = "cuda.core._memory._buffer", "Buffer"

    def from_any_interface(array: Any, stream_ptr: int) -> CoreView:
        assert stream_ptr == -1
        made = CoreView(np.empty(array.__cuda_array_interface__["shape"]))
        made.source = array
        return made

    CoreView.from_any_interface = staticmethod(from_any_interface)
    module.StridedMemoryView = CoreView
    return module


@contextmanager
def installed(*modules: ModuleType) -> Iterator[None]:
    """Put modules where their import would have put them."""
    before = {module.__name__: sys.modules.get(module.__name__) for module in modules}
    sys.modules.update({module.__name__: module for module in modules})
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
