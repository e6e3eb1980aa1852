"""Columns are read where they are, whatever their layout in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arithmetic import Arithmetic

from alkahest.compiled import CompiledFn


def test_strided_reversed_and_read_only_views_are_read_in_place(
    twice: CompiledFn, arithmetic: Arithmetic
) -> None:
    table = np.arange(8.0).reshape(4, 2)
    assert twice(table[:, 0]).tolist() == [0, 4, 8, 12]
    assert twice(table[::-1, 1]).tolist() == [14, 10, 6, 2]
    assert twice(table.T[1][::2]).tolist() == [2, 10]
    table.flags.writeable = False
    assert twice(table[:, 1]).tolist() == [2, 6, 10, 14]
    assert all(np.shares_memory(batch.columns[0], table) for batch in arithmetic.batches)


def test_a_read_only_memory_map_is_read_without_copying(
    twice: CompiledFn, arithmetic: Arithmetic, tmp_path: Path
) -> None:
    np.arange(3.0).tofile(tmp_path / "column")
    column = np.memmap(tmp_path / "column", mode="r")
    values = column.view("f8")
    assert twice(values).tolist() == [0, 2, 4]
    assert type(twice(values)) is np.ndarray
    assert np.shares_memory(arithmetic.batches[0].columns[0], column)


def test_unaligned_columns_are_read(twice: CompiledFn, arithmetic: Arithmetic) -> None:
    column = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype="f8", offset=1)
    assert twice(column).tolist() == [0, 2, 4]
    assert arithmetic.batches[0].columns[0].flags.aligned


def test_one_array_may_serve_as_two_columns(weigh: CompiledFn) -> None:
    column = np.arange(3.0)
    assert weigh.call_batch([column, column]).tolist() == [0, 3, 6]
