"""Time learning, and runs modulo one prime, on the GPU of this machine and on its processor.

    python tools/groebner_learning.py [--systems LIST] [--json FILE]

Each system is computed modulo a prime of 31 bits, with a record and without, on the device and on the
processor, by phase, and bases and records are compared. Exits with 1 where they differ.

Needs an NVIDIA GPU and an installed alkahest-groebner-gpu. The systems are those of
``benchmarks/groebner.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from groebner_benchmark.devices import opened, packed_system, reported

SYSTEMS = "katsura-9,katsura-10,eco-11"


def runs(device: Any, name: str) -> Iterator[dict[str, Any]]:
    """Learning, and the same without a record, on the device and on the processor."""
    from alkahest.backends.groebner_gpu.reducer import GpuReducer
    from alkahest.groebner.engine.f4 import groebner_modp
    from alkahest.groebner.engine.records import LARGEST_PRIME

    packed, order = packed_system(name)
    for record in (True, False):
        results = []
        for reducer in (GpuReducer([device]), None):
            run = partial(
                groebner_modp, packed, LARGEST_PRIME, order, record=record, reducer=reducer
            )
            if reducer is not None:
                run()  # loads the kernels
            start = time.perf_counter()
            basis, report, trace = run()
            total = time.perf_counter() - start
            results.append((basis, trace))
            yield {
                "system": name,
                "record": record,
                "on": report.reducer,
                "right": all(
                    np.array_equal(one, other)
                    for one, other in zip(parts(*results[0]), parts(*results[-1]), strict=True)
                ),
                "total": total,
                "seconds": {**report.seconds, "rest": total - sum(report.seconds.values())},
                "reductions_on_gpu": report.reductions_on_gpu,
                "planned_on_cpu": report.planned_on_cpu,
            }


def parts(basis: Any, trace: Any) -> Iterator[Any]:
    """What has to be the same wherever it was computed."""
    yield from (basis.exponents, basis.residues, basis.offsets)
    for one in trace.rounds if trace else ():
        yield from (one.row_of, one.row_multiplier, one.entries, one.lower, one.leads)
        yield from (one.out_row, one.out_column)


def shown_run(row: dict[str, Any]) -> str:
    """A line of the table."""
    phases = ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in row["seconds"].items())
    what = "learning" if row["record"] else "GF(2147483647)"
    return (
        f"{'ok  ' if row['right'] else 'WRONG'} {row['system']:<11} {what:<14} on {row['on']}: "
        f"{1e3 * row['total']:.1f} ms ({phases}); {row['reductions_on_gpu']} matrices on the GPU, "
        f"{row['planned_on_cpu']} by plan on the processor"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--systems", default=SYSTEMS, help="names, separated by commas")
    parser.add_argument("--device", type=int, default=0, help="ordinal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args(arguments)
    device = opened(options.device)
    rows = (row for name in options.systems.split(",") for row in runs(device, name))
    return reported(device, rows, shown_run, options.json)


if __name__ == "__main__":
    sys.exit(main())
