"""Compiled code on a CPU against numexpr, numba, heyoka, JAX, symengine and NumPy.

    python benchmarks/cpu.py [--quick] [--json FILE]
    python benchmarks/cpu.py --rows seed damped --peers heyoka numba --parts one
    python benchmarks/cpu.py --published /elsewhere/bin/python
    python benchmarks/cpu.py --from FILE --page docs/benchmarks.md --picture FILE.svg

Everybody evaluates the same straight-line programs over the same columns, is checked, and is then
timed in turns: in one process pinned to one processor, and in another with two threads. Peers that
are not installed are named and left out. ``--published`` names the Python of an environment with the
published package of our name, which can be in no environment with this one. How to read the result:
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Also where Python does not put a script's folder on the path (PYTHONSAFEPATH).
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pages
from cpu_benchmark import results

HERE = Path(__file__).resolve().parent

PARTS = {"one": 1, "two": 2}
"""Name of a part -> threads."""

TWO_THREAD_SIZES = (10**5, 10**6)

_LIMITS = "OMP NUMEXPR NUMBA OPENBLAS RAYON MKL ALKAHEST".split()
"""Libraries that read ``NAME_NUM_THREADS``."""


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.read and find_spec("sympy") is None:
        parser.error("programs are made by SymPy: pip install sympy")
    if options.read:
        document = results.read(options.read)
    else:
        document = {"machine": results.machine()}
        for part in options.parts:
            document[part] = _session(part, options)
            if options.json:
                options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    print(results.tables(document))
    try:
        if options.page:
            pages.replace(options.page, options.section, results.tables(document))
        if options.picture:
            results.draw(document, options.picture)
    except ValueError as error:
        parser.error(str(error))
    return 0


def _session(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a process for a number of threads, and read what it found."""
    threads = PARTS[part]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "part.json"
        command = [sys.executable, str(HERE / "cpu_benchmark" / "session.py")]
        command += ["--threads", str(threads), "--json", str(target)]
        command += ["--turns", "5" if options.quick else str(options.turns)]
        command += ["--clock", options.clock]
        if options.rows:
            command += ["--rows", *options.rows]
        if options.peers is not None:
            command += ["--peers", *options.peers]
        sizes = options.sizes or (TWO_THREAD_SIZES if threads > 1 else ())
        if options.quick:
            sizes = options.sizes or (1, 10**5)
        if sizes:
            command += ["--sizes", *map(str, sizes)]
        if options.published and threads == 1:
            command += ["--published", str(options.published)]
        subprocess.run(command, check=True, env=_environment(threads))
        found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return found


def _environment(threads: int) -> dict[str, str]:
    limits = {f"{name}_NUM_THREADS": str(threads) for name in _LIMITS}
    path = os.pathsep.join([str(HERE), *filter(None, sys.path[1:])])
    # What is measured as building must not come from a cache.
    return {
        **os.environ,
        **limits,
        "PYTHONPATH": path,
        "PYTHONSAFEPATH": "1",
        "ALKAHEST_CACHE_DIR": "off",
        "JAX_PLATFORMS": "cpu",
        "NUMEXPR_MAX_THREADS": str(threads),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--rows", nargs="*", default=[], metavar="NAME", help="only these")
    add("--peers", nargs="*", metavar="NAME", help="only these; none for our own times")
    add("--parts", nargs="*", default=list(PARTS), choices=list(PARTS), help="numbers of threads")
    add("--sizes", nargs="*", type=int, default=[], metavar="N", help="numbers of points")
    add("--turns", type=int, default=9, metavar="N", help="samples (9)")
    add(
        "--clock",
        default="processor",
        choices=["processor", "wall"],
        help="of one thread: the process's own time, or where the system counts that in coarse ticks "
        "and nothing else is running, the clock on the wall",
    )
    add("--quick", action="store_true", help="one point and 10**5, fewer samples")
    add("--published", type=Path, metavar="PYTHON", help="with the published package of our name")
    add("--json", type=Path, metavar="FILE", help="write everything there")
    add("--from", dest="read", type=Path, metavar="FILE", help="measure nothing, read this JSON")
    add("--page", type=Path, metavar="FILE", help="put the tables between the markers of a page")
    add("--section", default="cpu figures", metavar="NAME", help="of the markers (%(default)s)")
    add("--picture", type=Path, metavar="FILE", help="draw the ratios (needs matplotlib)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
