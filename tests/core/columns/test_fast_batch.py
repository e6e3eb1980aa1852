"""Plain columns and outputs go to the backend without preparation, everything else does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alkahest.columns import Rules, fast_batch
from alkahest.compiled import CompiledFn


def test_plain_columns_and_outputs_need_no_preparation(twice: CompiledFn) -> None:
    rules = Rules.of(twice.program, casting="safe", backend="any")
    column, out = np.arange(4.0), np.empty(4)
    batch = fast_batch([column], rules, out)
    assert batch is not None
    assert (batch.n, batch.out) == (4, (out,))
    assert batch.columns[0] is column
    assert twice(column, out=out) is out
    assert out.tolist() == (2 * column).tolist()


@pytest.mark.parametrize(
    "out",
    [
        np.empty(3),
        np.empty(4, np.float32),
        np.empty(8)[::2],
        np.broadcast_to(0.0, 4),
        [np.empty(4), np.empty(4)],
        [0.0] * 4,
    ],
    ids=["length", "dtype", "strides", "read-only", "too many", "a list of numbers"],
)
def test_other_outputs_are_left_to_the_full_checks(twice: CompiledFn, out: Any) -> None:
    rules = Rules.of(twice.program, casting="safe", backend="any")
    assert fast_batch([np.arange(4.0)], rules, out) is None


def test_an_output_that_shares_memory_is_left_to_the_full_checks(twice: CompiledFn) -> None:
    rules = Rules.of(twice.program, casting="safe", backend="any")
    memory = np.arange(5.0)
    assert fast_batch([memory[1:]], rules, memory[:4]) is None
    assert fast_batch([memory], rules, memory) is None
