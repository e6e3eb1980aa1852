"""``alkahest groebner``: the Gröbner basis of the system in a file."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alkahest.errors import IoError
from alkahest.groebner.basis import GroebnerBasis
from alkahest.groebner.formats import READERS, WRITERS, System, field_named, format_of

if TYPE_CHECKING:
    from alkahest.groebner.engine.records import Progress

PATIENCE = 2.0
"""Seconds before a terminal is told how far a computation is."""

_EXAMPLES = """\
examples:
  alkahest groebner system.txt --order lex
  alkahest groebner katsura.ms -o basis.json
  printf 'x^2 + y^2 - 1\\nx - y\\n' | alkahest groebner - --eliminate x

formats: text (one polynomial a line; "# vars: x, y", "# field: GF(7)" and "# order: lex" count),
msolve (.ms) and json (.json), by the suffix.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest groebner``."""
    parser.epilog = _EXAMPLES + (parser.epilog or "")
    add_input(parser)
    parser.add_argument(
        "--order",
        help="grevlex (default), lex, grlex, elimination(K), block(K,...) or weights(W,...)",
    )
    parser.add_argument(
        "--eliminate", metavar="X,Y,...", help="variables to eliminate from the ideal"
    )
    parser.add_argument("--to", choices=WRITERS, help="format to write (default: by the suffix)")
    parser.add_argument(
        "-o", "--output", default="-", metavar="OUT", help="default: standard output"
    )
    parser.add_argument("--report", action="store_true", help="say on standard error how it went")
    add_settings(parser)


def add_input(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what to read."""
    parser.add_argument("file", metavar="FILE", help="the system; - is standard input")
    parser.add_argument(
        "--from",
        dest="kind",
        choices=READERS,
        help="format to read (default: by the suffix .ms or .json, else text)",
    )
    parser.add_argument(
        "--vars",
        metavar="X,Y,...",
        help="the variables, the largest first (default: the file's, else alphabetically)",
    )
    parser.add_argument("--field", help="QQ (default), GF(p) or p")
    parser.add_argument("--exact-floats", action="store_true", help="read decimals as exact ratios")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The arguments that say how to compute."""
    parser.add_argument("--certify", action="store_true", help="prove a rational result")
    parser.add_argument("--device", help="cuda, cuda:N or auto (default: the processor)")
    parser.add_argument(
        "--fallback", choices=("error", "cpu"), default="error", help="default: error"
    )
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="stop after that time")
    parser.add_argument("--memory", type=_bytes, metavar="SIZE", help="for instance 500M or 4G")
    parser.add_argument("--seed", type=int, help="of the random choices")
    parser.add_argument(
        "--progress",
        action="store_true",
        help="list all rounds on standard error; a terminal shows the last one anyway",
    )


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of a computation."""
    names = ("certify", "device", "fallback", "deadline", "memory", "seed")
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    return chosen


@contextmanager
def progress_of(options: argparse.Namespace) -> Iterator[Callable[[Progress], None] | None]:
    """What is told about rounds: all of them where asked for, else a terminal's last line."""
    if options.progress or not sys.stderr.isatty():
        yield _show if options.progress else None
        return
    line = _StatusLine()
    try:
        yield line.show
    finally:
        line.clear()


def run(options: argparse.Namespace) -> int:
    """Read, compute, write.

    Raises:
        IoError: E-IO-001 to 003 for files.
        SolverError and others: see :meth:`GroebnerBasis.compute`.
    """
    system = read_file(options)
    with progress_of(options) as progress:
        basis = GroebnerBasis.compute(
            system.polynomials,
            system.chosen_variables(),
            options.order or system.order or "grevlex",
            system.field,
            exact_floats=options.exact_floats,
            progress=progress,
            **settings_of(options),
        )
    if options.eliminate:
        basis = basis.eliminate(options.eliminate)
    if options.report:
        print(basis.report, file=sys.stderr)
    kind = options.to or format_of(options.output)
    write(options.output, WRITERS[kind](basis))
    return 0


def read_file(options: argparse.Namespace) -> System:
    """The system that the arguments of :func:`add_input` name.

    Raises:
        IoError: E-IO-001 for a file that cannot be read, E-IO-003 for another format.
    """
    import attrs

    try:
        if options.file == "-":
            text = sys.stdin.read()
        else:
            text = Path(options.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise IoError("E-IO-001", f"{options.file!r} cannot be read: {reason}") from None
    system = READERS[options.kind or format_of(options.file)](text)
    if options.vars:
        names = tuple(options.vars.replace(",", " ").split())
        system = attrs.evolve(system, variables=names)
    if options.field:
        system = attrs.evolve(system, field=field_named(options.field))
    return system


def write(path: str, text: str) -> None:
    """Write to a file, complete or not at all, or to standard output.

    Raises:
        IoError: E-IO-002 when the file cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()  # before whatever is said on standard error about it
        return
    target, temporary = Path(path), ""
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            dir=target.parent,
            prefix=f".{target.name}.",
            suffix=".tmp",
            delete=False,
        ) as stream:
            temporary = stream.name
            stream.write(text)
        os.replace(temporary, target)
    except OSError as error:
        raise IoError(
            "E-IO-002",
            f"{path!r} cannot be written: {error.strerror or error}",
            remediation="Check the folder and its permissions.",
        ) from None
    finally:
        if temporary:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _show(progress: Progress) -> None:
    print(_described(progress), file=sys.stderr)


def _described(progress: Progress) -> str:
    degree = f", degree {progress.degree}" if progress.degree else ""
    return (
        f"{progress.phase} {progress.step}{degree}: {progress.basis} elements, "
        f"{progress.pairs} pairs left"
    )


class _StatusLine:
    """The round that a computation is in, on one line of a terminal, from two seconds on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = False

    def show(self, progress: Progress) -> None:
        """Show this round in the place of the last."""
        if time.monotonic() - self._began >= PATIENCE:
            self._shown = True
            print(f"\r{_described(progress):<79.79}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave an empty line to write on."""
        if self._shown:
            print(f"\r{'':79}\r", end="", file=sys.stderr, flush=True)


def _bytes(text: str) -> int:
    """A size with an optional suffix K, M, G or T, powers of 1024."""
    units = "KMGT"
    number, unit = text[:-1], text[-1:].upper()
    power = units.index(unit) + 1 if unit and unit in units else 0
    try:
        return int(float(number if power else text) * 1024**power)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 500M") from None
