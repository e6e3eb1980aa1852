"""``alkahest eval``: expressions over the rows of a file or the points of a grid."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alkahest.cli import job as jobs
from alkahest.cli.expressions import Output, columns_used, inputs_of, parse_outputs
from alkahest.cli.grid import GridSource, parse_axis
from alkahest.cli.pending import check_target
from alkahest.cli.tables import (
    FORMATS,
    Field,
    Source,
    check_names,
    chunk_rows,
    container_of,
    format_of,
    open_source,
)
from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import InputError, InputTypeError, IoError
from alkahest.ops import DTYPES
from alkahest.splitting import ALL

_EXAMPLES = """\
examples:
  alkahest eval 'x**2 + y' data.csv -o out.csv
  alkahest eval 'r=hypot(x, y)' 'phi=atan2(y, x)' data.parquet --keep -o polar.parquet
  alkahest eval 'x*y' measurements/ --keep -o products.parquet
  alkahest eval 'sin(x)*exp(-y)' --grid x=0:2*pi:1000 --grid y=0:1:50 --keep -o grid.npy

An expression that begins with a minus needs a name or parentheses: 'f=-x', '(-x)'.
A column's name means the column, also where it is the name of a function or a constant;
put other names than words between backquotes: '`flow rate`*2'.
A folder is read as one table of all the Parquet files in it; folders NAME=VALUE are a column.
CSV: header line, commas, UTF-8; complex results become two columns, NAME.re and NAME.im.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest eval``."""
    parser.usage = (
        "%(prog)s [NAME=]EXPR... DATA [-o OUT] [options]\n"
        "       %(prog)s [NAME=]EXPR... --grid AXIS... [-o OUT] [options]"
    )
    parser.epilog = _EXAMPLES + (parser.epilog or "")
    parser.add_argument(
        "items",
        nargs="+",
        metavar="EXPR... DATA",
        help="expressions in the names of DATA's columns, then the file, or folder, itself; "
        "an expression without NAME= gives the column f0, f1, ... by its place",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="file to write, its suffix says the format: .csv .npy .npz .parquet; "
        "- is CSV on standard output (default)",
    )
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=START:STOP:COUNT",
        help="an axis of evenly spaced points, both ends included, instead of DATA; "
        "several axes make their product, the last one varying fastest",
    )
    parser.add_argument(
        "--keep", action="store_true", help="copy the input columns to OUT, before the results"
    )
    add_choices(parser)
    parser.add_argument(
        "--format",
        choices=sorted(set(FORMATS.values())),
        help="format of DATA where its suffix does not say it",
    )
    parser.add_argument(
        "--columns", metavar="A,B,...", help="names for the columns of a plain array in an NPY file"
    )
    parser.add_argument(
        "--missing",
        choices=("error", "nan"),
        default="error",
        help="what an empty cell or a null is (default: an error)",
    )
    parser.add_argument(
        "--chunk", type=_positive, metavar="ROWS", help="rows to hold in memory at a time"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a report for programs on standard output; errors stay on standard error",
    )


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Describe the options that say what runs: ``--backend``, ``--dtype`` and ``--device``."""
    parser.add_argument(
        "--backend", help="name of a backend (default: ALKAHEST_BACKEND, else the best one here)"
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float64", help="default: float64")
    parser.add_argument(
        "--device",
        type=_device,
        metavar="N",
        help="ordinal of the device to run on, or 'all' to share the rows among all of them",
    )


def run(options: argparse.Namespace) -> int:
    """Check everything that can be checked without reading rows, then evaluate them."""
    began = time.perf_counter()
    items, data = _split(options)
    target_format = _check_target(options, data)
    source = _source(options, data)
    try:
        job = _job(options, items, source, target_format, data)
        rows = jobs.run(job)
    finally:
        source.close()
    report = {
        "rows": rows,
        "seconds": round(time.perf_counter() - began, 6),
        "backend": job.function.report["backend"],
        "device": job.function.report["device"],
        "dtype": job.function.dtype,
        "output": options.output,
        "columns": [*(field.name for field in job.kept), *job.names],
    }
    if options.json:
        print(json.dumps(report))
    elif options.output != "-":
        print(
            "alkahest: {rows} rows, {backend}, {dtype}, {seconds:.2f} s -> {output}".format(
                **report
            ),
            file=sys.stderr,
        )
    return 0


def _split(options: argparse.Namespace) -> tuple[list[str], str | None]:
    """The expressions and the data file, which is the last positional argument without a grid."""
    if options.json and options.output == "-":
        raise _misplaced("--json", "needs -o FILE, since standard output holds the table")
    if options.grid:
        for option, value in (
            ("--format", options.format),
            ("--columns", options.columns),
            ("--missing", options.missing if options.missing == "nan" else None),
        ):
            if value:
                raise _misplaced(option, "belongs to a data file, and --grid stands in for it")
        last = options.items[-1]
        if os.path.splitext(last)[1].lower() in FORMATS and os.path.exists(last):
            raise _misplaced("--grid", f"stands in for a data file, and {last!r} is one")
        return options.items, None
    *items, data = options.items
    if not items:
        raise InputError(
            "E-INPUT-011",
            f"{data!r} stands alone: an expression and a data file, or --grid, are needed",
            remediation="For instance: alkahest eval 'x**2 + y' data.csv -o out.csv",
        )
    return items, data


def _check_target(options: argparse.Namespace, data: str | None) -> str:
    """Format of the output, after checking that it can be written."""
    if options.output == "-":
        return "csv"
    name = format_of(options.output)
    path = check_target(options.output)
    if data is not None and os.path.isdir(data) and Path(data).resolve() in path.parents:
        raise IoError(
            "E-IO-002",
            f"{options.output!r} is in the data folder, and would be data the next time",
            remediation="Write to another folder.",
        )
    if data is not None and path.exists() and os.path.exists(data) and os.path.samefile(path, data):
        raise IoError(
            "E-IO-002",
            f"{options.output!r} is the data file itself",
            remediation="Write to another file.",
        )
    if name == "parquet":
        from alkahest.cli.parquet import require_pyarrow

        require_pyarrow()
    return name


def _source(options: argparse.Namespace, data: str | None) -> Source:
    if data is None:
        return GridSource([parse_axis(text) for text in options.grid])
    name = "parquet" if os.path.isdir(data) else format_of(data, options.format)
    if options.columns is not None and name != "npy":
        raise _misplaced("--columns", f"belongs to NPY files; {data!r} names its own columns")
    if options.missing == "nan" and name in ("npy", "npz"):
        raise _misplaced("--missing", f"belongs to CSV and Parquet; {data!r} cannot lack values")
    return open_source(
        data,
        name,
        nan_for_missing=options.missing == "nan",
        columns=[part.strip() for part in (options.columns or "").split(",") if part.strip()],
    )


def _job(
    options: argparse.Namespace,
    items: Sequence[str],
    source: Source,
    target_format: str,
    data: str | None,
) -> jobs.Job:
    outputs = parse_outputs(items, source.columns, "the grid" if data is None else data)
    used = columns_used(outputs, source.columns)
    carries = source.container == container_of(target_format)
    _check_columns(source, used, options.dtype, data)
    kept = [
        Field(name=n, dtype=source.carried_type(n) if carries else _copied_type(source, n))
        for n in (source.columns if options.keep else ())
    ]
    names = [output.name for output in outputs]
    check_names("the output", [*(field.name for field in kept), *names])
    function = compiled(options, outputs, used)
    # An empty batch has the backend check the device and the dtypes before the first row is read.
    nothing = [np.empty(0, dtype=source.number_type(name)) for name in used]
    function.call_batch(nothing, n=None if used else 0)
    return jobs.Job(
        source=source,
        function=function,
        inputs=used,
        kept=kept,
        carries=carries,
        names=names,
        target=options.output,
        format=target_format,
        rows=options.chunk or chunk_rows(len({*used, *(field.name for field in kept)})),
    )


def compiled(
    options: argparse.Namespace, outputs: Sequence[Output], used: Sequence[str]
) -> CompiledFn:
    """The function of ``outputs`` over the columns ``used``, by the options of :func:`add_choices`."""
    return compile_expr(
        [output.expr for output in outputs],
        inputs_of(outputs, used),
        backend=options.backend,
        dtype=options.dtype,
        device=options.device,
        # The user names the dtype, so data of a wider real one is rounded to it.
        casting="same_kind",
    )


def _copied_type(source: Source, name: str) -> np.dtype[Any]:
    """Dtype of a column that is kept in a file of another format, which takes numbers alone."""
    try:
        return source.number_type(name)
    except IoError as error:
        raise IoError(
            error.code,
            f"{error.message}; --keep copies such a column only to a file of the data's own format",
            remediation="Write that format, or leave out --keep and name each column of numbers "
            "to copy: 'x=x'.",
        ) from None


def _check_columns(source: Source, used: Sequence[str], dtype: str, data: str | None) -> None:
    """Refuse columns that are no numbers, or complex where the program is real."""
    for name in used:
        kind = source.number_type(name)
        if kind.kind == "c" and not dtype.startswith("complex"):
            raise InputTypeError(
                "E-INPUT-004",
                f"{data}, column {name!r} is {kind}, and {dtype} would drop its imaginary part",
                remediation="Pass --dtype complex128.",
            )


def _misplaced(option: str, reason: str) -> InputError:
    return InputError("E-INPUT-011", f"{option} {reason}", remediation="See alkahest eval --help.")


def _device(text: str) -> int | str:
    return ALL if text == ALL else _number(text, f"is neither a whole number from 0 on nor {ALL!r}")


def _number(text: str, fault: str = "is not a whole number from 0 on") -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} {fault}")
    return int(text)


def _positive(text: str) -> int:
    if _number(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)
