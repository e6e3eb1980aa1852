"""Writing NPY and NPZ row by row, without knowing the number of rows beforehand.

The header is written with room for any number of rows and overwritten at the end. Several columns
make a structured array in NPY and one array each in NPZ.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from alkahest.cli.tables import Field

_ROOM = len(str(2**63))
_ALIGNMENT = 64


class NpySink:
    """One array: plain for a single column, structured for several."""

    def __init__(self, path: str, fields: Sequence[Field]) -> None:
        self._structure = np.dtype([(field.name, field.dtype) for field in fields])
        self._dtype = self._structure if len(fields) > 1 else self._structure[0]
        self._rows = 0
        self._file = open(path, "wb")  # noqa: SIM115  closed by close()
        self._file.write(header(self._dtype, 0))

    def write(self, columns: Sequence[Any], rows: int) -> None:
        """Append rows."""
        table = np.empty(rows, dtype=self._structure)
        for name, column in zip(self._structure.names or (), columns, strict=True):
            table[name] = column
        self._file.write(table.tobytes())
        self._rows += rows

    def finish(self) -> None:
        """Write the number of rows into the header."""
        self._file.seek(0)
        self._file.write(header(self._dtype, self._rows))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class NpzSink:
    """An uncompressed archive of one array per column.

    A member of an archive is written in one piece, so the columns gather in unnamed files beside
    the archive, which the system removes with the process.
    """

    def __init__(self, path: str, fields: Sequence[Field]) -> None:
        self._path = path
        self._fields = fields
        self._rows = 0
        self._opened = ExitStack()
        folder = os.path.dirname(path) or "."
        self._columns: list[IO[bytes]] = [self._gathering(folder) for _ in fields]

    def write(self, columns: Sequence[Any], rows: int) -> None:
        """Append rows."""
        for field, gathered, column in zip(self._fields, self._columns, columns, strict=True):
            gathered.write(np.asarray(column, dtype=field.dtype).tobytes())
        self._rows += rows

    def finish(self) -> None:
        """Assemble the archive."""
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for field, gathered in zip(self._fields, self._columns, strict=True):
                gathered.seek(0)
                with archive.open(f"{field.name}.npy", "w", force_zip64=True) as member:
                    member.write(header(np.dtype(field.dtype), self._rows))
                    shutil.copyfileobj(gathered, member, 1 << 20)

    def close(self) -> None:
        """Drop the gathered columns."""
        self._opened.close()

    def _gathering(self, folder: str) -> IO[bytes]:
        return self._opened.enter_context(tempfile.TemporaryFile(dir=folder))


def header(dtype: np.dtype[Any], rows: int) -> bytes:
    """Header of an NPY file of shape ``(rows,)``; as long for any other number of rows.

    numpy's own writer promises neither that length nor, publicly, names beyond Latin-1.
    """
    facts = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (rows,),
    }
    text = repr(facts) + " " * (_ROOM - len(str(rows)))
    version, encoding, length = (1, "latin1", "<H") if text.isascii() else (3, "utf-8", "<I")
    body = text.encode(encoding)
    prefix = len(np.lib.format.MAGIC_PREFIX) + 2
    if version == 1 and len(body) + _ALIGNMENT > 0xFFFF:
        version, length = 2, "<I"
    body += b" " * (-(prefix + struct.calcsize(length) + len(body) + 1) % _ALIGNMENT) + b"\n"
    return np.lib.format.magic(version, 0) + struct.pack(length, len(body)) + body
