"""Rows of the round before, from which the rows of a round are read off.

Nearly every row is a row of the round before, or such a row times a variable: a new polynomial
times a variable, or a reducer times a monomial of one degree more. Its columns are the images of
that row's columns under a map that depends on the variable alone. One look into a table of the map
then stands for a search in the hash table of columns. The tables are filled as columns are found.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import inlined, kernel
from alkahest.groebner.engine.hashing import empty_slots, enter, hashed, place_shift
from alkahest.groebner.engine.packing import field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.packing import Layout
    from alkahest.groebner.engine.symbolic import SymbolicMatrix

_ELEMENT = 0x9E3779B97F4A7C15
"""What the index of a basis element contributes to the hash of a row."""

_WORTH = 1 << 14
"""Entries of a matrix, at least, whose rows are worth a hash table."""


@attrs.frozen(kw_only=True, eq=False)
class EarlierRows:
    """Rows of one round, with all their terms, and the basis elements that it gave.

    Attributes:
        of: int32, basis element of each row.
        multiplier: packed multiplier of each row.
        start: int64, where the row's columns start in ``entries``; for a new element ``~start``
            in ``new``.
        entries: int32, columns of the rows.
        new: int32, columns of the terms of the new elements.
        ncolumns: number of columns.
    """

    of: NDArray[np.int32]
    multiplier: NDArray[np.uint64]
    start: NDArray[np.int64]
    entries: NDArray[np.int32]
    new: NDArray[np.int32]
    ncolumns: int

    @classmethod
    def none(cls, layout: Layout) -> EarlierRows:
        """No rows."""
        return cls(
            of=np.empty(0, np.int32),
            multiplier=np.empty((0, layout.words), np.uint64),
            start=np.empty(0, np.int64),
            entries=np.empty(0, np.int32),
            new=np.empty(0, np.int32),
            ncolumns=0,
        )

    @classmethod
    def of_round(
        cls,
        layout: Layout,
        matrix: SymbolicMatrix,
        first: int,
        sizes: NDArray[np.int64],
        columns: NDArray[np.int32],
    ) -> EarlierRows:
        """Those of a matrix and of the elements from ``first`` on that its reduction gave.

        A small matrix is left alone, which gives no rows.

        Args:
            layout: how monomials are packed.
            matrix: none of its rows without its leading term.
            first: index of the first new element.
            sizes: number of terms of each.
            columns: of their terms, counted from the first column without a known pivot.
        """
        if len(matrix.entries) < _WORTH:
            return cls.none(layout)
        elements = np.arange(first, first + len(sizes), dtype=np.int32)
        ones = np.zeros((len(sizes), layout.words), np.uint64)
        return cls(
            of=np.concatenate([matrix.row_of, elements]),
            multiplier=np.concatenate([matrix.row_multiplier, ones]),
            start=np.concatenate([matrix.row_start, ~(np.cumsum(sizes) - sizes)]),
            entries=matrix.entries,
            new=columns + np.int32(matrix.pivots),
            ncolumns=len(matrix.columns),
        )

    def slots(self, layout: Layout) -> NDArray[np.uint64]:
        """Hash table of the rows."""
        slots = empty_slots(len(self.of))
        _enter_rows(slots, self.of, self.multiplier, layout.salt)
        return slots

    def factors(self, layout: Layout) -> NDArray[np.uint64]:
        """The packed monomials times which rows are looked for: 1 and the variables.

        It is 1 alone where the tables of all variables would take more room than the entries.
        """
        if not len(self.of):
            return np.empty((0, layout.words), np.uint64)
        factors = _one_and_variables(layout)
        return factors if self.ncolumns * layout.nvars <= len(self.entries) else factors[:1]


@lru_cache(maxsize=64)
def _one_and_variables(layout: Layout) -> NDArray[np.uint64]:
    return layout.pack(np.eye(layout.nvars + 1, layout.nvars, k=-1, dtype=np.uint32))


@kernel("void(uint64[::1], int32[::1], uint64[:, ::1], uint64[::1])")
def _enter_rows(slots, of, multiplier, salt):
    shift = place_shift(slots)
    for row in range(of.size):
        h = hashed(multiplier, row, salt) + np.uint64(of[row]) * np.uint64(_ELEMENT)
        enter(slots, shift, h, row)


@inlined
def located(
    g, multiplier, row, of, known, start, entries, new, slots, factors, variable_at, bits, salt
):
    """The earlier row that times a factor is ``multiplier[row] * g``.

    Returns the index of the factor, or -1 where there is no such row, and the array and the place
    in it where that row's columns start. The arguments from ``of`` to ``slots`` are those of
    :class:`EarlierRows`, ``known`` its multipliers.
    """
    mask = np.uint64(slots.size - 1)
    shift = place_shift(slots)
    product = hashed(multiplier, row, salt) + np.uint64(g) * np.uint64(_ELEMENT)
    for factor in range(factors.shape[0]):
        if factor and field(multiplier, row, variable_at[factor - 1], bits) == 0:
            continue
        h = (product - hashed(factors, factor, salt)) >> np.uint64(32)
        at = h >> shift
        while slots[at] != 0:
            slot = slots[at]
            if slot >> np.uint64(32) == h:
                r = np.int64(slot & np.uint64(0xFFFFFFFF)) - 1
                same = of[r] == g
                for w in range(salt.size):
                    same &= known[r, w] + factors[factor, w] == multiplier[row, w]
                if same:
                    return (
                        (factor, entries, start[r]) if start[r] >= 0 else (factor, new, ~start[r])
                    )
            at = (at + np.uint64(1)) & mask
    return -1, entries, np.int64(0)


@inlined
def follow(entries, first, followers, places, at, count):
    """Write the columns that an earlier row's columns become; whether all of them are known.

    ``followers`` holds columns plus one, so that what is not known becomes -1.
    """
    signs = np.int32(0)
    for k in range(count):
        c = followers[np.uint32(places[at + k])] - np.int32(1)
        entries[first + k] = c
        signs |= c
    return signs >= 0
