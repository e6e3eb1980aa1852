"""The largest error of every real operation on a backend, beside what is promised.

    python benchmarks/accuracy.py --processes 8 --json FILE             # nvptx, needs a GPU
    python benchmarks/accuracy.py --backend cpu-reference --points 1e6 --ops exp,log
    python benchmarks/accuracy.py --backend emulated --points 1e5       # nvptx without a GPU
    python benchmarks/accuracy.py --far --points 1e6 --ops sin,cos,exp     # huge and tiny numbers
    python benchmarks/accuracy.py --read FILE --docs                    # rewrite docs/accuracy.md

Points are drawn from strata of every operation's domain (``accuracy_measure/points.py``). All of
them are compared with a reference of 64 bits; the worst, about a thousand for an operation and mode,
with mpmath, from which the figures come. Needs mpmath, a C compiler and a processor whose
``long double`` has 64 bits. Exits with 1 when something is above its bound.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

# Also where Python does not put a script's folder on the path (PYTHONSAFEPATH).
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pages
from accuracy_measure import draws, measuring, points, promises, reference, report
from gpu_benchmark import contenders, machine, results

from alkahest._plugins.registry import registry
from alkahest.ops import OPS

POINTS = 10**7
PAGE = pages.DOCS / "accuracy.md"


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.read:
        document = results.read(options.read)
    else:
        try:
            reference.check()
        except RuntimeError as error:
            parser.error(str(error))
        document = _run(options)
    promised = promises.of(document["backend"])
    text = "\n\n".join(
        [
            report.about(document),
            *(
                f"**{dtype}**\n\n{report.table(document['records'], dtype, promised)}"
                for dtype in document["dtypes"]
            ),
        ]
    )
    print(text)
    if options.docs:
        pages.replace(PAGE, options.section, text)
    failed = report.failures(document["records"], promised)
    for failure in failed:
        print(f"ABOVE  {failure}")
    return 1 if failed else 0


def _run(options: argparse.Namespace) -> dict[str, Any]:
    contenders.register_plugins()
    backend, dtypes = options.backend, options.dtypes
    modes = options.modes or list(promises.of(backend).modes)
    ops = options.ops or _measurable(backend)
    wanted = measuring.cases(ops, dtypes)
    records: list[dict[str, Any]] = []
    document = {
        "schema": results.SCHEMA,
        "backend": backend,
        "points": options.points,
        "dtypes": dtypes,
        "far": options.far,
        "machine": machine.facts() if backend == "nvptx" else machine.host(),
        "records": records,
    }
    start = time.perf_counter()
    for number, found in enumerate(_measured(options, modes, wanted), 1):
        records += found
        if options.json:  # a run that is stopped keeps what it has
            results.write(document, options.json)
        if not options.quiet:
            took = f"{time.perf_counter() - start:5.0f} s"
            case = wanted[number - 1]
            print(f"[{took}] {number} of {len(wanted)}: {case}", file=sys.stderr, flush=True)
    return document


def _measurable(backend: str) -> list[str]:
    """The operations with real results that the backend has."""
    name = "nvptx" if backend == promises.EMULATED else backend
    lowers = registry.support(name).lowers
    return [op for op in OPS if "float64" in lowers.get(op, ()) and op != "complex"]


def _measured(
    options: argparse.Namespace, modes: list[str], wanted: list[measuring.Case]
) -> Iterator[list[dict[str, Any]]]:
    """The records of every case, in order."""
    only = points.FAR if options.far else ()
    tasks = [(options.backend, modes, case, _share(case, options.points), only) for case in wanted]
    if options.processes == 1:
        yield from map(_one, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        yield from pool.map(_one, tasks)


def _share(case: measuring.Case, count: int) -> int:
    """Powers share an operation's points."""
    return count // len(points.POWERS) if OPS[case.op].has_parameter else count


def _one(
    task: tuple[str, list[str], measuring.Case, int, tuple[str, ...]],
) -> list[dict[str, Any]]:
    """Measure one case; what a process of the pool does."""
    backend, modes, case, count, only = task
    contenders.register_plugins()
    functions = measuring.evaluators(backend, case, modes)
    return measuring.measure(case, functions, count, promises.of(backend), only=only)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _count(text: str) -> int:
    return int(float(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--backend", default="nvptx", help=f"a backend, or {promises.EMULATED!r} (nvptx)")
    add("--ops", type=_words, default=[], metavar="NAMES", help="with commas (all)")
    add("--dtypes", type=_words, default=list(draws.FORMATS), metavar="NAMES")
    add("--modes", type=_words, default=[], metavar="NAMES", help="accuracy modes (all)")
    add("--points", type=_count, default=POINTS, metavar="N", help=f"per operation ({POINTS:g})")
    add("--far", action="store_true", help="only huge and tiny operands and results, and edges")
    add("--processes", type=int, default=1, metavar="N", help="measure N operations at once (1)")
    add("--json", type=Path, metavar="FILE", help="write everything there")
    add("--read", type=Path, metavar="FILE", help="measure nothing, take what --json has written")
    add("--docs", action="store_true", help=f"write the tables into {PAGE.name}")
    add("--section", default="measured errors", metavar="NAME", help="of the markers (%(default)s)")
    add("--quiet", action="store_true", help="no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main())
