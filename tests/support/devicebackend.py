"""A plugin for tests of core: arithmetic on a device whose memory is the host's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from arithmetic import Arithmetic, ArithmeticEvaluator

from alkahest.plugin import Artifact, Batch, DeviceBatch, DeviceColumn, hookimpl


def view(column: DeviceColumn) -> np.ndarray:
    """The memory of a column, to be read and written."""
    holder = type("Holder", (), {})()
    holder.__array_interface__ = {
        "version": 3,
        "data": (column.pointer, False),
        "typestr": np.dtype(column.dtype).str,
        "shape": column.shape,
        "strides": column.strides,
    }
    return np.asarray(holder)


class DeviceMemory:
    """A result that the backend has allocated."""

    def __init__(self, values: np.ndarray, device: int, stream: int) -> None:
        self.values = values
        self.device = device
        self.__cuda_array_interface__ = {
            **values.__array_interface__,
            "version": 3,
            "stream": stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device


@attrs.define
class AdderEvaluator(ArithmeticEvaluator):
    """Evaluates where the columns are; ``queued`` holds what it was given."""

    queued: list[DeviceBatch] = attrs.field(factory=list)
    owner: int = 0
    fast: Any = None

    def evaluate_on_device(self, batch: DeviceBatch) -> Mapping[str, Any]:
        self.queued.append(batch)
        columns = [view(c) if isinstance(c, DeviceColumn) else c for c in batch.columns]
        flat = tuple(
            np.broadcast_to(c, batch.shape).astype(self.program.dtype).reshape(-1) for c in columns
        )
        outputs = self.evaluate(Batch(columns=flat, n=batch.n)).outputs
        for place, source in zip(batch.out, batch.sources, strict=True):
            view(place)[...] = outputs[source].reshape(batch.shape)
        return {"kind": "adder"}

    def allocate(self, shape: tuple[int, ...], dtype: str, device: int, stream: int) -> Any:
        return DeviceMemory(np.empty(shape, dtype), device, stream)

    def locate(self, pointer: int) -> int:
        return self.owner

    def fast_call(self, *columns: Any, out: Any = None, stream: Any = None) -> Any:
        if self.fast is None:
            return NotImplemented
        return self.fast(*columns, out=out, stream=stream)


@attrs.define
class Adder(Arithmetic):
    """The plugin; its evaluators share ``queued``, and ``owner`` is the device of every address."""

    name: str = "adder"
    placement: str = "cuda"
    queued: list[DeviceBatch] = attrs.field(factory=list)
    owner: int = 0
    fast: Any = None

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> AdderEvaluator:
        return AdderEvaluator(
            artifact.program, device or 0, self.batches, self.queued, self.owner, self.fast
        )
