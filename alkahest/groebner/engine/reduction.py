"""Reduction of a round's matrix modulo one prime.

Sorted by columns with and without a known pivot, a matrix looks like this::

                 pivots   others
    known pivot [   A    |   B   ]      A: upper triangular, ones on the diagonal
    lower       [   C    |   D   ]

Wanted is the reduced row echelon form of ``D - C A^-1 B``. Its rows are the new basis elements
(or, without the echelon form, the normal forms of the lower rows). A and B are never touched: rows
are taken eight at a time into an accumulator with one line of eight words per column, and pass
once over the pivots in order of columns.

Instead of the rows themselves, random combinations of all lower rows are reduced until some of
them vanish: as many as the rank, while usually many more rows are given. A batch of eight that finds
``8 - z`` new rows or fewer ends it. If anything were left to find then, a random matrix over the
field would have lost rank, which has a probability of about ``prime ** -z``; ``z`` is chosen to make
that less than 2**-56. Fields too small for any ``z`` are reduced row by row.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.lanes import (
    GOLDEN,
    LANES,
    add_scaled_dense,
    add_scaled_row,
    aligned,
    cancel_line,
    inverse,
    moduli,
    reduce_line,
    scrambled,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.symbolic import SymbolicMatrix

_FAILURE_BITS = 56


def vanishing_lanes(prime: int) -> int | None:
    """How many of eight random combinations must vanish to be sure of the rank; None: never."""
    needed = -(-_FAILURE_BITS // (prime.bit_length() - 1))
    return needed if needed <= LANES else None


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], uint32[::1],"
    "uint64, uint64[:, ::1])"
)
def _combine(accumulator, lower, start, length, term, entries, coefficients, seed, field):
    """Fill the lanes with random combinations of all lower rows (multipliers: splitmix64)."""
    state = seed
    for r in lower:
        for lane in range(LANES):
            state += np.uint64(GOLDEN)
            field[3, lane] = scrambled(state) % field[0, lane]
        add_scaled_row(
            accumulator.ctypes.data,
            entries.ctypes.data + 4 * start[r],
            coefficients.ctypes.data + 4 * term[r],
            length[r],
            field.ctypes.data,
        )


@kernel(
    "void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], uint32[::1])"
)
def _load(accumulator, lower, start, length, term, entries, coefficients):
    """Fill the lanes with at most eight rows."""
    for lane in range(lower.size):
        r = lower[lane]
        for k in range(length[r]):
            column = np.int64(entries[start[r] + k])
            accumulator[column * LANES + lane] = coefficients[term[r] + k]


@kernel(
    "void(uint64[::1], int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], uint32[::1],"
    "uint64[:, ::1])"
)
def _eliminate(accumulator, pivot_row, start, length, term, entries, coefficients, field):
    """Cancel the entries in all pivot columns and reduce the others."""
    lines = accumulator.ctypes.data
    for column in range(pivot_row.size):
        line = lines + 64 * column
        if reduce_line(line, field.ctypes.data) == 0:
            continue
        cancel_line(line, field.ctypes.data)
        r = pivot_row[column]
        # The first entry of a pivot row is its one on the diagonal.
        add_scaled_row(
            lines,
            entries.ctypes.data + 4 * (start[r] + 1),
            coefficients.ctypes.data + 4 * (term[r] + 1),
            length[r] - 1,
            field.ctypes.data,
        )
    for column in range(pivot_row.size, accumulator.size // LANES):
        reduce_line(lines + 64 * column, field.ctypes.data)


@kernel("void(uint64[::1], int64, uint32[:, ::1], int64, int64)")
def _unload(accumulator, pivots, rows, first, count):
    """Write the first ``count`` lanes' other columns to ``rows[first:]``."""
    for column in range(accumulator.size // LANES - pivots):
        for lane in range(count):
            rows[first + lane, column] = accumulator[(pivots + column) * LANES + lane]


@kernel("int64(uint64[::1], int64, int64, uint32[:, ::1], int32[::1], int32[::1], int64, int64)")
def _absorb(accumulator, pivots, lanes, echelon, lead, row_at, rank, prime):
    """Bring the lanes' other columns into the echelon form, whose rank it returns."""
    p = np.uint64(prime)
    ncolumns = accumulator.size // LANES - pivots
    padded = echelon.shape[1]
    vector = np.zeros(padded, np.uint64)
    for lane in range(lanes):
        if rank == echelon.shape[0]:
            break
        for column in range(ncolumns):
            vector[column] = accumulator[(pivots + column) * LANES + lane]
        first = -1
        for column in range(ncolumns):
            value = vector[column]
            if value == 0:
                continue
            value %= p
            vector[column] = value
            if value == 0:
                continue
            r = row_at[column]
            if r < 0:
                if first < 0:
                    first = column
                continue
            begin = column // LANES * LANES
            add_scaled_dense(
                vector.ctypes.data + 8 * begin,
                echelon.ctypes.data + 4 * (r * padded + begin),
                (padded - begin) // LANES,
                p - value,
                p * p,
            )
            vector[column] = 0
        if first < 0:
            continue
        scale = inverse(vector[first], p)
        for column in range(padded):
            echelon[rank, column] = vector[column] * scale % p
        lead[rank] = first
        row_at[first] = rank
        rank += 1
    return rank


@kernel("void(uint32[:, ::1], int32[::1], int64, int64)")
def _back_reduce(echelon, lead, rank, prime):
    """Clear each pivot column in the rows above: rows found later have no entry in it."""
    p = np.uint64(prime)
    padded = echelon.shape[1]
    vector = np.zeros(padded, np.uint64)
    for r in range(rank - 2, -1, -1):
        for column in range(padded):
            vector[column] = echelon[r, column]
        changed = False
        for s in range(r + 1, rank):
            value = np.uint64(echelon[r, lead[s]])
            if value == 0:
                continue
            changed = True
            begin = lead[s] // LANES * LANES
            add_scaled_dense(
                vector.ctypes.data + 8 * begin,
                echelon.ctypes.data + 4 * (s * padded + begin),
                (padded - begin) // LANES,
                p - value,
                p * p,
            )
        if changed:
            for column in range(padded):
                echelon[r, column] = vector[column] % p


@kernel("void(uint32[:, ::1], int64[::1])")
def _count(rows, sizes):
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            sizes[r] += np.int64(rows[r, c] != 0)


@kernel("void(uint32[:, ::1], int32[::1], uint32[::1])")
def _gather(rows, columns, values):
    k = 0
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            if rows[r, c]:
                columns[k] = c
                values[k] = rows[r, c]
                k += 1


@attrs.frozen(kw_only=True, eq=False)
class ReducedRows:
    """What a reduction leaves in the columns without a known pivot.

    Attributes:
        rows: uint32, shape ``(n, >= ncolumns - pivots)``; unused columns at the end are zero.
        leads: int32, the pivot column of each row of an echelon form.
        reduced: rows or combinations reduced.
        random: whether rows were combined at random.
        on_gpu: whether a GPU did it.
    """

    rows: NDArray[np.uint32]
    leads: NDArray[np.int32]
    reduced: int
    random: bool
    on_gpu: bool = False


@attrs.frozen(kw_only=True, eq=False)
class DenseTerms:
    """The entries of dense rows that are not zero, row by row.

    Attributes:
        sizes: int64, how many each row has.
        columns: int32.
        values: uint32.
    """

    sizes: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.uint32]

    @property
    def rows(self) -> NDArray[np.int32]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)

    @classmethod
    def of(cls, rows: NDArray[np.uint32]) -> DenseTerms:
        """Those of an array of rows."""
        rows = np.ascontiguousarray(rows)
        sizes = np.zeros(len(rows), np.int64)
        _count(rows, sizes)
        total = int(sizes.sum())
        columns, values = np.empty(total, np.int32), np.empty(total, np.uint32)
        _gather(rows, columns, values)
        return cls(sizes=sizes, columns=columns, values=values)


def echelon(
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    seed: int,
    checkpoint: Callable[[], None],
) -> ReducedRows:
    """Reduced row echelon form of the lower rows, the one of least leading monomial first.

    Args:
        matrix: rows and columns.
        coefficients: of the basis; ``matrix.row_term`` points into them.
        prime: below 2**31.
        seed: of the random combinations.
        checkpoint: called between batches of rows; raises to stop.
    """
    nlower = len(matrix.lower)
    width = len(matrix.columns) - matrix.pivots
    most = min(nlower, width)
    vanishing = vanishing_lanes(prime) if nlower > LANES else None
    random = vanishing is not None
    echelon = np.empty((most, -(-width // LANES) * LANES), np.uint32)
    lead = np.empty(most, np.int32)
    row_at = np.full(width, -1, np.int32)
    field = moduli([prime] * LANES)
    accumulator = aligned(len(matrix.columns) * LANES)
    layout = (matrix.row_start, matrix.row_length, matrix.row_term, matrix.entries)
    rank = reduced = 0
    while rank < most and (random or reduced < nlower):
        checkpoint()
        accumulator[:] = 0
        if random:
            lanes = LANES
            mixed = np.uint64((seed * 0x2545F4914F6CDD1D + reduced) % 2**64)
            _combine(accumulator, matrix.lower, *layout, coefficients, mixed, field)
        else:
            batch = matrix.lower[reduced : reduced + LANES]
            lanes = len(batch)
            _load(accumulator, batch, *layout, coefficients)
        _eliminate(accumulator, matrix.pivot_row, *layout, coefficients, field)
        before = rank
        rank = _absorb(accumulator, matrix.pivots, lanes, echelon, lead, row_at, rank, prime)
        reduced += lanes
        if vanishing is not None and rank <= before + LANES - vanishing:
            break
    _back_reduce(echelon, lead, rank, prime)
    order = np.argsort(-lead[:rank])
    return ReducedRows(rows=echelon[order], leads=lead[order], reduced=reduced, random=random)


def normal_forms(
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    checkpoint: Callable[[], None],
) -> ReducedRows:
    """Each lower row reduced by the known pivots, in their order; arguments as above."""
    nlower = len(matrix.lower)
    field = moduli([prime] * LANES)
    accumulator = aligned(len(matrix.columns) * LANES)
    rows = np.empty((nlower, len(matrix.columns) - matrix.pivots), np.uint32)
    layout = (matrix.row_start, matrix.row_length, matrix.row_term, matrix.entries)
    for first in range(0, nlower, LANES):
        checkpoint()
        accumulator[:] = 0
        batch = matrix.lower[first : first + LANES]
        _load(accumulator, batch, *layout, coefficients)
        _eliminate(accumulator, matrix.pivot_row, *layout, coefficients, field)
        _unload(accumulator, matrix.pivots, rows, first, len(batch))
    leads = np.empty(0, np.int32)
    return ReducedRows(rows=rows, leads=leads, reduced=nlower, random=False)
