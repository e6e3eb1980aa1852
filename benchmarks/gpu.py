"""This library against CuPy, Torch, JAX and numba on one NVIDIA GPU: same data, same process.

    python benchmarks/gpu.py [--quick] [--json FILE]
    python benchmarks/gpu.py --rows waves,heavy --peers cupy,numba --parts rows
    python benchmarks/gpu.py --table FILE

Everybody evaluates the same statements on the same arrays, is checked against the CPU, and is then
timed in turns. Needs CuPy and a GPU; other peers that are not installed are named and left out.
Writes the JSON after every step, so that an interrupted run keeps what it has. Exits with 1 when
something of ours failed. How to read the result: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Also where Python does not put a script's folder on the path (PYTHONSAFEPATH).
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_benchmark import contenders, formulae, machine, results
from gpu_benchmark.device_rows import Plan, measure, release_memory, warm_up
from gpu_benchmark.rehearsal import Rehearsal
from gpu_benchmark.timing import DeviceClock

PARTS = ("rows", "small", "host", "first")
"""In the order in which they run, the most important first."""

REPEATS = 20
COMPILE_LIMIT, QUICK_COMPILE_LIMIT = 60.0, 15.0


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.table:
        document = results.read(options.table)
        print(results.about(document))
        for table in reversed(results.tables(document)):
            print(f"\n{results.markdown(table)}")
        return 0
    try:
        rows = formulae.select(options.rows)
        if options.list:
            for row in rows:
                print(f"{row.name:16} {row.group:6} {row.points:>11,} points  {row.title}")
            return 0
        skipped = contenders.missing(options.peers)
    except ValueError as error:
        parser.error(str(error))
    if (unusable := contenders.missing(["cupy"])) or _devices() == 0:
        reason = unusable.get("cupy", "no usable GPU, see `alkahest doctor`")
        print(f"this benchmark needs CuPy and a GPU: {reason}", file=sys.stderr)
        return 2
    contenders.register_plugins()
    with contextlib.ExitStack() as opened:
        return _run(options, rows, skipped, opened)


def _run(
    options: argparse.Namespace,
    rows: list[formulae.Row],
    skipped: dict[str, str],
    opened: contextlib.ExitStack,
) -> int:
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - start:5.0f} s] {text}", flush=True)

    for name, reason in skipped.items():
        say(f"without {name}: {reason}")
    quick = options.quick
    limit = options.compile_limit or (QUICK_COMPILE_LIMIT if quick else COMPILE_LIMIT)
    say(f"a peer that needs more than {limit:g} s to compile a row is left out of that row")
    peers = [name for name in options.peers if name not in skipped]
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-jax-"))
    plan = Plan(
        peers=peers,
        points=options.points,
        divisor=formulae.QUICK_DIVISOR if quick else 1,
        repeats=options.repeats,
        compile_limit=limit,
        kernel_only=options.kernel_only,
        options=dict(options.option),
        rehearsals=_rehearsals(peers, opened),
        jax_cache=folder,
    )
    document: dict[str, Any] = {
        "schema": results.SCHEMA,
        "settings": {
            "quick": quick,
            "repeats": plan.repeats,
            "compile_limit_s": limit,
            "options": {key: str(value) for key, value in plan.options.items()},
        },
        "machine": machine.facts(),
        "skipped": skipped,
        "errors": {},
    }
    steps = _steps(plan, rows, quick, document, say)
    for part in (part for part in PARTS if part in options.parts):
        try:
            for _ in steps[part]():
                if options.json:
                    results.write(document, options.json)
        except Exception as error:  # noqa: BLE001 - the other parts go on
            document["errors"][part] = contenders.describe(error)
            say(f"{part}: {document['errors'][part]}")
    return _finish(document, options.json, say)


def _rehearsals(peers: list[str], opened: contextlib.ExitStack) -> dict[str, Rehearsal]:
    found = {}
    for name in peers:
        compiles = contenders.PEERS[name].rehearse
        if compiles is not None:
            found[name] = opened.enter_context(contextlib.closing(Rehearsal(compiles)))
    return found


def _steps(
    plan: Plan,
    rows: list[formulae.Row],
    quick: bool,
    document: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, Callable[[], Any]]:
    """Every part as a generator that yields where the document has grown."""

    def on_device() -> Any:
        document["rows"] = []
        clock = DeviceClock()
        say("first use of everybody")
        warm_up(rows[0], plan, say)
        for row in rows:
            say(f"row {row.name}")
            try:
                record = measure(row, plan, clock, say)
            except Exception as error:  # noqa: BLE001 - the other rows go on
                record = {"name": row.name, "group": row.group}
                record["error"] = contenders.describe(error)
                say(f"  {record['error']}")
            document["rows"].append(record)
            say(f"  {_short(record)}")
            release_memory()
            yield

    def small() -> Any:
        from gpu_benchmark import small_batches

        document["small_batches"] = small_batches.measure(plan, quick, say)
        yield

    def host() -> Any:
        from gpu_benchmark import host_arrays

        for record in host_arrays.measure(quick, dict(plan.options), say):
            document["host"] = record
            yield

    def first() -> Any:
        from gpu_benchmark import first_call

        if quick:
            say("first calls of peers are left out of a quick run")
        document["first_call"] = first_call.measure([] if quick else plan.peers, say)
        yield

    return {"rows": on_device, "small": small, "host": host, "first": first}


def _short(record: dict[str, Any]) -> str:
    times = [
        f"{name} {contender['ms']:.3f}"
        for name, contender in record.get("contenders", {}).items()
        if "ms" in contender
    ]
    return ", ".join(times) + " ms" if times else "nothing was timed"


def _finish(document: dict[str, Any], path: Path | None, say: Callable[[str], None]) -> int:
    lines = [results.judge(row) for row in document.get("rows", [])]
    document["summary"] = {"geometric_means": results.means(lines)}
    if path:
        results.write(document, path)
        say(f"wrote {path}")
    failed = results.failures(document)
    print(f"\n{results.about(document)}")
    for table in results.tables(document):
        print(f"\n{results.plain(table)}")
    for failure in failed:
        print(f"FAILED  {failure}")
    return 1 if failed else 0


def _devices() -> int:
    import cupy

    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _parts(text: str) -> list[str]:
    words = _words(text)
    for word in words:
        if word not in PARTS:
            raise argparse.ArgumentTypeError(f"no part {word!r}; there are {', '.join(PARTS)}")
    return words


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--rows", type=_words, default=[], metavar="NAMES", help="rows or groups, with commas")
    add("--points", type=int, metavar="N", help="for every row, instead of its own number")
    add("--repeats", type=int, default=REPEATS, metavar="N", help=f"samples ({REPEATS})")
    add("--json", type=Path, metavar="FILE", help="write everything there")
    add("--quick", action="store_true", help="fewer points and processes, less time to compile")
    add(
        "--peers",
        type=_words,
        default=list(contenders.PEERS),
        metavar="NAMES",
        help=f"with commas ({','.join(contenders.PEERS)})",
    )
    add(
        "--parts",
        type=_parts,
        default=list(PARTS),
        metavar="NAMES",
        help=f"with commas ({','.join(PARTS)})",
    )
    add(
        "--compile-limit",
        type=float,
        metavar="SECONDS",
        help=f"for one contender and row ({COMPILE_LIMIT:g}, quick {QUICK_COMPILE_LIMIT:g})",
    )
    add("--kernel-only", action="store_true", help="also time our kernel on raw pointers")
    add(
        "--option",
        type=_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="for compile_expr; may be repeated",
    )
    add("--list", action="store_true", help="print the rows and stop")
    add("--table", type=Path, metavar="FILE", help="print a JSON file's tables as Markdown")
    return parser


if __name__ == "__main__":
    sys.exit(main())
