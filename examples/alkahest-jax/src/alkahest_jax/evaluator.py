"""Programs as functions that JAX traces, compiles with XLA and differentiates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from alkahest.errors import CodegenError, InputTypeError
from alkahest.plugin import ArrayBatch, Batch, Outcome
from alkahest.program import Instruction, Program
from alkahest.program.split_complex import split
from alkahest_jax.operations import OPERATIONS

LONGEST_COMPILED = 2000
"""Instructions up to which XLA compiles a program as a whole, in about a second; longer ones run
operation by operation."""

_runs_in: int | None = None  # the process whose threads JAX has started


class JaxEvaluator:
    """Evaluates one program on one device; see :class:`alkahest.plugin.ArrayEvaluator`."""

    def __init__(self, program: Program, device: int | None) -> None:
        self._program = program
        self._ordinal = device
        self._trace = Trace(program)
        self._function = self._trace
        if len(self._trace.program.code) <= LONGEST_COMPILED:
            self._function = jax.jit(self._trace, static_argnums=0)

    def evaluate(self, batch: Batch) -> Outcome:
        """Columns in host memory: copied to the device, evaluated there, copied back."""
        device = self._device()
        names = self._program.output_dtypes
        outputs = batch.out or tuple(np.empty(batch.n, name) for name in names)
        if batch.n:
            length = padded(batch.n)
            # 64-bit types are on in this thread meanwhile, whatever the application has chosen.
            with jax.enable_x64(True), jax.default_device(device):
                columns = [_lengthened(column, length) for column in batch.columns]
                results = self._function((length,), *columns)
                for output, result in zip(outputs, results, strict=True):
                    output[...] = np.asarray(result)[: batch.n]
        report = {"device_name": device.device_kind, "platform": device.platform}
        return Outcome(outputs=outputs, report=report)

    def evaluate_arrays(self, batch: ArrayBatch) -> Outcome:
        """JAX's arrays where they are; those of a function that is being traced are traced."""
        device = self._device()
        for column in batch.columns:
            where = set() if isinstance(column, jax.core.Tracer) else column.devices()
            if self._ordinal is not None and where - {device}:
                raise InputTypeError(
                    "E-INPUT-010",
                    f"a column is on {', '.join(map(str, where))}, the call is for {device}",
                    remediation="Leave device= out, or move the column with jax.device_put.",
                )
        try:
            return Outcome(outputs=self._function(batch.shape, *batch.columns))
        except ValueError as error:  # how JAX says that arrays are in several places
            raise InputTypeError(
                "E-INPUT-010", str(error), remediation="Move every column with jax.device_put."
            ) from error

    def _device(self) -> jax.Device:
        global _runs_in
        if _runs_in not in (None, os.getpid()):
            raise CodegenError(
                "E-JIT-002",
                "jax: this process was forked after JAX had started threads, which it now lacks",
                remediation="Start processes with multiprocessing's method 'spawn'.",
            )
        device: jax.Device = jax.local_devices()[self._ordinal or 0]
        _runs_in = os.getpid()
        return device


class Trace:
    """A program as a function ``(shape, *columns) -> outputs`` of JAX's arrays.

    Attributes:
        program: the real program that is evaluated; complex values are pairs in it.
    """

    def __init__(self, program: Program) -> None:
        self._whole = program
        self._split = split(program)
        self.program = self._split.program
        last = {a: number for number, (_, args, _) in self._numbered() for a in args}
        kept = {*self.program.outputs}
        self._done: dict[int, list[int]] = {}
        for value, number in last.items():
            if value not in kept:
                self._done.setdefault(number, []).append(value)

    def __call__(self, shape: tuple[int, ...], *columns: Any) -> tuple[jax.Array, ...]:
        program = self.program
        values: list[Any] = []
        for column in columns:
            values += [lax.real(column), lax.imag(column)] if self._whole.is_complex else [column]
        for constant in program.constants:
            dtype = bool if isinstance(constant, bool) else program.dtype
            values.append(lax.full(shape, constant, dtype))
        for number, (op, args, parameter) in self._numbered():
            extra = () if parameter is None else (parameter,)
            values.append(OPERATIONS[op](*[values[a] for a in args], *extra))
            for done in self._done.get(number, ()):
                values[done] = None  # so that operation by operation, memory is given back
        results = [values[o] for o in program.outputs]
        parts = [[results[k] for k in positions] for positions in self._split.outputs]
        return tuple(lax.complex(*p) if len(p) == 2 else jnp.asarray(p[0]) for p in parts)

    def _numbered(self) -> Iterator[tuple[int, Instruction]]:
        return enumerate(self.program.code, self.program.first_instruction)


def padded(n: int) -> int:
    """A length from ``n`` on, at most a quarter more, of which there are four per doubling.

    XLA compiles for one length, so batches of many lengths share code.
    """
    step = 1 << max(n.bit_length() - 3, 4)
    return -(-n // step) * step


def _lengthened(column: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """A copy of ``length``, whose further elements are the first one's repetitions."""
    longer = np.empty(length, column.dtype)
    longer[: len(column)] = column
    longer[len(column) :] = column[0]
    return longer
