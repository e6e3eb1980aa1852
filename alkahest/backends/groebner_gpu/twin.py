"""The kernels once more, in NumPy, over the very same buffers.

Each function has the name and the arguments of a kernel in ``kernels/``; buffers are arrays of
32-bit words that begin where the kernel's pointer points. What a lane computes after it has become
bad is not specified, there or here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]


@attrs.frozen
class Launched:
    """What a kernel knows of its launch.

    Attributes:
        group: what it was compiled for as ``LANES``.
        grid: number of blocks along x, y and z.
    """

    group: int
    grid: tuple[int, ...]


def grouped(words: Words, group: int, terms: int, lanes: int) -> Words:
    """Coefficients as ``[group][term][lane of the group]``, a view."""
    return words[: terms * lanes].reshape(lanes // group, terms, group)


def _signed(words: Words) -> NDArray[np.int32]:
    return words.view(np.int32)


def _stretches(words: Words, count: int) -> list[list[int]]:
    """First entry, entries, first term and padding of ``count`` rows."""
    rows: list[list[int]] = _signed(words)[: 4 * count].reshape(-1, 4).tolist()
    return rows


def reduce_rows(
    at: Launched, pivots: Words, npivots: int, rows: Words, nrows: int, entries: Words,
    columns: int, coefficients: Words, terms: int, field: Words, lanes: int, dense: Words | None,
    place: Words | None, bad: Words,
) -> None:  # fmt: skip
    """Reduce rows by pivots; see the kernel."""
    primes = field[:lanes].astype(np.uint64)
    known = grouped(coefficients, at.group, terms, lanes)
    columns_of = _signed(entries)
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
    _emit(reduced, _signed(place)[: nrows * width].reshape(nrows, width), known, bad)


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


def invert_leads(
    at: Launched, dense: Words, n: int, width: int, leads: Words, field: Words, lanes: int,
    inverses: Words, bad: Words,
) -> None:  # fmt: skip
    """Invert the squares of the leads; see the kernel."""
    rows = dense[: lanes * n * width].reshape(lanes, n, width)
    squares = inverses[: lanes * n * n].reshape(lanes, n, n)
    for lane in range(lanes):
        inverse = inverse_modulo(rows[lane][:, _signed(leads)[:n]], int(field[lane]))
        if inverse is None:
            bad[lane] = 1
        else:
            squares[lane] = inverse


def inverse_modulo(matrix: Words, prime: int) -> Words | None:
    """The inverse of a square matrix of residues by Gauss-Jordan elimination, or None."""
    n, p = len(matrix), np.uint64(prime)
    work = np.concatenate([matrix.astype(np.uint64), np.eye(n, dtype=np.uint64)], axis=1)
    for k in range(n):
        below = np.flatnonzero(work[k:, k])
        if not len(below):
            return None
        found = k + int(below[0])
        work[[k, found]] = work[[found, k]]
        work[k] = work[k] * np.uint64(pow(int(work[k, k]), -1, prime)) % p
        others = np.arange(n) != k
        work[others] = (work[others] + (p - work[others, k])[:, None] * work[k]) % p
    return work[:, n:].astype(np.uint32)


def collect_terms(
    at: Launched, coefficients: Words, terms: int, first: int, lanes: int, collected: Words
) -> None:
    """The terms from ``first`` on as ``[term][lane]``."""
    known = grouped(coefficients, at.group, terms, lanes)[:, first:]
    collected[: (terms - first) * lanes] = known.transpose(1, 0, 2).reshape(-1)


def combine(
    at: Launched, inverses: Words, dense: Words, n: int, width: int, place: Words, field: Words,
    lanes: int, coefficients: Words, terms: int, bad: Words,
) -> None:  # fmt: skip
    """Multiply the inverses with the rows and hand the terms out; see the kernel."""
    factors = inverses[: lanes * n * n].reshape(lanes, n, n)
    rows = dense[: lanes * n * width].reshape(lanes, n, width)
    products = [_product(factors[q], rows[q], int(field[q])) for q in range(lanes)]
    known = grouped(coefficients, at.group, terms, lanes)
    _emit(np.stack(products, axis=2), _signed(place)[: n * width].reshape(n, width), known, bad)


def _product(left: Words, right: Words, prime: int) -> Words:
    total = np.zeros((len(left), right.shape[1]), np.uint64)
    for k in range(left.shape[1]):
        total = (total + left[:, k : k + 1].astype(np.uint64) * right[k]) % np.uint64(prime)
    return total.astype(np.uint32)


def _emit(values: Words, place: NDArray[np.int32], known: Words, bad: Words) -> None:
    """Entries, shape ``(rows, width, lanes)``, to their terms; the others have to be zero."""
    groups, _, group = known.shape
    named = place >= 0
    terms = values[named].reshape(-1, groups, group)
    known[:, place[named]] = terms.transpose(1, 0, 2)
    bad[np.flatnonzero(values[~named].any(axis=0))] = 1


def reduce_mixtures(
    at: Launched, pivots: Words, npivots: int, rows: Words, nrows: int, entries: Words,
    columns: int, coefficients: Words, field: Words, seed_low: int, seed_high: int, first: int,
    dense: Words,
) -> None:  # fmt: skip
    """Reduce random combinations of rows; see the kernel."""
    prime, count = np.uint64(field[0]), at.grid[0]
    seed = (seed_high % 2**32) << 32 | seed_low % 2**32
    columns_of, width = _signed(entries), columns - npivots
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


def random_words(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Words ``first`` and on of splitmix64."""
    numbers = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = np.uint64(seed) + numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def gather_leads(
    at: Launched, rows: Words, width: int, leads: Words, n: int, factors: Words
) -> None:
    """The entries of rows in the columns of leads, zero for a negative lead."""
    count, columns = at.grid[0], _signed(leads)[:n]
    found = rows[: count * width].reshape(count, width)[:, columns]
    factors[: count * n] = np.where(columns >= 0, found, 0).reshape(-1)


def subtract_product(
    at: Launched, rows: Words, nrows: int, width: int, factors: Words, others: Words, n: int,
    field: Words,
) -> None:  # fmt: skip
    """``rows -= factors @ others``."""
    prime = int(field[0])
    product = _product(
        factors[: nrows * n].reshape(nrows, n), others[: n * width].reshape(n, width), prime
    )
    old = rows[: nrows * width].astype(np.uint64)
    rows[: nrows * width] = (old + np.uint64(prime) - product.reshape(-1)) % np.uint64(prime)


def enter_row(
    at: Launched, rows: Words, nrows: int, width: int, chosen: int, field: Words, leads: Words,
    factors: Words,
) -> None:  # fmt: skip
    """Scale a row to begin with a one and take that column out; see the kernel."""
    every, prime = rows[: nrows * width].reshape(nrows, width), int(field[0])
    row = every[chosen]
    nonzero = np.flatnonzero(row)
    lead = int(nonzero[0]) if len(nonzero) else -1
    _signed(leads)[chosen] = lead
    factors[:nrows] = 0
    if lead >= 0:
        scale = np.uint64(pow(int(row[lead]), -1, prime))
        row[:] = row.astype(np.uint64) * scale % np.uint64(prime)
        factors[:nrows] = every[:, lead]
        factors[chosen] = 0


def clear_column(
    at: Launched, rows: Words, width: int, chosen: int, field: Words, factors: Words
) -> None:
    """``rows[i] -= factors[i] * rows[chosen]``."""
    count, prime = at.grid[1], np.uint64(field[0])
    every = rows[: count * width].reshape(count, width)
    by = (prime - factors[:count].astype(np.uint64)) % prime
    every[:] = (every + by[:, None] * every[chosen].astype(np.uint64)) % prime


def gather_columns(
    at: Launched, source: Words, lanes: int, columns: Words, count: int, terms: int,
    target: Words, width: int, first: int,
) -> None:  # fmt: skip
    """Some columns of residues into a wider table."""
    table = target[: terms * width].reshape(terms, width)
    chosen = _signed(columns)[:count]
    table[:, first : first + count] = source[: terms * lanes].reshape(terms, lanes)[:, chosen]


def mix_terms(
    at: Launched, residues: Words, lanes: int, spans: Words, field: Words, mixtures: Words
) -> None:
    """Combinations of each polynomial, whose weights are the bytes of random words."""
    count, primes = at.grid[0], field[:lanes].astype(np.uint64)
    known = residues[: residues.size // lanes * lanes].reshape(-1, lanes).astype(np.uint64)
    out = mixtures[: count * 8 * lanes].reshape(count, 8, lanes)
    for number, (first, last) in enumerate(_signed(spans)[: 2 * count].reshape(-1, 2).tolist()):
        words = random_words(0, first, last - first)
        for m in range(8):
            weights = words >> np.uint64(8 * m) & np.uint64(255)
            out[number, m] = (weights[:, None] * known[first:last]).sum(axis=0) % primes


def scale_terms(
    at: Launched, residues: Words, width: int, columns: Words, n: int, starts: Words,
    polynomials: int, terms: int, factors: Words, field: Words, owners: Words, scaled: Words,
    multiples: Words,
) -> None:  # fmt: skip
    """The polynomial of each term, and its residues times the polynomial's factors."""
    begins = _signed(starts)[:polynomials]
    owner = np.searchsorted(begins, np.arange(terms), side="right") - 1
    known = residues[: terms * width].reshape(terms, width)[:, _signed(columns)[:n]]
    by = factors[: polynomials * n].reshape(polynomials, n).astype(np.uint64)[owner]
    products = known * by % field[:n].astype(np.uint64)
    owners[:terms] = owner
    scaled[: n * terms] = products.T.reshape(-1)
    multiples[:terms] = np.floor((products / field[:n].astype(np.float64)).sum(axis=1) + 0.5)


def add_cofactors(
    at: Launched, scaled: Words, multiples: Words, terms: int, cofactors: Words, modulus: Words,
    n: int, digits: int, words: int, limbs: Words,
) -> None:  # fmt: skip
    """Numerators in two's complement; see the kernel."""
    known = scaled[: n * terms].reshape(n, terms).astype(np.uint64)
    sums = cofactors[: n * digits].reshape(n, digits).T.astype(np.uint64) @ known
    carry, borrow = np.zeros(terms, np.uint64), np.zeros(terms, np.int64)
    taken = multiples[:terms].astype(np.int64)
    bits = np.zeros((24 * digits + 32 * words, terms), np.uint8)
    for k in range(digits):
        total = sums[k] + carry
        carry = total >> np.uint64(24)
        rest = (total & np.uint64(0xFFFFFF)).astype(np.int64) - taken * int(modulus[k]) + borrow
        borrow = rest >> 24
        for bit in range(24):
            bits[24 * k + bit] = rest >> bit & 1
    bits[24 * digits :] = borrow & 1  # the sign
    octets = np.packbits(bits[: 32 * words], axis=0, bitorder="little").reshape(words, 4, terms)
    limbs[: words * terms] = octets.transpose(0, 2, 1).copy().view("<u4").reshape(-1)


def check_terms(
    at: Launched, limbs: Words, words: int, terms: int, owners: Words, most: int,
    residues: Words, width: int, column: int, field: Words, denominators: Words, leads: int,
    negative: Words, failed: Words, used: Words,
) -> None:  # fmt: skip
    """Signs, absolute values, and which polynomials do not pass; see the kernel."""
    table, p = limbs[: words * terms].reshape(words, terms), int(field[0])
    numbers = [int.from_bytes(row.tobytes(), "little", signed=True) for row in table.T]
    for term, number in enumerate(numbers):
        owner = int(owners[term])
        negative[term + leads * (owner + 1)] = number < 0
        magnitude = abs(number)
        table[:, term] = np.frombuffer(magnitude.to_bytes(4 * words, "little"), "<u4")
        expected = int(residues[term * width + column]) * int(denominators[owner])
        if magnitude.bit_length() > most or (number - expected) % p:
            failed[owner] = 1
        else:
            used[0] = max(int(used[0]), -(-magnitude.bit_length() // 32))


def collect_limbs(
    at: Launched, limbs: Words, terms: int, owners: Words, leads: int, used: int, collected: Words
) -> None:
    """The lowest words of all absolute values, row by row."""
    rows = np.arange(terms) + leads * (owners[:terms].astype(np.int64) + 1)
    table = collected[: collected.size // used * used].reshape(-1, used)
    table[rows] = limbs[: used * terms].reshape(used, terms).T
