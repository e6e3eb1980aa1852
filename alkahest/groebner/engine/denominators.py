"""The denominators of many polynomials at once, from combinations of their coefficients."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.euclid import bit_length, fraction
from alkahest.groebner.engine.lift import Attempt, extend, is_one, remainder
from alkahest.groebner.engine.modulus import numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel(
    "void(uint32[:, :, ::1], uint64[::1], uint64[::1], uint32[:, ::1], int64[::1], int64,"
    "int64[:, ::1], uint8[::1])"
)
def _find(mixtures, inverses, primes, cofactors, modulus, most, denominators, found):
    """For each polynomial the least denominator that makes all its mixtures integers."""
    ndigits = modulus.size
    digits = np.empty(ndigits, np.int64)
    scratch = np.empty(ndigits, np.int64)
    work = np.empty((6, ndigits), np.int64)
    factors = np.empty(primes.size, np.uint64)
    for index in range(mixtures.shape[0]):
        for i in range(primes.size):
            factors[i] = inverses[i]
        for k in range(ndigits):
            denominators[index, k] = 0
        denominators[index, 0] = 1
        found[index] = 1
        for k in range(mixtures.shape[1]):
            remainder(mixtures[index, k], factors, primes, cofactors, modulus, digits)
            if bit_length(digits) <= most:
                continue
            if fraction(modulus, digits, work) == 0 or is_one(work[3]):
                found[index] = 0
                break
            if not extend(denominators[index], factors, primes, work[3], scratch):
                found[index] = 0
                break


def denominators_of(mixtures: NDArray[np.uint32], attempt: Attempt, threads: int) -> list[int]:
    """The common denominators of combinations, 0 where the primes do not suffice for them.

    A denominator of the coefficients themselves may have further factors, each with a probability
    that falls with the number of combinations.

    Args:
        mixtures: residues, shape ``(polynomials, combinations, primes)``.
        attempt: whose modulus is that of the primes.
        threads: that share the polynomials.
    """
    modulus = attempt.modulus
    digits = np.empty((len(mixtures), len(modulus.digits)), np.int64)
    found = np.empty(len(mixtures), np.uint8)
    share = max(1, -(-len(mixtures) // (4 * threads)))

    def find(first: int) -> None:
        part = slice(first, first + share)
        _find(
            mixtures[part], modulus.inverses, modulus.primes, modulus.cofactors, modulus.digits,
            attempt.most_bits, digits[part], found[part],
        )  # fmt: skip

    starts = range(0, len(mixtures), share)
    if threads == 1:
        for first in starts:
            find(first)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(find, starts))
    return [n if flag else 0 for n, flag in zip(numbers(digits), found.tolist(), strict=True)]
