"""``alkahest eval`` from the command to the file."""

from __future__ import annotations

import json
import os
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from alkahest.cli import csv_writer
from alkahest.testing.plugins import NullPlugin, isolated_plugins

pytestmark = pytest.mark.usefixtures("backend")

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

TABLE = "x,y\n1,0.5\n2,0.25\n"


@pytest.fixture
def data(write: Write) -> Path:
    return write("data.csv", TABLE)


def test_a_csv_file_becomes_a_csv_file(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    result = run("eval", "x**2 + y", data, "-o", out)
    assert (result.code, result.out) == (0, "")
    assert out.read_text() == "f0\n1.5\n4.25\n"
    assert result.err.startswith("alkahest: 2 rows, arithmetic, float64, ")


def test_standard_output_is_the_default_and_nothing_else_is_printed(run: Run, data: Path) -> None:
    result = run("eval", "s=x + y", "x*y", data)
    assert (result.code, result.out, result.err) == (0, "s,f1\n1.5,0.5\n2.25,0.5\n", "")


def test_options_may_stand_anywhere(run: Run, data: Path) -> None:
    assert run("eval", "--dtype", "float64", "x", "-o", "-", "y", "--keep", data).out == (
        "x,y,f0,f1\n1,0.5,1.0,0.5\n2,0.25,2.0,0.25\n"
    )


def test_an_expression_may_begin_with_a_minus_after_a_name_or_two_dashes(
    run: Run, data: Path
) -> None:
    assert run("eval", "f=-x", data).out == "f\n-1.0\n-2.0\n"
    assert run("eval", "-o", "-", "--", "-x", data).out == "f0\n-1.0\n-2.0\n"
    result = run("eval", "-x**2", data)
    assert result.code == 2
    assert "'(-x**2)'" in result.err


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".parquet", ".PQ"])
def test_every_format_is_written_and_read_back(run: Run, tmp_path: Path, suffix: str) -> None:
    middle = tmp_path / f"middle{suffix}"
    first = run("eval", "a=x + 0.1", "b=x*x", "--grid", "x=0:1:3", "-o", middle, "--chunk", 2)
    assert first.code == 0, first.err
    second = run("eval", "a - b", middle, "--chunk", 2)
    expected = [repr((x + 0.1) - x * x) for x in (0.0, 0.5, 1.0)]
    assert second.out.split() == ["f0", *expected], second.err


def test_plain_arrays_get_their_names_from_the_command(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([[1, 2], [3, 4]]))
    result = run("eval", "x*y", tmp_path / "in.npy", "--columns", "x, y")
    assert result.out == "f0\n2.0\n12.0\n"


def test_single_precision_is_computed_and_written_in_single_precision(
    run: Run, write: Write, tmp_path: Path
) -> None:
    data = write("data.csv", "x\n0.1\n")
    out = tmp_path / "out.npy"
    assert run("eval", "x/3", data, "--dtype", "float32", "-o", out).code == 0
    assert np.load(out).dtype == np.float32
    assert np.load(out)[0] == np.float32(0.1) / np.float32(3)


def test_conditions_and_complex_results_have_their_own_types(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", z=np.array([1 + 2j, -1j]), x=np.array([1.0, 3.0]))
    source = tmp_path / "in.npz"
    assert run("eval", "x < 2", source).out == "f0\n1\n0\n"
    squares = "w.re,w.im\n-3.0,4.0\n-1.0,0.0\n"
    assert run("eval", "w=z*z", source, "--dtype", "complex128").out == squares
    refused = run("eval", "w=z*z", source)
    assert refused.code == 1
    assert "column 'z' is complex128, and float64 would drop its imaginary part" in refused.err


def test_integers_widen(run: Run, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(
        pyarrow.table({"i": np.array([2, 4], dtype=np.int16)}), tmp_path / "in.parquet"
    )
    assert run("eval", "i**(-1)", tmp_path / "in.parquet").out == "f0\n0.5\n0.25\n"


def test_a_constant_expression_gives_one_value_per_row(run: Run, data: Path) -> None:
    assert run("eval", "1/4", data).out == "f0\n0.25\n0.25\n"


def test_a_table_without_rows_gives_a_header(run: Run, write: Write, tmp_path: Path) -> None:
    empty = write("empty.csv", "x,y\n")
    assert run("eval", "x + y", "a=x", empty).out == "f0,a\n"
    assert run("eval", "x", empty, "-o", tmp_path / "out.npz").code == 0
    with np.load(tmp_path / "out.npz") as archive:
        assert archive["f0"].shape == (0,)


def test_a_grid_stands_in_for_a_file(run: Run) -> None:
    result = run("eval", "x + y", "--grid", "x=0:1:2", "--grid", "y=0:10:3", "--keep")
    assert result.out == (
        "x,y,f0\n0.0,0.0,0.0\n0.0,5.0,5.0\n0.0,10.0,10.0\n1.0,0.0,1.0\n1.0,5.0,6.0\n1.0,10.0,11.0\n"
    )


def test_kept_columns_are_unchanged_within_a_format(run: Run, write: Write, tmp_path: Path) -> None:
    data = write("data.csv", 'id,note,x\n007,"a, b",1.50\n008,,2\n')
    assert run(
        "eval", "x", data, "--keep"
    ).out == 'id,note,x,f0\n007,"a, b",1.50,1.0\n008,,2,2.0\n'.replace("1.50,1.0", "1.50,1.5")
    table = pyarrow.table({"x": [1.0], "when": pyarrow.array([5], pyarrow.timestamp("ms", "UTC"))})
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    assert run("eval", "x", tmp_path / "in.parquet", "--keep", "-o", out).code == 0
    assert pyarrow.parquet.read_table(out).select(["x", "when"]).equals(table)


def test_kept_columns_must_be_numbers_across_formats(
    run: Run, write: Write, tmp_path: Path
) -> None:
    np.save(tmp_path / "in.npy", np.array([("a", 1.0)], dtype=[("s", "U1"), ("x", "f8")]))
    result = run("eval", "x", tmp_path / "in.npy", "--keep")
    assert result.code == 1
    assert "column 's' is of type <U1, which is no number" in result.err
    data = write("data.csv", "id,x\n1,2\nb,3\n")
    result = run("eval", "x", data, "--keep", "-o", tmp_path / "out.npy")
    assert result.code == 1
    assert "row 2 (line 3), column 'id': 'b' is not a number" in result.err


def test_missing_values_read_as_nan_on_request(run: Run, write: Write) -> None:
    data = write("data.csv", 'x\n1\n""\n')
    assert run("eval", "x", data).code == 1
    assert run("eval", "x", data, "--missing", "nan").out == "f0\n1.0\nnan\n"


def test_the_report_says_what_ran(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    result = run("eval", "a=x", "y", data, "--keep", "-o", out, "--json", "--device", 0)
    report = json.loads(result.out)
    seconds = report.pop("seconds")
    assert 0 < seconds < 60
    assert report == {
        "rows": 2,
        "backend": "arithmetic",
        "device": 0,
        "dtype": "float64",
        "output": str(out),
        "columns": ["x", "y", "a", "f1"],
    }
    assert result.err == ""


# What is refused, with its exit code and a part of what the user reads.
REFUSALS = {
    "no arguments": ([], 2, "the following arguments are required"),
    "an unknown option": (["x", "data.csv", "--fast"], 2, "--fast"),
    "a lonely file": (["data.csv"], 2, "an expression and a data file, or --grid, are needed"),
    "a bad expression": (["x +", "data.csv"], 2, "[E-PARSE-001]"),
    "an unknown function": (["frobnicate(x)", "data.csv"], 2, "frobnicate"),
    "a missing column": (["x + z", "data.csv"], 1, "data.csv has no column 'z'; it has: x, y"),
    "a missing file": (["x", "absent.csv"], 1, "'absent.csv' cannot be read: No such file"),
    "an unknown suffix": (["x", "data.txt"], 1, "'data.txt': the suffix '.txt' does not say"),
    "an unknown output suffix": (["x", "data.csv", "-o", "out.xlsx"], 1, "the suffix '.xlsx'"),
    "a missing folder": (["x", "data.csv", "-o", "no/out.csv"], 1, "there is no folder"),
    "the data as output": (["x", "data.csv", "-o", "./data.csv"], 1, "is the data file itself"),
    "an unknown backend": (["x", "data.csv", "--backend", "abacus"], 2, "[E-JIT-009]"),
    "an operation nobody has": (["erf(x)", "data.csv"], 1, "[E-JIT-004]"),
    "an operation it lacks": (["erf(x)", "data.csv", "--backend", "arithmetic"], 2, "erf"),
    "an unknown dtype": (["x", "data.csv", "--dtype", "int8"], 2, "invalid choice: 'int8'"),
    "a negative device": (["x", "data.csv", "--device", "-1"], 2, "'-1' is neither a whole"),
    "a chunk of nothing": (["x", "data.csv", "--chunk", "0"], 2, "'0' is not a whole number"),
    "names for a csv file": (["x", "data.csv", "--columns", "x"], 2, "--columns belongs to NPY"),
    "nan for an array": (["x", "a.npy", "--missing", "nan"], 2, "--missing belongs to CSV"),
    "two columns of a name": (["a=x", "a=y", "data.csv"], 1, "more than one column named 'a'"),
    "a name that is kept": (["x=y", "data.csv", "--keep"], 1, "more than one column named 'x'"),
    "a grid and a file": (["x", "data.csv", "--grid", "x=0:1:2"], 2, "stands in for a data file"),
    "a grid with --format": (["x", "--grid", "x=0:1:2", "--format", "csv"], 2, "--format belongs"),
    "a grid without the axis": (["x*y", "--grid", "x=0:1:2"], 1, "the grid has no column 'y'"),
    "a report and a table": (["x", "data.csv", "--json"], 2, "--json needs -o FILE"),
    "the imaginary unit": (["x + I", "data.csv"], 2, "[E-JIT-010]"),
    "a big constant": (["x + 10**400", "data.csv"], 2, "[E-JIT-006]"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_mistake_is_explained_before_anything_is_written(
    run: Run, data: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, code, message = REFUSALS[name]
    monkeypatch.chdir(data.parent)
    before = sorted(data.parent.iterdir())
    result = run("eval", *arguments)
    assert message in result.err
    assert result.code == code, result.err
    assert result.out == ""
    assert result.err.startswith("alkahest: error: ")
    assert "Traceback" not in result.err
    assert sorted(data.parent.iterdir()) == before
    assert data.read_text() == TABLE


def test_the_place_of_a_mistake_is_pointed_at(run: Run, data: Path) -> None:
    lines = run("eval", "x + * y", data).err.splitlines()
    assert lines[1] == "  x + * y"
    assert lines[2].index("^") == lines[1].index("*")


def test_a_mistake_in_the_last_row_leaves_an_existing_output_untouched(
    run: Run, write: Write, tmp_path: Path
) -> None:
    data = write("data.csv", "x\n" + "1\n" * 50 + "oops\n")
    out = write("out.csv", "precious\n")
    result = run("eval", "x", data, "-o", out, "--chunk", 10)
    assert result.code == 1
    assert "row 51 (line 52), column 'x': 'oops' is not a number" in result.err
    assert out.read_text() == "precious\n"
    assert sorted(tmp_path.iterdir()) == [data, out]


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".parquet"])
def test_an_interrupted_job_leaves_nothing_behind(
    run: Run, write: Write, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write("data.csv", "x\n" + "1\n" * 50)
    from alkahest.compiled import CompiledFn

    evaluate = CompiledFn.call_batch
    calls = 0

    def interrupted(self: CompiledFn, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return evaluate(self, *arguments, **options)

    monkeypatch.setattr(CompiledFn, "call_batch", interrupted)
    result = run("eval", "x", data, "-o", tmp_path / f"out{suffix}", "--chunk", 10)
    assert (result.code, result.err) == (130, "alkahest: interrupted\n")
    assert list(tmp_path.iterdir()) == [data]


def test_a_full_disk_is_an_error_that_names_the_output(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, columns: object, rows: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv_writer.CsvSink, "write", full)
    result = run("eval", "x", data, "-o", tmp_path / "out.csv")
    assert result.code == 1
    assert "[E-IO-002]" in result.err
    assert "No space left on device" in result.err
    assert list(tmp_path.iterdir()) == [data]


def test_a_full_disk_behind_standard_output_is_one_error(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, columns: object, rows: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv_writer.CsvSink, "write", full)
    result = run("eval", "x", data)
    assert result.code == 1
    assert result.err == (
        "alkahest: error: standard output cannot be written: No space left on device\n"
    )


def test_a_process_without_standard_output_can_still_write_files(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert run("eval", "x", data, "-o", tmp_path / "out.csv").code == 0
    result = run("eval", "x", data)
    assert (result.code, "standard output is closed" in result.err) == (1, True)


def test_a_pipe_can_be_read(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(TABLE,))
    writer.start()
    result = run("eval", "x + y", tmp_path / "pipe", "--format", "csv")
    writer.join()
    assert (result.code, result.out) == (0, "f0\n1.5\n2.25\n")


def test_a_broken_plugin_costs_a_warning_and_not_the_job(run: Run, data: Path) -> None:
    with isolated_plugins(NullPlugin(), types.SimpleNamespace(__name__="old")):
        result = run("eval", "x + y", data)
    assert (result.code, result.out) == (0, "f0\n0.0\n0.0\n")
    (line,) = result.err.splitlines()
    assert line.startswith("alkahest: warning: plugin 'old' ")


def test_without_a_backend_the_remedy_says_what_to_install(run: Run, data: Path) -> None:
    with isolated_plugins():
        result = run("eval", "x", data)
    assert result.code == 1
    assert "[E-JIT-004]" in result.err
    assert "pip install 'alkahest[cpu]==0.1.0'" in result.err


def test_a_kept_column_of_text_that_another_format_cannot_take_is_explained(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.5], "label": ["a,b"]}), path)
    result = run("eval", "2*x", path, "--keep")
    assert (result.code, result.out) == (1, "")
    assert "column 'label' is of type string, which is no number" in result.err
    assert "--keep copies such a column only to a file of the data's own format" in result.err
    assert "Cast" not in result.err
    assert run("eval", "x=x", "2*x", path).out == "x,f1\n1.5,3.0\n"


def test_kept_text_goes_to_no_other_format_and_nothing_is_computed(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("towns.csv", "x,town\n\n1,Ulm\n2,Hof\n")
    monkeypatch.setattr("alkahest.cli.job.run", lambda job: pytest.fail("rows were read"))
    for name in ("out.npy", "out.npz", "out.parquet"):
        result = run("eval", "2*x", path, "--keep", "-o", tmp_path / name)
        assert (result.code, result.out) == (1, "")
        assert "row 1 (line 3), column 'town': 'Ulm' is not a number; --keep copies" in result.err
        assert "name each column of numbers to copy: 'x=x'" in result.err
        assert not (tmp_path / name).exists()
