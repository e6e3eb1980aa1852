"""What a call costs on a backend: a linear model, one per backend and dtype.

    seconds = call + columns in + columns out + first transfers + fresh memory + operations

where every column and every operation costs something once per call and something per byte or per
point. It knows nothing of caches, of overlap, or of functions whose cost depends on the argument, and is
meant to tell backends apart, not to be exact.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from alkahest.ops import OPS, Exactness
from alkahest.plugin import Tuned

if TYPE_CHECKING:
    from alkahest.program import Instruction, Program

BYTES = {"bool": 1, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}

FRESH_BYTES = 1 << 20
"""Bytes of all outputs together that the allocator is likely to have at hand.

Beyond, the system has to provide memory, page by page, and takes it back afterwards.
"""

FILLING_BYTES = 1 << 20
"""Bytes of all columns together until transfers to a device and back are under way.

Their first mebibyte costs several times what later ones do: nothing overlaps yet.
"""

_MULTIPLIED = 4
"""Largest exponent of a power that backends compute by multiplication."""


@attrs.frozen
class Cost:
    """What one column or one operation costs.

    Attributes:
        call: seconds, once per call.
        unit: seconds per byte of a column, or per point of an operation.
    """

    call: float = 0.0
    unit: float = 0.0


@attrs.frozen(kw_only=True)
class Work:
    """What a program makes a backend do.

    Attributes:
        columns_in: number of inputs.
        bytes_in: of all inputs, per point.
        columns_out: number of outputs.
        bytes_out: of all outputs, per point.
        ops: how often each operation occurs, by the name that its cost is kept under.
    """

    columns_in: int
    bytes_in: int
    columns_out: int
    bytes_out: int
    ops: Mapping[str, int]

    @classmethod
    def of(cls, program: Program) -> Work:
        """The work of ``program``."""
        return cls(
            columns_in=len(program.inputs),
            bytes_in=len(program.inputs) * BYTES[program.dtype],
            columns_out=len(program.outputs),
            bytes_out=sum(BYTES[dtype] for dtype in program.output_dtypes),
            ops=Counter(map(costed_as, program.code)),
        )


@attrs.frozen(kw_only=True, slots=False)
class Model:
    """Costs of one backend at one dtype.

    Attributes:
        call: seconds of a call that does nothing.
        read: cost of an input column in host memory, which for a device includes the transfer.
        write: cost of an output column in host memory, likewise.
        filling: seconds per byte of the first :data:`FILLING_BYTES` of all columns, besides.
        fresh: seconds per byte of the outputs beyond :data:`FRESH_BYTES`, besides.
        ops: operation -> cost. What is not there costs what is typical of its class.
    """

    call: float
    read: Cost
    write: Cost
    filling: float = 0.0
    fresh: float = 0.0
    ops: Mapping[str, Cost]

    def seconds(self, work: Work, n: int, *, moves: bool = True) -> float:
        """Predicted wall time of one call.

        Args:
            work: the program's.
            n: number of points.
            moves: whether the columns are in host memory; those on the device cost nothing extra.
        """
        total = self.call
        if moves:
            total += work.columns_in * self.read.call + n * work.bytes_in * self.read.unit
            total += work.columns_out * self.write.call + n * work.bytes_out * self.write.unit
            total += min(n * (work.bytes_in + work.bytes_out), FILLING_BYTES) * self.filling
            total += max(0, n * work.bytes_out - FRESH_BYTES) * self.fresh
        for name, count in work.ops.items():
            cost = self.cost(name)
            total += count * (cost.call + n * cost.unit)
        return total

    def cost(self, op: str) -> Cost:
        """Cost of one operation: its own where it was measured, else its class's."""
        return self.ops.get(op) or self.classes.get(op_class(op)) or self._dearest

    @cached_property
    def classes(self) -> Mapping[str, Cost]:
        """Class of operations -> median cost of those that were measured."""
        members: dict[str, list[Cost]] = {}
        for name, cost in self.ops.items():
            members.setdefault(op_class(name), []).append(cost)
        return {name: _median(costs) for name, costs in members.items()}

    @cached_property
    def _dearest(self) -> Cost:
        return max(self.classes.values(), key=lambda cost: cost.unit, default=Cost())


@attrs.frozen(kw_only=True)
class BackendModel:
    """What was measured of one backend.

    Attributes:
        plugin: distribution and version of what brings the backend.
        devices: names of its devices; the first one was measured.
        placement: where the columns are that it reads without a transfer.
        models: dtype -> costs.
        tuned: what the backend has measured about its own settings.
    """

    plugin: str
    devices: tuple[str, ...]
    placement: str
    models: Mapping[str, Model]
    tuned: tuple[Tuned, ...] = ()


@attrs.frozen(kw_only=True)
class Figures:
    """What a backend measured for a model of its own.

    Attributes:
        plugin: distribution and version of what brings the backend.
        devices: names of its devices.
        values: name -> number.
    """

    plugin: str
    devices: tuple[str, ...]
    values: Mapping[str, float]


@attrs.frozen(kw_only=True)
class Calibration:
    """What was measured on one machine.

    Attributes:
        machine: fact -> value; see :func:`alkahest.calibration.storage.machine`.
        measured: when, ISO 8601.
        backends: backend -> its models.
        figures: backend -> what a model of its own needs.
    """

    machine: Mapping[str, str]
    measured: str
    backends: Mapping[str, BackendModel]
    figures: Mapping[str, Figures] = attrs.field(factory=dict)


def costed_as(instruction: Instruction) -> str:
    """The operation under whose name the cost of ``instruction`` is kept."""
    by_pow = instruction.parameter is not None and abs(instruction.parameter) > _MULTIPLIED
    return "pow" if by_pow else instruction.op


def op_class(op: str) -> str:
    """``"arithmetic"``, ``"elementary"`` or ``"special"``, by what the op table says."""
    row = OPS[op]
    if row.exactness in (Exactness.EXACT, Exactness.ROUNDED):
        return "arithmetic"
    if row.exactness is Exactness.SPECIAL or row.ulp > _ELEMENTARY_ULP:
        return "special"
    return "elementary"


_ELEMENTARY_ULP = 4.0


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.call for cost in costs),
        statistics.median(cost.unit for cost in costs),
    )


def coefficients(model: Model) -> Iterator[float]:
    """Every number of ``model``."""
    yield model.call
    yield model.filling
    yield model.fresh
    for cost in (model.read, model.write, *model.ops.values()):
        yield cost.call
        yield cost.unit


__all__ = [
    "BYTES",
    "FILLING_BYTES",
    "FRESH_BYTES",
    "BackendModel",
    "Calibration",
    "Cost",
    "Figures",
    "Model",
    "Work",
    "coefficients",
    "costed_as",
    "op_class",
]
