"""A plugin for tests of core: plain arithmetic with NumPy, and a note of every batch it got."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from alkahest.errors import InputError
from alkahest.ops import DTYPES
from alkahest.plugin import (
    PLUGIN_API,
    Artifact,
    BackendInfo,
    Batch,
    DeviceInfo,
    Feature,
    Outcome,
    Probe,
    Support,
    hookimpl,
)
from alkahest.program import Program

UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "lt": np.less,
    "gt": np.greater,
}


@attrs.define
class ArithmeticEvaluator:
    """Evaluates whole columns, then writes the outputs."""

    program: Program
    device: int
    batches: list[Batch]

    def evaluate(self, batch: Batch) -> Outcome:
        self.batches.append(batch)
        values: list[Any] = [*batch.columns, *self.program.constants]
        for op, args, parameter in self.program.code:
            operands = [values[a] for a in args]
            values.append(
                operands[0] ** parameter if parameter is not None else UFUNCS[op](*operands)
            )
        dtypes = self.program.output_dtypes
        results = [
            np.broadcast_to(np.asarray(values[o], dtype), (batch.n,)).copy()
            for o, dtype in zip(self.program.outputs, dtypes, strict=True)
        ]
        if batch.out is None:
            return Outcome(outputs=tuple(results), report={"kind": "arithmetic"})
        for out, result in zip(batch.out, results, strict=True):
            out[...] = result
        return Outcome(outputs=batch.out, report={"kind": "arithmetic"})


@attrs.define
class Arithmetic:
    """The plugin; ``batches`` holds what its evaluators were given."""

    batches: list[Batch] = attrs.field(factory=list)
    evaluators: int = 0
    name: str = "arithmetic"
    placement: str = "host"

    ALKAHEST_PLUGIN_API = PLUGIN_API

    @hookimpl
    def alkahest_register_backends(self) -> list[BackendInfo]:
        return [
            BackendInfo(
                name=self.name,
                features=(Feature(name=f"{self.name}.compile", probe=lambda: Probe(ok=True)),),
                support=lambda: Support(
                    lowers=dict.fromkeys([*UFUNCS, "powi"], frozenset(DTYPES)),
                    refuses={"sin": "it is not arithmetic"},
                ),
                placement=self.placement,
            )
        ]

    @hookimpl
    def alkahest_codegen(
        self, backend: str, program: Program, target: str | None, options: Mapping[str, Any]
    ) -> Artifact:
        unknown = set(options) - {"flavour"}
        if unknown:
            raise InputError("E-INPUT-011", f"no option {unknown}", remediation="There is flavour.")
        return Artifact(kind="program", code="", program=program, target=target or "native")

    @hookimpl
    def alkahest_make_evaluator(
        self, backend: str, artifact: Artifact, device: int | None
    ) -> ArithmeticEvaluator:
        if device not in (None, 0, 1):
            raise InputError("E-INPUT-011", f"no device {device}", remediation="There are 0, 1.")
        self.evaluators += 1
        return ArithmeticEvaluator(artifact.program, device or 0, self.batches)

    @hookimpl
    def alkahest_devices(self, backend: str) -> tuple[DeviceInfo, ...]:
        return tuple(DeviceInfo(ordinal=i, name=f"adder {i}") for i in range(2))
