"""The interpreter: a program over columns, block by block.

A block is short enough for all live values to stay in the cache. Values are kept in registers:

    columns | constants | outputs | scratch

An instruction's result takes over the scratch register of an operand that is not used again, so
most instructions run in place and a program needs only as many registers as it has live values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.backends.cpu.kernels import Kernel, kernel_for
from alkahest.ops import Kind
from alkahest.plugin import Batch, Outcome
from alkahest.program import Program
from alkahest.program.records import REAL_DTYPE

Array = NDArray[Any]

_CACHE_BYTES = 512 * 1024
"""Bytes of live values in a block: fits the second-level cache of every current processor."""

_SMALLEST_BLOCK, _LARGEST_BLOCK = 1024, 65536


class Step(NamedTuple):
    """One instruction, with registers in place of value numbers."""

    kernel: Kernel
    operands: tuple[int, ...]
    result: int


@attrs.frozen
class Plan:
    """A program with its values assigned to registers.

    Attributes:
        constants: one array per constant, a block long with stride 0.
        outputs: dtype of every output register.
        scratch: dtype of every scratch register.
        steps: the instructions, in order.
        copies: (register, output register) pairs, for outputs that no instruction writes: inputs,
            constants and repeated values.
        block: number of points in a block.
    """

    constants: tuple[Array, ...]
    outputs: tuple[np.dtype[Any], ...]
    scratch: tuple[np.dtype[Any], ...]
    steps: tuple[Step, ...]
    copies: tuple[tuple[int, int], ...]
    block: int


def plan(program: Program, block: int | None = None) -> Plan:
    """Assign registers; ``block`` overrides the block length."""
    real = np.dtype(REAL_DTYPE[program.dtype])
    dtypes = {Kind.REAL: real, Kind.COMPLEX: np.dtype(program.dtype), Kind.BOOL: np.dtype(bool)}
    kinds = program.kinds
    first = program.first_instruction
    register = dict(enumerate(range(first)))  # columns and constants keep their numbers
    copies = []
    for position, value in enumerate(program.outputs, first):
        if value in register:
            copies.append((register[value], position))
        else:
            register[value] = position
    base = first + len(program.outputs)
    last_use = {a: i for i, instruction in enumerate(program.code) for a in instruction.args}
    scratch: list[np.dtype[Any]] = []
    free: dict[np.dtype[Any], list[int]] = {dtype: [] for dtype in dtypes.values()}
    steps = []
    for i, instruction in enumerate(program.code):
        operands = tuple(register[a] for a in instruction.args)
        for value in set(instruction.args):
            if last_use[value] == i and register[value] >= base:
                free[dtypes[kinds[value]]].append(register[value])
        value, dtype = first + i, dtypes[kinds[first + i]]
        if value not in register:
            if not free[dtype]:
                free[dtype].append(base + len(scratch))
                scratch.append(dtype)
            register[value] = free[dtype].pop()
            if value not in last_use:  # computed for nothing
                free[dtype].append(register[value])
        steps.append(Step(kernel_for(instruction, program), operands, register[value]))
    outputs = tuple(np.dtype(name) for name in program.output_dtypes)
    length = block or _block_length(program, (*outputs, *scratch))
    constants = [
        np.array(constant, dtypes[kinds[position]])
        for position, constant in enumerate(program.constants, len(program.inputs))
    ]
    return Plan(
        constants=tuple(np.broadcast_to(constant, (length,)) for constant in constants),
        outputs=outputs,
        scratch=tuple(scratch),
        steps=tuple(steps),
        copies=tuple(copies),
        block=length,
    )


def _block_length(program: Program, written: Sequence[np.dtype[Any]]) -> int:
    point = len(program.inputs) * np.dtype(program.dtype).itemsize
    point += sum(dtype.itemsize for dtype in written)
    return max(_SMALLEST_BLOCK, min(_LARGEST_BLOCK, _CACHE_BYTES // point))


class ReferenceEvaluator:
    """Evaluates one program; holds no state between calls, so any number of threads may share it."""

    def __init__(self, program: Program, *, block: int | None = None) -> None:
        self._plan = plan(program, block)
        self._report = {"device": 0, "threads": 1, "block": self._plan.block}

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate in the calling thread; ``batch.threads`` is not used."""
        todo, n = self._plan, batch.n
        block = min(n, todo.block)
        outputs = batch.out or tuple([np.empty(n, dtype) for dtype in todo.outputs])
        scratch = [np.empty(block, dtype) for dtype in todo.scratch]
        # Writing an output that is also a column would change what later instructions read.
        staged = batch.out is not None and any(
            np.may_share_memory(column, out) for column in batch.columns for out in batch.out
        )
        stage = [np.empty(block, dtype) for dtype in todo.outputs] if staged else []
        with np.errstate(all="ignore"):
            for start in range(0, n, block or 1):
                stop = min(start + block, n)
                results = _cut(outputs, start, stop)
                targets = _cut(stage, 0, stop - start) if staged else results
                _run(
                    todo,
                    [
                        *_cut(batch.columns, start, stop),
                        *_cut(todo.constants, 0, stop - start),
                        *targets,
                        *_cut(scratch, 0, stop - start),
                    ],
                )
                if staged:
                    for result, value in zip(results, targets, strict=True):
                        result[...] = value
        return Outcome(outputs=outputs, report=self._report)


def _run(todo: Plan, registers: list[Array]) -> None:
    for kernel, operands, result in todo.steps:
        kernel(*[registers[o] for o in operands], registers[result])
    for source, target in todo.copies:
        registers[target][...] = registers[source]


def _cut(arrays: Sequence[Array], start: int, stop: int) -> list[Array]:
    return [array[start:stop] for array in arrays]


__all__ = ["Plan", "ReferenceEvaluator", "plan"]
