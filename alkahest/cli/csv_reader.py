"""Reading CSV: strict, in chunks, and exact about where a mistake is.

The dialect is that of RFC 4180 with a header line: comma, double quotes, any line end, UTF-8 with
or without a byte order mark. Blank lines are skipped. Rows count from 1 after the header; lines
are those of the file, so that an editor finds them.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.cli.tables import Chunk, check_names, missing_value, unreadable
from alkahest.errors import IoError

Rows = list[list[str]]

_LINE_END = re.compile(r"\r\n|\r|\n")


class CsvSource:
    """A CSV file; every column of numbers is float64, carried columns are lists of text."""

    container = "csv"
    unit = "B"

    def __init__(self, path: str, *, nan_for_missing: bool, names: tuple[str, ...] = ()) -> None:
        del names  # a CSV file names its own columns
        self._path = path
        self._nan_for_missing = nan_for_missing
        try:
            self._bytes = open(path, "rb")  # noqa: SIM115  closed by close()
        except OSError as error:
            raise unreadable(path, error) from None
        # A pipe has no positions and no size; its rows are read all the same.
        self._seekable = self._bytes.seekable()
        self.total = os.fstat(self._bytes.fileno()).st_size
        self._text = io.TextIOWrapper(self._bytes, encoding="utf-8-sig", newline="")
        self._reader = csv.reader(self._text, strict=True)
        self._row = 0
        try:
            with self._explained():
                header = next((fields for fields in self._reader if fields), None)
                self._begun = _Begun.read(self._reader)
            if header is None:
                raise IoError(
                    "E-IO-003",
                    f"{path!r} is empty",
                    remediation="The first line of a CSV file names its columns.",
                )
            self.columns = tuple(name.strip() for name in header)
            check_names(path, self.columns)
        except BaseException:
            self.close()
            raise

    def number_type(self, name: str) -> np.dtype[Any]:
        """float64, unless the first row has no number there."""
        if self._begun.row is not None and len(self._begun.row) == len(self.columns):
            self._number(self._begun.row[self.columns.index(name)], name, 0, self._begun.lines)
        return np.dtype(np.float64)

    def carried_type(self, name: str) -> None:
        """Text."""

    def chunks(self, numbers: Sequence[str], carried: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See :meth:`alkahest.cli.tables.Source.chunks`."""
        places = {name: position for position, name in enumerate(self.columns)}
        begun = self._begun
        while True:
            with self._explained():
                read = [*begun.rows, *islice(self._reader, rows - len(begun.rows[-1:]))]
            if not read:
                return
            lines = _Lines(read, begun.first_line)
            kept = self._rectangular(read, lines)
            if kept:
                yield Chunk(
                    rows=len(kept),
                    numbers={n: self._numbers(n, places[n], kept, lines) for n in numbers},
                    carried={n: [fields[places[n]] for fields in kept] for n in carried},
                    position=self._bytes.tell() if self._seekable else 0,
                )
            self._row += len(kept)
            begun = _Begun([], self._reader.line_num + 1)

    def close(self) -> None:
        """Close the file."""
        self._text.close()

    def _rectangular(self, read: Rows, lines: _Lines) -> Rows:
        """The rows without blank lines, all as long as the header."""
        width = len(self.columns)
        widths = set(map(len, read))
        kept = [fields for fields in read if fields] if 0 in widths else read
        if not widths <= {0, width}:
            row = next(k for k, fields in enumerate(kept) if len(fields) != width)
            raise IoError(
                "E-IO-003",
                f"{self._where(row, lines)} has {_count(len(kept[row]), 'field')}, "
                f"the header has {width}",
                remediation="Give every row one field per column; quote fields that hold commas.",
            )
        return kept

    def _numbers(self, name: str, place: int, rows: Rows, lines: _Lines) -> NDArray[np.float64]:
        """One column as float64."""
        cells = list(map(itemgetter(place), rows))
        text = "".join(cells)
        # float() also takes 1_000 and the digits of other scripts; both are mistakes in data.
        if "_" not in text and text.isascii():
            try:
                return np.array(list(map(float, cells)), dtype=np.float64)
            except ValueError:
                pass  # the careful loop below finds the cell
        values = np.empty(len(cells), dtype=np.float64)
        for row, cell in enumerate(cells):
            values[row] = self._number(cell, name, row, lines)
        return values

    def _number(self, cell: str, name: str, row: int, lines: _Lines) -> float:
        if not cell.strip():
            if self._nan_for_missing:
                return math.nan
            raise missing_value(self._path, self._row + row + 1, name, lines.of(row))
        try:
            if "_" not in cell and cell.isascii():
                return float(cell)
        except ValueError:
            pass
        raise IoError(
            "E-IO-005",
            f"{self._where(row, lines)}, column {name!r}: {cell!r} is not a number",
            remediation="Write numbers like 1, -2.5, 6.02e23, nan or inf, "
            "and leave out units and thousands separators.",
        )

    def _where(self, row: int, lines: _Lines) -> str:
        return f"{self._path}, row {self._row + row + 1} (line {lines.of(row)})"

    def _undecodable(self) -> str:
        """Where the first bytes are that are not UTF-8.

        The text is decoded in blocks ahead of the reader, so its lines are counted once more.
        """
        if not self._seekable:  # a pipe's bytes are gone
            return f"after line {self._reader.line_num}"
        number = 1
        self._bytes.seek(0)
        for raw in self._bytes:  # ends at line feeds, which are no part of any other character
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                number += raw.count(b"\r", 0, error.start)
                break
            number += len(_LINE_END.findall(line))
        return f"line {number}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what reading raises into an IoError that names the file."""
        try:
            yield
        except OSError as error:
            raise unreadable(self._path, error) from None
        except UnicodeDecodeError as error:
            raise IoError(
                "E-IO-003",
                f"{self._path!r} is not UTF-8 text: {error.reason} ({self._undecodable()})",
                remediation="Save the file as UTF-8, or say --format if it is no CSV file.",
            ) from None
        except csv.Error as error:
            raise IoError(
                "E-IO-003",
                f"{self._path}, line {self._reader.line_num}: {error}",
                remediation="Look for a quote that is not closed or not doubled.",
            ) from None


class _Begun:
    """Rows that were read to see what the table holds: blank ones, and the first that is not."""

    def __init__(self, rows: Rows, first_line: int) -> None:
        self.rows = rows
        self.first_line = first_line
        self.row = rows[-1] if rows and rows[-1] else None
        self.lines = _Lines(rows, first_line)

    @classmethod
    def read(cls, reader: Any) -> _Begun:
        """Read on to the first row, which is the last of the rows; they are blank without any."""
        first_line = reader.line_num + 1
        rows: Rows = []
        for fields in reader:
            rows.append(fields)
            if fields:
                break
        return cls(rows, first_line)


class _Lines:
    """Where the rows of a chunk are in the file; worked out only for a message."""

    def __init__(self, read: Rows, first_line: int) -> None:
        self._read = read
        self._first_line = first_line

    def of(self, row: int) -> int:
        """Line on which the ``row``-th row that is not blank begins."""
        line = self._first_line
        for fields in self._read:
            if fields:
                if row == 0:
                    break
                row -= 1
            line += 1 + sum(len(_LINE_END.findall(cell)) for cell in fields)
        return line


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
