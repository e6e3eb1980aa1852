"""The kernels of liftings once more, in NumPy; see :mod:`~alkahest.backends.groebner_gpu.twin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alkahest.backends.groebner_gpu.launches import Launched, random_words, signed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]


def gather_lanes(
    at: Launched, source: Words, lanes: int, columns: Words, count: int, terms: int,
    target: Words, width: int, first: int,
) -> None:  # fmt: skip
    """Some columns of residues into a wider table."""
    table = target[: terms * width].reshape(terms, width)
    chosen = signed(columns)[:count]
    table[:, first : first + count] = source[: terms * lanes].reshape(terms, lanes)[:, chosen]


def mix_terms(
    at: Launched, residues: Words, lanes: int, spans: Words, field: Words, mixtures: Words
) -> None:
    """Combinations of each polynomial, whose weights are the bytes of random words."""
    count, primes = at.grid[0], field[:lanes].astype(np.uint64)
    known = residues[: residues.size // lanes * lanes].reshape(-1, lanes).astype(np.uint64)
    out = mixtures[: count * 8 * lanes].reshape(count, 8, lanes)
    for number, (first, last) in enumerate(signed(spans)[: 2 * count].reshape(-1, 2).tolist()):
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
    begins = signed(starts)[:polynomials]
    owner = np.searchsorted(begins, np.arange(terms), side="right") - 1
    known = residues[: terms * width].reshape(terms, width)[:, signed(columns)[:n]]
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


__all__ = [
    "add_cofactors",
    "check_terms",
    "collect_limbs",
    "gather_lanes",
    "mix_terms",
    "scale_terms",
]
