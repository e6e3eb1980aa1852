"""Writing CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alkahest.cli.csv_writer import CsvSink, quoted
from alkahest.cli.tables import Field


def written(tmp_path: Path, columns: dict[str, Any], dtypes: Sequence[Any]) -> str:
    path = tmp_path / "out.csv"
    fields = [Field(name=n, dtype=t) for n, t in zip(columns, dtypes, strict=True)]
    sink = CsvSink(str(path), fields)
    sink.write(list(columns.values()), len(next(iter(columns.values()))))
    sink.finish()
    sink.close()
    return path.read_bytes().decode()


def test_floats_are_the_shortest_text_that_reads_back(tmp_path: Path) -> None:
    values = np.array([0.1, -0.0, 1e22, 5e-324, 1 / 3, np.nan, np.inf, -np.inf, 2.0])
    text = written(tmp_path, {"x": values}, [values.dtype])
    assert text == "x\n0.1\n-0.0\n1e+22\n5e-324\n0.3333333333333333\nnan\ninf\n-inf\n2.0\n"


def test_narrow_floats_are_short_in_their_own_precision(tmp_path: Path) -> None:
    values = np.array([0.1, 1 / 3, 1e20], dtype=np.float32)
    lines = written(tmp_path, {"x": values}, [values.dtype]).split()[1:]
    assert lines[:2] == ["0.1", "0.33333334"]
    np.testing.assert_array_equal(np.array(lines, dtype=np.float32), values)


def test_random_doubles_read_back_to_the_same_bits(tmp_path: Path) -> None:
    bits = np.random.default_rng(1).integers(0, 2**63, 2000, dtype=np.uint64)
    values = bits.view(np.float64)
    values = values[np.isfinite(values)]
    lines = written(tmp_path, {"x": values}, [values.dtype]).split()[1:]
    np.testing.assert_array_equal(np.array(list(map(float, lines))), values)


def test_truth_values_are_written_as_numbers_and_integers_exactly(tmp_path: Path) -> None:
    columns = {"b": np.array([True, False]), "i": np.array([2**63 - 1, -1])}
    text = written(tmp_path, columns, [np.dtype(bool), np.dtype(np.int64)])
    assert text == "b,i\n1,9223372036854775807\n0,-1\n"


def test_a_complex_column_becomes_two(tmp_path: Path) -> None:
    values = np.array([1 + 2j, complex(-0.0, np.nan)])
    assert written(tmp_path, {"z": values}, [values.dtype]) == "z.re,z.im\n1.0,2.0\n-0.0,nan\n"


def test_carried_text_is_written_as_it_was_meant(tmp_path: Path) -> None:
    text = written(tmp_path, {"a,b": ["007", 'say "x"\n', ""], "n": ["1", "2", "3"]}, [None, None])
    assert text == '"a,b",n\n007,1\n"say ""x""\n",2\n,3\n'


@pytest.mark.parametrize(
    ("text", "field"), [("a", "a"), ("a,b", '"a,b"'), ('"', '""""'), ("a\rb", '"a\rb"')]
)
def test_only_what_needs_quotes_is_quoted(text: str, field: str) -> None:
    assert quoted(text) == field
