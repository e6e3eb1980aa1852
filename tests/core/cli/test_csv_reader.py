"""Reading CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from alkahest.cli.csv_reader import CsvSource
from alkahest.errors import IoError

Write = Callable[[str, str], Path]


def read(
    path: Path, *names: str, carried: tuple[str, ...] = (), rows: int = 100, nan: bool = False
) -> list[dict[str, list[object]]]:
    source = CsvSource(str(path), nan_for_missing=nan)
    try:
        return [
            {**{n: c.tolist() for n, c in chunk.numbers.items()}, **chunk.carried}
            for chunk in source.chunks(names, carried, rows)
        ]
    finally:
        source.close()


def refused(path: Path, *names: str, rows: int = 100, nan: bool = False) -> IoError:
    with pytest.raises(IoError) as caught:
        read(path, *names, rows=rows, nan=nan)
    return caught.value


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_is_read(write: Write, end: str) -> None:
    path = write("a.csv", end.join(["x,y", "1,2", "3.5,-4e2", ""]))
    assert read(path, "x", "y") == [{"x": [1.0, 3.5], "y": [2.0, -400.0]}]


def test_a_byte_order_mark_is_no_part_of_the_first_name(write: Write) -> None:
    assert read(write("a.csv", "\ufeffx,y\n1,2\n"), "x") == [{"x": [1.0]}]


def test_rows_come_in_chunks_and_in_order(write: Write) -> None:
    path = write("a.csv", "x\n" + "".join(f"{k}\n" for k in range(7)))
    assert [chunk["x"] for chunk in read(path, "x", rows=3)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_the_position_reaches_the_size_of_the_file(write: Write) -> None:
    path = write("a.csv", "x\n" + "1\n" * 100)
    source = CsvSource(str(path), nan_for_missing=False)
    positions = [chunk.position for chunk in source.chunks(["x"], (), 30)]
    source.close()
    assert positions == sorted(positions)
    assert positions[-1] == source.total == path.stat().st_size


def test_quoted_fields_may_hold_commas_quotes_and_line_ends(write: Write) -> None:
    path = write("a.csv", 'name,x\n"a, ""b""\nc","1"\nd, 2 \n')
    assert read(path, "x", carried=("name",)) == [{"x": [1.0, 2.0], "name": ['a, "b"\nc', "d"]}]


def test_nan_and_infinity_are_read_in_the_usual_spellings(write: Write) -> None:
    path = write("a.csv", "x\nnan\nNaN\n-inf\nInfinity\n+INF\n-0.0\n")
    (chunk,) = read(path, "x")
    np.testing.assert_array_equal(chunk["x"], [np.nan, np.nan, -np.inf, np.inf, np.inf, -0.0])
    assert np.signbit(chunk["x"][-1])  # type: ignore[call-overload]


def test_numbers_are_the_nearest_float64(write: Write) -> None:
    path = write("a.csv", "x\n0.1\n5e-324\n1.7976931348623157e308\n9007199254740993\n")
    assert read(path, "x") == [{"x": [0.1, 5e-324, 1.7976931348623157e308, 9007199254740992.0]}]


def test_blank_lines_are_skipped(write: Write) -> None:
    assert read(write("a.csv", "\nx,y\n\n1,2\n\n\n3,4\n\n"), "y") == [{"y": [2.0, 4.0]}]


def test_a_header_alone_is_a_table_without_rows(write: Write) -> None:
    assert read(write("a.csv", "x,y\n"), "x") == []
    assert read(write("b.csv", "x,y"), "x") == []


@pytest.mark.parametrize(
    "cell", ["abc", "1_000", "0x10", "1,5", "1.0f", "12%", "\u0661\u0662", "--1", "1e", "1 2", "NA"]
)
def test_text_that_is_no_number_names_row_line_and_column(write: Write, cell: str) -> None:
    path = write("a.csv", f'x,speed\n1,2\n\n3,4\n5,"{cell}"\n7,8\n')
    error = refused(path, "x", "speed")
    assert error.code == "E-IO-005"
    assert error.message == f"{path}, row 3 (line 5), column 'speed': {cell!r} is not a number"


def test_lines_are_counted_across_chunks_and_quoted_line_ends(write: Write) -> None:
    path = write("a.csv", 'n,x\n"a\nb",1\nc,2\n"d\r\ne",3\nf,4\ng,bad\n')
    error = refused(path, "x", rows=2)
    assert "row 5 (line 8), column 'x': 'bad'" in error.message


def test_columns_that_nobody_asks_for_may_hold_anything(write: Write) -> None:
    assert read(write("a.csv", "x,when\n1,monday\n"), "x") == [{"x": [1.0]}]


def test_an_empty_cell_is_an_error_with_its_place(write: Write) -> None:
    path = write("a.csv", "x,y\n1,2\n3, \n")
    error = refused(path, "x", "y")
    assert error.code == "E-IO-005"
    assert error.message == f"{path}, row 2 (line 3), column 'y': the value is missing"
    assert "--missing nan" in error.remediation


def test_an_empty_cell_reads_as_nan_on_request(write: Write) -> None:
    (chunk,) = read(write("a.csv", "x,y\n,2\n3,\n"), "x", "y", nan=True)
    np.testing.assert_array_equal(chunk["x"], [np.nan, 3.0])
    np.testing.assert_array_equal(chunk["y"], [2.0, np.nan])
    assert refused(write("b.csv", "x\n?\n"), "x", nan=True).code == "E-IO-005"


@pytest.mark.parametrize(("row", "fields"), [("5", "1 field"), ("5,6,7", "3 fields")])
def test_a_row_of_another_length_is_named(write: Write, row: str, fields: str) -> None:
    path = write("a.csv", f"x,y\n1,2\n{row}\n3,4\n")
    error = refused(path, "x")
    assert error.code == "E-IO-003"
    assert error.message == f"{path}, row 2 (line 3) has {fields}, the header has 2"


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_named(write: Write, text: str) -> None:
    path = write("a.csv", text)
    error = refused(path, "x")
    assert (error.code, error.message) == ("E-IO-003", f"{str(path)!r} is empty")


def test_a_name_used_twice_is_refused(write: Write) -> None:
    error = refused(write("a.csv", "x,y, x\n1,2,3\n"), "y")
    assert error.code == "E-IO-004"
    assert "more than one column named 'x'" in error.message


def test_a_quote_that_is_never_closed_is_explained(write: Write) -> None:
    error = refused(write("a.csv", 'x,y\n1,"2\n3,4\n'), "x")
    assert error.code == "E-IO-003"
    assert "quote" in error.remediation


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"x,\xff\n1,2\n", 1),
        (b"x,y\n1,\xff\n", 2),
        (b"\xef\xbb\xbfx,y\r\n1,2\r\n3,\xe9\r\n", 3),
        (b"x,y\r1,2\r3,\xe9\r", 3),
        (b'x,y\n1,"2\n"\n\n3,\xe9\n', 5),
        ("x,y\n1,é\n".encode() + b"2,\xc3", 3),
        (b"x,y\n" + b"1,2\n" * 30_000 + b"1,\xff\n", 30_002),
    ],
    ids=["header", "row", "CRLF", "CR", "quoted line end", "cut off", "far down"],
)
def test_bytes_that_are_no_utf_8_are_refused_with_their_line(
    tmp_path: Path, content: bytes, line: int
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    error = refused(path, "x")
    assert error.code == "E-IO-003"
    assert "not UTF-8" in error.message
    assert error.message.endswith(f"(line {line})")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    absent = refused(tmp_path / "absent.csv", "x")
    assert absent.code == "E-IO-001"
    assert "No such file" in absent.message
    assert refused(tmp_path, "x").code == "E-IO-001"


def test_the_first_row_says_whether_a_column_holds_numbers(write: Write) -> None:
    source = CsvSource(str(write("a.csv", "x,name\n\n1,ann\n2,3\n")), nan_for_missing=False)
    assert source.number_type("x") == np.float64
    with pytest.raises(IoError, match=r"row 1 \(line 3\), column 'name': 'ann' is not a number"):
        source.number_type("name")
    chunks = [chunk.numbers["x"].tolist() for chunk in source.chunks(["x"], ("name",), 1)]
    assert chunks == [[1.0], [2.0]]
    source.close()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_lines_are_right_whatever_was_read_beforehand(write: Write, rows: int) -> None:
    path = write("a.csv", 'x,y\n\n\n1,"a\nb"\n\n2,c\nthree,d\n')
    with pytest.raises(IoError, match=r"row 3 \(line 8\), column 'x'"):
        read(path, "x", carried=("y",), rows=rows)
