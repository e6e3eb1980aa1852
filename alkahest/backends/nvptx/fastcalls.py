"""The quick way for the calls that are made most: 1-D arrays of CuPy or PyTorch, all alike.

Every check here asks whether a call is exactly that case; whatever is not goes the way where
everything is checked and named. A call costs a few microseconds of host time, most of them in the
library that the arrays are of and in the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from os import getpid
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from alkahest.backends.nvptx.access import SIZES
from alkahest.backends.nvptx.order import KEPT

if TYPE_CHECKING:
    from alkahest.backends.nvptx.launcher import Launcher, Ready
    from alkahest.program import Program


Gathered = tuple[int, ...]
"""Of 1-D contiguous arrays: their length, the ordinal of their device, the address of each."""

REMEMBERED = 256
"""Sets of addresses, at most, whose launches are kept."""


class Reader(NamedTuple):
    """How arrays of one class are read and made.

    Attributes:
        kind: what arrays of a dtype are recognised by, given its name.
        gather: reads arrays of that class that are of the given kinds and all alike; or None.
        empty: makes a flat array of (length, kind, like).
        stream: handle of the current stream of a device.
    """

    kind: Callable[[str], Any]
    gather: Callable[[Sequence[Any], Sequence[Any]], Gathered | None]
    empty: Callable[[int, Any, Any], Any]
    stream: Callable[[int], int]


def _cupy(cupy: ModuleType) -> Reader:
    import numpy as np

    array_type = cupy.ndarray
    current, device_now = cupy.cuda.get_current_stream, cupy.cuda.runtime.getDevice

    def kind(name: str) -> tuple[Any, tuple[int]]:
        return np.dtype(name), (SIZES[name],)

    def gather(arrays: Sequence[Any], kinds: Sequence[Any]) -> Gathered | None:
        first = arrays[0]
        n, device = first.size, first.data.device_id
        addresses = []
        for array, (dtype, strides) in zip(arrays, kinds):  # noqa: B905 - as many of both
            # Strides of one dimension; asking for flags would take three times as long.
            if (
                type(array) is not array_type
                or array.size != n
                or array.dtype != dtype
                or array.strides != strides
            ):
                return None
            memory = array.data
            if memory.device_id != device:
                return None
            addresses.append(memory.ptr)
        return n, device, *addresses

    def empty(length: int, kind: tuple[Any, tuple[int]], like: Any) -> Any:
        if device_now() != like.data.device_id:
            with like.device:
                return cupy.empty(length, kind[0])
        return cupy.ndarray(length, kind[0])

    return Reader(kind, gather, empty, lambda device: current(device).ptr or 1)


def _torch(torch: ModuleType) -> Reader:
    tensor_type = torch.Tensor
    current = torch.cuda.current_stream

    def gather(tensors: Sequence[Any], dtypes: Sequence[Any]) -> Gathered | None:
        first = tensors[0]
        n, device = first.numel(), first.get_device()
        addresses = []
        for tensor, dtype in zip(tensors, dtypes):  # noqa: B905 - as many of both
            if (
                type(tensor) is not tensor_type
                or not tensor.is_cuda
                or tensor.numel() != n
                or tensor.get_device() != device
                or tensor.dtype is not dtype
                or tensor.dim() != 1
                or tensor.requires_grad
                or tensor.is_neg()
                or tensor.is_conj()
                or not tensor.is_contiguous()
            ):
                return None
            addresses.append(tensor.data_ptr())
        return n, device, *addresses

    def empty(length: int, dtype: Any, like: Any) -> Any:
        return torch.empty(length, dtype=dtype, device=like.device)

    return Reader(
        lambda name: getattr(torch, name),
        gather,
        empty,
        lambda device: current(device).cuda_stream or 1,
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
        return NotImplemented if plan is None else plan(columns, out)

    def _plan(self, kind: type) -> _Plan | None:
        make = _MAKERS.get((kind.__module__, kind.__name__))
        module = sys.modules.get(kind.__module__)
        if make is None or module is None or getattr(module, kind.__name__, None) is not kind:
            return None
        return _Plan(make(module), self._inputs, self._dtype, self._outputs, self._launchers)


class _Plan:
    """Fast calls with arrays of one class.

    What follows from addresses alone, that arrays are aligned and outputs apart, and the parameters
    of the launch, is kept for the addresses that come again.
    """

    def __init__(
        self,
        reader: Reader,
        inputs: int,
        dtype: str,
        outputs: Sequence[str],
        launchers: Mapping[int, Launcher],
    ) -> None:
        from cuda.bindings import driver as cu

        kind, self._gather, self._empty, self._stream = reader
        self._inputs = inputs
        self._outputs = [kind(name) for name in outputs]
        self._kinds = [kind(dtype)] * inputs + self._outputs
        self._size = SIZES[dtype]
        self._launchers = launchers
        self._context = cu.cuCtxGetCurrent
        self._process = getpid()
        self._ready: dict[tuple[int, ...], Ready] = {}

    def __call__(self, columns: tuple[Any, ...], out: Any) -> Any:
        """As :meth:`FastCalls.__call__`."""
        if getpid() != self._process:
            return NotImplemented
        if out is None:
            outputs = self._allocated(columns)
        elif isinstance(out, (list, tuple)):
            outputs = tuple(out)
        else:
            outputs = (out,)
        if len(outputs) != len(self._outputs):
            return NotImplemented
        where = self._gather(columns + outputs, self._kinds)
        if where is None:
            return NotImplemented
        ready = self._ready.get(where)
        if ready is None:
            ready = self._prepared(*where)
            if ready is None:
                return NotImplemented
        # Libraries make contexts current; a thread where none has done so goes the other way.
        if int(self._context()[1]) != ready.context:
            return NotImplemented
        if KEPT:
            KEPT.let_go()
        ready(self._stream(where[1]))
        return outputs, where[0], ready.facts

    def _allocated(self, columns: tuple[Any, ...]) -> tuple[Any, ...]:
        """New outputs, or none where the columns are not what is read here."""
        where = self._gather(columns, self._kinds)
        if where is None or where[1] not in self._launchers:
            return ()
        return tuple([self._empty(where[0], kind, columns[0]) for kind in self._outputs])

    def _prepared(self, n: int, device: int, *addresses: int) -> Ready | None:
        launcher = self._launchers.get(device)
        if launcher is None or n == 0:
            return None
        unaligned = launcher.unaligned
        for address in addresses:
            if address & unaligned:
                return None
        if not self._is_apart(addresses, n):
            return None
        ready = launcher.ready((*addresses, n))
        if ready is None:
            return None
        if len(self._ready) >= REMEMBERED:
            self._ready.clear()
        self._ready[n, device, *addresses] = ready
        return ready

    def _is_apart(self, addresses: Sequence[int], n: int) -> bool:
        """Whether outputs overlap neither each other nor a column.

        A "no" may be wrong where dtypes differ.
        """
        span = n * self._size
        for position in range(self._inputs, len(addresses)):
            start = addresses[position]
            for other in addresses[:position]:
                if -span < start - other < span:
                    return False
        return True
