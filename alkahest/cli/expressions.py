"""The EXPR arguments: optional output names, parsed against the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from alkahest.cli.messages import pointing_at
from alkahest.cli.tables import missing_column
from alkahest.errors import AlkahestError
from alkahest.expr import Expr, ExprPool, parse

# NAME=EXPR with a plain or a backquoted name, but not the comparison NAME == EXPR.
_NAMED = re.compile(r"\s*(?:(?P<plain>[^\W\d][\w.]*)|`(?P<quoted>(?:[^`]|``)+)`)\s*=(?!=)")


@attrs.frozen(kw_only=True)
class Output:
    """One expression to evaluate.

    Attributes:
        name: name of its column.
        text: the expression as typed.
        expr: the expression.
    """

    name: str
    text: str
    expr: Expr


def parse_outputs(items: Sequence[str], columns: Sequence[str], table: str) -> list[Output]:
    """Parse ``EXPR`` or ``NAME=EXPR`` arguments; a name left out is ``f0``, ``f1``, ... by place.

    A column's name means the column, also where it is the name of a function or a constant.

    Args:
        items: the arguments.
        columns: names of the table's columns.
        table: the table in messages.

    Raises:
        ParseError, PoolError, ...: text that is no expression, with a caret line as a note.
        IoError: E-IO-004 for a symbol that is no column.
    """
    pool = ExprPool()
    symbols = {name: pool.symbol(name) for name in columns if name}
    outputs = []
    for place, item in enumerate(items):
        name, text = _split(item) or (f"f{place}", item)
        try:
            expr = parse(text, pool, symbols)
        except AlkahestError as error:
            if error.span is not None:
                error.add_note(pointing_at(text, error.span))
            raise
        unknown = sorted(set(map(_name, expr.free_symbols)) - symbols.keys())
        if unknown:
            missing = missing_column(table, unknown[0], columns)
            # Only a note: the spelling may differ from the name, and then nothing is pointed at.
            if found := re.search(rf"(?<!\w){re.escape(unknown[0])}(?!\w)", text):
                missing.add_note(pointing_at(text, found.span()))
            raise missing
        outputs.append(Output(name=name, text=text, expr=expr))
    return outputs


def _split(item: str) -> tuple[str, str] | None:
    """Name and expression of ``NAME=EXPR``, or None where there is no name."""
    match = _NAMED.match(item)
    if match is None:
        return None
    name = match["plain"] or match["quoted"].replace("``", "`")
    return name, item[match.end() :]


def columns_used(outputs: Sequence[Output], columns: Sequence[str]) -> list[str]:
    """Names of the columns that the expressions read, in the table's order."""
    used = {_name(symbol) for output in outputs for symbol in output.expr.free_symbols}
    return [name for name in columns if name in used]


def inputs_of(outputs: Sequence[Output], names: Sequence[str]) -> list[Expr]:
    """The symbols of these names, in this order."""
    pool = outputs[0].expr.pool
    return [pool.symbol(name) for name in names]


def _name(symbol: Expr) -> str:
    return str(symbol.value)
