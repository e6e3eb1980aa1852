"""How much work a recorded run is, from the places of its entries alone."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.symbolic import SymbolicMatrix
    from alkahest.groebner.engine.trace import Trace, TraceRound


@attrs.frozen(kw_only=True)
class Work:
    """Work of a replay for one prime.

    Attributes:
        products: residues multiplied by a pivot row's multiplier and subtracted.
        dense_products: the same, to bring what is left of the rows to echelon form.
        steps: pivots that a row meets one after another, over all rounds; rows do not wait for
            rows of their round.
        rounds: number of rounds.
    """

    products: float
    dense_products: float
    steps: float
    rounds: int


@kernel(
    "void(int64[::1], int32[::1], int64[::1], int64[::1], int32[::1], uint8[::1], int64[::1],"
    "int64[::1])"
)
def _follow(rows, pivot_row, start, length, entries, live, products, steps):
    """Count, for each row, the products and the pivots of its reduction if nothing cancels."""
    for place in range(rows.size):
        live[:] = 0
        r = rows[place]
        for k in range(start[r], start[r] + length[r]):
            live[entries[k]] = 1
        for column in range(pivot_row.size):
            if live[column]:
                r = pivot_row[column]
                products[place] += length[r] - 1
                steps[place] += 1
                for k in range(start[r], start[r] + length[r]):
                    live[entries[k]] = 1


def work_of(trace: Trace, sample: int | None = None) -> Work:
    """The work of a trace.

    Args:
        trace: the record.
        sample: rows of a round to look at, the others being taken to be like them; None is all.
    """
    found = [_work_of_round(one, sample) for one in trace.rounds]
    products, dense, steps = np.array(found, np.float64).reshape(-1, 3).sum(axis=0).tolist()
    return Work(products=products, dense_products=dense, steps=steps, rounds=len(trace.rounds))


def work_of_matrix(matrix: SymbolicMatrix) -> Work:
    """About the work of reducing each lower row of a matrix once, from sizes alone.

    A row is taken to meet half of the pivots.
    """
    entries = float(matrix.row_length[matrix.pivot_row].sum())
    return Work(
        products=len(matrix.lower) * entries / 2,
        dense_products=0.0,
        steps=float(matrix.pivots),
        rounds=1,
    )


def _work_of_round(one: TraceRound, sample: int | None) -> tuple[float, float, float]:
    n, width = one.results, one.columns - one.pivots
    rows: NDArray[Any] = one.lower
    if sample is not None and n > sample:
        rows = one.lower[np.linspace(0, n - 1, sample).astype(np.int64)]
    products, steps = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    _follow(
        np.ascontiguousarray(rows), one.pivot_row, one.row_start, one.row_length, one.entries,
        np.zeros(one.columns, np.uint8), products, steps,
    )  # fmt: skip
    if not len(rows):
        return 0.0, 0.0, 0.0
    dense = float(n) ** 2 * (n + width) if len(one.leads) else 0.0
    return float(products.mean()) * n, dense, float(steps.max())
