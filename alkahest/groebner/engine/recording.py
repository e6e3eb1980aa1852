"""From the matrix of a round to its entry in the record of the run."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.trace import TraceRound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.symbolic import SymbolicMatrix


@kernel("void(int64[::1], int32[::1], int64[::1], int64[::1], int32[::1], uint8[::1], uint8[::1])")
def _mark(lower, pivot_row, start, length, entries, column_used, row_used):
    for r in lower:
        row_used[r] = 1
        for k in range(start[r], start[r] + length[r]):
            column_used[entries[k]] = 1
    for column in range(pivot_row.size):
        if column_used[column]:
            r = pivot_row[column]
            row_used[r] = 1
            for k in range(start[r], start[r] + length[r]):
                column_used[entries[k]] = 1


@kernel("void(int64[::1], int64[::1], int64[::1], int32[::1], int32[::1], int32[::1])")
def _cut(rows, start, length, entries, number, out):
    """Copy the entries of some rows, renumbered."""
    k = 0
    for r in rows:
        for at in range(start[r], start[r] + length[r]):
            out[k] = number[entries[at]]
            k += 1


def trace_round(
    matrix: SymbolicMatrix,
    lower: NDArray[np.int64],
    leads: NDArray[np.int32],
    out_row: NDArray[np.signedinteger[Any]],
    out_column: NDArray[np.signedinteger[Any]],
    first_term: int,
    first_result: int,
) -> TraceRound:
    """Cut ``matrix`` down to what the rows ``lower`` need; columns are those of the matrix."""
    column_used = np.zeros(len(matrix.columns), np.uint8)
    row_used = np.zeros(len(matrix.row_of), np.uint8)
    _mark(
        lower, matrix.pivot_row, matrix.row_start, matrix.row_length, matrix.entries,
        column_used, row_used,
    )  # fmt: skip
    number = np.cumsum(column_used, dtype=np.int32) - 1
    row_number = np.cumsum(row_used, dtype=np.int32) - 1
    rows = np.nonzero(row_used)[0]
    lengths = matrix.row_length[rows]
    pivots = int(column_used[: matrix.pivots].sum())
    kept = np.nonzero(column_used[: matrix.pivots])[0]
    entries = np.empty(int(lengths.sum()), np.int32)
    _cut(rows, matrix.row_start, matrix.row_length, matrix.entries, number, entries)
    beyond = number - pivots
    return TraceRound(
        columns=int(column_used.sum()),
        pivots=pivots,
        row_of=matrix.row_of[rows],
        row_multiplier=matrix.row_multiplier[rows],
        row_start=np.cumsum(lengths) - lengths,
        row_length=lengths,
        row_term=matrix.row_term[rows],
        entries=entries,
        pivot_row=row_number[matrix.pivot_row[kept]],
        lower=row_number[lower].astype(np.int64),
        leads=beyond[matrix.pivots + leads],
        out_row=out_row.astype(np.int32),
        out_column=beyond[matrix.pivots + out_column],
        first_term=first_term,
        first_result=first_result,
    )
