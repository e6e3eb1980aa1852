"""A trace for eight primes at once: one row at a time, one lane for each prime.

A prime for which the recorded pivots do not work, or for which a term comes out that was not
recorded, is unlucky (or the prime that the trace was learned with is): its lane is marked and its
numbers mean nothing. The other lanes are not affected.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from alkahest.groebner.engine._kernel import inlined, kernel
from alkahest.groebner.engine.lanes import (
    LANES,
    add_scaled_images,
    aligned,
    cancel_line,
    inverse,
    moduli,
    reduce_line,
    store_scaled_line,
)
from alkahest.groebner.engine.trace import Images, Trace, TraceRound

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BLOCK_BYTES = 1 << 20
"""What the accumulators of a block of rows may take of a core's second-level cache."""


@kernel(
    "void(uint64[:, ::1], int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64[::1],"
    "uint32[:, ::1], uint64[:, ::1])"
)
def _reduce_rows(accumulators, lower, pivot_row, entries, start, length, term, coefficients, field):
    """Load each row into its accumulator and eliminate, pivot by pivot for all of them.

    A pivot row is streamed from memory once for the block, which is what bounds the speed.
    """
    size = accumulators.shape[1]
    for place in range(lower.size):
        r = lower[place]
        for k in range(size):
            accumulators[place, k] = 0
        for k in range(length[r]):
            to = np.int64(entries[start[r] + k]) * LANES
            for lane in range(LANES):
                accumulators[place, to + lane] = coefficients[term[r] + k, lane]
    for column in range(size // LANES):
        for place in range(lower.size):
            lines = accumulators.ctypes.data + 8 * size * place
            line = lines + 64 * column
            if reduce_line(line, field.ctypes.data) == 0 or column >= pivot_row.size:
                continue
            cancel_line(line, field.ctypes.data)
            r = pivot_row[column]
            add_scaled_images(
                lines,
                entries.ctypes.data + 4 * (start[r] + 1),
                coefficients.ctypes.data + 4 * LANES * (term[r] + 1),
                length[r] - 1,
                field.ctypes.data,
            )


def reduced_rows(
    one: TraceRound,
    coefficients: NDArray[np.uint32],
    field: NDArray[np.uint64],
    checkpoint: Callable[[], None],
) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The lower rows of a round, block after block, pivots eliminated.

    Args:
        one: the round.
        coefficients: that its rows refer to, shape ``(terms, 8)``.
        field: :func:`~alkahest.groebner.engine.lanes.moduli` of the primes.
        checkpoint: called between blocks of rows; raises to stop.

    Yields:
        The number of the first row of a block, and residues of its rows, shape
        ``(n, columns * 8)``, to be used before the next block is asked for. In a pivot column
        stands what the pivot row was multiplied by.
    """
    size = LANES * one.columns
    block = max(1, min(8, _BLOCK_BYTES // (8 * size + 1)))
    accumulators = aligned(block * size).reshape(block, size)
    for first in range(0, one.results, block):
        checkpoint()
        rows = one.lower[first : first + block]
        _reduce_rows(
            accumulators, rows, one.pivot_row, one.entries, one.row_start, one.row_length,
            one.row_term, coefficients, field,
        )  # fmt: skip
        yield first, accumulators[: len(rows)]


@inlined
def _cancel(lines, column, row, everything, rows, field):
    """Subtract ``rows[row]`` so that ``column`` vanishes in all lanes."""
    cancel_line(lines + 64 * column, field.ctypes.data)
    add_scaled_images(
        lines,
        everything.ctypes.data,
        rows.ctypes.data + 4 * LANES * row * rows.shape[1],
        rows.shape[1],
        field.ctypes.data,
    )


@inlined
def _enter_row(accumulator, rows, rank, leads, row_at, lead_of, everything, field, bad):
    """Reduce the accumulator by the rows entered so far and enter it; whether it has a lead.

    ``accumulator`` begins with the columns without known pivot. Lanes where the row has no entry
    in the lead that the other lanes have are marked in ``bad``.
    """
    width = rows.shape[1]
    lines = accumulator.ctypes.data
    # A row has no entries in the leads of rows before it, so this order leaves none behind.
    for row in range(rank):
        column = np.int64(leads[lead_of[row]])
        if reduce_line(lines + 64 * column, field.ctypes.data):
            _cancel(lines, column, row, everything, rows, field)
    chosen = -1
    for k in range(leads.size):
        column = np.int64(leads[k])
        if row_at[k] >= 0 or chosen >= 0:
            continue
        reduce_line(lines + 64 * column, field.ctypes.data)
        for lane in range(LANES):
            if not bad[lane] and accumulator[column * LANES + lane] != 0:
                chosen = k
    if chosen < 0:
        return False
    column = np.int64(leads[chosen])
    for lane in range(LANES):
        value = accumulator[column * LANES + lane]
        if value == 0:
            bad[lane] = 1
            value = np.uint64(1)
        field[3, lane] = inverse(value, field[0, lane])
    target = rows.ctypes.data + 4 * LANES * rank * width
    for c in range(width):
        reduce_line(lines + 64 * c, field.ctypes.data)
        store_scaled_line(lines + 64 * c, target + 4 * LANES * c, field.ctypes.data)
    row_at[chosen] = rank
    lead_of[rank] = chosen
    return True


@kernel(
    "boolean(uint64[:, ::1], int64, uint32[:, :, ::1], int64, int32[::1], int32[::1], int32[::1],"
    "int32[::1], uint64[:, ::1], uint8[::1])"
)
def _enter_rows(
    accumulators, pivots, rows, first, leads, row_at, lead_of, everything, field, bad
):  # fmt: skip
    """Enter a block of rows, the first of which is number ``first``; whether all have a lead."""
    for place in range(accumulators.shape[0]):
        beyond = accumulators[place, LANES * pivots :]
        rank = first + place
        if not _enter_row(beyond, rows, rank, leads, row_at, lead_of, everything, field, bad):
            return False
    return True


@kernel("void(uint64[::1], uint32[:, :, ::1], int32[::1], int32[::1], int32[::1], uint64[:, ::1])")
def _back_reduce(accumulator, rows, leads, lead_of, everything, field):
    """Clear the leads of rows entered later out of the rows before them."""
    width = rows.shape[1]
    lines = accumulator.ctypes.data
    for r in range(rows.shape[0] - 2, -1, -1):
        for c in range(width):
            for lane in range(LANES):
                accumulator[c * LANES + lane] = rows[r, c, lane]
        for s in range(r + 1, rows.shape[0]):
            column = np.int64(leads[lead_of[s]])
            if reduce_line(lines + 64 * column, field.ctypes.data):
                _cancel(lines, column, s, everything, rows, field)
        for c in range(width):
            reduce_line(lines + 64 * c, field.ctypes.data)
            for lane in range(LANES):
                rows[r, c, lane] = accumulator[c * LANES + lane]


@kernel(
    "void(uint32[:, :, ::1], int32[::1], int32[::1], int32[::1], uint32[:, ::1], int64,uint8[::1])"
)
def _emit(rows, row_at, out_row, out_column, coefficients, first, bad):
    """Copy the recorded terms; mark lanes that have others, which ``rows`` keeps no more."""
    for k in range(out_row.size):
        r = row_at[out_row[k]]
        c = out_column[k]
        for lane in range(LANES):
            coefficients[first + k, lane] = rows[r, c, lane]
            rows[r, c, lane] = 0
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            for lane in range(LANES):
                if rows[r, c, lane]:
                    bad[lane] = 1


def replay(
    trace: Trace,
    inputs: NDArray[np.uint32],
    primes: Sequence[int],
    checkpoint: Callable[[], None],
) -> Images:
    """Compute the basis modulo eight primes.

    Args:
        trace: what to do.
        inputs: coefficients of the generators, scaled to leading coefficient 1, shape
            ``(trace.input_terms, 8)``.
        primes: eight of them, below 2**31 and not necessarily distinct.
        checkpoint: called between rounds; raises to stop.
    """
    coefficients, bad = replay_all(trace, inputs, primes, checkpoint)
    return Images(
        primes=tuple(primes),
        lucky=tuple(not flag for flag in bad.tolist()),
        tails=coefficients[trace.rounds[-1].first_term :],
    )


def replay_all(
    trace: Trace,
    inputs: NDArray[np.uint32],
    primes: Sequence[int],
    checkpoint: Callable[[], None],
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """The same, with the coefficients of all rounds, shape ``(trace.terms, 8)``.

    Returns:
        Coefficients, and for each lane 1 where the prime is unlucky.
    """
    field = moduli(primes)
    bad = np.zeros(LANES, np.uint8)
    coefficients = np.empty((trace.terms, LANES), np.uint32)
    coefficients[: trace.input_terms] = inputs
    for one in trace.rounds:
        if not _replay_round(one, coefficients, field, bad, checkpoint):
            bad[:] = 1
        if bad.all():
            break
    return coefficients, bad


def _replay_round(
    one: TraceRound,
    coefficients: NDArray[np.uint32],
    field: NDArray[np.uint64],
    bad: NDArray[np.uint8],
    checkpoint: Callable[[], None],
) -> bool:
    """Append the round's terms to ``coefficients``; whether any lane got through."""
    width = one.columns - one.pivots
    rows = np.empty((one.results, width, LANES), np.uint32)
    everything = np.arange(width, dtype=np.int32)
    row_at = np.full(one.results, -1, np.int32)
    lead_of = np.empty(one.results, np.int32)
    for first, block in reduced_rows(one, coefficients, field, checkpoint):
        if not len(one.leads):
            beyond = block[:, LANES * one.pivots :]
            rows[first : first + len(block)] = beyond.reshape(len(block), width, LANES)
        elif not _enter_rows(
            block, one.pivots, rows, first, one.leads, row_at, lead_of, everything, field, bad
        ):
            return False
    if len(one.leads):
        _back_reduce(aligned(LANES * width), rows, one.leads, lead_of, everything, field)
    else:
        row_at = np.arange(one.results, dtype=np.int32)
    _emit(rows, row_at, one.out_row, one.out_column, coefficients, one.first_term, bad)
    return True
