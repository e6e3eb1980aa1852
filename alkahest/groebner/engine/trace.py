"""The record of a run: which rows were used and which pivots were found.

A trace is a program for computing the same basis modulo any other prime, with no pairs, no
searching and no rows that vanish: each round names its rows, the columns of their entries and the
terms that come out. The coefficients of all terms, input first, form one array; a row's
coefficients start at ``row_term``, and a round appends its new terms in the order of ``out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.packing import Layout

TRACE_VERSION = 1
"""Raised when the meaning of a field changes."""


@attrs.frozen(kw_only=True, eq=False)
class TraceRound:
    """One matrix, with only the rows and columns that its result depends on.

    Columns ``0 .. pivots - 1`` have a known pivot row each, which starts with a one in that
    column; the others do not. Rows and entries are as in
    :class:`~alkahest.groebner.engine.symbolic.SymbolicMatrix`.

    Attributes:
        columns: number of columns.
        pivots: number of columns with a known pivot.
        row_of: int32, basis element of which each row is a multiple.
        row_multiplier: packed monomials to multiply by, in the layout of the run: the trace's, or in
            rounds of a homogeneous run one with a further variable.
        row_start: int64, first entry of each row.
        row_length: int64, number of entries of each row.
        row_term: int64, first coefficient of each row.
        entries: int32, columns.
        pivot_row: int32, the pivot row of each of the first ``pivots`` columns.
        lower: int64, the rows to reduce; independent ones where ``leads`` is not empty.
        leads: int32, columns to bring to reduced echelon form, one for each result, counted from
            ``pivots``. Empty: the reduced rows are the results as they are.
        out_row: int32, for each term that comes out, the result (in the order of ``leads``, or of
            ``lower``) it is taken from.
        out_column: int32, its column, counted from ``pivots``.
        first_term: where the new terms go in the array of coefficients.
        first_result: number of polynomials before this round, generators counted.
    """

    columns: int
    pivots: int
    row_of: NDArray[np.int32]
    row_multiplier: NDArray[np.uint64]
    row_start: NDArray[np.int64]
    row_length: NDArray[np.int64]
    row_term: NDArray[np.int64]
    entries: NDArray[np.int32]
    pivot_row: NDArray[np.int32]
    lower: NDArray[np.int64]
    leads: NDArray[np.int32]
    out_row: NDArray[np.int32]
    out_column: NDArray[np.int32]
    first_term: int
    first_result: int

    @property
    def results(self) -> int:
        """Number of polynomials that come out."""
        return len(self.lower)

    def problem(self) -> str:
        """What is inconsistent, or ""."""
        ends = self.row_start + self.row_length
        rules = (
            (0 <= self.pivots <= self.columns, "number of pivots"),
            (len(self.pivot_row) == self.pivots, "one pivot row for each pivot column"),
            (len(self.leads) in (0, len(self.lower)), "one lead for each row to reduce"),
            (not len(ends) or int(ends.max()) <= len(self.entries), "rows within the entries"),
            (_within(self.entries, self.columns), "entries within the columns"),
            (_within(self.pivot_row, len(self.row_of)), "pivot rows within the rows"),
            (_within(self.lower, len(self.row_of)), "lower rows within the rows"),
            (_within(self.leads, self.columns - self.pivots), "leads without a known pivot"),
            (len(np.unique(self.leads)) == len(self.leads), "distinct leads"),
            (_within(self.out_row, self.results), "results within the reduced rows"),
            (_within(self.out_column, self.columns - self.pivots), "new terms without a pivot"),
            (len(self.out_row) == len(self.out_column), "a column for each new term"),
        )
        for holds, rule in rules:
            if not holds:
                return rule
        firsts = self.entries[self.row_start[self.pivot_row]]
        if not np.array_equal(firsts, np.arange(self.pivots)):
            return "pivot rows that start with their pivots"
        for r in self.pivot_row:
            row = self.entries[self.row_start[r] + 1 : ends[r]]
            if len(row) and int(row.min()) <= self.entries[self.row_start[r]]:
                return "pivots in triangular form"
        return ""


def _within(values: NDArray[np.int32] | NDArray[np.int64], bound: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < bound)


@attrs.frozen(kw_only=True, eq=False)
class Trace:
    """All rounds of one run.

    Attributes:
        version: :data:`TRACE_VERSION` of the program that wrote it.
        prime: the prime it was learned with.
        layout: how monomials are packed.
        input_terms: number of terms of the generators, which open the array of coefficients.
        rounds: in order; the last one reduces the tails of the minimal basis.
        offsets: int64: offsets of the polynomials of the result.
        words: packed monomials of the result; leading terms, whose coefficient is 1, and the
            terms that the last round appends, in its order.
    """

    version: int
    prime: int
    layout: Layout
    input_terms: int
    rounds: tuple[TraceRound, ...]
    offsets: NDArray[np.int64]
    words: NDArray[np.uint64]

    @property
    def terms(self) -> int:
        """Length of the array of coefficients when all rounds are done."""
        last = self.rounds[-1]
        return last.first_term + len(last.out_row)

    def verify(self) -> None:
        """Check that the record makes sense: sizes, ranges, triangular form.

        Raises:
            ValueError: it does not; the message names the round and the rule.
        """
        if self.version != TRACE_VERSION:
            raise ValueError(f"a trace of version {self.version}, not {TRACE_VERSION}")
        terms = self.input_terms
        for number, one in enumerate(self.rounds):
            problem = one.problem()
            if not problem and one.first_term != terms:
                problem = "new terms right after the known ones"
            ends = one.row_term + one.row_length
            if not problem and len(ends) and int(ends.max()) > terms:
                problem = "coefficients of earlier rounds only"
            if problem:
                raise ValueError(f"round {number} of the trace breaks the rule: {problem}")
            terms += len(one.out_row)


@attrs.frozen(kw_only=True, eq=False)
class Images:
    """The result modulo each of some primes, a lane for each.

    Attributes:
        primes: of the lanes.
        lucky: for each lane, whether the recorded run worked.
        tails: uint32, shape ``(terms, lanes)``: coefficients of all but the leading terms.
        on_gpu: whether a GPU did it.
    """

    primes: tuple[int, ...]
    lucky: tuple[bool, ...]
    tails: NDArray[np.uint32]
    on_gpu: bool = False


@attrs.frozen(kw_only=True, eq=False)
class KeptImages:
    """The same, with the coefficients still where they were computed.

    Attributes:
        primes: of the lanes.
        lucky: for each lane, whether the recorded run worked.
        kept: the coefficients.
        on_gpu: whether a GPU did it.
    """

    primes: tuple[int, ...]
    lucky: tuple[bool, ...]
    kept: KeptResidues
    on_gpu: bool = False


class KeptResidues(Protocol):
    """Residues that a device holds for whoever asked for them, a lane for each prime."""

    def columns(self, lanes: Sequence[int]) -> NDArray[np.uint32]:
        """Some lanes as an array, shape ``(terms, len(lanes))``."""
        ...

    def close(self) -> None:
        """Give the memory back; more than once does no harm."""
        ...
