"""Symbolic preprocessing: from critical pairs to the rows and columns of a matrix.

A row is a multiple ``m * g`` of a basis element, stored as the pair (index of g, m) and the column
numbers of its terms; its coefficients are those of g and are never copied. Columns are read off the
rows of the round before where possible, and found by a hash table where not.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.basis import Basis, grown
from alkahest.groebner.engine.earlier import EarlierRows, follow, located
from alkahest.groebner.engine.hashing import empty_slots, enter, hashed, place_shift
from alkahest.groebner.engine.lanes import first_divisor
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.packing import ExponentOverflowError
from alkahest.groebner.engine.seeds import PIVOT, TAIL, Seeds
from alkahest.groebner.engine.threads import Team

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DONE, _MORE_ROWS, _MORE_ENTRIES, _MORE_COLUMNS, _OVERFLOW, _LOOK_UP = range(6)
_ROWS, _EXPANDED, _ENTRIES, _COLUMNS, _EXAMINED, _LOOKED_UP = range(6)

_BATCH = 1 << 17
"""Entries, at least, that several threads look up at once; fewer are left to one."""


@kernel("void(uint64[::1], uint64[:, ::1], int64, uint64[::1])")
def _rehash(slots, columns, count, salt):
    """Enter the first ``count`` columns into an empty table."""
    shift = place_shift(slots)
    for c in range(count):
        enter(slots, shift, hashed(columns, c, salt), c)


@kernel(
    "int64(int64[::1], uint64[:, ::1], int64[::1], uint64[:, ::1], int32[::1], int32[::1],"
    "uint8[::1], uint64[:, ::1], int64[::1], int64[::1], int32[::1], int32[::1],"
    "uint64[:, ::1], uint64[::1], uint64[::1], uint64[::1],"
    "int32[::1], uint64[:, ::1], int64[::1], int32[::1], int32[::1], uint64[::1], uint64[:, ::1],"
    "int32[:, ::1], int64[::1], int64, int64)"
)
def _close(
    state,
    terms,
    offsets,
    divisors,
    active,
    row_of,
    row_kind,
    row_multiplier,
    row_start,
    row_known,
    entries,
    pivot_row,
    columns,
    slots,
    salt,
    guard,
    earlier_of,
    earlier_multiplier,
    earlier_start,
    earlier_entries,
    earlier_new,
    earlier_slots,
    factors,
    followers,
    variable_at,
    bits,
    batch,
):
    """Expand rows, find a reducer for every new column, expand that; stops when nothing is new.

    May be called again after an array has been enlarged, or after rows that have ``batch`` entries
    or more have been looked up, unless that is zero: ``state`` says how far it got. Of rows that have
    been looked up, ``row_known`` says how many terms need not be looked at again.
    """
    nrows = state[_ROWS]
    expanded = state[_EXPANDED]
    used = state[_ENTRIES]
    ncolumns = state[_COLUMNS]
    examined = state[_EXAMINED]
    looked_up = state[_LOOKED_UP]
    settled = max(looked_up, expanded)
    words = guard.size
    mask = np.uint64(slots.size - 1)
    shift = place_shift(slots)
    limit = min(columns.shape[0], slots.size // 2)
    status = _DONE
    while True:
        while expanded < nrows:
            if batch and expanded >= settled:
                end = used
                # The more is known, the less of a longer stretch will be missing.
                wanted = max(batch, used // 16)
                while settled < nrows and end - used < wanted:
                    row_start[settled] = end
                    g = row_of[settled]
                    end += offsets[g + 1] - offsets[g] - (1 if row_kind[settled] == TAIL else 0)
                    settled += 1
                row_start[settled] = end
                if end > entries.size:
                    status = _MORE_ENTRIES
                    break
                if end - used >= batch:
                    looked_up = settled
                    status = _LOOK_UP
                    break
            g = row_of[expanded]
            kind = row_kind[expanded]
            start = offsets[g] + (1 if kind == TAIL else 0)
            stop = offsets[g + 1]
            if used + stop - start > entries.size:
                status = _MORE_ENTRIES
                break
            if ncolumns + stop - start > limit:
                status = _MORE_COLUMNS
                break
            row_start[expanded] = used
            first, second = row_multiplier[expanded, 0], row_multiplier[expanded, words - 1]
            known = expanded < looked_up
            factor, places, origin = -1, earlier_entries, np.int64(0)
            if known:
                used += row_known[expanded]
                start += row_known[expanded]
            if start < stop:
                factor, places, origin = located(
                    g, row_multiplier, expanded, earlier_of, earlier_multiplier, earlier_start,
                    earlier_entries, earlier_new, earlier_slots, factors, variable_at, bits, salt,
                )  # fmt: skip
                origin -= offsets[g]
            if factor >= 0 and not known:
                known = True
                if follow(entries, used, followers[factor], places, origin + start, stop - start):
                    used += stop - start
                    start = stop
            for t in range(start, stop):
                if known and entries[used] >= 0:
                    used += 1
                    continue
                # One or two words stay in registers; more are compared in memory.
                low = terms[t, 0] + first
                high = terms[t, words - 1] + second
                if words <= 2:
                    h = low * salt[0]
                    if words == 2:
                        h += high * salt[1]
                else:
                    for w in range(words):
                        columns[ncolumns, w] = terms[t, w] + row_multiplier[expanded, w]
                    h = hashed(columns, ncolumns, salt)
                h >>= np.uint64(32)
                at = h >> shift
                while True:
                    slot = slots[at]
                    if slot == 0:
                        columns[ncolumns, 0] = low
                        columns[ncolumns, words - 1] = high
                        for w in range(words):
                            if columns[ncolumns, w] & guard[w]:
                                return _OVERFLOW
                        slots[at] = (h << np.uint64(32)) | np.uint64(ncolumns + 1)
                        pivot_row[ncolumns] = -1
                        entries[used] = ncolumns
                        ncolumns += 1
                        break
                    if slot >> np.uint64(32) == h:
                        c = np.int64(slot & np.uint64(0xFFFFFFFF)) - 1
                        same = columns[c, 0] == low and columns[c, words - 1] == high
                        for w in range(1, words - 1):
                            same &= columns[c, w] == columns[ncolumns, w]
                        if same:
                            entries[used] = c
                            break
                    at = (at + np.uint64(1)) & mask
                if factor >= 0:
                    followers[factor, places[origin + t]] = entries[used] + 1
                used += 1
            if kind == PIVOT:
                pivot_row[entries[row_start[expanded]]] = expanded
            expanded += 1
        if status != _DONE or examined == ncolumns:
            break
        # Every column known by now, so that the rows they need can be looked up side by side.
        while examined < ncolumns:
            if pivot_row[examined] < 0:
                if nrows == row_of.size:
                    status = _MORE_ROWS
                    break
                k = first_divisor(
                    divisors.ctypes.data,
                    divisors.shape[1],
                    divisors.shape[1] // 8,
                    columns.ctypes.data + 8 * words * examined,
                    guard.ctypes.data,
                    words,
                )
                if k >= 0:
                    row_of[nrows] = active[k]
                    row_kind[nrows] = PIVOT
                    for w in range(words):
                        row_multiplier[nrows, w] = columns[examined, w] - divisors[w, k]
                    nrows += 1
            examined += 1
        if status != _DONE:
            break
    row_start[expanded] = used
    state[_ROWS] = nrows
    state[_EXPANDED] = expanded
    state[_ENTRIES] = used
    state[_COLUMNS] = ncolumns
    state[_EXAMINED] = examined
    state[_LOOKED_UP] = looked_up
    return status


@kernel("void(int32[::1], int32[::1], int64, int64)")
def _renumber(entries, number, first, last):
    for k in range(first, last):
        entries[k] = number[entries[k]]


@kernel(
    "UniTuple(int64, 2)(int64[::1], uint64[:, ::1], int32[::1], int32[::1], uint8[::1],"
    "int64[::1], int64[::1], int32[::1], uint64[:, ::1], int32[::1], int64[::1], int64[::1],"
    "int64[::1])"
)
def _arrange(
    descending,
    columns,
    pivot_row,
    row_of,
    row_kind,
    row_start,
    offsets,
    number,
    ordered,
    pivot_rows,
    row_length,
    row_term,
    lower,
):
    """Number the columns, those with a known pivot first, and describe the rows.

    Returns:
        How many columns have a pivot, and how many rows are none.
    """
    pivots = 0
    for c in descending:
        if pivot_row[c] >= 0:
            pivots += 1
    place = 0
    beyond = pivots
    for c in descending:
        if pivot_row[c] >= 0:
            to = place
            pivot_rows[to] = pivot_row[c]
            place += 1
        else:
            to = beyond
            beyond += 1
        number[c] = to
        for w in range(columns.shape[1]):
            ordered[to, w] = columns[c, w]
    count = 0
    for r in range(row_of.size):
        row_length[r] = row_start[r + 1] - row_start[r]
        row_term[r] = offsets[row_of[r]] + (1 if row_kind[r] == TAIL else 0)
        if row_kind[r] != PIVOT:
            lower[count] = r
            count += 1
    return pivots, count


@attrs.frozen(kw_only=True, eq=False)
class SymbolicMatrix:
    """Rows and columns of one round; see :mod:`~alkahest.groebner.engine.reduction`.

    Columns are numbered with the ``pivots`` columns that have a known pivot first, each group in
    descending order of monomials.

    Attributes:
        columns: packed monomials, shape ``(ncolumns, words)``.
        pivots: number of columns with a known pivot.
        row_of: int32, basis element of each row.
        row_multiplier: packed multiplier of each row.
        row_start: int64, where the row's column numbers start in ``entries``.
        row_length: int64, how many it has.
        row_term: int64, where its coefficients start among the basis coefficients.
        entries: int32, column numbers.
        pivot_row: int32, shape ``(pivots,)``: row that is the pivot of each such column.
        lower: int64, rows to be reduced.
    """

    columns: NDArray[np.uint64]
    pivots: int
    row_of: NDArray[np.int32]
    row_multiplier: NDArray[np.uint64]
    row_start: NDArray[np.int64]
    row_length: NDArray[np.int64]
    row_term: NDArray[np.int64]
    entries: NDArray[np.int32]
    pivot_row: NDArray[np.int32]
    lower: NDArray[np.int64]


def build_matrix(
    basis: Basis,
    seeds: Seeds,
    limits: Limits | None = None,
    threads: int = 1,
    earlier: EarlierRows | None = None,
) -> SymbolicMatrix:
    """The matrix of the seeds and of every multiple of the basis that may be needed to reduce.

    Args:
        basis: what reduces.
        seeds: rows to start with.
        limits: asked whenever an array has to grow; None for none.
        threads: that look up monomials side by side; the matrix is the same for any number.
        earlier: rows of an earlier matrix of this basis, which make it faster; the matrix is the
            same without.

    Raises:
        SolverError: E-SOLVE-012 at a limit.
        ExponentOverflowError: a monomial does not fit the basis' layout.
    """
    with Team(threads) as team:
        return _matrix(basis, seeds, limits, team, earlier or EarlierRows.none(basis.layout))


def _matrix(
    basis: Basis, seeds: Seeds, limits: Limits | None, team: Team, earlier: EarlierRows
) -> SymbolicMatrix:
    layout = basis.layout
    lengths = basis.lengths()
    nseeds = len(seeds.of)
    sizes = lengths[seeds.of]
    row_guess = max(2 * nseeds, 1024)
    entry_guess = max(int(sizes.sum()) * 2, 16384, len(earlier.entries) * 5 // 4)
    longest = int(sizes.max(initial=1))
    column_guess = max(1024, longest * 4, earlier.ncolumns * 5 // 4 + longest)
    state = np.array([nseeds, 0, 0, 0, 0, 0])
    row_of = grown(seeds.of, nseeds, row_guess)
    row_kind = grown(seeds.kind, nseeds, len(row_of))
    row_multiplier = grown(seeds.multiplier, nseeds, len(row_of))
    row_start = np.empty(len(row_of) + 1, np.int64)
    row_known = np.empty(len(row_of), np.int64)
    entries = np.empty(entry_guess, np.int32)
    columns = np.empty((column_guess + 1, layout.words), np.uint64)
    pivot_row = np.empty(column_guess + 1, np.int32)
    slots = empty_slots(column_guess)
    factors = earlier.factors(layout)
    followers = np.zeros((len(factors), earlier.ncolumns), np.int32)
    reading = (
        earlier.of, earlier.multiplier, earlier.start, earlier.entries, earlier.new,
        earlier.slots(layout), factors, followers, layout.variable_at, layout.bits,
    )  # fmt: skip
    batch = _BATCH if team.size > 1 else 0
    while True:
        status = _close(
            state, basis.words, basis.offsets, basis.divisors, basis.active, row_of, row_kind,
            row_multiplier, row_start, row_known, entries, pivot_row, columns, slots,
            layout.salt, layout.guard, *reading, batch,
        )  # fmt: skip
        if status == _DONE:
            break
        if status == _OVERFLOW:
            raise ExponentOverflowError
        if status == _LOOK_UP:
            # Imported here because compiling takes time that a run with one thread need not spend.
            from alkahest.groebner.engine.look_up import look_up

            work = partial(
                look_up, basis.words, basis.offsets, row_of, row_kind, row_multiplier, row_start,
                row_known, entries, columns, slots, layout.salt, *reading,
            )  # fmt: skip
            first, last = int(state[_EXPANDED]), int(state[_LOOKED_UP])
            starts = row_start[first : last + 1]
            bounds = starts[0] + np.array(team.split(int(starts[-1] - starts[0])))
            team.each(work, (first + np.searchsorted(starts, bounds)).tolist())
            continue
        if limits is not None:
            limits.checkpoint()
            limits.foresee(entries.nbytes + columns.nbytes)
        rows, used, ncolumns = int(state[_ROWS]), int(state[_ENTRIES]), int(state[_COLUMNS])
        if status == _MORE_ROWS:
            row_of = grown(row_of, rows, 2 * rows)
            row_kind = grown(row_kind, rows, 2 * rows)
            row_multiplier = grown(row_multiplier, rows, 2 * rows)
            row_start = grown(row_start, rows + 1, 2 * rows + 1)
            row_known = grown(row_known, rows, 2 * rows)
        elif status == _MORE_ENTRIES:
            longest = int(lengths[row_of[:rows]].max())
            entries = grown(entries, used, len(entries) + longest)
        else:
            longest = int(lengths[row_of[:rows]].max())
            needed = max(2 * ncolumns, ncolumns + longest) + 1
            columns = grown(columns, ncolumns, needed)
            pivot_row = grown(pivot_row, ncolumns, len(columns))
            slots = empty_slots(len(columns))
            _rehash(slots, columns, ncolumns, layout.salt)
    nrows, used, ncolumns = int(state[_ROWS]), int(state[_ENTRIES]), int(state[_COLUMNS])
    row_of, entries = row_of[:nrows], entries[:used]
    number, pivot_rows = np.empty(ncolumns, np.int32), np.empty(ncolumns, np.int32)
    ordered = np.empty((ncolumns, layout.words), np.uint64)
    row_length, row_term, lower = np.empty((3, nrows), np.int64)
    pivots, nlower = _arrange(
        layout.descending(columns[:ncolumns]), columns, pivot_row, row_of, row_kind, row_start,
        basis.offsets, number, ordered, pivot_rows, row_length, row_term, lower,
    )  # fmt: skip
    team.each(partial(_renumber, entries, number), team.split(used))
    return SymbolicMatrix(
        columns=ordered,
        pivots=pivots,
        row_of=row_of,
        row_multiplier=row_multiplier[:nrows],
        row_start=row_start[:nrows],
        row_length=row_length,
        row_term=row_term,
        entries=entries,
        pivot_row=pivot_rows[:pivots],
        lower=lower[:nlower],
    )
