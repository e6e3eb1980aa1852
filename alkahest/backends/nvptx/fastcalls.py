"""The quick way for the calls that are made most: 1-D arrays of CuPy or PyTorch, all alike.

Every check here asks whether a call is exactly that case; whatever is not goes the way where
everything is checked and named. A call costs a few microseconds of host time, most of them in the
driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from alkahest.backends.nvptx import driver
from alkahest.backends.nvptx.access import SIZES
from alkahest.backends.nvptx.order import KEPT

if TYPE_CHECKING:
    from alkahest.backends.nvptx.launcher import Launcher
    from alkahest.program import Program


Flat = tuple[int, int, int]
"""A 1-D contiguous array: address, number of elements, ordinal of the device."""


class Reader(NamedTuple):
    """How arrays of one class are read and made.

    Attributes:
        read: gives an array that is of the dtype, flat and on a device; or None.
        empty: makes a flat array of (length, dtype, like).
        stream: handle of the current stream of a device.
        dtypes: the library's own dtype by name.
    """

    read: Callable[[Any, Any], Flat | None]
    empty: Callable[[int, Any, Any], Any]
    stream: Callable[[int], int]
    dtypes: Callable[[str], Any]


def _cupy(cupy: ModuleType) -> Reader:
    import numpy as np

    current, device_now = cupy.cuda.get_current_stream, cupy.cuda.runtime.getDevice

    def read(array: Any, dtype: Any) -> Flat | None:
        if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous:
            return None
        memory = array.data
        return memory.ptr, array.size, memory.device_id

    def empty(length: int, dtype: Any, like: Any) -> Any:
        if device_now() != like.data.device_id:
            with like.device:
                return cupy.empty(length, dtype)
        return cupy.ndarray(length, dtype)

    return Reader(read, empty, lambda device: current(device).ptr or 1, np.dtype)


def _torch(torch: ModuleType) -> Reader:
    current = torch.cuda.current_stream

    def read(tensor: Any, dtype: Any) -> Flat | None:
        if (
            tensor.dtype is not dtype
            or tensor.dim() != 1
            or not tensor.is_cuda
            or tensor.requires_grad
            or tensor.is_neg()
            or tensor.is_conj()
            or not tensor.is_contiguous()
        ):
            return None
        return tensor.data_ptr(), tensor.numel(), tensor.get_device()

    def empty(length: int, dtype: Any, like: Any) -> Any:
        return torch.empty(length, dtype=dtype, device=like.device)

    return Reader(
        read,
        empty,
        lambda device: current(device).cuda_stream or 1,
        lambda name: getattr(torch, name),
    )


_MAKERS: Mapping[tuple[str, str], Callable[[ModuleType], Reader]] = {
    ("cupy", "ndarray"): _cupy,
    ("torch", "Tensor"): _torch,
}


class FastCalls:
    """Fast calls of one program; any thread may make them.

    Args:
        program: what is evaluated.
        launchers: of its plain kernel, per device, as far as they are loaded.
    """

    def __init__(self, program: Program, launchers: Mapping[int, Launcher]) -> None:
        self._dtype = program.dtype
        self._outputs = program.output_dtypes
        self._inputs = len(program.inputs)
        self._launchers = launchers
        self._plans: dict[type, _Plan | None] = {}

    def __call__(self, *columns: Any, out: Any = None, stream: Any = None) -> Any:
        """Queue the evaluation on the current stream of the columns' library.

        Returns:
            Outputs (arrays of that library, or ``out``), number of points and report;
            NotImplemented where nothing was done.

        Raises:
            CudaError: E-CUDA-006, the driver refused the launch.
        """
        if stream is not None or len(columns) != self._inputs or not columns:
            return NotImplemented
        kind = type(columns[0])
        try:
            plan = self._plans[kind]
        except KeyError:
            plan = self._plans[kind] = self._plan(kind)
        if plan is None:
            return NotImplemented
        if KEPT:
            KEPT.let_go()
        return plan.call(kind, columns, out, self._launchers)

    def _plan(self, kind: type) -> _Plan | None:
        make = _MAKERS.get((kind.__module__, kind.__name__))
        module = sys.modules.get(kind.__module__)
        if make is None or module is None or getattr(module, kind.__name__, None) is not kind:
            return None
        return _Plan(make(module), self._dtype, self._outputs)


class _Plan:
    """Fast calls with arrays of one class."""

    def __init__(self, reader: Reader, dtype: str, outputs: Sequence[str]) -> None:
        from cuda.bindings import driver as cu

        self._read, self._empty, self._stream, dtypes = reader
        self._dtype = dtypes(dtype)
        self._size = SIZES[dtype]
        self._outputs = [dtypes(name) for name in outputs]
        self._context = cu.cuCtxGetCurrent

    def call(
        self, kind: type, columns: Sequence[Any], out: Any, launchers: Mapping[int, Launcher]
    ) -> Any:
        """As :meth:`FastCalls.__call__`."""
        slots: list[int] = []
        read, dtype = self._read, self._dtype
        n = device = -1
        for column in columns:
            flat = read(column, dtype) if type(column) is kind else None
            if flat is None:
                return NotImplemented
            pointer, length, where = flat
            if n < 0:
                n, device = length, where
            elif length != n or where != device:
                return NotImplemented
            slots.append(pointer)
        launcher = launchers.get(device)
        if launcher is None or n == 0 or driver.forked():
            return NotImplemented
        # Libraries make contexts current; a thread where none has done so goes the other way.
        if int(self._context()[1]) != launcher.context:
            return NotImplemented
        if out is None:
            outputs = tuple([self._empty(n, wanted, columns[0]) for wanted in self._outputs])
        else:
            outputs = tuple(out) if isinstance(out, (list, tuple)) else (out,)
            if len(outputs) != len(self._outputs):
                return NotImplemented
        for array, wanted in zip(outputs, self._outputs, strict=True):
            flat = read(array, wanted) if type(array) is kind else None
            if flat is None or flat[1] != n or flat[2] != device:
                return NotImplemented
            slots.append(flat[0])
        unaligned = launcher.unaligned
        for pointer in slots:
            if pointer & unaligned:
                return NotImplemented
        if out is not None and not self._is_apart(slots, n):
            return NotImplemented
        slots.append(n)
        launcher(slots, self._stream(device))
        return outputs, n, launcher.facts

    def _is_apart(self, slots: Sequence[int], n: int) -> bool:
        """Whether outputs overlap neither each other nor a column.

        A "no" may be wrong where dtypes differ.
        """
        span, inputs = n * self._size, len(slots) - len(self._outputs)
        for position in range(inputs, len(slots)):
            start = slots[position]
            for other in slots[:position]:
                if -span < start - other < span:
                    return False
        return True
