"""Small batches: host time of a call that queues a thousand points and does not wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpu_benchmark.contenders import PEERS, Contender, Problem, alkahest_arrays, describe
from gpu_benchmark.device_rows import Plan
from gpu_benchmark.formulae import ROWS

ROW = "waves"
POINTS = 1000
CALLS, QUICK_CALLS = 10_000, 2_000
_WARM_UPS = 100


def measure(plan: Plan, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Mean microseconds of a call; whoever can writes into given arrays."""
    import cupy

    say(f"small batches, {POINTS} points")
    (row,) = (row for row in ROWS if row.name == ROW)
    inputs = [cupy.linspace(low, high, POINTS) for low, high in row.ranges]
    problem = Problem(
        row=row,
        program=row.program,
        inputs=inputs,
        outputs=[cupy.empty(POINTS)],
        options=plan.options,
    )
    calls = QUICK_CALLS if quick else CALLS
    makers = {"alkahest": alkahest_arrays, **{name: PEERS[name].make for name in plan.peers}}
    record: dict[str, Any] = {"row": ROW, "points": POINTS, "calls": calls, "us": {}, "errors": {}}
    for name, make in makers.items():
        try:
            record["us"][name] = _mean(make(problem), calls)
        except Exception as error:  # noqa: BLE001 - one that fails must not end the others' run
            record["errors"][name] = describe(error)
            say(f"  {name}: {record['errors'][name]}")
    return record


def _mean(contender: Contender, calls: int) -> float:
    import cupy

    for _ in range(_WARM_UPS):
        last = contender.run()
    contender.results(last)
    cupy.cuda.runtime.deviceSynchronize()
    start = time.perf_counter()
    for _ in range(calls):
        last = contender.run()
    microseconds = (time.perf_counter() - start) / calls * 1e6
    contender.results(last)
    cupy.cuda.runtime.deviceSynchronize()
    return microseconds
