"""The array libraries whose device arrays are known by name: a row each.

Any array with ``__dlpack__`` or ``__cuda_array_interface__`` is taken; a row adds what those
protocols do not say: which stream is the library's current one, and how to make one of its arrays.
No library is imported here: a row is used only when one of its arrays came in, and takes the module
from where the caller's import left it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import attrs

from alkahest.dlpack import contiguous_strides
from alkahest.plugin import DeviceColumn
from alkahest.streams import LEGACY

dtype_name = cache(str)
"""NumPy's name of a dtype; asking the dtype each time takes longer than all the rest."""

Describe = Callable[[ModuleType, Any], DeviceColumn]
Empty = Callable[[ModuleType, tuple[int, ...], str, int], Any]
Adopt = Callable[[ModuleType, Any], Any]


def _legacy(module: ModuleType, device: int) -> int:
    return LEGACY


def _as_it_is(module: ModuleType, dtype: str) -> str:
    return dtype


def _unchanged(module: ModuleType, array: Any) -> Any:
    return array


@attrs.frozen(kw_only=True)
class Library:
    """One library.

    Attributes:
        name: of the module to find functions in.
        stream: handle of the current stream of (module, device).
        describe: reads an array without a protocol, or None. Raises BufferError for what cannot
            be read, saying why and what to do.
        empty: makes an array of (module, shape, dtype, device), or None where the backend
            allocates and the library adopts.
        adopt: makes an array of memory that exports DLPack and the CUDA array interface.
        holds: the dtype that the library would give an array of (module, dtype).
        writeable: whether its arrays may be written to.
    """

    name: str
    stream: Callable[[ModuleType, int], int] = _legacy
    describe: Describe | None = None
    empty: Empty | None = None
    adopt: Adopt = _unchanged
    holds: Callable[[ModuleType, str], str] = _as_it_is
    writeable: bool = True

    @property
    def module(self) -> ModuleType:
        """The imported library."""
        return sys.modules[self.name]


# CuPy


def _cupy_stream(cupy: ModuleType, device: int) -> int:
    return int(cupy.cuda.get_current_stream(device).ptr) or LEGACY


def _cupy_column(cupy: ModuleType, array: Any) -> DeviceColumn:
    memory = array.data
    device = int(memory.device_id)
    return DeviceColumn(
        pointer=int(memory.ptr),
        dtype=dtype_name(array.dtype),
        shape=array.shape,
        strides=array.strides,
        device=device,
        stream=_cupy_stream(cupy, device),
        in_order=True,
        owner=array,
    )


def _cupy_empty(cupy: ModuleType, shape: tuple[int, ...], dtype: str, device: int) -> Any:
    with cupy.cuda.Device(device):
        return cupy.empty(shape, dtype)


# PyTorch


def _torch_stream(torch: ModuleType, device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream) or LEGACY


def _torch_column(torch: ModuleType, tensor: Any) -> DeviceColumn:
    for fault, remedy in (
        (tensor.requires_grad, "it requires gradients, which are not computed; pass x.detach()"),
        (tensor.layout is not torch.strided, f"its layout is {tensor.layout}; pass x.to_dense()"),
        (tensor.is_conj(), "it is conjugated lazily; pass x.resolve_conj()"),
        (tensor.is_neg(), "it is negated lazily; pass x.resolve_neg()"),
    ):
        if fault:
            raise BufferError(remedy)
    device, size = int(tensor.device.index), tensor.element_size()
    return DeviceColumn(
        pointer=tensor.data_ptr(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(size * stride for stride in tensor.stride()),
        device=device,
        stream=_torch_stream(torch, device),
        in_order=True,
        owner=tensor,
    )


def _torch_empty(torch: ModuleType, shape: tuple[int, ...], dtype: str, device: int) -> Any:
    return torch.empty(shape, dtype=getattr(torch, dtype), device=torch.device("cuda", device))


# JAX, numba, cuda.core


def _jax_array(jax: ModuleType, array: Any) -> Any:
    return jax.dlpack.from_dlpack(array)


def _jax_holds(jax: ModuleType, dtype: str) -> str:
    return str(jax.dtypes.canonicalize_dtype(dtype))


def _numba_array(numba: ModuleType, array: Any) -> Any:
    interface = dict(array.__cuda_array_interface__)
    if interface["stream"] == LEGACY:  # numba's own default stream, which it writes as None
        interface["stream"] = None
    with numba.cuda.gpus[array.__dlpack_device__()[1]]:
        return numba.cuda.from_cuda_array_interface(interface, owner=array, sync=False)


def _core_column(utils: ModuleType, view: Any) -> DeviceColumn:
    if not isinstance(view, utils.StridedMemoryView) or view.dtype is None:
        raise BufferError(
            "it has no dtype; pass StridedMemoryView.from_buffer(x, shape, dtype=dtype)"
        )
    size = view.dtype.itemsize
    shape = tuple(view.shape)
    counts = view.strides
    return DeviceColumn(
        pointer=int(view.ptr),
        dtype=view.dtype.name,
        shape=shape,
        strides=contiguous_strides(shape, size)
        if counts is None
        else tuple(size * count for count in counts),
        device=int(view.device_id),
        readonly=bool(view.readonly),
        owner=view,
    )


def _core_view(utils: ModuleType, array: Any) -> Any:
    return utils.StridedMemoryView.from_any_interface(array, stream_ptr=-1)


UNKNOWN = Library(name="builtins")
"""Anything else: its arrays are read through the protocols, and so are the results."""

_JAX = Library(
    name="jax",
    adopt=_jax_array,
    holds=_jax_holds,
    writeable=False,
)
_NUMBA = Library(name="numba", adopt=_numba_array)

LIBRARIES = {
    "cupy": Library(
        name="cupy",
        stream=_cupy_stream,
        describe=_cupy_column,
        empty=_cupy_empty,
    ),
    "torch": Library(
        name="torch",
        stream=_torch_stream,
        describe=_torch_column,
        empty=_torch_empty,
    ),
    "jax": _JAX,
    "jaxlib": _JAX,
    "numba": _NUMBA,
    "numba_cuda": _NUMBA,
    "cuda": Library(name="cuda.core.utils", describe=_core_column, adopt=_core_view),
}
"""Top-level module of an array's class -> the library."""


def library_of(value: object) -> Library:
    """The library whose array ``value`` is, also where its class is derived from one of them."""
    for base in type(value).__mro__:
        library = LIBRARIES.get(base.__module__.partition(".")[0])
        if library is not None and library.name in sys.modules:
            return library
    return UNKNOWN


__all__ = ["LIBRARIES", "Library", "library_of"]
