"""A folder of Parquet files as one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from refusals import refused

from alkahest.cli.parquet import ParquetSource


def save(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten rows of each of two years, in two months each."""
    folder = tmp_path / "measured"
    for year in (2024, 2023):
        for month in (1, 2):
            start = 10.0 * year + 5 * month
            save(
                folder / f"year={year}" / f"month={month}" / "part-0.parquet",
                x=start + np.arange(5),
            )
    (folder / "_SUCCESS").write_text("")
    (folder / "README.txt").write_text("not data")
    save(folder / "_temporary" / "part.parquet", x=[1.0])
    save(folder / ".hidden.parquet", x=[1.0])
    return folder


def test_rows_come_in_the_order_of_the_paths_a_chunk_at_a_time(folder: Path) -> None:
    source = ParquetSource(str(folder), nan_for_missing=False)
    assert source.columns == ("x", "year", "month")
    assert (source.total, source.unit) == (20, "rows")
    chunks = list(source.chunks(["x", "year", "month"], (), 3))
    source.close()
    assert max(chunk.rows for chunk in chunks) <= 3
    assert chunks[-1].position == 20
    values = np.concatenate([chunk.numbers["x"] for chunk in chunks])
    assert values.tolist() == sorted(values)
    years = np.concatenate([chunk.numbers["year"] for chunk in chunks])
    assert years.tolist() == [2023] * 10 + [2024] * 10


@pytest.mark.usefixtures("backend")
def test_the_command_evaluates_a_folder_and_keeps_its_columns(
    folder: Path, run: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    done = run("eval", "f=x - 10*year", str(folder), "--keep", "-o", str(out), "--chunk", "4")
    assert done.code == 0, done.err
    table = pyarrow.parquet.read_table(out)
    assert table.schema.names == ["x", "year", "month", "f"]
    assert table["f"].to_pylist() == [
        5.0 * m + k for _ in range(2) for m in (1, 2) for k in range(5)
    ]
    assert table.schema.field("year").type == pyarrow.int32()


def test_a_missing_value_is_named_with_its_file_and_row(folder: Path) -> None:
    place = folder / "year=2024" / "month=2" / "part-1.parquet"
    save(place, x=pyarrow.array([1.0, 2, 3, 4, None]))
    source = ParquetSource(str(folder), nan_for_missing=False)
    with refused("E-IO-005", f"{place}, row 5, column 'x'"):
        list(source.chunks(["x"], (), 100))


def test_a_file_that_is_none_is_named(folder: Path) -> None:
    bad = folder / "year=2024" / "month=2" / "part-1.parquet"
    bad.write_bytes(b"PAR1 and nothing more")
    with refused("E-IO-003", "part-1.parquet"):
        source = ParquetSource(str(folder), nan_for_missing=False)
        list(source.chunks(["x"], (), 100))


def test_a_folder_without_parquet_files_is_refused(tmp_path: Path) -> None:
    with refused("E-IO-003", "holds no Parquet files"):
        ParquetSource(str(tmp_path), nan_for_missing=False)


@pytest.mark.usefixtures("backend")
def test_the_output_may_not_be_in_the_folder(folder: Path, run: Callable[..., Any]) -> None:
    done = run("eval", "x", str(folder), "-o", str(folder / "out.parquet"))
    assert done.code == 1
    assert "E-IO-002" in done.err
    assert not (folder / "out.parquet").exists()
