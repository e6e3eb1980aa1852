"""The kernels once more, in NumPy, over the very same buffers.

Each function has the name and the arguments of a kernel in ``kernels/``; buffers are arrays of
32-bit words that begin where the kernel's pointer points. What a lane computes after it has become
bad is not specified, there or here. The twins of dense linear algebra and of changes of order are in
:mod:`~alkahest.backends.groebner_gpu.twin_dense` and
:mod:`~alkahest.backends.groebner_gpu.twin_conversion`, those of liftings in
:mod:`~alkahest.backends.groebner_gpu.twin_lifting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.backends.groebner_gpu.launches import (
    Launched,
    emit,
    grouped,
    random_words,
    signed,
)
from alkahest.backends.groebner_gpu.twin_conversion import enter_elements, times_variables
from alkahest.backends.groebner_gpu.twin_dense import (
    combine,
    combine_tensor,
    compare,
    compare_tensor,
    exchange_rows,
    gather_columns,
    invert_panel,
    relate,
    relate_tensor,
    restore_columns,
    subtract_product,
    subtract_product_tensor,
    update_squares,
    update_squares_tensor,
)
from alkahest.backends.groebner_gpu.twin_lifting import (
    add_cofactors,
    check_terms,
    collect_limbs,
    gather_lanes,
    mix_terms,
    scale_terms,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]


def _stretches(words: Words, count: int) -> list[list[int]]:
    """First entry, entries, first term and padding of ``count`` rows."""
    rows: list[list[int]] = signed(words)[: 4 * count].reshape(-1, 4).tolist()
    return rows


def reduce_rows(
    at: Launched, pivots: Words, npivots: int, rows: Words, nrows: int, entries: Words,
    columns: int, coefficients: Words, terms: int, field: Words, lanes: int, dense: Words | None,
    place: Words | None, bad: Words,
) -> None:  # fmt: skip
    """Reduce rows by pivots; see the kernel."""
    primes = field[:lanes].astype(np.uint64)
    known = grouped(coefficients, at.group, terms, lanes)
    columns_of = signed(entries)
    width = columns - npivots
    tiles = np.zeros((nrows, columns, lanes), np.uint64)
    for number, (entry, length, term, _) in enumerate(_stretches(rows, nrows)):
        values = known[:, term : term + length].transpose(1, 0, 2).reshape(length, lanes)
        tiles[number, columns_of[entry : entry + length]] = values
    _eliminate(tiles, _stretches(pivots, npivots), columns_of, known, primes)
    reduced = tiles[:, npivots:].astype(np.uint32)
    if place is None:
        assert dense is not None
        dense[: lanes * nrows * width] = reduced.transpose(2, 0, 1).reshape(-1)
        return
    emit(reduced, signed(place)[: nrows * width].reshape(nrows, width), known, bad)


def _eliminate(
    tiles: NDArray[np.uint64],
    pivots: list[list[int]],
    columns_of: NDArray[np.int32],
    known: Words,
    primes: NDArray[np.uint64],
) -> None:
    """Clear the pivot columns of tiles, shape ``(rows, columns, lanes)``, in order."""
    lanes = len(primes)
    for column, (entry, length, term, _) in enumerate(pivots):
        live = np.flatnonzero(tiles[:, column].any(axis=1))
        if not len(live):
            continue
        factors = (primes - tiles[live, column]) % primes
        values = known[:, term : term + length].transpose(1, 0, 2).reshape(length, lanes)
        cells = np.ix_(live, columns_of[entry : entry + length])
        tiles[cells] = (tiles[cells] + factors[:, None] * values[None]) % primes


def reduce_long_rows(at: Launched, *arguments: Any) -> None:
    """The same; the kernel also has memory to compute in."""
    reduce_rows(at, *arguments[:-1])


def collect_terms(
    at: Launched, coefficients: Words, terms: int, first: int, lanes: int, collected: Words
) -> None:
    """The terms from ``first`` on as ``[term][lane]``."""
    known = grouped(coefficients, at.group, terms, lanes)[:, first:]
    collected[: (terms - first) * lanes] = known.transpose(1, 0, 2).reshape(-1)


def reduce_mixtures(
    at: Launched, pivots: Words, npivots: int, rows: Words, nrows: int, entries: Words,
    columns: int, coefficients: Words, field: Words, seed_low: int, seed_high: int, first: int,
    dense: Words,
) -> None:  # fmt: skip
    """Reduce random combinations of rows; see the kernel."""
    prime, count = np.uint64(field[0]), at.grid[0]
    seed = (seed_high % 2**32) << 32 | seed_low % 2**32
    columns_of, width = signed(entries), columns - npivots
    tiles = np.zeros((count, columns, 1), np.uint64)
    factors = weights(seed, first * nrows, count * nrows, int(prime)).reshape(count, nrows)
    for number, (entry, length, term, _) in enumerate(_stretches(rows, nrows)):
        where = columns_of[entry : entry + length]
        added = factors[:, number, None] * coefficients[term : term + length].astype(np.uint64)
        tiles[:, where, 0] = (tiles[:, where, 0] + added) % prime
    known = coefficients.reshape(1, -1, 1)
    _eliminate(tiles, _stretches(pivots, npivots), columns_of, known, field[:1].astype(np.uint64))
    dense[: count * width] = tiles[:, npivots:].astype(np.uint32).reshape(-1)


def reduce_long_mixtures(at: Launched, *arguments: Any) -> None:
    """The same; the kernel also has memory to compute in."""
    reduce_mixtures(at, *arguments[:-1])


def weights(seed: int, first: int, count: int, prime: int) -> NDArray[np.uint64]:
    """Multipliers of rows in combinations."""
    return random_words(seed, first, count) % np.uint64(prime)


def gather_leads(
    at: Launched, rows: Words, width: int, leads: Words, n: int, factors: Words
) -> None:
    """The entries of rows in the columns of leads, zero for a negative lead."""
    count, columns = at.grid[0], signed(leads)[:n]
    found = rows[: count * width].reshape(count, width)[:, columns]
    factors[: count * n] = np.where(columns >= 0, found, 0).reshape(-1)


def gather_rows(at: Launched, rows: Words, width: int, numbers: Words, target: Words) -> None:
    """Copies of some rows, one after another."""
    chosen = signed(numbers)[: at.grid[0]]
    places = chosen[:, None] * width + np.arange(width)
    target[: len(chosen) * width] = rows[places].reshape(-1)


def fill_randomly(
    at: Launched, values: Words, count: int, field: Words, seed_low: int, seed_high: int
) -> None:
    """The first numbers of :func:`weights`."""
    seed = (seed_high % 2**32) << 32 | seed_low % 2**32
    values[:count] = weights(seed, 0, count, int(field[0])).astype(np.uint32)


def enter_row(
    at: Launched, rows: Words, width: int, chosen: int, field: Words, leads: Words
) -> None:
    """Take the first column of a row out of the other rows; see the kernel."""
    count, prime = at.grid[0], np.uint64(field[0])
    every = rows[: count * width].reshape(count, width)
    row = every[chosen].astype(np.uint64)
    nonzero = np.flatnonzero(row)
    signed(leads)[chosen] = nonzero[0] if len(nonzero) else -1
    if not len(nonzero):
        return
    factors = every[:, nonzero[0]].astype(np.uint64)
    factors[chosen] = 0
    changed = factors > 0
    own = every[changed].astype(np.uint64) * row[nonzero[0]] % prime
    every[changed] = (own + (prime - factors[changed])[:, None] * row) % prime


def scale_rows(at: Launched, rows: Words, width: int, field: Words, leads: Words) -> None:
    """Divide rows by their entries in their leads."""
    prime = int(field[0])
    every = rows[: at.grid[0] * width].reshape(-1, width)
    for row, lead in zip(every, signed(leads)[: len(every)].tolist(), strict=True):
        if lead >= 0:
            scale = np.uint64(pow(int(row[lead]), -1, prime))
            row[:] = row.astype(np.uint64) * scale % np.uint64(prime)


__all__ = [
    "Launched",
    "add_cofactors",
    "check_terms",
    "collect_limbs",
    "collect_terms",
    "combine",
    "combine_tensor",
    "compare",
    "compare_tensor",
    "enter_elements",
    "enter_row",
    "exchange_rows",
    "fill_randomly",
    "gather_columns",
    "gather_lanes",
    "gather_leads",
    "gather_rows",
    "invert_panel",
    "mix_terms",
    "reduce_long_mixtures",
    "reduce_long_rows",
    "reduce_mixtures",
    "reduce_rows",
    "relate",
    "relate_tensor",
    "restore_columns",
    "scale_rows",
    "scale_terms",
    "subtract_product",
    "subtract_product_tensor",
    "times_variables",
    "update_squares",
    "update_squares_tensor",
    "weights",
]
