"""Twins of the kernels in ``conversion.cu``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alkahest.backends.groebner_gpu.launches import Launched, signed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]


def enter_elements(
    at: Launched, limbs: Words, nlimbs: int, negative: Words, nterms: int, offsets: Words,
    terms_at: Words, row_of: Words, field: Words, lanes: int, rows: Words, nrows: int, width: int,
    bad: Words,
) -> None:  # fmt: skip
    """The residues of leading monomials; see the kernel."""
    elements = at.grid[0]
    bounds, numbers = signed(offsets)[: elements + 1], signed(row_of)[:elements]
    places, signs = signed(terms_at)[:nterms], negative[:nterms] != 0
    every = rows[: lanes * nrows * width].reshape(lanes, nrows, width)
    for lane in range(lanes):
        p = np.uint64(field[lane])
        values = np.zeros(nterms, np.uint64)
        for limb in limbs[: nlimbs * nterms].reshape(nlimbs, nterms)[::-1]:
            values = ((values << np.uint64(32)) + limb) % p
        leading = values[bounds[:-1]]
        bad[lane] |= not leading.all()
        for element in np.flatnonzero((numbers >= 0) & (leading > 0)):
            first, end = bounds[element], bounds[element + 1]
            part = slice(first + 1, end)
            scaled = values[part] * np.uint64(pow(int(values[first]), -1, int(p))) % p
            tail = np.where(signs[part], scaled, (p - scaled) % p)
            every[lane, numbers[element], places[part]] = tail


def times_variables(
    at: Launched, rows: Words, nrows: int, width: int, jobs: Words, moved_from: Words,
    hits: Words, first_hit: Words, field: Words, lanes: int,
) -> None:  # fmt: skip
    """Rows that are products of rows and variables; see the kernel."""
    every = rows[: lanes * nrows * width].reshape(lanes, nrows, width)
    listed = signed(jobs)[: 3 * at.grid[1]].reshape(-1, 3).tolist()
    bounds = signed(first_hit)
    for source, variable, target in listed:
        origin = signed(moved_from)[variable * width : (variable + 1) * width]
        first, end = 2 * bounds[variable], 2 * bounds[variable + 1]
        columns, met = signed(hits)[first:end].reshape(-1, 2).T
        for lane in range(lanes):
            p = np.uint64(field[lane])
            row = every[lane, source]
            total = np.where(origin >= 0, row[origin], 0).astype(np.uint64)
            for column, number in zip(columns.tolist(), met.tolist(), strict=True):
                if row[column]:  # what is met with zero need not be there yet
                    total = (total + np.uint64(row[column]) * every[lane, number]) % p
            every[lane, target] = (total % p).astype(np.uint32)


__all__ = ["enter_elements", "times_variables"]
