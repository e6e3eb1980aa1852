"""Evaluates programs where their columns are: arrays that already live on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from alkahest.backends.nvptx import faults
from alkahest.backends.nvptx.access import SIZES, Access, arguments
from alkahest.backends.nvptx.device import Device, open_device
from alkahest.backends.nvptx.kernel import Kernel, load
from alkahest.backends.nvptx.launcher import Launcher
from alkahest.backends.nvptx.memory import DeviceArray
from alkahest.backends.nvptx.order import KEPT, Marker, follow
from alkahest.errors import CudaError, InputTypeError
from alkahest.plugin import DeviceBatch, DeviceColumn
from alkahest.streams import LEGACY

if TYPE_CHECKING:
    from alkahest.plugin import Artifact
    from alkahest.program import Program

_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


class DeviceArrayEvaluator:
    """Evaluates one program on whatever device its columns are on; any thread may call.

    Kernels are generated for the access that a call needs, when it first needs it.

    Args:
        program: what is evaluated.
        code_for: the code for contiguous columns on a device, always the same.
        load_plain: loads it on a device that is current.

    Attributes:
        plain_launchers: of that code, by the ordinal of the device, as far as it was called.
    """

    def __init__(
        self,
        program: Program,
        code_for: Callable[[Device], Artifact],
        load_plain: Callable[[Device], Kernel],
    ) -> None:
        self._program = program
        self._code_for = code_for
        self._load_plain = load_plain
        self._plains: dict[Device, Access] = {}
        self._loading = threading.Lock()
        self._launchers: dict[tuple[Device, Access], Launcher] = {}
        self.plain_launchers: dict[int, Launcher] = {}

    def evaluate(self, batch: DeviceBatch) -> dict[str, Any]:
        """Queue a batch on its stream, behind the work of the columns' own streams.

        Raises:
            CudaError: E-CUDA-003 without such a device, or where the driver refuses the code or
                the stream; E-CUDA-004 for a device that is too old, or a stream that is being
                captured where memory has to be looked after; E-CUDA-006 where the kernel cannot
                be launched.
        """
        device = open_device(batch.device)
        if batch.n == 0:
            return {"device": device.ordinal, "device_name": device.name, "launches": 0}
        called = arguments(self._program, batch, self._plain(device).points)
        arrays = [column for column in batch.columns if isinstance(column, DeviceColumn)]
        arrays += batch.out
        others = {array.stream for array in arrays if array.stream is not None} - {batch.stream}
        loose = [a.owner for a in arrays if not (a.in_order and a.stream == batch.stream)]
        if loose and device.is_capturing(batch.stream):
            raise CudaError(
                "E-CUDA-004",
                "the stream is being captured into a graph, and the arrays are not of a library "
                "that frees their memory in its order",
                remediation="Make the stream the current one of CuPy or PyTorch, and pass out=.",
            )
        KEPT.let_go()
        with device.entered(batch.stream):
            launcher = self._launcher(device, called.access)
            doing = f"ordering streams of device {device.ordinal}, {device.name}"
            with faults.translated("E-CUDA-003", doing):
                follow(device, batch.stream, others)
            launcher(called.slots, batch.stream)
            if loose:
                with faults.translated("E-CUDA-003", doing):
                    marker = Marker(batch.stream)
                ours = [owner for owner in loose if isinstance(owner, DeviceArray)]
                for array in ours:
                    array.filled(marker)
                KEPT.add(marker, [owner for owner in loose if owner not in ours])
        return launcher.facts

    def evaluate_addresses(
        self, device: Device, addresses: Sequence[int], n: int, stream: Any
    ) -> None:
        """Queue a kernel over contiguous memory, which nobody looks after.

        Args:
            device: where the memory is.
            addresses: of the inputs, then of the outputs.
            n: number of points.
            stream: as for :meth:`Device.current`; None is the legacy default stream.

        Raises:
            CudaError: as :meth:`evaluate`.
            InputTypeError: E-INPUT-008 for a stream that is none.
        """
        program = self._program
        handle = LEGACY if stream is None else device.handle_of(stream)
        if n == 0:
            return
        inputs = len(program.inputs)
        dtypes = (program.dtype,) * inputs + program.output_dtypes
        memory = tuple(
            DeviceColumn(
                pointer=address, dtype=dtype, shape=(n,), strides=(SIZES[dtype],), device=None
            )
            for address, dtype in zip(addresses, dtypes, strict=True)
        )
        batch = DeviceBatch(
            columns=memory[:inputs],
            shape=(n,),
            out=memory[inputs:],
            sources=tuple(range(len(program.outputs))),
            stream=handle,
            device=device.ordinal,
        )
        called = arguments(program, batch, self._plain(device).points)
        with device.entered(handle):
            self._launcher(device, called.access)(called.slots, handle)

    def _launcher(self, device: Device, access: Access) -> Launcher:
        """What launches the kernel of ``access`` on ``device``, which is current."""
        launcher = self._launchers.get((device, access))
        if launcher is None:
            with self._loading:
                launcher = self._launchers.get((device, access))
                if launcher is None:
                    launcher = self._launchers[device, access] = self._make(device, access)
        return launcher

    def _plain(self, device: Device) -> Access:
        """The access of the kernel for contiguous columns on ``device``."""
        plain = self._plains.get(device)
        if plain is None:
            facts = self._code_for(device).metadata
            found = Access.plain(self._program, facts["accuracy"], facts["points"])
            plain = self._plains.setdefault(device, found)
        return plain

    def _make(self, device: Device, access: Access) -> Launcher:
        if access != self._plain(device):
            return Launcher(load(self._code_for(device), device, access), access)
        launcher = Launcher(self._load_plain(device), access)
        self.plain_launchers[device.ordinal] = launcher
        return launcher


def locate(pointer: int) -> int:
    """Ordinal of the device of an address.

    Raises:
        CudaError: E-CUDA-003 without a device, or where the driver refuses.
        InputTypeError: E-INPUT-003, the address is none of a device.
    """
    from cuda.bindings import driver as cu

    attribute = cu.CUpointer_attribute(_ORDINAL)
    with open_device(0).entered(LEGACY):  # the driver has to be started for an answer
        code, ordinal = cu.cuPointerGetAttribute(attribute, pointer)
    if int(code) == 1:  # CUDA_ERROR_INVALID_VALUE
        raise InputTypeError(
            "E-INPUT-003",
            f"the address {pointer:#x} of a column is in the memory of no device",
            remediation="Pass an array that was made on a device.",
        )
    with faults.translated("E-CUDA-003", "asking which device an address belongs to"):
        return int(faults.check((code, ordinal), "cuPointerGetAttribute"))
