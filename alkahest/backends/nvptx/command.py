"""``alkahest ptx``: the PTX of an expression's kernel, without a GPU."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from alkahest.backends.nvptx.api import compile_cuda
from alkahest.errors import AlkahestError, IoError
from alkahest.expr import Expr, ExprPool, parse
from alkahest.ops import DTYPES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest ptx``."""
    parser.add_argument(
        "expressions",
        nargs="+",
        metavar="EXPR",
        help="expressions, one output each; several share one kernel",
    )
    parser.add_argument(
        "--inputs",
        metavar="X,Y,...",
        help="the inputs in the order of the kernel's parameters "
        "(default: every symbol, alphabetically)",
    )
    parser.add_argument(
        "--target",
        metavar="SM",
        help="for instance sm_90 (default: the first device's, else the oldest supported)",
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float64", help="default: float64")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="default: standard output"
    )


def run(options: argparse.Namespace) -> int:
    """Compile and print.

    Raises:
        ParseError, CudaError: what parsing and compiling raise.
        IoError: E-IO-002 when the file cannot be written; an existing one is then untouched.
    """
    pool = ExprPool()
    names = [] if options.inputs is None else [part.strip() for part in options.inputs.split(",")]
    declared = {name: pool.symbol(name) for name in names}
    exprs = [_parse(text, pool, declared) for text in options.expressions]
    inputs = list(declared.values())
    if options.inputs is None:
        free = frozenset[Expr]().union(*(expr.free_symbols for expr in exprs))
        inputs = sorted(free, key=lambda symbol: str(symbol.value))
    ptx = compile_cuda(exprs, inputs, target=options.target, dtype=options.dtype).ptx
    if options.output == "-":
        sys.stdout.write(ptx)
    else:
        _write(Path(options.output), ptx)
    return 0


def _parse(text: str, pool: ExprPool, declared: dict[str, Expr]) -> Expr:
    try:
        return parse(text, pool, declared)
    except AlkahestError as error:
        if error.span is not None:
            start, end = error.span
            error.add_note(f"  {text}\n  {' ' * start}{'^' * max(1, end - start)}")
        raise


def _write(path: Path, text: str) -> None:
    """Write beside, then rename: the file appears complete or not at all."""
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
        ) as stream:
            temporary = stream.name
            stream.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise IoError(
            "E-IO-002",
            f"{str(path)!r} cannot be written: {error.strerror or error}",
            remediation="Check the folder and its permissions.",
        ) from None
    finally:
        if temporary:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
