"""A trace as the kernels read it: one array of 32-bit integers, and where in it things are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu.dense import words_to_invert
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.trace import Trace, TraceRound

ROW_WORDS = 4
"""Words of a ``Row`` of the kernels: first entry, entries, first term, and one that pads."""

MOST_ENTRIES = 2**31 - 1
"""What a word of a ``Row`` can say."""


@attrs.frozen(kw_only=True)
class Round:
    """One round of a record.

    Attributes:
        columns: number of columns.
        pivots: number of columns with a known pivot.
        rows: number of rows to reduce.
        has_leads: whether the reduced rows are brought to echelon form.
        pivots_at: where the pivot rows' stretches after the leading entry are described.
        rows_at: where the rows to reduce are described.
        entries_at: where the columns of all entries are.
        leads_at: where the leads are, counted from ``pivots``.
        place_at: where the numbers of the terms are that the entries become, row by row, -1 for an
            entry that has to be zero.
        mean_length: entries of a pivot row on average.
    """

    columns: int
    pivots: int
    rows: int
    has_leads: bool
    pivots_at: int
    rows_at: int
    entries_at: int
    leads_at: int
    place_at: int
    mean_length: float

    @property
    def width(self) -> int:
        """Number of columns without a known pivot."""
        return self.columns - self.pivots


@attrs.frozen(kw_only=True, eq=False)
class Record:
    """A whole trace.

    Attributes:
        words: int32, every round's numbers.
        rounds: in order.
        input_terms: coefficients of the generators.
        first_result: the first coefficient of the last round.
        terms: number of all coefficients.
    """

    words: NDArray[np.int32]
    rounds: tuple[Round, ...]
    input_terms: int
    first_result: int
    terms: int

    @property
    def columns(self) -> int:
        """Most columns of a round."""
        return max(one.columns for one in self.rounds)

    @property
    def dense_words(self) -> int:
        """Words of the rows of a round with leads, reduced, for one prime, at most."""
        return max((one.rows * one.width for one in self.rounds if one.has_leads), default=0)

    @property
    def square_rows(self) -> int:
        """Rows of a square of leads, at most."""
        return max((one.rows for one in self.rounds if one.has_leads), default=0)

    @property
    def inversion_words(self) -> int:
        """Words to invert such a square, for one prime, at most."""
        sizes = (words_to_invert(one.rows) for one in self.rounds if one.has_leads)
        return max(sizes, default=0)


def record_of(trace: Trace) -> Record:
    """What :mod:`alkahest.backends.groebner_gpu.replay` uploads."""
    parts: list[NDArray[np.int32]] = []
    used = 0

    def put(values: NDArray[Any]) -> int:
        nonlocal used
        at = used
        flat = np.ascontiguousarray(values, np.int32).reshape(-1)
        padding = -flat.size % ROW_WORDS  # a stretch is read as one aligned word of 16 bytes
        parts.append(np.concatenate([flat, np.zeros(padding, np.int32)]))
        used += flat.size + padding
        return at

    rounds = tuple(_round(one, put) for one in trace.rounds)
    return Record(
        words=np.concatenate(parts),
        rounds=rounds,
        input_terms=trace.input_terms,
        first_result=trace.rounds[-1].first_term,
        terms=trace.terms,
    )


def _round(one: TraceRound, put: Any) -> Round:
    pivots = stretches(one, one.pivot_row, skip=1)
    return Round(
        columns=one.columns,
        pivots=one.pivots,
        rows=one.results,
        has_leads=bool(len(one.leads)),
        pivots_at=put(pivots),
        rows_at=put(stretches(one, one.lower, skip=0)),
        entries_at=put(one.entries),
        leads_at=put(one.leads),
        place_at=put(_place(one)),
        mean_length=float(pivots[:, 1].mean()) if len(pivots) else 0.0,
    )


def stretches(matrix: Any, rows: NDArray[Any], skip: int) -> NDArray[np.int32]:
    """Where the entries and coefficients of some rows are, without the first ``skip`` of each.

    Args:
        matrix: has ``row_start``, ``row_length`` and ``row_term``.
        rows: numbers of rows.
        skip: entries to leave out.

    Returns:
        Shape ``(len(rows), 4)``.

    Raises:
        CudaError: E-CUDA-003, the matrix is too large for the kernels.
    """
    for starts in (matrix.row_start, matrix.row_term):
        if len(rows) and int((starts[rows] + matrix.row_length[rows]).max()) > MOST_ENTRIES:
            raise CudaError(
                "E-CUDA-003",
                f"a matrix has more than {MOST_ENTRIES} entries or terms, which the kernels count "
                "with 32 bits",
                remediation="Compute with device=None.",
            )
    found = np.zeros((len(rows), ROW_WORDS), np.int32)
    found[:, 0] = matrix.row_start[rows] + skip
    found[:, 1] = matrix.row_length[rows] - skip
    found[:, 2] = matrix.row_term[rows] + skip
    return found


def _place(one: TraceRound) -> NDArray[np.int32]:
    place = np.full((one.results, one.columns - one.pivots), -1, np.int32)
    place[one.out_row, one.out_column] = one.first_term + np.arange(
        len(one.out_row), dtype=np.int32
    )
    return place
