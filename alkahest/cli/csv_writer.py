"""Writing CSV: a header, then rows whose numbers read back to the same bits.

Floats are written as the shortest text that reads back to the same value of their precision, truth
values as 1 and 0, and a complex column as two, ``name.re`` and ``name.im``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from alkahest.cli.tables import Field
from alkahest.errors import IoError

Formatter = Callable[[Any], Iterable[str]]


class CsvSink:
    """A CSV file, or standard output for the path ``"-"``."""

    def __init__(self, path: str, fields: Sequence[Field]) -> None:
        self._owned = path != "-"
        self._file = _open(path) if self._owned else _standard_output()
        self._formatters: list[tuple[Formatter, ...]] = []
        names: list[str] = []
        for field in fields:
            formatters = _formatters(field.dtype)
            self._formatters.append(tuple(formatters.values()))
            names += [quoted(field.name + suffix) for suffix in formatters]
        self._file.write(",".join(names) + "\n")

    def write(self, columns: Sequence[Any], rows: int) -> None:
        """Append rows."""
        texts = [
            formatter(column)
            for formatters, column in zip(self._formatters, columns, strict=True)
            for formatter in formatters
        ]
        self._file.write("\n".join(map(",".join, zip(*texts, strict=True))))
        self._file.write("\n")

    def finish(self) -> None:
        """Write out what is buffered."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._file is None:
            raise IoError(
                "E-IO-002",
                "standard output is closed",
                remediation="Name a file: -o FILE.",
            )
        if self._owned:
            self._file.close()


def quoted(text: str) -> str:
    """``text`` as one CSV field."""
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _open(path: str) -> TextIO:
    return open(path, "w", encoding="utf-8", newline="")


def _standard_output() -> TextIO:
    if sys.stdout is None:  # the process was started without one
        raise IoError("E-IO-002", "standard output is closed", remediation="Name a file: -o FILE.")
    return sys.stdout


def _formatters(dtype: np.dtype[Any] | None) -> dict[str, Formatter]:
    """Suffix of the column's name -> how its values are written; several for complex numbers."""
    if dtype is None:
        return {"": _texts}
    if dtype.kind == "c":
        part = _formatter(np.dtype(f"f{dtype.itemsize // 2}"))
        return {".re": lambda column: part(column.real), ".im": lambda column: part(column.imag)}
    return {"": _formatter(dtype)}


def _formatter(dtype: np.dtype[Any]) -> Formatter:
    if dtype.kind == "b":
        return _truth_values
    return _python_numbers if dtype.kind in "iu" or dtype == np.float64 else _numpy_numbers


def _texts(column: list[str]) -> Iterable[str]:
    return map(quoted, column)


def _truth_values(column: NDArray[Any]) -> Iterable[str]:
    return map(str, column.view(np.int8).tolist())


def _python_numbers(column: NDArray[Any]) -> Iterable[str]:
    return map(repr, column.tolist())


def _numpy_numbers(column: NDArray[Any]) -> Iterable[str]:
    """Shortest text in the column's own precision: 0.1 for float32(0.1)."""
    return map(str, column)
