"""Linear algebra over GF(p) on residues, compiled: p below 2**31, numbers in uint64.

Sums are kept below 2 p**2 < 2**63 by taking p**2 away where they reach it, and are reduced when a
row is done.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from alkahest.groebner.engine._kernel import inlined, kernel

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


@inlined
def _add_multiple(target, source, factor, square):
    """``target += factor * source`` with delayed reduction."""
    for j in range(len(target)):
        value = target[j] + factor * source[j]
        target[j] = value - square if value >= square else value


@inlined
def _times_variable(row, products, border, target, square):
    """``target = x_i * row``, unreduced: ``products`` is the line of x_i."""
    target[:] = 0
    for j in range(len(row)):
        factor = row[j]
        if factor:
            at = products[j]
            if at >= 0:
                value = target[at] + factor
                target[at] = value - square if value >= square else value
            else:
                _add_multiple(target, border[-1 - at], factor, square)


@kernel("void(uint64[:, ::1], int64[:, ::1], int64[::1], int64[::1], uint64)")
def fill_border(border: Words, products: Ints, parent: Ints, by: Ints, prime: int) -> None:
    """Compute the rows of border monomials that are multiples of smaller ones, in place."""
    square = prime * prime
    for at in range(len(parent)):
        if parent[at] >= 0:
            _times_variable(border[parent[at]], products[by[at]], border, border[at], square)
            for j in range(border.shape[1]):
                border[at, j] %= prime


@kernel("void(uint64[::1], int64[::1], uint64[:, ::1], uint64[::1], uint64)")
def times_variable(row: Words, products: Ints, border: Words, target: Words, prime: int) -> None:
    """``target = x_i * row`` for the line ``products`` of x_i."""
    _times_variable(row, products, border, target, prime * prime)
    for j in range(len(target)):
        target[j] %= prime


@kernel("void(uint64[::1], int64[:, ::1], uint64[:, ::1], uint64[:, ::1], uint64)")
def form_matrix(form: Words, products: Ints, border: Words, target: Words, prime: int) -> None:
    """Row j of ``target`` = the residue of (sum of form[i] * x_i) * b_j."""
    square = prime * prime
    for j in range(len(target)):
        target[j] = 0
        for i in range(len(form)):
            if form[i]:
                at = products[i, j]
                if at >= 0:
                    value = target[j, at] + form[i]
                    target[j, at] = value - square if value >= square else value
                else:
                    _add_multiple(target[j], border[-1 - at], form[i], square)
        for k in range(target.shape[1]):
            target[j, k] %= prime


@kernel("void(uint64[::1], uint64[:, ::1], uint64[::1], uint64)")
def times_matrix(row: Words, matrix: Words, target: Words, prime: int) -> None:
    """``target = row * matrix``."""
    square = prime * prime
    target[:] = 0
    for j in range(len(row)):
        if row[j]:
            _add_multiple(target, matrix[j], row[j], square)
    for k in range(len(target)):
        target[k] %= prime


@inlined
def _power(base, exponent, prime):
    result = np.uint64(1)
    while exponent:
        if exponent & np.uint64(1):
            result = result * base % prime
        base = base * base % prime
        exponent >>= np.uint64(1)
    return result


@kernel("boolean(uint64[:, ::1], int64[::1], int64, uint64[::1], int64, uint64)")
def insert(echelon: Words, pivots: Ints, rank: int, row: Words, width: int, prime: int) -> bool:
    """Reduce ``row`` by an echelon form; append what is left to it, and tell whether anything is.

    Rows have ``width`` entries and behind them the combination of inserted rows that they are; a
    new pivot is 1. ``row`` is left reduced: where nothing is left of it, its tail is a relation.
    """
    square = prime * prime
    for r in range(rank):
        factor = row[pivots[r]] % prime
        if factor:
            _add_multiple(row, echelon[r], prime - factor, square)
        row[pivots[r]] = 0
    for j in range(len(row)):
        row[j] %= prime
    for j in range(width):
        if row[j]:
            inverse = _power(row[j], prime - np.uint64(2), prime)
            for k in range(len(row)):
                echelon[rank, k] = row[k] * inverse % prime
            pivots[rank] = j
            return True
    return False


@kernel(
    "boolean(int64[:, ::1], uint64[:, ::1], int64[::1], int64[::1], uint8[::1], uint64[:, ::1],"
    "uint64[:, ::1], uint64)"
)
def follow(
    products: Ints,
    border: Words,
    source: Ints,
    variable: Ints,
    is_new: NDArray[np.uint8],
    vectors: Words,
    relations: Words,
    prime: int,
) -> bool:
    """Repeat recorded steps modulo another prime; False where one turns out otherwise.

    Step k takes the product of ``vectors[source[k]]`` and a variable, or 1 where the source is
    negative. It becomes the next of ``vectors`` where ``is_new``; else it is a combination of the
    vectors before, whose coefficients become the next row of ``relations``.
    """
    degree = border.shape[1]
    square = prime * prime
    echelon = np.zeros((degree, 2 * degree + 1), np.uint64)
    pivots = np.zeros(degree + 1, np.int64)
    row = np.empty(2 * degree + 1, np.uint64)
    rank = related = 0
    for step in range(len(source)):
        row[:] = 0
        if source[step] < 0:
            row[0] = 1
        else:
            lines = products[variable[step]]
            _times_variable(vectors[source[step]], lines, border, row[:degree], square)
        for j in range(degree):
            row[j] %= prime
        if is_new[step]:
            vectors[rank] = row[:degree]
        row[degree + rank] = 1
        if insert(echelon, pivots, rank, row, degree, prime) != bool(is_new[step]):
            return False
        if is_new[step]:
            rank += 1
            continue
        for k in range(rank):
            value = row[degree + k]
            relations[related, k] = prime - value if value else value
        related += 1
    return True


class Echelon:
    """Rows of ``width`` residues, inserted one after another; each is new or a combination.

    Args:
        width: entries of a row.
        most: how many independent rows there can be.
        prime: the modulus.
    """

    def __init__(self, width: int, most: int, prime: int) -> None:
        self.width = width
        self.prime = prime
        self.rank = 0
        self._rows = np.zeros((most, width + most + 1), np.uint64)
        self._pivots = np.zeros(most + 1, np.int64)
        self._scratch = np.zeros(width + most + 1, np.uint64)

    @property
    def pivots(self) -> Ints:
        """Columns in which the inserted rows are independent, shape ``(rank,)``."""
        return self._pivots[: self.rank].copy()

    def insert(self, row: Words) -> Words | None:
        """None for a row that is new; else c with row = sum of c[k] * (inserted row k)."""
        self._scratch[:] = 0
        self._scratch[: self.width] = row
        self._scratch[self.width + self.rank] = 1
        if insert(self._rows, self._pivots, self.rank, self._scratch, self.width, self.prime):
            self.rank += 1
            return None
        # 0 = row + sum of tail[k] * (inserted row k), the own entry being 1.
        tail = self._scratch[self.width : self.width + self.rank]
        return np.where(tail > 0, np.uint64(self.prime) - tail, tail)
