"""The rows that symbolic preprocessing starts with."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.packing import equal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.basis import Basis

LOWER, PIVOT, TAIL = 0, 1, 2
"""Kinds of rows: to be reduced; known pivot of its first column; to be reduced but for its lead."""


@attrs.frozen(kw_only=True, eq=False)
class Seeds:
    """Rows to start symbolic preprocessing with.

    Attributes:
        of: int32, indices of basis elements.
        kind: uint8, ``LOWER``, ``PIVOT`` or ``TAIL``.
        multiplier: packed monomials.
    """

    of: NDArray[np.int32]
    kind: NDArray[np.uint8]
    multiplier: NDArray[np.uint64]

    def with_rows(self, more: Seeds) -> Seeds:
        """These and more rows, whose pivots have other first columns."""
        return Seeds(
            of=np.concatenate([self.of, more.of]),
            kind=np.concatenate([self.kind, more.kind]),
            multiplier=np.concatenate([self.multiplier, more.multiplier]),
        )


@kernel(
    "int64(int64[::1], uint64[:, ::1], int32[::1], uint64[:, ::1], int32[::1], uint8[::1],"
    "uint64[:, ::1])"
)
def _distinct(order, lcms, elements, leads, of, kind, multiplier):
    """Write each half of the pairs once, the first one of an lcm as its pivot; how many."""
    count = 0
    before = 0
    for half in order:
        pair = half % lcms.shape[0]
        new_lcm = count == 0 or not equal(lcms, pair, lcms, before)
        g = elements[half]
        if not new_lcm and of[count - 1] == g:
            continue
        of[count] = g
        kind[count] = PIVOT if new_lcm else LOWER
        for w in range(lcms.shape[1]):
            multiplier[count, w] = lcms[pair, w] - leads[g, w]
        count += 1
        before = pair
    return count


def pair_seeds(basis: Basis, lcms: NDArray[np.uint64], of: NDArray[np.int32]) -> Seeds:
    """Both halves of each critical pair, each row once; the shortest of an lcm is its pivot."""
    elements = of.T.ravel()
    words = np.concatenate([lcms, lcms]).T
    order = np.lexsort((elements, basis.lengths()[elements], *words))
    rows, kind = np.empty(len(order), np.int32), np.empty(len(order), np.uint8)
    multiplier = np.empty((len(order), len(words)), np.uint64)
    count = _distinct(order, lcms, elements, basis.leads, rows, kind, multiplier)
    return Seeds(of=rows[:count], kind=kind[:count], multiplier=multiplier[:count])


def rows_as_they_are(basis: Basis, of: NDArray[np.int32], kind: int) -> Seeds:
    """Basis elements themselves as rows of one kind."""
    return Seeds(
        of=of,
        kind=np.full(len(of), kind, np.uint8),
        multiplier=np.zeros((len(of), basis.layout.words), np.uint64),
    )
