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


@kernel(
    "UniTuple(int64, 4)(int64[::1], int32[::1], int64[::1], int64[::1], int32[::1], int32[::1],"
    "int32[::1])"
)
def _number(lower, pivot_row, start, length, entries, column_number, row_number):
    """Number the columns and rows that are needed, from zero on; -1 for the others.

    Returns:
        How many columns, of these with a pivot, rows, and entries of rows are needed.
    """
    column_number[:] = -1
    row_number[:] = -1
    for r in lower:
        row_number[r] = 0
        for k in range(start[r], start[r] + length[r]):
            column_number[entries[k]] = 0
    columns, pivots = 0, 0
    for column in range(column_number.size):
        if column_number[column] < 0:
            continue
        column_number[column] = columns
        columns += 1
        if column < pivot_row.size:
            pivots += 1
            r = pivot_row[column]
            row_number[r] = 0
            for k in range(start[r], start[r] + length[r]):
                column_number[entries[k]] = max(column_number[entries[k]], 0)
    rows, used = 0, 0
    for r in range(row_number.size):
        if row_number[r] == 0:
            row_number[r] = rows
            rows += 1
            used += length[r]
    return columns, pivots, rows, used


@kernel(
    "void(int32[::1], int32[::1], int32[::1], uint64[:, ::1], int64[::1], int64[::1], int64[::1],"
    "int32[::1], int32[::1], uint64[:, ::1], int64[::1], int64[::1], int64[::1], int32[::1])"
)
def _cut(
    column_number, row_number, of, multiplier, start, length, term, entries,
    new_of, new_multiplier, new_start, new_length, new_term, new_entries,
):  # fmt: skip
    """Copy what is needed, renumbered."""
    k = 0
    for r in range(row_number.size):
        row = row_number[r]
        if row < 0:
            continue
        new_of[row] = of[r]
        for w in range(multiplier.shape[1]):
            new_multiplier[row, w] = multiplier[r, w]
        new_start[row] = k
        new_length[row] = length[r]
        new_term[row] = term[r]
        for at in range(start[r], start[r] + length[r]):
            new_entries[k] = column_number[entries[at]]
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
    number = np.empty(len(matrix.columns), np.int32)
    row_number = np.empty(len(matrix.row_of), np.int32)
    columns, pivots, rows, used = _number(
        lower, matrix.pivot_row, matrix.row_start, matrix.row_length, matrix.entries, number,
        row_number,
    )  # fmt: skip
    row_of, entries = np.empty(rows, np.int32), np.empty(used, np.int32)
    multiplier = np.empty((rows, matrix.row_multiplier.shape[1]), np.uint64)
    start, length, term = np.empty((3, rows), np.int64)
    _cut(
        number, row_number, matrix.row_of, matrix.row_multiplier, matrix.row_start,
        matrix.row_length, matrix.row_term, matrix.entries, row_of, multiplier, start, length,
        term, entries,
    )  # fmt: skip
    beyond = number[matrix.pivots :] - np.int32(pivots)
    return TraceRound(
        columns=columns,
        pivots=pivots,
        row_of=row_of,
        row_multiplier=multiplier,
        row_start=start,
        row_length=length,
        row_term=term,
        entries=entries,
        pivot_row=row_number[matrix.pivot_row[number[: matrix.pivots] >= 0]],
        lower=row_number[lower].astype(np.int64),
        leads=beyond[leads],
        out_row=out_row.astype(np.int32),
        out_column=beyond[out_column],
        first_term=first_term,
        first_result=first_result,
    )
