"""Kernels in tuned shapes against the shapes that the built-in tables choose, on one device.

    python benchmarks/shapes.py [--rows NAMES] [--device 0] [--rounds 15] [--json FILE]

Tunes as ``alkahest calibrate`` does, without storing anything, then times the rows of
``benchmarks/gpu.py`` and the archetypes themselves in both shapes, in turns, and prints how many times
faster the tuned ones are. Rows whose shape is not changed are listed as such; those of many columns
never are. Exits with 1 when a tuned shape is slower by more than noise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# Also where Python does not put a script's folder on the path (PYTHONSAFEPATH).
sys.path.insert(0, str(Path(__file__).resolve().parent))

import attrs
from gpu_benchmark import contenders, formulae

from alkahest.backends.nvptx import shapes, tuning
from alkahest.backends.nvptx.accuracy import DEFAULT
from alkahest.backends.nvptx.shapes import OTHER, Shape, Tuning
from alkahest.plugin import Tuned
from alkahest.program import Program

ROUNDS = 15


def programs(rows: Iterable[formulae.Row]) -> dict[str, Program]:
    """Name -> program: the archetypes, and the rows that a shape may be tuned for."""
    found = {entry.case: entry.program for entry in tuning.archetypes()}
    found |= {row.name: row.program for row in rows}
    return {
        name: program
        for name, program in found.items()
        if shapes.choose(program, DEFAULT).work != OTHER
    }


def compare(program: Program, tuned: Tuning, build: tuning.Build, rounds: int) -> dict[str, Any]:
    """Both shapes of a program's kernel, and where they differ how they compare."""
    found = shapes.choose(program, DEFAULT, tuned)
    points = shapes.points_per_thread(program, DEFAULT), found.points
    kernels = {count: build(program, count) for count in sorted(set(points))}
    own = Shape(points[0], shapes.threads_per_block(kernels[points[0]].registers))
    wanted = tuned.threads(program.dtype, found.work)
    chosen = Shape(points[1], shapes.threads_per_block(kernels[points[1]].registers, wanted))
    facts: dict[str, Any] = {
        "work": found.work,
        "own": attrs.asdict(own),
        "tuned": attrs.asdict(chosen),
    }
    if own != chosen:
        times = tuning.in_turns(kernels, (own, chosen), rounds)
        facts["ratio"], facts["deviation"] = tuning.compared(times[own], times[chosen])
    return facts


def is_slower(facts: dict[str, Any]) -> bool:
    """Whether the tuned shape loses by more than noise."""
    least = 1 - max(tuning.LEAST_GAIN - 1, tuning.NOISE * facts.get("deviation", 0.0))
    return bool(facts.get("ratio", 1.0) < least)


def report(device: str, found: Sequence[Tuned], rows: dict[str, dict[str, Any]]) -> str:
    """Everything as text."""
    lines = [f"{device}: {sum(bool(f.settings) for f in found)} of {len(found)} shapes changed"]
    for name, facts in rows.items():
        own, chosen = ("{points} x {threads}".format(**facts[key]) for key in ("own", "tuned"))
        result = "unchanged"
        if "ratio" in facts:
            result = f"{facts['ratio']:.3f} times as fast, give or take {facts['deviation']:.3f}"
        lines.append(f"{name:<20} {facts['work']:<9} {own:>8} -> {chosen:<8} {result}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", default="", metavar="NAMES", help="rows or groups, with commas")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="ordinal (0)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="fewer rounds for tuning")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    options = parser.parse_args(arguments)
    from alkahest.backends.nvptx.bench import bench_on
    from alkahest.backends.nvptx.device import open_device
    from alkahest.backends.nvptx.kernel import kind_of

    contenders.register_plugins()
    chosen = programs(formulae.select([name for name in options.rows.split(",") if name]))
    most = max(len(p.inputs) + len(p.outputs) for p in chosen.values())
    device = open_device(options.device)
    with bench_on(device, most) as bench:
        found = tuning.tune(kind_of(device), bench.build, quick=options.quick)
        tuned = tuning.shapes_of(found)
        rows = {
            name: compare(program, tuned, bench.build, options.rounds)
            for name, program in chosen.items()
        }
    if options.json:
        document = {
            "device": kind_of(device),
            "tuned": [attrs.asdict(entry) for entry in found],
            "rows": rows,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(report(kind_of(device), found, rows))
    slower = [name for name, facts in rows.items() if is_slower(facts)]
    for name in slower:
        print(f"SLOWER  {name}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
