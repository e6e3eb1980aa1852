"""Ask Nsight Compute what limits the kernels of the benchmark's rows.

    python tools/gpu_profile.py [--rows PATTERNS] [--contenders NAMES] [--json FILE] [--ncu PATH]
    python tools/gpu_profile.py --table FILE [--page PAGE]

Every row of ``benchmarks/gpu.py`` is evaluated by each contender on arrays in device memory: once to
compile, and once with the profiler watching. Printed is a table with the time of the kernel and, in
percent of what the device can do, the traffic of its memory, the slots in which an instruction was
issued, the FP64 units and the resident warps; then registers of a thread. Clocks are left alone.
Needs an NVIDIA GPU, its profiler ``ncu``, CuPy, an installed alkahest-nvptx and whatever else is
named. Exits with 1 when the profiler saw other kernels than one for each evaluation.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import pages

SECTION = "profile"
"""Between marks of this name a page gets the table."""

METRICS = {
    "ms": "gpu__time_duration.sum",
    "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
    "fp64": "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_elapsed",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}
"""Columns of the table and the profiler's names for them; times come in nanoseconds."""

HEADING = ("row", "contender", "ms", "memory, %", "issue, %", "FP64, %", "warps, %", "registers")


def evaluate(rows: list[str], contenders: list[str]) -> None:
    """Evaluate, in the process that is watched; a line of output for each watched evaluation."""
    import cupy  # pyright: ignore[reportMissingImports]  # only where there is a GPU
    from gpu_benchmark import contenders as known
    from gpu_benchmark import formulae, machine
    from gpu_benchmark.device_rows import Plan, problem_of

    plan = Plan(
        peers=[name for name in contenders if name != known.OURS],
        points=None,
        divisor=1,
        repeats=1,
        compile_limit=0,
        kernel_only=False,
        options={},
    )
    makers = plan.makers()
    print(f"machine {json.dumps(machine.facts())}", flush=True)
    for row in formulae.select(rows):
        problem = problem_of(row, plan)
        for name in contenders:
            run = makers[name](problem).run
            run()
            cupy.cuda.runtime.deviceSynchronize()
            cupy.cuda.runtime.profilerStart()
            run()
            cupy.cuda.runtime.deviceSynchronize()
            cupy.cuda.runtime.profilerStop()
            print(f"watched {row.name} {name}", flush=True)


def profile(ncu: str, arguments: list[str]) -> dict[str, Any]:
    """The machine, and what the profiler saw of each evaluation.

    Raises:
        RuntimeError: the profiler failed, or saw other kernels than one for each evaluation.
    """
    watch = ["--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw"]
    metrics = ["--print-units", "base", "--metrics", ",".join(METRICS.values())]
    command = [sys.executable, __file__, *arguments, "--watched"]
    run = subprocess.run(
        [ncu, *watch, *metrics, *command], capture_output=True, text=True, check=False
    )
    lines = run.stdout.splitlines()
    watched = [line.split()[1:] for line in lines if line.startswith("watched ")]
    table = [line for line in lines if line.startswith('"')]
    kernels = list(csv.DictReader(table))[1:]  # the first line below the names has the units
    if run.returncode or len(kernels) != len(watched):
        raise RuntimeError(
            f"{ncu} ended with {run.returncode} and {len(kernels)} kernels for {len(watched)} "
            f"evaluations:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
        )
    (facts,) = (line.partition(" ")[2] for line in lines if line.startswith("machine "))
    return {
        "machine": json.loads(facts),
        "kernels": [
            {"row": row, "contender": name, "kernel": kernel["Kernel Name"]} | _figures(kernel)
            for (row, name), kernel in zip(watched, kernels, strict=True)
        ],
    }


def _figures(kernel: dict[str, str]) -> dict[str, float]:
    found = {name: float(kernel[metric].replace(",", "")) for name, metric in METRICS.items()}
    found["ms"] /= 1e6
    return found


def table(found: dict[str, Any]) -> str:
    """The figures in Markdown."""
    machine = found["machine"]
    lines = [f"{machine['device']}, driver {machine['driver']}, {machine['date']}.", ""]
    lines += ["| " + " | ".join(HEADING) + " |", "| --- | --- |" + " ---: |" * len(METRICS)]
    for entry in found["kernels"]:
        cells = [entry["row"], entry["contender"], f"{entry['ms']:.3f}"]
        cells += [f"{entry[name]:.0f}" for name in list(METRICS)[1:]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--rows", default="", metavar="PATTERNS", help="names or groups, with commas (all)")
    add("--contenders", default="alkahest", metavar="NAMES", help="with commas (alkahest)")
    add("--json", type=Path, metavar="FILE", help="keep the figures here")
    add("--ncu", default="ncu", metavar="PATH", help="Nsight Compute's program")
    add("--table", type=Path, metavar="FILE", help="print the figures of an earlier run")
    add(
        "--page",
        type=Path,
        metavar="PAGE",
        help=f"put the table between the marks {SECTION!r} there",
    )
    add("--watched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watched:
        evaluate([row for row in options.rows.split(",") if row], options.contenders.split(","))
        return 0
    if options.table:
        found = json.loads(options.table.read_text(encoding="utf-8"))
    else:
        if shutil.which(options.ncu) is None:
            parser.error(f"no profiler {options.ncu!r}; name it with --ncu")
        try:
            found = profile(
                options.ncu, ["--rows", options.rows, "--contenders", options.contenders]
            )
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if options.page:
        pages.replace(options.page, SECTION, table(found))
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
