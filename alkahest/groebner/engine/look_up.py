"""Columns of many rows at once, for several threads side by side."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.earlier import follow, located
from alkahest.groebner.engine.hashing import hashed, place_shift
from alkahest.groebner.engine.seeds import TAIL


@kernel(
    "void(uint64[:, ::1], int64[::1], int32[::1], uint8[::1], uint64[:, ::1], int64[::1],"
    "int64[::1], int32[::1], uint64[:, ::1], uint64[::1], uint64[::1],"
    "int32[::1], uint64[:, ::1], int64[::1], int32[::1], int32[::1], uint64[::1], uint64[:, ::1],"
    "int32[:, ::1], int64[::1], int64, int64, int64)"
)
def look_up(
    terms,
    offsets,
    row_of,
    row_kind,
    row_multiplier,
    row_start,
    row_known,
    entries,
    columns,
    slots,
    salt,
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
    first_row,
    last_row,
):
    """Write the columns of rows' terms to ``entries``, -1 for those that are not known yet.

    ``row_known`` gets the number of terms of each row before the first of those.
    """
    words = salt.size
    mask = np.uint64(slots.size - 1)
    shift = place_shift(slots)
    monomial = np.empty((1, words), np.uint64)
    for row in range(first_row, last_row):
        g = row_of[row]
        used = row_start[row]
        start = offsets[g] + (1 if row_kind[row] == TAIL else 0)
        stop = offsets[g + 1]
        factor, places, origin = located(
            g, row_multiplier, row, earlier_of, earlier_multiplier, earlier_start, earlier_entries,
            earlier_new, earlier_slots, factors, variable_at, bits, salt,
        )  # fmt: skip
        origin -= offsets[g]
        if factor >= 0 and follow(
            entries, used, followers[factor], places, origin + start, stop - start
        ):
            row_known[row] = stop - start
            continue
        unknown = stop
        first, second = row_multiplier[row, 0], row_multiplier[row, words - 1]
        for t in range(start, stop):
            if factor >= 0 and entries[used] >= 0:
                used += 1
                continue
            low = terms[t, 0] + first
            high = terms[t, words - 1] + second
            h = low * salt[0]
            if words == 2:
                h += high * salt[1]
            elif words > 2:
                for w in range(words):
                    monomial[0, w] = terms[t, w] + row_multiplier[row, w]
                h = hashed(monomial, 0, salt)
            h >>= np.uint64(32)
            at = h >> shift
            c = np.int64(-1)
            while slots[at] != 0:
                slot = slots[at]
                if slot >> np.uint64(32) == h:
                    c = np.int64(slot & np.uint64(0xFFFFFFFF)) - 1
                    same = columns[c, 0] == low and columns[c, words - 1] == high
                    for w in range(1, words - 1):
                        same &= columns[c, w] == monomial[0, w]
                    if same:
                        break
                    c = np.int64(-1)
                at = (at + np.uint64(1)) & mask
            entries[used] = c
            if factor >= 0:
                # Other threads may read or write the same, which is this or still zero.
                followers[factor, places[origin + t]] = c + 1
            if c < 0:
                unknown = min(unknown, t)
            used += 1
        row_known[row] = unknown - start
