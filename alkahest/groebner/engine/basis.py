"""Polynomials found so far, all terms in one pair of arrays."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.packing import field
from alkahest.groebner.engine.threads import Team

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.packing import Layout


def grown(array: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    """The array itself, or a copy of its first ``used`` rows with room for ``needed``."""
    if len(array) >= needed:
        return array
    larger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel(
    "void(int64, int64[::1], uint64[:, ::1], int64[::1], uint64[:, ::1], uint8[::1], int64[::1],"
    "int64, int64[::1], int64)"
)
def _enter(first, sizes, words, offsets, leads, redundant, sugar, least_sugar, form_at, bits):
    """Write what belongs to each polynomial from ``first`` on, whose terms are in their place."""
    for k in range(sizes.size):
        i = first + k
        offsets[i + 1] = offsets[i] + sizes[k]
        for w in range(words.shape[1]):
            leads[i, w] = words[offsets[i], w]
        redundant[i] = 0
        sugar[i] = max(least_sugar, field(leads, i, form_at[0], bits))


@kernel("void(uint64[:, ::1], int32[::1], uint64[:, ::1], int64, int64)")
def _take(monomials, at, words, first, last):
    for k in range(first, last):
        for w in range(words.shape[1]):
            words[k, w] = monomials[at[k], w]


@kernel(
    "void(uint64[:, ::1], int32[::1], uint64[:, ::1], int32[::1], uint32[::1], int64[::1],"
    "uint64[:, ::1], uint32[::1], int64, int64)"
)
def _join(leads, chosen, monomials, at, values, offsets, words, coefficients, first, last):
    """Write leading monomials, each with 1 and followed by its tail."""
    for k in range(first, last):
        place = offsets[k]
        for w in range(words.shape[1]):
            words[place, w] = leads[chosen[k], w]
        coefficients[place] = 1
        for t in range(place - k, offsets[k + 1] - k - 1):
            place += 1
            for w in range(words.shape[1]):
                words[place, w] = monomials[at[t], w]
            coefficients[place] = values[t]


@kernel("void(int32[::1], uint64[:, ::1], uint64[::1], uint64[:, ::1], uint64[:, ::1])")
def _line_up(active, leads, guard, active_leads, divisors):
    for w in range(guard.size):
        for k in range(active.size):
            active_leads[k, w] = leads[active[k], w]
            divisors[w, k] = leads[active[k], w]
        # Every field, degrees included, at its largest: no monomial has all of them.
        for k in range(active.size, divisors.shape[1]):
            divisors[w, k] = ~guard[w]


class Rows(Protocol):
    """Sparse rows: sizes, columns and values of all entries, row by row."""

    @property
    def sizes(self) -> NDArray[np.int64]: ...
    @property
    def columns(self) -> NDArray[np.int32]: ...
    @property
    def values(self) -> NDArray[np.uint32]: ...


@attrs.define(eq=False)
class Basis:
    """A growing list of monic polynomials modulo a prime.

    Attributes:
        layout: how monomials are packed.
        count: number of polynomials; arrays are longer.
        words: packed monomials of all terms, each polynomial's in descending order.
        coefficients: uint32, their coefficients.
        offsets: where each polynomial starts, shape ``(capacity + 1,)``.
        leads: packed leading monomials.
        redundant: uint8, 1 where another leading monomial divides this one.
        sugar: sugar degrees.
        active: int32, indices of the polynomials that reduce others, oldest first.
        active_leads: their packed leading monomials.
        divisors: the same by words, shape ``(words, n)``, padded to a multiple of eight with
            monomials that divide nothing.
    """

    layout: Layout
    count: int
    words: NDArray[np.uint64]
    coefficients: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    leads: NDArray[np.uint64]
    redundant: NDArray[np.uint8]
    sugar: NDArray[np.int64]
    active: NDArray[np.int32]
    active_leads: NDArray[np.uint64]
    divisors: NDArray[np.uint64]

    @classmethod
    def empty(cls, layout: Layout) -> Basis:
        """No polynomials."""
        return cls(
            layout,
            0,
            np.empty((256, layout.words), np.uint64),
            np.empty(256, np.uint32),
            np.zeros(33, np.int64),
            np.empty((32, layout.words), np.uint64),
            np.empty(32, np.uint8),
            np.empty(32, np.int64),
            np.empty(0, np.int32),
            np.empty((0, layout.words), np.uint64),
            np.empty((layout.words, 0), np.uint64),
        )

    @property
    def terms(self) -> int:
        """Number of terms of all polynomials."""
        return int(self.offsets[self.count])

    @property
    def has_unit(self) -> bool:
        """Whether a constant is active, beside which nothing else is."""
        return len(self.active) == 1 and not self.active_leads.any()

    def lengths(self) -> NDArray[np.int64]:
        """Number of terms of each polynomial."""
        return self.offsets[1 : self.count + 1] - self.offsets[: self.count]

    def append(
        self,
        words: NDArray[np.uint64],
        coefficients: NDArray[np.uint32],
        sizes: NDArray[np.int64],
        sugar: int = 0,
    ) -> int:
        """Add non-zero polynomials and return the index of the first.

        Args:
            words: their terms, one polynomial after another, shape ``(terms, words)``.
            coefficients: shape ``(terms,)``.
            sizes: number of terms of each polynomial.
            sugar: their sugar degree, where it is more than that of their leading monomial.
        """
        self._room_for(len(words))[:] = words
        return self._include(coefficients, sizes, sugar)

    def append_rows(
        self, monomials: NDArray[np.uint64], rows: Rows, sugar: int = 0, threads: int = 1
    ) -> int:
        """As :meth:`append`, of rows whose columns are ``monomials``."""
        words = self._room_for(len(rows.columns))
        with Team(threads) as team:
            work = partial(_take, monomials, rows.columns, words)
            team.each(work, team.split(len(words)))
        return self._include(rows.values, rows.sizes, sugar)

    def with_tails(
        self,
        chosen: NDArray[np.int32],
        monomials: NDArray[np.uint64],
        tails: Rows,
        threads: int = 1,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]:
        """Monic polynomials of the leading monomials of the chosen ones and of other tails.

        Args:
            chosen: indices.
            monomials: of the tails' columns.
            tails: a row for each of them.
            threads: that share the work.

        Returns:
            Where each begins, shape ``(len(chosen) + 1,)``; the words and the coefficients of all
            their terms.
        """
        offsets = np.concatenate([[0], np.cumsum(tails.sizes + 1)])
        words = np.empty((int(offsets[-1]), self.layout.words), np.uint64)
        coefficients = np.empty(len(words), np.uint32)
        with Team(threads) as team:
            work = partial(
                _join, self.leads, chosen, monomials, tails.columns, tails.values, offsets, words,
                coefficients,
            )  # fmt: skip
            team.each(work, np.searchsorted(offsets, team.split(len(words))).tolist())
        return offsets, words, coefficients

    def _room_for(self, terms: int) -> NDArray[np.uint64]:
        """Where the words of so many terms more belong."""
        start = self.terms
        self.words = grown(self.words, start, start + terms)
        return self.words[start : start + terms]

    def _include(
        self, coefficients: NDArray[np.uint32], sizes: NDArray[np.int64], sugar: int
    ) -> int:
        """Count polynomials whose words are in their place; the index of the first."""
        first, start = self.count, self.terms
        count, end = first + len(sizes), start + len(coefficients)
        self.coefficients = grown(self.coefficients, start, end)
        self.coefficients[start:end] = coefficients
        self.offsets = grown(self.offsets, first + 1, count + 1)
        self.leads = grown(self.leads, first, count)
        self.redundant = grown(self.redundant, first, count)
        self.sugar = grown(self.sugar, first, count)
        _enter(
            first, np.ascontiguousarray(sizes), self.words, self.offsets, self.leads,
            self.redundant, self.sugar, sugar, self.layout.form_at, self.layout.bits,
        )  # fmt: skip
        self.count = count
        return first

    def refresh_active(self) -> None:
        """Take note of which polynomials are redundant."""
        self.activate((self.redundant[: self.count] == 0).nonzero()[0])

    def activate(self, chosen: NDArray[np.signedinteger[Any]]) -> None:
        """Let exactly the chosen polynomials reduce others."""
        self.active = chosen.astype(np.int32)
        count, words = len(chosen), self.layout.words
        self.active_leads = np.empty((count, words), np.uint64)
        self.divisors = np.empty((words, -(-count // 8) * 8), np.uint64)
        _line_up(self.active, self.leads, self.layout.guard, self.active_leads, self.divisors)
