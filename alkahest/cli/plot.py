"""``alkahest plot``: a picture of expressions over one or two axes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from alkahest.cli.evaluate import add_choices, compiled
from alkahest.cli.expressions import Output, columns_used, parse_outputs
from alkahest.cli.grid import GridSource, parse_axis
from alkahest.cli.pending import PendingFile
from alkahest.cli.picture import KINDS, Curve, Picture, check_picture
from alkahest.cli.progress import Progress
from alkahest.compiled import CompiledFn
from alkahest.errors import InputError

_CHUNK = 1 << 20

_LONGEST_LABEL = 60

_MOST_DOTS = 1200

_EXAMPLES = """\
examples:
  alkahest plot 'sin(x)' 'cos(x)' --grid x=-pi:pi:400 -o waves.png
  alkahest plot 'h=exp(-x**2 - y**2)*x' --grid x=-3:3:300 --grid y=-2:2:200 -o hill.svg
  alkahest plot 'x**2 - y**2' --grid x=-1:1:200 --grid y=-1:1:200 --kind contour -o saddle.png

One axis gives lines, one for each expression; two axes give a map of colours, a panel for each.
The first axis runs to the right, the second upwards.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest plot``."""
    parser.epilog = _EXAMPLES + (parser.epilog or "")
    parser.add_argument(
        "items",
        nargs="+",
        metavar="[NAME=]EXPR",
        help="what to show; a NAME stands in the legend in place of the expression",
    )
    parser.add_argument(
        "--grid",
        action="append",
        required=True,
        metavar="NAME=START:STOP:COUNT",
        help="an axis of evenly spaced points, both ends included; once or twice",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="picture to write; its suffix says the format: .png .svg .pdf",
    )
    parser.add_argument("--kind", choices=KINDS, help="default: line for one axis, heat for two")
    parser.add_argument("--log", action="store_true", help="a logarithmic scale of the values")
    parser.add_argument("--title", default="", help="stands above the picture")
    parser.add_argument(
        "--size", metavar="W,H", type=_size, help="inches (default: by what is shown)"
    )
    parser.add_argument("--dpi", type=_dots, default=150, help="dots per inch (default: 150)")
    add_choices(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate the grid and draw."""
    suffix = check_picture(options.output)
    axes = [parse_axis(text) for text in options.grid]
    kind = options.kind or ("line" if len(axes) == 1 else "heat")
    if len(axes) != (1 if kind == "line" else 2):
        raise InputError(
            "E-INPUT-011",
            f"--kind {kind} needs {'one axis' if kind == 'line' else 'two axes'}, "
            f"and --grid gives {len(axes)}",
            remediation="Give --grid once for lines and twice for maps.",
        )
    if kind == "contour" and min(axis.count for axis in axes) < 2:
        raise InputError(
            "E-INPUT-011",
            "contours need two points or more on each axis",
            remediation="Give the axes more points.",
        )
    source = GridSource(axes)
    outputs = parse_outputs(options.items, source.columns, "the grid")
    function, used = _compiled(options, outputs, source)
    values = _evaluated(function, used, source)
    picture = Picture(
        kind=kind,
        axes=[(axis.name, axis.values(np.arange(axis.count))) for axis in axes],
        curves=[
            Curve(_label(output, place), array.reshape([axis.count for axis in axes]))
            for place, (output, array) in enumerate(zip(outputs, values, strict=True))
        ],
        title=options.title,
        log=options.log,
        size=options.size,
        dpi=options.dpi,
    )
    with PendingFile(options.output) as file:
        picture.save(file.path, suffix)
    backend = function.report["backend"]
    print(f"alkahest: {source.total} points, {backend} -> {options.output}", file=sys.stderr)
    return 0


def _compiled(
    options: argparse.Namespace, outputs: Sequence[Output], source: GridSource
) -> tuple[CompiledFn, list[str]]:
    used = columns_used(outputs, source.columns)
    function = compiled(options, outputs, used)
    for output, dtype in zip(outputs, function.program.output_dtypes, strict=True):
        if dtype.startswith("complex"):
            raise InputError(
                "E-INPUT-011",
                f"{output.text!r} is complex, and a picture shows real numbers",
                remediation="Show abs(f), re(f), im(f) or arg(f) of it.",
            )
    return function, used


def _evaluated(
    function: CompiledFn, used: Sequence[str], source: GridSource
) -> list[NDArray[np.float64]]:
    values = [np.empty(source.total) for _ in range(function.n_outputs)]
    progress = Progress(source.total, "points")
    try:
        for chunk in source.chunks(used, (), _CHUNK):
            part = slice(chunk.position - chunk.rows, chunk.position)
            columns = [chunk.numbers[name] for name in used]
            found = function.call_batch(columns, n=None if columns else chunk.rows)
            for array, result in zip(values, found, strict=True):
                array[part] = result
            progress.reached(chunk.position)
    finally:
        progress.close()
    return values


def _label(output: Output, place: int) -> str:
    """What the legend says: the name, or where none was given the expression as it was typed."""
    is_named = output.name != f"f{place}" or len(output.text) > _LONGEST_LABEL
    return output.name if is_named else output.text.strip()


def _size(text: str) -> tuple[float, float]:
    try:
        width, height = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form WIDTH,HEIGHT") from None
    if not (0 < width <= 100 and 0 < height <= 100):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of up to 100 inches")
    return width, height


def _dots(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_DOTS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a dpi: a whole number from 1 to {_MOST_DOTS}"
        )
    return int(text)
