"""Polynomials found so far, all terms in one pair of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

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

    def lengths(self) -> NDArray[np.int64]:
        """Number of terms of each polynomial."""
        return np.diff(self.offsets[: self.count + 1])

    def append(
        self,
        words: NDArray[np.uint64],
        coefficients: NDArray[np.uint32],
        sizes: NDArray[np.int64],
        sugar: int | None,
    ) -> int:
        """Add non-zero polynomials and return the index of the first.

        Args:
            words: their terms, one polynomial after another, shape ``(terms, words)``.
            coefficients: shape ``(terms,)``.
            sizes: number of terms of each polynomial.
            sugar: their sugar degree, or None for the degrees of their leading monomials.
        """
        first, start = self.count, self.terms
        count, terms = first + len(sizes), start + len(words)
        self.words = grown(self.words, start, terms)
        self.coefficients = grown(self.coefficients, start, terms)
        self.offsets = grown(self.offsets, first + 1, count + 1)
        self.leads = grown(self.leads, first, count)
        self.redundant = grown(self.redundant, first, count)
        self.sugar = grown(self.sugar, first, count)
        self.words[start:terms] = words
        self.coefficients[start:terms] = coefficients
        self.offsets[first + 1 : count + 1] = start + np.cumsum(sizes)
        self.leads[first:count] = self.words[self.offsets[first:count]]
        self.redundant[first:count] = 0
        self.count = count
        degrees = self.degrees(self.leads[first:count])
        self.sugar[first:count] = degrees if sugar is None else np.maximum(degrees, sugar)
        return first

    def degrees(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Degrees of packed monomials."""
        at = int(self.layout.form_at[0])
        values = (words[:, at // 64] >> np.uint64(at % 64)) & np.uint64(self.layout.largest)
        return values.astype(np.int64)

    def refresh_active(self) -> None:
        """Take note of which polynomials are redundant."""
        self.activate(np.nonzero(self.redundant[: self.count] == 0)[0])

    def activate(self, chosen: NDArray[np.signedinteger[Any]]) -> None:
        """Let exactly the chosen polynomials reduce others."""
        self.active = chosen.astype(np.int32)
        self.active_leads = self.leads[self.active]
        padded = -(-len(self.active) // 8) * 8
        self.divisors = np.empty((self.layout.words, padded), np.uint64)
        self.divisors[:, : len(self.active)] = self.active_leads.T
        # Every field, degrees included, at its largest: no monomial has all of them.
        self.divisors[:, len(self.active) :] = (~self.layout.guard)[:, None]
