"""Twins of the kernels in ``products.cu``, ``tensor.cu`` and ``inverse.cu``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.backends.groebner_gpu.launches import Launched, emit, grouped, signed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]

Multiply = Callable[[Any, Any, int], Any]
"""A product of matrices of residues modulo a prime."""


def by_integers(left: Words, right: Words, prime: int) -> Words:
    """A product with every term reduced."""
    total = np.zeros((len(left), right.shape[1]), np.uint64)
    for k in range(left.shape[1]):
        total = (total + left[:, k : k + 1].astype(np.uint64) * right[k]) % np.uint64(prime)
    return total.astype(np.uint32)


def by_halves(left: Words, right: Words, prime: int) -> Words:
    """A product by three exact ones in double precision; see ``fragments.cu``."""

    def halves(words: Words) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return (words & 0xFFFF).astype(np.float64), (words >> 16).astype(np.float64)

    (low, high), (below, above) = halves(left), halves(right)
    first, last, cross = low @ below, high @ above, (low + high) @ (below + above)
    p = np.uint64(prime)
    parts = [part.astype(np.uint64) % p for part in (first, cross - first - last, last)]
    shifts = [np.uint64(pow(2, 16 * k, prime)) for k in range(3)]
    total: NDArray[np.uint64] = sum(
        (part * shift % p for part, shift in zip(parts, shifts, strict=True)),
        start=np.zeros_like(parts[0]),
    )
    return (total % p).astype(np.uint32)


def _combine(
    multiply: Multiply, at: Launched, inverses: Words, dense: Words, n: int, width: int,
    place: Words, field: Words, lanes: int, coefficients: Words, terms: int, bad: Words,
) -> None:  # fmt: skip
    factors = inverses[: lanes * n * n].reshape(lanes, n, n)
    rows = dense[: lanes * n * width].reshape(lanes, n, width)
    products = [multiply(factors[q], rows[q], int(field[q])) for q in range(lanes)]
    known = grouped(coefficients, at.group, terms, lanes)
    emit(np.stack(products, axis=2), signed(place)[: n * width].reshape(n, width), known, bad)


def combine(at: Launched, *arguments: Any) -> None:
    """Multiply the inverses with the rows and hand the terms out; see the kernel."""
    _combine(by_integers, at, *arguments)


def combine_tensor(at: Launched, *arguments: Any) -> None:
    """The same on tensor cores."""
    _combine(by_halves, at, *arguments)


def _subtract_product(
    multiply: Multiply, rows: Words, nrows: int, width: int, factors: Words, others: Words, n: int,
    field: Words,
) -> None:  # fmt: skip
    prime = int(field[0])
    product = multiply(
        factors[: nrows * n].reshape(nrows, n), others[: n * width].reshape(n, width), prime
    )
    old = rows[: nrows * width].astype(np.uint64)
    rows[: nrows * width] = (old + np.uint64(prime) - product.reshape(-1)) % np.uint64(prime)


def subtract_product(at: Launched, *arguments: Any) -> None:
    """``rows -= factors @ others``."""
    _subtract_product(by_integers, *arguments)


def subtract_product_tensor(at: Launched, *arguments: Any) -> None:
    """The same on tensor cores."""
    _subtract_product(by_halves, *arguments)


def _update_squares(
    multiply: Multiply, squares: Words, n: int, first: int, count: int, before: Words,
    field: Words, lanes: int,
) -> None:  # fmt: skip
    every = squares[: lanes * n * n].reshape(lanes, n, n)
    pivots = before[: lanes * count * n].reshape(lanes, count, n)
    panel = slice(first, first + count)
    others = np.r_[0:first, first + count : n]
    for q in range(lanes):
        square, prime = every[q], int(field[q])
        product = multiply(square[:, panel], pivots[q], prime).astype(np.uint64)
        square[panel, :first] = square[panel, first + count :] = 0
        total = square[:, others] + product[:, others]
        square[:, others] = total % np.uint64(prime)


def update_squares(at: Launched, *arguments: Any) -> None:
    """Bring the columns beside a panel up to date; see the kernel."""
    _update_squares(by_integers, *arguments)


def update_squares_tensor(at: Launched, *arguments: Any) -> None:
    """The same on tensor cores."""
    _update_squares(by_halves, *arguments)


def _relate(
    multiply: Multiply, known: Words, nrows: int, n: int, inverses: Words, smaller: Words,
    field: Words, lanes: int, relations: Words, bad: Words,
) -> None:  # fmt: skip
    rows = known[: lanes * nrows * n].reshape(lanes, nrows, n)
    squares = inverses[: lanes * n * n].reshape(lanes, n, n)
    found = relations[: lanes * nrows * n].reshape(lanes, nrows, n)
    beyond = np.arange(n) >= signed(smaller)[:nrows, None]
    for q in range(lanes):
        found[q] = multiply(rows[q], squares[q], int(field[q]))
        bad[q] |= found[q][beyond].any()


def relate(at: Launched, *arguments: Any) -> None:
    """``relations = known @ inverses``, with zeros where they have to be; see the kernel."""
    _relate(by_integers, *arguments)


def relate_tensor(at: Launched, *arguments: Any) -> None:
    """The same on tensor cores."""
    _relate(by_halves, *arguments)


def _compare(
    multiply: Multiply, relations: Words, nrelations: int, n: int, rows: Words, nrows: int,
    width: int, first: int, field: Words, lanes: int, bad: Words,
) -> None:  # fmt: skip
    factors = relations[: lanes * nrelations * n].reshape(lanes, nrelations, n)
    every = rows[: lanes * nrows * width].reshape(lanes, nrows, width)
    for q in range(lanes):
        found = multiply(factors[q], every[q, first : first + n], int(field[q]))
        bad[q] |= not np.array_equal(found, every[q, first + n : first + n + nrelations])


def compare(at: Launched, *arguments: Any) -> None:
    """Whether relations hold in all columns; see the kernel."""
    _compare(by_integers, *arguments)


def compare_tensor(at: Launched, *arguments: Any) -> None:
    """The same on tensor cores."""
    _compare(by_halves, *arguments)


def gather_columns(
    at: Launched, rows: Words, nrows: int, width: int, first: int, columns: Words, n: int,
    chosen: Words,
) -> None:  # fmt: skip
    """Columns of some rows of each lane."""
    count, lanes = at.grid[:2]
    every = rows[: lanes * nrows * width].reshape(lanes, nrows, width)
    picked = every[:, first : first + count][:, :, signed(columns)[:n]]
    chosen[: lanes * count * n] = picked.reshape(-1)


def invert_panel(
    at: Launched, squares: Words, n: int, first: int, count: int, field: Words, lanes: int,
    exchanged: Words, bad: Words,
) -> None:  # fmt: skip
    """Gauss-Jordan elimination in some columns of squares; see the kernel."""
    every = squares[: lanes * n * n].reshape(lanes, n, n)
    for lane in range(lanes):
        panel = every[lane, :, first : first + count].astype(np.uint64)
        rows = exchanged[lane * n :]
        bad[lane] |= not _eliminate(panel, first, int(field[lane]), rows)
        every[lane, :, first : first + count] = panel


def _eliminate(panel: NDArray[np.uint64], first: int, prime: int, exchanged: Words) -> bool:
    """The inverse elimination of a panel, in place; False where there is no pivot."""
    p, n = np.uint64(prime), len(panel)
    for j in range(panel.shape[1]):
        k = first + j
        below = np.flatnonzero(panel[k:, j])
        if not len(below):
            return False
        found = exchanged[k] = k + int(below[0])
        panel[[k, found]] = panel[[found, k]]
        scale = np.uint64(pow(int(panel[k, j]), -1, prime))
        panel[k, j] = 1
        panel[k] = panel[k] * scale % p
        others = np.arange(n) != k
        factors = (p - panel[others, j]) % p
        panel[others, j] = 0
        panel[others] = (panel[others] + factors[:, None] * panel[k]) % p
    return True


def exchange_rows(
    at: Launched, squares: Words, n: int, first: int, count: int, exchanged: Words, before: Words,
    bad: Words,
) -> None:  # fmt: skip
    """Exchange rows beside a panel, and note what they are then; see the kernel."""
    lanes = at.grid[1]
    every = squares[: lanes * n * n].reshape(lanes, n, n)
    noted = before[: lanes * count * n].reshape(lanes, count, n)
    others = np.r_[0:first, first + count : n]
    noted[:] = 0
    for lane in np.flatnonzero(bad[:lanes] == 0):
        square = every[lane]
        for k in range(first, first + count):
            pair = [k, int(exchanged[lane * n + k])]
            square[np.ix_(pair, others)] = square[np.ix_(pair[::-1], others)]
            noted[lane, k - first, others] = square[k, others]


def restore_columns(at: Launched, squares: Words, n: int, exchanged: Words, bad: Words) -> None:
    """Exchange columns as rows were, the last ones first."""
    lanes = at.grid[0]
    every = squares[: lanes * n * n].reshape(lanes, n, n)
    for lane in np.flatnonzero(bad[:lanes] == 0):
        for k in range(n - 1, -1, -1):
            pair = [k, int(exchanged[lane * n + k])]
            every[lane][:, pair] = every[lane][:, pair[::-1]]


__all__ = [
    "by_halves",
    "by_integers",
    "combine",
    "combine_tensor",
    "compare",
    "compare_tensor",
    "exchange_rows",
    "gather_columns",
    "invert_panel",
    "relate",
    "relate_tensor",
    "restore_columns",
    "subtract_product",
    "subtract_product_tensor",
    "update_squares",
    "update_squares_tensor",
]
