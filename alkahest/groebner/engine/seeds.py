"""The rows that symbolic preprocessing starts with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

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


def pair_seeds(basis: Basis, lcms: NDArray[np.uint64], of: NDArray[np.int32]) -> Seeds:
    """Both halves of each critical pair, each row once; the shortest of an lcm is its pivot."""
    monomials = np.concatenate([lcms, lcms])
    element = np.concatenate([of[:, 0], of[:, 1]])
    order = np.lexsort((element, basis.lengths()[element], *monomials.T))
    monomials, element = monomials[order], element[order]
    new_lcm = np.ones(len(order), np.bool_)
    new_lcm[1:] = (monomials[1:] != monomials[:-1]).any(axis=1)
    new_row = new_lcm.copy()
    new_row[1:] |= element[1:] != element[:-1]
    monomials, element, new_lcm = monomials[new_row], element[new_row], new_lcm[new_row]
    return Seeds(
        of=element,
        kind=np.where(new_lcm, PIVOT, LOWER).astype(np.uint8),
        multiplier=monomials - basis.leads[element],
    )


def rows_as_they_are(basis: Basis, of: NDArray[np.int32], kind: int) -> Seeds:
    """Basis elements themselves as rows of one kind."""
    return Seeds(
        of=of,
        kind=np.full(len(of), kind, np.uint8),
        multiplier=np.zeros((len(of), basis.layout.words), np.uint64),
    )
