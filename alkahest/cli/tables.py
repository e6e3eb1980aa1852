"""Tables as the command line sees them: named columns, read and written a chunk of rows at a time.

A source knows its columns after reading no more than a header; a sink writes rows as they come.
Both are chosen by the suffix of the file's name, and the module of a format is imported only when
that format is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import IoError

FORMATS = {".csv": "csv", ".npy": "npy", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}
"""Suffix of a file's name, in lower case -> format."""

_SOURCES = {
    "csv": "alkahest.cli.csv_reader:CsvSource",
    "npy": "alkahest.cli.npy_reader:NpySource",
    "npz": "alkahest.cli.npy_reader:NpzSource",
    "parquet": "alkahest.cli.parquet:ParquetSource",
}
_SINKS = {
    "csv": "alkahest.cli.csv_writer:CsvSink",
    "npy": "alkahest.cli.npy_writer:NpySink",
    "npz": "alkahest.cli.npy_writer:NpzSink",
    "parquet": "alkahest.cli.parquet:ParquetSink",
}
_CONTAINERS = {"npy": "numpy", "npz": "numpy"}

MEANT_ROWS = 1 << 17
MEANT_CELLS = 1 << 22


@attrs.frozen(kw_only=True)
class Field:
    """One column of an output table.

    Attributes:
        name: the column's name, any text.
        dtype: NumPy dtype of a column of numbers; for a carried column whatever
            :meth:`Source.carried_type` gave, which only a sink of the same container reads.
    """

    name: str
    dtype: Any


@attrs.frozen(kw_only=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes:
        rows: how many; at least 1.
        numbers: column name -> array of bool, integers, floats or complex, shape ``(rows,)``,
            native byte order, any stride.
        carried: column name -> the values as the format holds them, to be written again unchanged.
        position: how far the source has been read, in its :attr:`Source.unit`.
    """

    rows: int
    numbers: Mapping[str, NDArray[Any]]
    carried: Mapping[str, Any]
    position: int


class Source(Protocol):
    """A table to read.

    Attributes:
        columns: the names, in the table's order, without repetition.
        container: ``"csv"``, ``"numpy"``, ``"parquet"`` or ``"grid"``; columns are carried
            unchanged only between equal containers.
        total: what :attr:`Chunk.position` is after the last row.
        unit: ``"B"`` for bytes or ``"rows"``.
    """

    columns: tuple[str, ...]
    container: str
    total: int
    unit: str

    def number_type(self, name: str) -> np.dtype[Any]:
        """Dtype of a column of numbers.

        Raises:
            IoError: E-IO-005 when the column's type is not a number's, as far as the
                header tells, or in a CSV file the first row.
        """
        ...

    def carried_type(self, name: str) -> Any:
        """Type of a carried column, for the :class:`Field` of a sink of the same container."""
        ...

    def chunks(self, numbers: Sequence[str], carried: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Read the table from its first row, at most ``rows`` rows at a time.

        Raises:
            IoError: E-IO-001, E-IO-003 or E-IO-005, naming row and column where there is one.
        """
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class Sink(Protocol):
    """A table to write."""

    def write(self, columns: Sequence[Any], rows: int) -> None:
        """Append rows; one array per field, in the order of the fields."""
        ...

    def finish(self) -> None:
        """Complete the file after the last row."""
        ...

    def close(self) -> None:
        """Let go of the file, complete or not."""
        ...


def format_of(path: str, option: str | None = None) -> str:
    """Name of the format of ``path``: ``option`` where given, else by its suffix.

    Raises:
        IoError: E-IO-003 when the suffix is not one of :data:`FORMATS`.
    """
    if option is not None:
        return option
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        named = f"the suffix {suffix!r}" if suffix else "a name without a suffix"
        raise IoError(
            "E-IO-003",
            f"{path!r}: {named} does not say what format the file has",
            remediation=f"Name the file with one of {', '.join(FORMATS)}; --format says it for "
            "the data file, which is the last argument.",
        )
    return FORMATS[suffix]


def container_of(name: str) -> str:
    """Container of a format: formats of one container carry columns unchanged."""
    return _CONTAINERS.get(name, name)


def open_source(path: str, name: str, *, nan_for_missing: bool, columns: Sequence[str]) -> Source:
    """Open a data file and read its header.

    Args:
        path: the file.
        name: one of the values of :data:`FORMATS`.
        nan_for_missing: whether empty cells and nulls read as nan; an error otherwise.
        columns: names for the columns of a plain array; empty for files that name their own.
    """
    opener = cast(Callable[..., Source], _load(_SOURCES[name]))
    return opener(path, nan_for_missing=nan_for_missing, names=tuple(columns))


def open_sink(path: str, name: str, fields: Sequence[Field]) -> Sink:
    """Start a file of format ``name`` with these columns; ``"-"`` is standard output, CSV only."""
    return cast(Callable[..., Sink], _load(_SINKS[name]))(path, tuple(fields))


def _load(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


def chunk_rows(columns: int) -> int:
    """Rows per chunk when the user does not say: bounded in rows and in cells."""
    return max(1024, min(MEANT_ROWS, MEANT_CELLS // max(1, columns)))


def unreadable(path: str, error: OSError) -> IoError:
    """The error of a file that the system will not let us read."""
    return IoError(
        "E-IO-001",
        f"{path!r} cannot be read: {error.strerror or error}",
        remediation="Check the file's name and its permissions.",
    )


def missing_column(path: str, name: str, present: Sequence[str]) -> IoError:
    """The error of an expression that names a column that the table lacks."""
    shown = ", ".join(present[:20]) + (", ..." if len(present) > 20 else "")
    close = difflib.get_close_matches(name, present, n=1)
    return IoError(
        "E-IO-004",
        f"{path} has no column {name!r}; it has: {shown or 'none'}",
        remediation=f"Did you mean {_spelled(close[0])}?" if close else "Use one of these names.",
    )


def _spelled(name: str) -> str:
    """``name`` as it is written in an expression; other names than words need backquotes."""
    return repr(name) if name.isidentifier() else f"`{name}`"


def check_names(path: str, names: Sequence[str]) -> None:
    """Refuse a table that uses one name twice.

    Raises:
        IoError: E-IO-004 naming it.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise IoError(
                "E-IO-004",
                f"{path} has more than one column named {name!r}",
                remediation="Give every column its own name.",
            )
        seen.add(name)


def missing_value(path: str, row: int, column: str, line: int | None = None) -> IoError:
    """The error of an empty cell or a null."""
    where = f"row {row}" if line is None else f"row {row} (line {line})"
    return IoError(
        "E-IO-005",
        f"{path}, {where}, column {column!r}: the value is missing",
        remediation="Fill it in, or pass --missing nan to read missing values as nan.",
    )
