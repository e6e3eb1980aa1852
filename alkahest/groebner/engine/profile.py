"""Which rows of a round are worth recording: a set of independent ones.

Random combinations find the row space of ``D - C A^-1 B`` but not rows that span it, which is what
a record to be replayed for many primes has to name. They are found from the other side: a random
matrix ``R`` with a few more columns than the rank keeps every set of rows apart, and
``(D - C A^-1 B) R`` needs no elimination. With ``X = R`` in the columns without pivot and
``X = -A^-1 B R`` in the others, found from the last pivot to the first, it is ``C X + D X``: one
short sum of products for each entry of the matrix.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.lanes import (
    GOLDEN,
    LANES,
    add_scaled_dense,
    aligned,
    dot_lines,
    inverse,
    moduli,
    scrambled,
)
from alkahest.groebner.engine.reduction import ReducedRows, echelon

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.symbolic import SymbolicMatrix

_WIDTH = 2 * LANES


@kernel(
    "void(uint32[::1], int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1],"
    "uint32[::1], uint64[:, ::1], uint64, uint32[:, ::1], int64)"
)
def _project(
    lines, pivot_row, lower, start, length, term, entries, coefficients, field, seed, out, at
):  # fmt: skip
    """Choose the other columns' lines at random, solve for the pivot columns' lines, then write
    the lower rows' images to ``out[:, at:]``."""
    prime = field[0, 0]
    state = seed
    for k in range(pivot_row.size * _WIDTH, lines.size):
        state += np.uint64(GOLDEN)
        lines[k] = scrambled(state) % prime
    total = np.empty(_WIDTH, np.uint64)
    for column in range(pivot_row.size - 1, -1, -1):
        r = pivot_row[column]
        dot_lines(
            lines.ctypes.data,
            entries.ctypes.data + 4 * (start[r] + 1),
            coefficients.ctypes.data + 4 * (term[r] + 1),
            length[r] - 1,
            total.ctypes.data,
            field.ctypes.data,
        )
        for k in range(_WIDTH):
            value = total[k] % prime
            lines[column * _WIDTH + k] = prime - value if value else 0
    for k in range(lower.size):
        r = lower[k]
        dot_lines(
            lines.ctypes.data,
            entries.ctypes.data + 4 * start[r],
            coefficients.ctypes.data + 4 * term[r],
            length[r],
            total.ctypes.data,
            field.ctypes.data,
        )
        for lane in range(_WIDTH):
            out[k, at + lane] = total[lane] % prime


@kernel("int64(uint32[:, ::1], int64, int64[::1], uint64)")
def _row_profile(images, rank, chosen, p):
    """Write the first independent rows to ``chosen``, at most ``rank``; how many there are."""
    width = images.shape[1]
    echelon = np.empty((rank, width), np.uint32)
    row_at = np.full(width, -1, np.int64)
    vector = np.empty(width, np.uint64)
    found = 0
    for k in range(images.shape[0]):
        if found == rank:
            break
        for column in range(width):
            vector[column] = images[k, column]
        first = -1
        for column in range(width):
            value = vector[column] % p
            vector[column] = value
            if value == 0:
                continue
            r = row_at[column]
            if r < 0:
                first = column
                break
            begin = column // LANES * LANES
            add_scaled_dense(
                vector.ctypes.data + 8 * begin,
                echelon.ctypes.data + 4 * (r * width + begin),
                (width - begin) // LANES,
                p - value,
                p * p,
            )
            vector[column] = 0
        if first < 0:
            continue
        scale = inverse(vector[first], p)
        for column in range(width):
            # Columns before the pivot hold zeros of the row reduced so far, as residues.
            echelon[found, column] = vector[column] % p * scale % p
        row_at[first] = found
        chosen[found] = k
        found += 1
    return found


def independent_images(images: NDArray[np.uint32], rank: int, prime: int) -> NDArray[np.int64]:
    """Numbers of the first rows that are independent of those before them, at most ``rank``.

    Args:
        images: residues; the width is a multiple of eight.
        rank: where to stop.
        prime: below 2**31.
    """
    chosen = np.empty(rank, np.int64)
    return chosen[: _row_profile(images, rank, chosen, prime)]


def preferred(matrix: SymbolicMatrix) -> NDArray[np.int64]:
    """The lower rows in the order in which they are taken into a record: short ones first."""
    return matrix.lower[np.argsort(matrix.row_length[matrix.lower], kind="stable")]


def echelon_with_rows(
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    seed: int,
    checkpoint: Callable[[], None],
) -> tuple[ReducedRows, NDArray[np.int64]]:
    """The echelon form of the lower rows, and lower rows that span the row space of all.

    Each of those is independent of the ones before it in the order of :func:`preferred`, which
    leaves no choice. Arguments as of :func:`~alkahest.groebner.engine.reduction.echelon`; the prime
    has at least 20 bits.
    """
    reduced = echelon(matrix, coefficients, prime, seed, checkpoint)
    rows, attempt = None, seed
    while rows is None:
        checkpoint()
        rows = independent_rows(matrix, coefficients, prime, len(reduced.rows), attempt)
        attempt += 1
    return reduced, rows


def independent_rows(
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    rank: int,
    seed: int,
) -> NDArray[np.int64] | None:
    """The rows of :func:`echelon_with_rows`.

    Args:
        matrix: rows and columns.
        coefficients: of the basis.
        prime: large, so that a random projection keeps the rank.
        rank: the known rank.
        seed: of the projection.

    Returns:
        ``rank`` row numbers, or None where the projection lost some of the rank.
    """
    lower = preferred(matrix)
    if rank == len(lower) or not rank:
        return lower[:rank]
    width = -(-(rank + 2) // _WIDTH) * _WIDTH
    field = moduli([prime] * LANES)
    lines = aligned(len(matrix.columns) * _WIDTH // 2).view(np.uint32)
    images = np.empty((len(lower), width), np.uint32)
    for at in range(0, width, _WIDTH):
        _project(
            lines, matrix.pivot_row, lower, matrix.row_start, matrix.row_length, matrix.row_term,
            matrix.entries, coefficients, field, np.uint64((seed + at) % 2**64), images, at,
        )  # fmt: skip
    chosen = independent_images(images, rank, prime)
    return lower[chosen] if len(chosen) == rank else None
