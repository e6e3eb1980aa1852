"""Rows on device arrays: everybody is checked first, then timed in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

import alkahest
from alkahest import ExprPool
from alkahest.program import Program
from gpu_benchmark.contenders import (
    OURS,
    PEERS,
    Contender,
    Problem,
    alkahest_arrays,
    alkahest_kernel,
    describe,
)
from gpu_benchmark.formulae import Row
from gpu_benchmark.rehearsal import Rehearsal
from gpu_benchmark.timing import DeviceClock, OutOfTime, deadline, interleaved

RELATIVE, OF_LARGEST = 1e-8, 1e-10
"""Two results agree when they differ by less than this share of the value, plus this share of the
largest value of the output. It catches wrong formulae and missing points; accuracy has tests of its
own."""

WARM_UP_LIMIT = 90.0
"""Seconds that a contender may take for its first row."""

_COPIED = 1 << 27
_SAMPLE = 1 << 15
_SEED = 20_240_601
_BLOCK = 1 << 24
_COPIES_OF_OUTPUTS = 9
"""Given arrays, ours to compare with, and what Torch and the queued calls of JAX return."""


class Wrong(Exception):
    """A contender's results are not what they should be."""


@attrs.frozen(kw_only=True)
class Plan:
    """How rows are run.

    Attributes:
        peers: names of those that are there.
        points: for every row, or None for the row's own number.
        divisor: the row's own number is divided by this.
        repeats: samples of each contender.
        compile_limit: seconds that a contender has to compile, run once and be checked.
        kernel_only: also time our kernel without the call.
        options: for our compiler.
        rehearsals: peers that compile in another process first, by name.
        jax_cache: folder where that process and this one keep what JAX has compiled, or "".
    """

    peers: Sequence[str]
    points: int | None
    divisor: int
    repeats: int
    compile_limit: float
    kernel_only: bool
    options: Mapping[str, Any]
    rehearsals: Mapping[str, Rehearsal] = attrs.field(factory=dict)
    jax_cache: str = ""

    def makers(self) -> dict[str, Callable[[Problem], Contender]]:
        """Everybody who takes part, ourselves first."""
        ours = {OURS: alkahest_arrays}
        if self.kernel_only:
            ours[f"{OURS} kernel"] = alkahest_kernel
        return ours | {name: PEERS[name].make for name in self.peers}


def measure(row: Row, plan: Plan, clock: DeviceClock, say: Callable[[str], None]) -> dict[str, Any]:
    """One row's record, for JSON; a contender that fails has its error in it instead of times."""
    problem = problem_of(row, plan)
    points = len(problem.inputs[0])
    columns = _columns_moved(problem.program)
    record: dict[str, Any] = {
        "name": row.name,
        "title": row.title,
        "group": row.group,
        "points": points,
        "inputs": len(problem.inputs),
        "outputs": len(problem.outputs),
        "instructions": len(problem.program.code),
        "bytes": 8 * points * columns,
        "contenders": {},
    }
    ready = _ready(problem, plan, record["contenders"], say)
    _time(ready, plan.repeats, clock, record)
    return record


def warm_up(row: Row, plan: Plan, say: Callable[[str], None]) -> None:
    """Have everybody compile a small row, so that no row is charged for the first one's imports."""
    problem = problem_of(row, attrs.evolve(plan, points=1000))
    for name, make in plan.makers().items():
        start = time.perf_counter()
        try:
            with deadline(WARM_UP_LIMIT):
                contender = make(problem)
                contender.results(contender.run())
        except OutOfTime:
            say(f"  {name} is not done with a small row after {WARM_UP_LIMIT:g} s")
        except Exception as error:  # noqa: BLE001 - the rows will show it
            say(f"  {name}: {describe(error)}")
        say(f"  {name} is ready after {time.perf_counter() - start:.1f} s")


def _columns_moved(program: Program) -> int:
    """Columns that a launch has to read or write at least; one that no output needs is not read."""
    read = {a for instruction in program.code for a in instruction.args} | set(program.outputs)
    return len(read & set(range(len(program.inputs)))) + len(program.outputs)


def problem_of(row: Row, plan: Plan) -> Problem:
    """A row with its data on the device, at most as many points as fit there."""
    import cupy

    program = row.program
    wanted = plan.points or max(1, row.points // plan.divisor)
    free, _ = cupy.cuda.runtime.memGetInfo()
    held = len(program.inputs) + _COPIES_OF_OUTPUTS * len(program.outputs)
    points = min(wanted, int(free * 0.8) // (8 * held))
    random = cupy.random.default_rng(_SEED)
    inputs = []
    for low, high in row.ranges:
        column = random.random(points)
        column *= high - low
        column += low
        inputs.append(column)
    outputs = [cupy.empty(points) for _ in program.outputs]
    return Problem(
        row=row,
        program=program,
        inputs=inputs,
        outputs=outputs,
        options=plan.options,
        jax_cache=plan.jax_cache,
    )


def _ready(
    problem: Problem, plan: Plan, records: dict[str, Any], say: Callable[[str], None]
) -> dict[str, Contender]:
    """Those who compile in time and compute the right values."""
    check = _Check(problem)
    ready = {}
    for name, make in plan.makers().items():
        start = time.perf_counter()
        try:
            if name in plan.rehearsals:
                row, points = problem.row.name, len(problem.inputs[0])
                plan.rehearsals[name].within(plan.compile_limit, row, points, plan.jax_cache)
            with deadline(plan.compile_limit):
                contender = make(problem)
                check.contender(contender)
            ready[name] = contender
            records[name] = {
                "clock": contender.clock,
                "prepare_s": round(time.perf_counter() - start, 3),
                "facts": dict(contender.facts()),
            }
        except OutOfTime:
            reason = f"not compiled and checked within {plan.compile_limit:g} s"
            records[name] = {"error": reason}
        except Exception as error:  # noqa: BLE001 - one that fails must not end the others' run
            records[name] = {"error": describe(error)}
        if "error" in records[name]:
            say(f"  {name}: {records[name]['error']}")
    return ready


class _Check:
    """Compares with the CPU on a sample, and with the first right contender everywhere."""

    def __init__(self, problem: Problem) -> None:
        import numpy as np

        self._problem = problem
        points = len(problem.inputs[0])
        ends = np.arange(min(points, 1024))
        random = np.random.default_rng(_SEED).integers(0, points, _SAMPLE)
        self._sample = np.unique(np.concatenate([ends, points - 1 - ends, random]))
        self._reference = self._evaluate(self._sample)
        self._complete: list[Any] | None = None

    def _evaluate(self, sample: Any) -> Sequence[Any]:
        import cupy

        index = cupy.asarray(sample)
        columns = [column[index].get() for column in self._problem.inputs]
        outputs, symbols = self._problem.row.build(ExprPool())
        fn = alkahest.compile_expr(outputs, symbols, backend="cpu-reference")
        values: Sequence[Any] = fn(*columns)
        return values

    def contender(self, contender: Contender) -> None:
        """Run once over poisoned outputs and check every element.

        Raises:
            Wrong: naming the output and the first wrong point.
        """
        import cupy

        for output in self._problem.outputs:
            output.fill(float("nan"))
        results = contender.results(contender.run())
        cupy.cuda.runtime.deviceSynchronize()
        index = cupy.asarray(self._sample)
        for number, (result, want) in enumerate(zip(results, self._reference, strict=True)):
            if result.shape != self._problem.inputs[0].shape or result.dtype != "float64":
                raise Wrong(f"output {number} is {result.dtype} of shape {result.shape}")
            unwritten = int(cupy.isnan(result).sum())
            if unwritten:
                raise Wrong(f"output {number}: {unwritten} points are nan or were not written")
            _compare(result[index], cupy.asarray(want), number, "the CPU reference")
        if self._complete is None:
            self._complete = [result.copy() for result in results]
            return
        for number, (result, first) in enumerate(zip(results, self._complete, strict=True)):
            for start in range(0, len(result), _BLOCK):
                part = slice(start, start + _BLOCK)
                _compare(result[part], first[part], number, "the first contender", start)


def _compare(got: Any, want: Any, output: int, whose: str, start: int | None = None) -> None:
    """Raise :class:`Wrong` where two arrays differ; ``start`` is the point of the first element."""
    import cupy

    size = cupy.abs(want)
    wrong = ~(cupy.abs(got - want) <= RELATIVE * size + OF_LARGEST * size.max())
    if bool(wrong.any()):
        at = int(wrong.argmax())
        place = "of the sample" if start is None else f"at point {start + at}"
        raise Wrong(
            f"output {output}: {int(wrong.sum())} values differ, the first {place}: "
            f"{float(got[at])!r}, {whose} has {float(want[at])!r}"
        )


def _time(
    ready: Mapping[str, Contender], repeats: int, clock: DeviceClock, record: dict[str, Any]
) -> None:
    """Everybody in turns, and with them a copy, which shows the rate of the memory."""
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    source = cupy.arange(min(_COPIED, free // 64), dtype=cupy.float64)
    target = cupy.empty_like(source)

    def copy() -> object:
        return cupy.copyto(target, source)

    def sampler(contender: Contender) -> Callable[[], float]:
        return lambda: contender.time(clock, contender.run)

    clocks = [lambda: clock.event_time(copy), *map(sampler, ready.values())]
    copied, *samples = interleaved(clocks, repeats)
    rate = 2 * source.nbytes / copied.median  # bytes in a millisecond
    record["copy_gb_per_s"] = rate / 1e6
    record["floor_ms"] = record["bytes"] / rate
    for name, sample in zip(ready, samples, strict=True):
        record["contenders"][name].update(
            ms=sample.median, spread=sample.spread, samples=list(sample.milliseconds)
        )


def release_memory() -> None:
    """Give back what the libraries keep between rows."""
    import gc
    import sys

    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.compiler.reset()
        torch.cuda.empty_cache()
