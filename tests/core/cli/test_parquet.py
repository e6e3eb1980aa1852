"""Reading and writing Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from alkahest.cli import parquet as parquet_module
from alkahest.cli.parquet import ParquetSink, ParquetSource
from alkahest.cli.tables import Field
from alkahest.errors import IoError


def save(tmp_path: Path, table: dict[str, Any], row_group: int = 3) -> Path:
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path, row_group_size=row_group)
    return path


def columns(path: Path, *names: str, rows: int = 2, nan: bool = False) -> dict[str, list[Any]]:
    source = ParquetSource(str(path), nan_for_missing=nan)
    gathered: dict[str, list[Any]] = {name: [] for name in names}
    try:
        for chunk in source.chunks(names, (), rows):
            assert chunk.rows <= rows
            for name, values in chunk.numbers.items():
                assert values.dtype == source.number_type(name)
                gathered[name] += values.tolist()
    finally:
        source.close()
    return gathered


def test_numbers_of_every_kind_are_read_in_chunks_across_row_groups(tmp_path: Path) -> None:
    table = {
        "f": np.arange(7.0),
        "h": np.arange(7, dtype=np.float32),
        "i": np.arange(7) - 2**62,
        "u": np.arange(7, dtype=np.uint8),
        "b": np.arange(7) % 2 == 0,
    }
    path = save(tmp_path, table)
    assert columns(path, *table) == {name: values.tolist() for name, values in table.items()}


def test_the_position_counts_rows(tmp_path: Path) -> None:
    source = ParquetSource(str(save(tmp_path, {"x": np.arange(7.0)})), nan_for_missing=False)
    assert (source.total, source.unit) == (7, "rows")
    assert [chunk.position for chunk in source.chunks(["x"], (), 100)][-1] == 7
    source.close()


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["a"], "string"),
        (pyarrow.array([1], pyarrow.timestamp("us")), "timestamp"),
        (pyarrow.array([1], pyarrow.decimal128(5, 2)), "decimal128"),
        ([[1.0]], "list"),
    ],
)
def test_types_that_are_no_numbers_are_named(tmp_path: Path, values: Any, shown: str) -> None:
    source = ParquetSource(str(save(tmp_path, {"when": values})), nan_for_missing=False)
    with pytest.raises(IoError, match=f"column 'when' is of type {shown}") as caught:
        source.number_type("when")
    source.close()
    assert caught.value.code == "E-IO-005"


def test_a_null_is_an_error_with_its_row(tmp_path: Path) -> None:
    path = save(tmp_path, {"x": [1.0, 2.0, 3.0, 4.0, None, 6.0]})
    with pytest.raises(IoError, match="row 5, column 'x': the value is missing") as caught:
        columns(path, "x")
    assert caught.value.code == "E-IO-005"


def test_nulls_of_every_type_read_as_nan_on_request(tmp_path: Path) -> None:
    path = save(tmp_path, {"x": [1.5, None], "i": [None, 2**53], "b": [True, None]})
    gathered = columns(path, "x", "i", "b", nan=True)
    np.testing.assert_array_equal(gathered["x"], [1.5, np.nan])
    np.testing.assert_array_equal(gathered["i"], [np.nan, 2.0**53])
    np.testing.assert_array_equal(gathered["b"], [1.0, np.nan])


def test_a_file_without_rows_and_columns_nobody_reads_are_fine(tmp_path: Path) -> None:
    path = save(tmp_path, {"x": np.zeros(0), "text": pyarrow.array([], pyarrow.string())})
    assert columns(path, "x") == {"x": []}


def test_rows_are_counted_even_when_no_column_is_read(tmp_path: Path) -> None:
    source = ParquetSource(str(save(tmp_path, {"x": np.zeros(7)})), nan_for_missing=False)
    assert sum(chunk.rows for chunk in source.chunks((), (), 2)) == 7
    source.close()


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(IoError, match="not a Parquet file") as caught:
        ParquetSource(str(path), nan_for_missing=False)
    assert caught.value.code == "E-IO-003"
    with pytest.raises(IoError) as caught:
        ParquetSource(str(tmp_path / "absent.parquet"), nan_for_missing=False)
    assert caught.value.code == "E-IO-001"


def test_a_missing_pyarrow_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(parquet_module, "import_module", absent)
    with pytest.raises(IoError, match="need the package pyarrow") as caught:
        ParquetSource("in.parquet", nan_for_missing=False)
    assert caught.value.code == "E-IO-006"
    assert "alkahest[io]" in caught.value.remediation


def test_every_chunk_becomes_a_row_group_and_complex_columns_two(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    fields = [
        Field(name="when", dtype=pyarrow.string()),
        Field(name="x", dtype=np.dtype("f4")),
        Field(name="z", dtype=np.dtype("c16")),
        Field(name="b", dtype=np.dtype(bool)),
    ]
    sink = ParquetSink(str(path), fields)
    for when in ("mon", "tue"):
        chunk = [pyarrow.array([when]), np.float32([1.5]), np.array([1 - 2j]), np.array([True])]
        sink.write(chunk, 1)
    sink.finish()
    sink.close()
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 2
    assert pyarrow.parquet.read_table(path).to_pydict() == {
        "when": ["mon", "tue"],
        "x": [1.5, 1.5],
        "z.re": [1.0, 1.0],
        "z.im": [-2.0, -2.0],
        "b": [True, True],
    }
