"""``alkahest solve``: the solutions of the system in a file."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from alkahest.errors import SolverError
from alkahest.groebner.command import (
    add_input,
    add_settings,
    progress_of,
    read_file,
    settings_of,
    write,
)
from alkahest.groebner.enclosures import Coordinate, Interval
from alkahest.groebner.fields import QQ
from alkahest.groebner.solving import Solutions, solve

_EXAMPLES = """\
examples:
  alkahest solve system.txt
  printf 'x^2 + y^2 - 1\\nx - y\\n' | alkahest solve - --domain complex --json

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest solve``."""
    parser.epilog = _EXAMPLES + (parser.epilog or "")
    add_input(parser)
    parser.add_argument(
        "--domain", choices=("real", "complex"), default="real", help="default: real"
    )
    parser.add_argument("--digits", type=int, default=15, help="of every coordinate (default: 15)")
    parser.add_argument("--json", action="store_true", help="write exact boxes as JSON")
    parser.add_argument(
        "-o", "--output", default="-", metavar="OUT", help="default: standard output"
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> int:
    """Read, solve, write.

    Raises:
        IoError: E-IO-001 to 003 for files.
        SolverError and others: see :func:`alkahest.groebner.solving.solve`.
    """
    system = read_file(options)
    if system.field not in (None, QQ):
        raise SolverError(
            "E-SOLVE-007",
            f"systems are solved over the rationals, not over {system.field}",
            remediation="alkahest groebner --order lex gives the basis that holds the solutions.",
        )
    with progress_of(options) as progress:
        solutions = solve(
            system.polynomials,
            system.chosen_variables(),
            options.domain,
            digits=options.digits,
            exact_floats=options.exact_floats,
            progress=progress,
            **settings_of(options),
        )
    write(options.output, _json(solutions) if options.json else _lines(solutions, options.digits))
    kind = "real solutions" if options.domain == "real" else "solutions"
    print(f"{len(solutions)} {kind}, {solutions.certainty}", file=sys.stderr)
    return 0


def _lines(solutions: Solutions, digits: int) -> str:
    """One solution a line: exact coordinates as such, others as decimals."""
    lines = []
    for solution in solutions:
        parts = [f"{name} = {shown(value, digits)}" for name, value in solution.items()]
        times = f"  (multiplicity {solution.multiplicity})" if solution.multiplicity > 1 else ""
        lines.append(", ".join(parts) + times)
    return "".join(f"{line}\n" for line in lines)


def shown(value: Coordinate, digits: int) -> str:
    """A coordinate as text: exact, or a decimal of ``digits`` digits."""
    exact = value.exact()
    if exact is not None:
        return str(exact)
    real = decimal(value.real, digits)
    if value.is_real:
        return real
    imaginary = decimal(value.imaginary, digits)
    sign, size = ("-", imaginary[1:]) if imaginary.startswith("-") else ("+", imaginary)
    return f"{real} {sign} {size}*I"


def decimal(interval: Interval, digits: int) -> str:
    """The middle of an interval, to ``digits`` digits after the point."""
    scaled = round(interval.middle * 10**digits)
    whole, rest = divmod(abs(scaled), 10**digits)
    return f"{'-' if scaled < 0 else ''}{whole}.{rest:0{digits}d}"


def _json(solutions: Solutions) -> str:
    data = {
        "certainty": solutions.certainty,
        "solutions": [
            {
                "multiplicity": solution.multiplicity,
                "real": solution.is_real,
                "values": {name: _box(value) for name, value in solution.items()},
            }
            for solution in solutions
        ],
    }
    return json.dumps(data, indent=1) + "\n"


def _box(value: Coordinate) -> dict[str, Any]:
    exact = value.exact()
    return {
        "re": [str(value.real.lower), str(value.real.upper)],
        "im": [str(value.imaginary.lower), str(value.imaginary.upper)],
        "exact": None if exact is None else str(exact),
    }
