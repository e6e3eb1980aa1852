"""Try Gröbner bases on the GPU of this machine, and time the kernels.

    python tools/groebner_gpu.py [--systems LIST] [--primes LIST] [--layouts] [--among-themselves]
                                 [--json FILE]

For each system the processor learns the record, a GPU replays it for each number of primes, and
some of the images are compared with the processor's, or with ``--among-themselves`` all of them with
the first replay's. Printed are multiply-subtracts a second in the reduction of rows and in the dense
part, and where the time went; with ``--layouts`` for every number of primes and of threads to a block
that can be chosen. A last row for each system times the lifting to the rationals on the device and on
the processor's threads. Exits with 1 when an image or a numerator is wrong.

Needs an NVIDIA GPU and an installed alkahest-groebner-gpu. The systems are those of
``benchmarks/groebner.py``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from groebner_benchmark.devices import opened, packed_system, reported

SYSTEMS = "katsura-8,katsura-9,katsura-10,cyclic-7,noon-7,eco-10"
PRIMES = "64,128,512"


def learned(name: str) -> tuple[Any, Any, float]:
    """Generators and record of a system, and the seconds that learning took."""
    from alkahest.groebner.engine.f4 import groebner_modp
    from alkahest.groebner.engine.prepare import generators
    from alkahest.groebner.engine.records import LARGEST_PRIME

    packed, order = packed_system(name)
    start = time.perf_counter()
    trace = groebner_modp(packed, LARGEST_PRIME, order, record=True)[2]
    seconds = time.perf_counter() - start
    assert trace is not None
    return generators(packed, trace.layout), trace, seconds


def shapes(record: Any, shared_bytes: int, every: bool) -> Iterator[Any]:
    """The layout that would be chosen, and on request all others that make sense."""
    from alkahest.backends.groebner_gpu.compiling import GROUPS
    from alkahest.backends.groebner_gpu.replay import Shape

    yield Shape.fitting(record, shared_bytes)
    if every:
        fitting = [g for g in GROUPS if 4 * g * record.columns <= shared_bytes or g == GROUPS[-1]]
        yield from (
            Shape(group=group, threads=threads)
            for group in fitting
            for threads in (64, 128, 256, 512)
        )


def timed(
    device: Any, name: str, counts: list[int], every: bool, among_themselves: bool
) -> Iterator[dict[str, Any]]:
    """One row for each number of primes and layout."""
    from alkahest.backends.groebner_gpu.record import record_of
    from alkahest.backends.groebner_gpu.replay import replay
    from alkahest.groebner.engine.lanes import LANES
    from alkahest.groebner.engine.primes import primes_below
    from alkahest.groebner.engine.replay import replay as on_the_processor
    from alkahest.groebner.engine.work import work_of

    given, trace, learning = learned(name)
    record, work = record_of(trace), work_of(trace)
    source = primes_below(2**31 - 1000, given.leading())
    primes = [next(source) for _ in range(max(counts))]
    inputs = given.images(primes)
    start = time.perf_counter()
    right_tails = None
    if not among_themselves:
        right_tails = on_the_processor(
            trace, np.ascontiguousarray(inputs[:, :LANES]), primes[:LANES], lambda: None
        ).tails
    host = (time.perf_counter() - start) / LANES
    for count in counts:
        for shape in shapes(record, device.shared_bytes, every):
            arguments = (device, record, inputs[:, :count], primes[:count], lambda: None, shape)
            replay(*arguments)  # loads the kernels, and fills the pool of memory
            seconds: dict[str, float] = {}
            start = time.perf_counter()
            tails, lucky = replay(*arguments, seconds)
            total = time.perf_counter() - start
            if right_tails is None:
                right_tails = tails
            both = min(tails.shape[1], right_tails.shape[1])
            right = bool(lucky.all()) and np.array_equal(tails[:, :both], right_tails[:, :both])
            yield {
                "system": name,
                "primes": count,
                "group": shape.group,
                "threads": shape.threads,
                "right": right,
                "seconds": dict(seconds),
                "total": total,
                "reduce_rate": work.products * count / max(seconds["reduce"], 1e-9),
                "combine_rate": work.dense_products * count / max(seconds.get("combine", 0), 1e-9),
                "processor_seconds_a_prime": host,
                "learning": learning,
                "columns": record.columns,
                "products": work.products,
                "steps": work.steps,
            }


def timed_lifting(device: Any, name: str) -> dict[str, Any]:
    """The lifting from as many primes as a basis needs: on the device, and on the processor."""
    from alkahest.backends.groebner_gpu.reducer import GpuReducer
    from alkahest.groebner.engine.columns import Columns
    from alkahest.groebner.engine.lanes import LANES
    from alkahest.groebner.engine.lift import Lift
    from alkahest.groebner.engine.primes import primes_below

    given, trace, _ = learned(name)
    reducer = GpuReducer([device])
    source = primes_below(2**31 - 1000, given.leading())
    offsets = trace.offsets - np.arange(len(trace.offsets))
    threads = os.cpu_count() or 1
    columns, lift, count = Columns(), Lift(offsets, threads, leads=1), 0
    while not lift.settled:
        count += LANES
        while len(columns.primes) < count:
            primes = [next(source) for _ in range(reducer.lanes)]
            inputs = given.images(primes)
            columns.add(reducer.replay_kept(trace, inputs, primes, lambda: None), reducer)
        columns.settle(lift, count, lambda: None)  # loads the kernels
    lift = Lift(offsets, threads, leads=1)
    clock = [time.perf_counter()]
    columns.settle(lift, count, lambda: None)
    clock.append(time.perf_counter())
    there = columns.lifted_by is not None
    residues = columns.array()[:, :count]
    clock.append(time.perf_counter())
    expected = Lift(offsets, threads, leads=1)
    expected.settle(residues, tuple(columns.primes[:count]))
    clock.append(time.perf_counter())
    seconds, download, processor = np.diff(clock).tolist()
    width = lift.words()
    right = lift.denominators == expected.denominators and width == expected.words()
    right = right and np.array_equal(lift.limbs[:, :width], expected.limbs[:, :width])
    return {
        "system": name,
        "lifting": True,
        "primes": count,
        "right": right and np.array_equal(lift.negative, expected.negative),
        "on_the_device": there,
        "total": seconds,
        "download_of_residues": download,
        "processor": processor,
        "threads": threads,
        "terms": int(offsets[-1]),
        "bits": lift.bits(),
    }


def shown(row: dict[str, Any]) -> str:
    """A line of the table."""
    if "lifting" in row:
        return (
            f"{'ok  ' if row['right'] else 'WRONG'} {row['system']:<11} {row['primes']:>4} primes, "
            f"lifting of {row['terms']} terms of up to {row['bits']} bits on the "
            f"{'device' if row['on_the_device'] else 'processor'}: {1e3 * row['total']:.1f} ms; "
            f"the residues come down in {1e3 * row['download_of_residues']:.1f} ms, and the "
            f"processor's {row['threads']} threads lift in {1e3 * row['processor']:.1f} ms"
        )
    phases = ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in row["seconds"].items())
    threads = row["threads"] or "auto"
    return (
        f"{'ok  ' if row['right'] else 'WRONG'} {row['system']:<11} {row['primes']:>4} primes, "
        f"{row['group']:>2} a block of {threads:>4} threads: "
        f"rows {row['reduce_rate'] / 1e9:7.1f} G/s, "
        f"dense {row['combine_rate'] / 1e9:7.1f} G/s, total {1e3 * row['total']:.1f} ms "
        f"({phases}); the processor {1e3 * row['processor_seconds_a_prime']:.1f} ms a prime"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", default=SYSTEMS, help="names, separated by commas")
    parser.add_argument("--primes", default=PRIMES, help="numbers of primes")
    parser.add_argument("--layouts", action="store_true", help="time every layout")
    parser.add_argument(
        "--among-themselves", action="store_true", help="compare nothing with the processor"
    )
    parser.add_argument("--device", type=int, default=0, help="ordinal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args(arguments)
    device = opened(options.device)
    counts = [int(n) for n in options.primes.split(",")]

    def rows() -> Iterator[dict[str, Any]]:
        for name in options.systems.split(","):
            yield from timed(device, name, counts, options.layouts, options.among_themselves)
            yield timed_lifting(device, name)

    return reported(device, rows(), shown, options.json)


if __name__ == "__main__":
    sys.exit(main())
