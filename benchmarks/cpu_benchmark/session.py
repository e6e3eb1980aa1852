"""One process of the benchmark: everybody on every row, timed in turns.

Started by benchmarks/cpu.py with the number of threads; with one thread the process is pinned to one
processor and its own time is measured unless the clock on the wall is asked for, with several that
clock always is. Prints progress to
standard error and writes its part of the document to a file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from cpu_benchmark import formulae
from cpu_benchmark.contenders import ALONE, BUILDERS, FIRST, MODULES, OURS, PEERS, Contender

BUILD_LIMIT = 20
"""Seconds that a tool may take to build a row."""

BURST = 1e-2
"""Seconds that one turn takes at least, so that clocks and caches do not matter."""

WARM = 1 / 4
"""Of a turn's calls, and one more: made before it, untimed, since others have had the caches."""

FAR = 5.0
"""Times slower than the best at 10**5 points: left out of the largest size."""

LONGEST = 3.0
"""Seconds of a call beyond which a tool is left out of a size."""

PUBLISHED = "published"

Burst = Callable[[int], float]
"""Makes that many calls and gives the seconds of one."""


def main() -> int:
    """Measure; see the module."""
    options = _parser().parse_args()
    if options.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    _register()
    session = Session(options)
    for row in formulae.rows():
        if not options.rows or row.name in options.rows:
            session.measure(row)
            options.json.write_text(json.dumps(session.document))
    session.close()
    return 0


def _register() -> None:
    """Make our plugin known where the tree is measured and not installed."""
    import alkahest
    from alkahest._plugins.registry import registry

    if "cpu-jit" not in registry.snapshot().backends:
        alkahest.register(importlib.import_module("alkahest.backends.cpu.plugin"))


class Session:
    """What one process measures.

    Attributes:
        document: the results so far.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        own_time = options.threads == 1 and options.clock == "processor"
        self._clock = time.process_time if own_time else time.perf_counter
        self._folder = tempfile.TemporaryDirectory()
        skipped = {}
        unused = FIRST if options.threads > 1 else ALONE
        self._names = [name for name in BUILDERS if name.startswith(OURS) and name != unused]
        for name in options.peers:
            try:
                importlib.import_module(MODULES.get(name, name.split()[0]))
            except ImportError as error:
                skipped[name] = str(error)
            else:
                self._names.append(name)
        self._published: Remote | None = None
        if options.published:
            self._published = Remote(options.published, self._clock is time.process_time)
            self._names.append(PUBLISHED)
        self.document: dict[str, Any] = {"threads": options.threads, "skipped": skipped, "rows": {}}
        for name, reason in skipped.items():
            _say(f"without {name}: {reason}")
        self._warm_up()

    def _warm_up(self) -> None:
        """Build something small with everybody: what a process does once is no row's."""
        x = sp.Symbol("x")
        program = formulae.straight_line([x], [sp.sin(x) + x**2], share=True)
        for name in self._names:
            if name != PUBLISHED:
                contender = BUILDERS[name](program, self._options.threads)()
                contender.call(contender.prepare(np.ones((1, 1000))))

    def measure(self, row: formulae.Row) -> None:
        """Build everybody's function of a row and time all sizes."""
        _say(row.name)
        record: dict[str, Any] = {"title": row.title, "largest": row.largest, "aims": row.aims}
        self.document["rows"][row.name] = record
        record["forms"] = {}
        for form in ("same", "nested"):
            program = row.program(form)
            if program is not None:
                record["forms"][form] = self._form(row, program)

    def _form(self, row: formulae.Row, program: list[list[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {"build": {}, "failed": {}, "sizes": {}}
        columns = row.columns(1000, seed=3)
        built: dict[str, Contender] = {}
        right: Any = None
        for name in ("numpy", *(n for n in self._names if n != "numpy")):
            try:
                with _limited(BUILD_LIMIT):
                    contender, seconds = self._build(name, row, program, columns)
                    rows = _rows(contender, columns)
            except Exception as error:  # noqa: BLE001 - a tool that cannot is named
                found["failed"][name] = f"{type(error).__name__}: {error}"[:200]
                _say(f"  {name}: {found['failed'][name]}")
                continue
            right = rows if right is None else right
            found["build"][name] = seconds
            if (error := _difference(rows, right)) > 1e-9:
                found["failed"][name] = f"wrong by {error:.2g}"
                _say(f"  {name}: {found['failed'][name]}")
            elif name in self._names and name != FIRST:
                built[name] = contender
        sizes = self._options.sizes or [1, 1000, 10**5, row.largest]
        for n in sizes:
            alive = self._alive(built, found["sizes"], n)
            found["sizes"][str(n)] = self._time(row, alive, n)
            best = sorted(found["sizes"][str(n)].items(), key=lambda item: item[1])[:4]
            shown = ", ".join(f"{name} {1e9 * seconds / n:.3g}" for name, seconds in best)
            _say(f"  {n}: {shown} ns a point")
        return found

    def _build(
        self, name: str, row: formulae.Row, program: list[list[Any]], columns: Any
    ) -> tuple[Contender, float]:
        """A contender, and the seconds until its first results."""
        if name == PUBLISHED:
            assert self._published is not None
            return self._published.contender(row.name, program, Path(self._folder.name))
        build = BUILDERS[name](program, self._options.threads)
        start = self._clock()
        contender = build()
        contender.call(contender.prepare(columns))
        return contender, self._clock() - start

    def _alive(
        self, built: dict[str, Contender], sizes: dict[str, dict[str, float]], n: int
    ) -> dict[str, Contender]:
        """Who is timed at a size: at the largest, only who comes near the best."""
        before = sizes.get(str(10**5))
        if n <= 10**5 or not before:
            return built
        best = min(before.values())
        return {k: c for k, c in built.items() if before.get(k, math.inf) < FAR * best}

    def _time(self, row: formulae.Row, built: dict[str, Contender], n: int) -> dict[str, float]:
        """Seconds of a call for everybody: the median of turns."""
        columns = row.columns(n)
        bursts: dict[str, tuple[Burst, int]] = {}
        for name, contender in built.items():
            burst = self._burst(contender, columns)
            seconds = burst(1)
            if seconds <= LONGEST:
                bursts[name] = burst, max(1, min(20_000, round(BURST / max(seconds, 1e-7))))
        turns: dict[str, list[float]] = {name: [] for name in bursts}
        order = deque(bursts.items())
        for _ in range(self._options.turns):
            for name, (burst, calls) in order:
                turns[name].append(burst(calls))
            order.rotate(-1)  # so that nobody is always behind the same one
        # With several threads the neighbours decide the slow turns.
        middle = statistics.median if self._options.threads == 1 else min
        return {name: middle(times) for name, times in turns.items()}

    def _burst(self, contender: Contender, columns: Any) -> Burst:
        clock, arguments, call = self._clock, contender.prepare(columns), contender.call
        if isinstance(contender, RemoteContender):
            return contender.burst(arguments)

        def burst(calls: int) -> float:
            for _ in range(_warming(calls)):
                call(arguments)
            repeat = range(calls)
            start = clock()
            for _ in repeat:
                call(arguments)
            return (clock() - start) / calls

        return burst

    def close(self) -> None:
        """End the other process and remove the files."""
        if self._published is not None:
            self._published.close()
        self._folder.cleanup()


class Remote:
    """The published package in a process of its own.

    Args:
        python: that environment's interpreter.
        own_time: whether its process time is measured instead of the clock on the wall.
    """

    def __init__(self, python: str, own_time: bool) -> None:
        script = Path(__file__).with_name("published.py")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [python, "-I", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._clock = "cpu" if own_time else "wall"

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; see :mod:`cpu_benchmark.published`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def contender(
        self, row: str, program: list[list[Any]], folder: Path
    ) -> tuple[RemoteContender, float]:
        seconds = self.ask(do="build", row=row, program=program)["seconds"]
        return RemoteContender(self, row, self._clock, folder), float(seconds)

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(30)


class RemoteContender(Contender):
    """A function that lives in the other process; its arguments are files."""

    def __init__(self, remote: Remote, row: str, clock: str, folder: Path) -> None:
        def prepare(columns: Any) -> str:
            path = folder / f"{columns.shape[1]}.npy"
            np.save(path, columns)
            return str(path)

        super().__init__(prepare, self._values, list)
        self._asked = remote, row, clock

    def _values(self, path: str) -> Any:
        remote, row, _ = self._asked
        return np.load(remote.ask(do="values", row=row, columns=path)["outputs"])

    def burst(self, path: str) -> Burst:
        """Its bursts are timed over there."""
        remote, row, clock = self._asked

        def burst(calls: int) -> float:
            answer = remote.ask(
                do="time",
                row=row,
                columns=path,
                warm=_warming(calls),
                calls=calls,
                clock=clock,
            )
            return float(answer["seconds"])

        return burst


def _warming(calls: int) -> int:
    """Calls that come before so many that are timed."""
    return 1 + int(WARM * calls)


def _rows(contender: Contender, columns: Any) -> Any:
    found = contender.rows(contender.call(contender.prepare(columns)))
    return [np.broadcast_to(np.asarray(row, dtype=float), columns.shape[1:]) for row in found]


def _difference(rows: Any, right: Any) -> float:
    """The largest difference, against the size of a value or of the typical one."""
    worst = 0.0
    for a, b in zip(rows, right, strict=True):
        scale = np.maximum(np.abs(b), np.median(np.abs(b)) + 1e-300)
        worst = max(worst, float(np.max(np.abs(a - b) / scale)))
    return worst


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError when it takes longer, where the system can interrupt."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"not built in {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", default=[])
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--published", default="")
    parser.add_argument("--clock", default="processor")
    return parser


if __name__ == "__main__":
    sys.exit(main())
