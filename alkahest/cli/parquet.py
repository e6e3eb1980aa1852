"""Parquet through pyarrow: row groups in, row groups out, nothing else in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.cli.parquet_folder import open_folder
from alkahest.cli.tables import Chunk, Field, check_names, missing_value, unreadable
from alkahest.errors import IoError


class ParquetSource:
    """A Parquet file, or a folder of them, whose columns of numbers are bool, integers or floats."""

    container = "parquet"
    unit = "rows"

    def __init__(self, path: str, *, nan_for_missing: bool, names: tuple[str, ...] = ()) -> None:
        del names  # a Parquet file names its own columns
        self._arrow, _ = _pyarrow()
        self._path = path
        self._nan_for_missing = nan_for_missing
        with self._explained(path):
            self._data = open_folder(path) if os.path.isdir(path) else _File.of(path)
        self._schema = self._data.schema
        self.columns = tuple(self._schema.names)
        self.total = self._data.rows
        try:
            check_names(path, self.columns)
        except IoError:
            self.close()
            raise

    def number_type(self, name: str) -> np.dtype[Any]:
        """Dtype of a column of numbers; float64 where nulls may have to become nan."""
        kind = self._schema.field(name).type
        types = self._arrow.types
        if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
            raise IoError(
                "E-IO-005",
                f"{self._path}, column {name!r} is of type {kind}, which is no number",
                remediation="Cast the column to a numeric type first.",
            )
        nulls = self._nan_for_missing and not types.is_floating(kind)
        return np.dtype(np.float64 if nulls else kind.to_pandas_dtype())

    def carried_type(self, name: str) -> Any:
        """The column's type in pyarrow's terms."""
        return self._schema.field(name).type

    def chunks(self, numbers: Sequence[str], carried: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See :meth:`alkahest.cli.tables.Source.chunks`."""
        columns = list(dict.fromkeys((*numbers, *carried)))
        done = 0
        for path, batches in self._data.files(columns, rows):
            start = 0
            while True:
                with self._explained(path):
                    batch = next(batches, None)
                if batch is None:
                    break
                if batch.num_rows:
                    yield Chunk(
                        rows=batch.num_rows,
                        numbers={n: self._numbers(batch, n, path, start) for n in numbers},
                        carried={name: batch.column(name) for name in carried},
                        position=done + batch.num_rows,
                    )
                start += batch.num_rows
                done += batch.num_rows

    def close(self) -> None:
        """Close the file."""
        self._data.close()

    def _numbers(self, batch: Any, name: str, path: str, start: int) -> NDArray[Any]:
        column = batch.column(name)
        if column.null_count:
            if not self._nan_for_missing:
                first = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise missing_value(path, start + first + 1, name)
            if not self._arrow.types.is_floating(column.type):
                # By way of int8: pyarrow casts no bool to double directly.
                whole = self._arrow.types.is_boolean(column.type)
                column = (column.cast("int8") if whole else column).cast("float64", safe=False)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values.astype(self.number_type(name), copy=False)

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Turn what pyarrow raises into an IoError that names the file."""
        try:
            yield
        except self._arrow.ArrowException as error:
            raise IoError(
                "E-IO-003",
                f"{path!r} is not a Parquet file that pyarrow can read: {error}",
                remediation="Check the file; say --format if its suffix is wrong.",
            ) from None
        except OSError as error:
            raise unreadable(path, error) from None


@attrs.frozen
class _File:
    """One file; see :class:`alkahest.cli.parquet_folder.Folder`."""

    path: str
    file: Any

    @classmethod
    def of(cls, path: str) -> _File:
        return cls(path, _pyarrow()[1].ParquetFile(path, memory_map=True))

    @property
    def schema(self) -> Any:
        return self.file.schema_arrow

    @property
    def rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def files(self, columns: Sequence[str], rows: int) -> Iterator[tuple[str, Iterator[Any]]]:
        yield self.path, self.file.iter_batches(rows, columns=list(columns))

    def close(self) -> None:
        self.file.close()


class ParquetSink:
    """A Parquet file with one row group per chunk; a complex column becomes two, .re and .im."""

    def __init__(self, path: str, fields: Sequence[Field]) -> None:
        self._arrow, parquet = _pyarrow()
        self._complex = [_is_complex(field.dtype) for field in fields]
        columns: list[tuple[str, Any]] = []
        for field, is_complex in zip(fields, self._complex, strict=True):
            if is_complex:
                part = np.dtype(f"f{field.dtype.itemsize // 2}")
                columns += [(f"{field.name}{part_name}", part) for part_name in (".re", ".im")]
            else:
                columns.append((field.name, field.dtype))
        try:
            self._schema = self._arrow.schema(
                [
                    (name, self._arrow.from_numpy_dtype(t) if isinstance(t, np.dtype) else t)
                    for name, t in columns
                ]
            )
            self._writer = parquet.ParquetWriter(path, self._schema)
        except self._arrow.ArrowNotImplementedError as error:
            raise IoError(
                "E-IO-002",
                f"Parquet has no type for a column: {error}",
                remediation="Write another format, or leave out --keep.",
            ) from None

    def write(self, columns: Sequence[Any], rows: int) -> None:
        """Append one row group."""
        parts: list[Any] = []
        for column, is_complex in zip(columns, self._complex, strict=True):
            parts += [column.real, column.imag] if is_complex else [column]
        arrays = [
            self._arrow.array(part, type=kind) if isinstance(part, np.ndarray) else part
            for part, kind in zip(parts, self._schema.types, strict=True)
        ]
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))

    def finish(self) -> None:
        """Write the footer."""
        self._writer.close()

    def close(self) -> None:
        """Close the file; once more does no harm."""
        self._writer.close()


def require_pyarrow() -> None:
    """Refuse early when pyarrow is missing.

    Raises:
        IoError: E-IO-006.
    """
    _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``; untyped, and installed with an extra."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise IoError(
            "E-IO-006", f"Parquet files need the package pyarrow, which did not import: {error}"
        ) from None


def _is_complex(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "c"
