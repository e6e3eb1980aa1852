"""A folder of Parquet files as one table, as other programs write large or partitioned ones.

Files are read one after another in the order of their paths. Folders named ``year=2024`` are columns
too. What begins with a dot or an underscore, and files of other kinds, are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from alkahest.errors import IoError

_SUFFIXES = (".parquet", ".pq")

_READ_AHEAD = 2
"""Batches that are decoded ahead: the more, the more memory."""


@attrs.frozen
class Folder:
    """The table in a folder.

    Attributes:
        dataset: pyarrow's.
        rows: of all files, counted from their footers.
    """

    dataset: Any
    rows: int

    @property
    def schema(self) -> Any:
        """pyarrow's schema: the first file's columns, then those of the folders' names."""
        return self.dataset.schema

    def files(self, columns: Sequence[str], rows: int) -> Iterator[tuple[str, Iterator[Any]]]:
        """Every file's path and its record batches, of at most ``rows`` rows."""
        for fragment in self.dataset.get_fragments():
            batches = fragment.to_batches(
                schema=self.dataset.schema,
                columns=list(columns),
                batch_size=rows,
                batch_readahead=_READ_AHEAD,
            )
            yield fragment.path, iter(batches)

    def close(self) -> None:
        """Nothing is left open between batches."""


def open_folder(path: str) -> Folder:
    """Read the schema of the first file and the number of rows of all.

    Raises:
        IoError: E-IO-003 for a folder without Parquet files.
        pyarrow.ArrowException, OSError: what reading the footers raises.
    """
    dataset_module: Any = import_module("pyarrow.dataset")
    files = sorted(_files(Path(path)))
    if not files:
        raise IoError(
            "E-IO-003",
            f"the folder {path!r} holds no Parquet files",
            remediation=f"Name a folder with files that end in {' or '.join(_SUFFIXES)}.",
        )
    dataset = dataset_module.dataset(
        files,
        format="parquet",
        partitioning=dataset_module.partitioning(flavor="hive"),
        partition_base_dir=path,
    )
    return Folder(dataset, int(dataset.count_rows()))


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.lower().endswith(_SUFFIXES) and not name.startswith((".", "_")):
                yield os.path.join(place, name)


__all__ = ["Folder", "open_folder"]
