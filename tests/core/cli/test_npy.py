"""Reading and writing NPY and NPZ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alkahest.cli.npy_reader import NpySource, NpzSource
from alkahest.cli.npy_writer import NpySink, NpzSink, header
from alkahest.cli.tables import Field, Sink, Source
from alkahest.errors import IoError


def npy(path: Path, *names: str) -> NpySource:
    return NpySource(str(path), nan_for_missing=False, names=names)


def npz(path: Path) -> NpzSource:
    return NpzSource(str(path), nan_for_missing=False)


def columns(source: Source, rows: int = 2) -> dict[str, list[Any]]:
    gathered: dict[str, list[Any]] = {name: [] for name in source.columns}
    for chunk in source.chunks(source.columns, (), rows):
        assert chunk.rows <= rows
        for name, values in chunk.numbers.items():
            assert values.dtype == source.number_type(name)
            assert values.dtype.isnative
            gathered[name] += values.tolist()
    source.close()
    return gathered


def save(tmp_path: Path, array: Any) -> Path:
    path = tmp_path / "in.npy"
    np.save(path, array, allow_pickle=True)
    return path


def test_a_structured_array_names_its_columns(tmp_path: Path) -> None:
    array = np.array([(1, 2.5), (3, 4.5), (5, 6.5)], dtype=[("i", "i2"), ("x", "f8")])
    assert columns(npy(save(tmp_path, array))) == {"i": [1, 3, 5], "x": [2.5, 4.5, 6.5]}


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_plain_table_gets_its_names_from_the_caller(tmp_path: Path, order: Any) -> None:
    array = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], order=order)
    assert columns(npy(save(tmp_path, array), "x", "y")) == {"x": [1, 3, 5], "y": [2, 4, 6]}


def test_a_one_dimensional_array_is_one_column(tmp_path: Path) -> None:
    assert columns(npy(save(tmp_path, np.arange(3)), "x")) == {"x": [0, 1, 2]}


def test_big_endian_values_are_swapped_not_reinterpreted(tmp_path: Path) -> None:
    array = np.array([1.0, 2.5, -3.0], dtype=">f8")
    assert columns(npy(save(tmp_path, array), "x")) == {"x": [1.0, 2.5, -3.0]}
    np.savez(tmp_path / "in.npz", x=array)
    assert columns(npz(tmp_path / "in.npz")) == {"x": [1.0, 2.5, -3.0]}


def test_an_array_without_rows_is_a_table_without_rows(tmp_path: Path) -> None:
    source = npy(save(tmp_path, np.zeros(0, dtype=[("x", "f8"), ("y", "f4")])))
    assert source.total == 0
    assert columns(source) == {"x": [], "y": []}


def test_names_beyond_ascii_are_read(tmp_path: Path) -> None:
    array = np.array([(1.0,)], dtype=[("τ", "f8")])
    with pytest.warns(UserWarning, match="can only be read by NumPy"):
        path = save(tmp_path, array)
    assert columns(npy(path)) == {"τ": [1.0]}


@pytest.mark.parametrize("names", [(), ("x",), ("x", "y", "z")])
def test_too_few_or_too_many_names_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = save(tmp_path, np.zeros((3, 2)))
    with pytest.raises(IoError, match=f"2 columns without names, and --columns names {len(names)}"):
        npy(path, *names)


def test_names_for_an_array_that_has_names_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path, np.zeros(3, dtype=[("x", "f8")]))
    with pytest.raises(IoError, match="names its own columns: x") as caught:
        npy(path, "x")
    assert caught.value.code == "E-IO-004"


@pytest.mark.parametrize(
    "array",
    [np.float64(1), np.zeros((2, 2, 2)), np.zeros((2, 2), dtype=[("x", "f8")])],
    ids=["scalar", "three dimensions", "a matrix of records"],
)
def test_arrays_that_are_no_tables_are_refused(tmp_path: Path, array: Any) -> None:
    with pytest.raises(IoError, match="no table") as caught:
        npy(save(tmp_path, array), "x")
    assert caught.value.code == "E-IO-003"


def test_python_objects_are_never_unpickled(tmp_path: Path) -> None:
    path = save(tmp_path, np.array([{}, None], dtype=object))
    with pytest.raises(IoError) as caught:
        npy(path, "x")
    assert caught.value.code == "E-IO-003"
    np.savez(tmp_path / "in.npz", x=np.array([{}], dtype=object))
    with pytest.raises(IoError):
        npz(tmp_path / "in.npz")


def test_a_column_of_text_is_no_number(tmp_path: Path) -> None:
    source = npy(save(tmp_path, np.array([("a", 1.0)], dtype=[("s", "U3"), ("x", "f8")])))
    assert source.number_type("x") == np.float64
    with pytest.raises(IoError, match="column 's' is of type <U3, which is no number") as caught:
        source.number_type("s")
    assert caught.value.code == "E-IO-005"
    assert source.carried_type("s") == np.dtype("U3")


def test_files_that_are_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.npy"
    path.write_text("x,y\n1,2\n")
    for opener in (npy, npz):
        with pytest.raises(IoError, match="not an array file") as caught:
            opener(path)
        assert caught.value.code == "E-IO-003"
        with pytest.raises(IoError) as caught:
            opener(tmp_path / "absent.npz")
        assert caught.value.code == "E-IO-001"


def test_a_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, np.arange(100.0))
    path.write_bytes(path.read_bytes()[:-80])
    with pytest.raises(IoError) as caught:
        npy(path, "x")
    assert caught.value.code == "E-IO-003"


@pytest.mark.parametrize("writer", [np.savez, np.savez_compressed])
def test_the_arrays_of_an_archive_are_columns(tmp_path: Path, writer: Any) -> None:
    path = tmp_path / "in.npz"
    writer(path, x=np.arange(5.0), flag=np.array([True, False, True, True, False]))
    assert columns(npz(path)) == {
        "x": [0.0, 1.0, 2.0, 3.0, 4.0],
        "flag": [True, False, True, True, False],
    }


def test_arrays_of_different_lengths_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(IoError, match=r"different lengths \(x: 3, y: 4\)"):
        npz(tmp_path / "in.npz")


def test_a_matrix_in_an_archive_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", m=np.zeros((2, 2)))
    with pytest.raises(IoError, match=r"array 'm' has shape \(2, 2\)"):
        npz(tmp_path / "in.npz")


def write(sink: Sink, *chunks: tuple[Any, ...]) -> None:
    for chunk in chunks:
        sink.write([np.array(column) for column in chunk], len(chunk[0]))
    sink.finish()
    sink.close()


def test_one_column_is_written_as_a_plain_array(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    write(NpySink(str(path), [Field(name="f", dtype=np.dtype("f4"))]), ([1, 2],), ([3],))
    array = np.load(path)
    assert array.dtype == np.float32
    assert array.tolist() == [1, 2, 3]


def test_several_columns_are_written_as_a_structured_array(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    fields = [Field(name="größe", dtype=np.dtype("f8")), Field(name="b", dtype=np.dtype(bool))]
    write(NpySink(str(path), fields), ([1.5], [True]), ([2.5], [False]))
    array = np.load(path)
    assert array["größe"].tolist() == [1.5, 2.5]
    assert array["b"].tolist() == [True, False]


def test_an_archive_holds_one_array_per_column(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    fields = [Field(name="f0", dtype=np.dtype("f8")), Field(name="z", dtype=np.dtype("c16"))]
    write(NpzSink(str(path), fields), ([1.5], [1j]), ([2.5], [2]))
    with np.load(path) as archive:
        assert archive["f0"].tolist() == [1.5, 2.5]
        assert archive["z"].tolist() == [1j, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.npz"]


@pytest.mark.parametrize("sink", [NpySink, NpzSink])
def test_a_table_without_rows_is_written(tmp_path: Path, sink: Any) -> None:
    path = tmp_path / "out"
    write(sink(str(path), [Field(name="f", dtype=np.dtype("f8"))]))
    loaded = np.load(path)
    assert (loaded if sink is NpySink else loaded["f"]).shape == (0,)
    if sink is NpzSink:
        loaded.close()


@pytest.mark.parametrize("names", [["x"], ["größe", "x"], ["n" * 70_000, "x"]])
def test_a_header_has_one_length_whatever_the_number_of_rows(names: list[str]) -> None:
    dtype = np.dtype([(name, "f8") for name in names])
    lengths = {len(header(dtype, rows)) for rows in (0, 9, 10, 2**40, 2**63)}
    assert len(lengths) == 1
    assert lengths.pop() % 64 == 0
