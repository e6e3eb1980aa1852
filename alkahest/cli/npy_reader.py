"""Reading NPY and NPZ without holding the arrays in memory.

An NPY file is mapped; the members of an NPZ archive are read side by side as streams. Neither ever
unpickles: an array of Python objects is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.cli.tables import Chunk, check_names, unreadable
from alkahest.errors import IoError

NUMERIC_KINDS = "biufc"


class NpySource:
    """One array: structured, or plain with names from the command line.

    Args:
        path: the file.
        nan_for_missing: no effect; arrays have no missing values.
        names: names of the columns of a plain array of shape ``(rows,)`` or ``(rows, columns)``.
    """

    container = "numpy"
    unit = "rows"

    def __init__(self, path: str, *, nan_for_missing: bool, names: tuple[str, ...]) -> None:
        del nan_for_missing
        self._path = path
        with _explained(path):
            array = np.lib.format.open_memmap(path, mode="r")
        if array.dtype.names is not None and array.ndim == 1:
            if names:
                raise IoError(
                    "E-IO-004",
                    f"{path!r} names its own columns: {', '.join(array.dtype.names)}",
                    remediation="Leave out --columns.",
                )
            self._arrays = {name: array[name] for name in array.dtype.names}
        elif array.dtype.names is None and array.ndim in (1, 2):
            table = array.reshape(len(array), -1) if array.ndim == 1 else array
            if len(names) != table.shape[1]:
                raise IoError(
                    "E-IO-004",
                    f"{path!r} has {table.shape[1]} columns without names, "
                    f"and --columns names {len(names)}",
                    remediation="Name every column: --columns x,y,...",
                )
            self._arrays = {name: table[:, place] for place, name in enumerate(names)}
        else:
            raise IoError(
                "E-IO-003",
                f"{path!r} holds an array of shape {array.shape} and type {array.dtype}, no table",
                remediation="Save a structured array, or a plain one of one or two dimensions.",
            )
        check_names(path, names)
        for name, column in self._arrays.items():
            if column.ndim != 1:
                raise IoError(
                    "E-IO-003",
                    f"{path!r}, column {name!r}: a row holds an array of shape {column.shape[1:]}",
                    remediation="Save one number per row and column.",
                )
        self.columns = tuple(self._arrays)
        self.total = len(array)

    def number_type(self, name: str) -> np.dtype[Any]:
        """Dtype in native byte order."""
        return _number_type(self._path, name, self._arrays[name].dtype)

    def carried_type(self, name: str) -> np.dtype[Any]:
        """Dtype in native byte order, of any kind."""
        return self._arrays[name].dtype.newbyteorder("=")

    def chunks(self, numbers: Sequence[str], carried: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See :meth:`alkahest.cli.tables.Source.chunks`."""
        for start in range(0, self.total, rows):
            stop = min(start + rows, self.total)
            cut = {name: _native(self._arrays[name][start:stop]) for name in {*numbers, *carried}}
            yield Chunk(
                rows=stop - start,
                numbers={name: cut[name] for name in numbers},
                carried={name: cut[name] for name in carried},
                position=stop,
            )

    def close(self) -> None:
        """Unmap the file."""
        self._arrays.clear()


@attrs.frozen
class _Member:
    """A column of an archive, positioned at its first value."""

    stream: IO[bytes]
    dtype: np.dtype[Any]
    rows: int

    def read(self, rows: int) -> NDArray[Any]:
        data = self.stream.read(rows * self.dtype.itemsize)
        return _native(np.frombuffer(data, dtype=self.dtype, count=rows))


class NpzSource:
    """An archive of one-dimensional arrays of one length, named by the columns."""

    container = "numpy"
    unit = "rows"

    def __init__(self, path: str, *, nan_for_missing: bool, names: tuple[str, ...] = ()) -> None:
        del nan_for_missing, names
        self._path = path
        self._opened = ExitStack()
        try:
            with _explained(path):
                self._archive = self._opened.enter_context(zipfile.ZipFile(path))
                self._members = {
                    info.filename.removesuffix(".npy"): info.filename
                    for info in self._archive.infolist()
                }
                heads = {name: self._open(name) for name in self._members}
        except BaseException:
            self.close()
            raise
        lengths = {head.rows for head in heads.values()}
        if len(lengths) > 1:
            shown = ", ".join(f"{name}: {head.rows}" for name, head in heads.items())
            raise IoError(
                "E-IO-003",
                f"{path!r} holds arrays of different lengths ({shown})",
                remediation="Save arrays of one length, one per column.",
            )
        self._types = {name: head.dtype for name, head in heads.items()}
        self.columns = tuple(heads)
        self.total = max(lengths, default=0)

    def number_type(self, name: str) -> np.dtype[Any]:
        """Dtype in native byte order."""
        return _number_type(self._path, name, self._types[name])

    def carried_type(self, name: str) -> np.dtype[Any]:
        """Dtype in native byte order, of any kind."""
        return self._types[name].newbyteorder("=")

    def chunks(self, numbers: Sequence[str], carried: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See :meth:`alkahest.cli.tables.Source.chunks`."""
        with _explained(self._path):
            members = {name: self._open(name) for name in dict.fromkeys((*numbers, *carried))}
        for start in range(0, self.total, rows):
            stop = min(start + rows, self.total)
            with _explained(self._path):
                cut = {name: member.read(stop - start) for name, member in members.items()}
            yield Chunk(
                rows=stop - start,
                numbers={name: cut[name] for name in numbers},
                carried={name: cut[name] for name in carried},
                position=stop,
            )

    def close(self) -> None:
        """Close the archive and every stream."""
        self._opened.close()

    def _open(self, name: str) -> _Member:
        stream = self._opened.enter_context(self._archive.open(self._members[name]))
        shape, dtype = _head(stream)
        if len(shape) != 1 or dtype.hasobject or dtype.names is not None:
            raise IoError(
                "E-IO-003",
                f"{self._path!r}, array {name!r} has shape {shape} and type {dtype}",
                remediation="Save one-dimensional arrays of numbers, one per column.",
            )
        return _Member(stream, dtype, shape[0])


def _head(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the array that begins here; reads its header only."""
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        # Version 3 differs from 2 only in the encoding of field names, which numpy's public
        # readers do not cover; archives of plain arrays never need it.
        raise ValueError(f"array format version {version} is not supported in archives")
    shape, _, dtype = readers[version](stream)
    return shape, dtype


def _native(column: NDArray[Any]) -> NDArray[Any]:
    return column if column.dtype.isnative else column.astype(column.dtype.newbyteorder("="))


def _number_type(path: str, name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in NUMERIC_KINDS:
        raise IoError(
            "E-IO-005",
            f"{path}, column {name!r} is of type {dtype}, which is no number",
            remediation="Convert the column to a numeric type first.",
        )
    return dtype.newbyteorder("=")


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn what numpy and zipfile raise into an IoError that names the file."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from None
    except IoError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise IoError(
            "E-IO-003",
            f"{path!r} is not an array file as numpy.save and numpy.savez write them: {error}",
            remediation="Save plain arrays, not Python objects; --format corrects a wrong suffix.",
        ) from None
