"""From images modulo primes to rational numbers.

Images are combined by the Chinese remainder theorem; rational reconstruction (Wang 1981) reads
fractions off the combination, one common denominator per group of numbers. A result counts when it
stays the same under a further prime.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError

Image = NDArray[np.uint64]

MAX_FRUITLESS = 100
"""Primes in a row that may give no image before the lift is given up."""


def primes_from(start: int = 2**31 - 1) -> Iterator[int]:
    """The primes from ``start`` downwards."""
    from flint import fmpz

    candidate = start | 1
    while candidate > 2**30:
        if fmpz(candidate).is_prime():
            yield candidate
        candidate -= 2


class Lift:
    """Numbers that are known modulo more and more primes.

    Args:
        groups: lengths of the runs of numbers that share a denominator.
    """

    def __init__(self, groups: Sequence[int]) -> None:
        self.groups = list(groups)
        self.modulus = 1
        self.primes: list[int] = []
        self._values: NDArray[Any] = np.zeros(sum(self.groups), dtype=object)

    def add(self, residues: Image, prime: int) -> None:
        """Take in the residues modulo a new prime."""
        known = (self._values % prime).astype(np.uint64)
        inverse = np.uint64(pow(self.modulus, -1, prime))
        p = np.uint64(prime)
        step = (residues + (p - known)) % p * inverse % p
        self._values = self._values + self.modulus * step.astype(object)
        self.modulus *= prime
        self.primes.append(prime)

    def rational(self) -> list[Fraction] | None:
        """The numbers as fractions, or None while the modulus is too small for them."""
        found: list[Fraction] = []
        start = 0
        for length in self.groups:
            group = _group(self._values[start : start + length], self.modulus)
            if group is None:
                return None
            found += group
            start += length
        return found


def _group(values: NDArray[Any], modulus: int) -> list[Fraction] | None:
    """Fractions with one denominator, the product of what each number adds to it."""
    bound = isqrt(modulus // 2)
    denominator = 1
    numerators: list[int] = []
    scales: list[int] = []
    for value in values:
        numerator = value * denominator % modulus
        if numerator > modulus // 2:
            numerator -= modulus
        if abs(numerator) > bound:
            pair = reconstruct(value * denominator % modulus, modulus)
            if pair is None:
                return None
            numerator, extra = pair
            denominator *= extra
            if denominator > bound:
                return None
        numerators.append(numerator)
        scales.append(denominator)
    return [Fraction(n, d) for n, d in zip(numerators, scales, strict=True)]


def reconstruct(value: int, modulus: int) -> tuple[int, int] | None:
    """n and d with n = d * value modulo ``modulus``, both at most sqrt(modulus / 2), coprime."""
    bound = isqrt(modulus // 2)
    r0, r1, t0, t1 = modulus, value, 0, 1
    while r1 > bound:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if not 0 < abs(t1) <= bound or Fraction(r1, t1).denominator != abs(t1):
        return None
    return (r1, t1) if t1 > 0 else (-r1, -t1)


def lift(
    image: Callable[[int], Image | None],
    groups: Sequence[int],
    start: int = 2**31 - 1,
    until: float | None = None,
) -> tuple[list[Fraction], tuple[int, ...]]:
    """Rational numbers from their images.

    Args:
        image: residues modulo a prime, or None for a prime that gives none.
        groups: see :class:`Lift`.
        start: the largest prime to use.
        until: reading of :func:`time.monotonic` at which to give up, or None.

    Returns:
        The numbers, and the primes that were used; the last one only checked.

    Raises:
        SolverError: E-SOLVE-011 when the primes run out, E-SOLVE-012 at the deadline.
    """
    state = Lift(groups)
    guess: list[Fraction] | None = None
    next_try, fruitless = 1, 0
    for prime in primes_from(start):
        if until is not None and time.monotonic() > until:
            raise SolverError("E-SOLVE-012", "the deadline passed before the numbers were lifted")
        residues = image(prime)
        if residues is None:
            fruitless += 1
            if fruitless > MAX_FRUITLESS:
                break
            continue
        fruitless = 0
        if guess is not None and _agrees(guess, residues, prime):
            return guess, (*state.primes, prime)
        state.add(residues, prime)
        guess = None
        if len(state.primes) >= next_try:
            guess = state.rational()
            next_try = len(state.primes) + 1 + len(state.primes) // 6
    raise SolverError(
        "E-SOLVE-011", f"no rational numbers fit the images modulo {len(state.primes)} primes"
    )


def _agrees(numbers: Sequence[Fraction], residues: Image, prime: int) -> bool:
    return all(
        number.denominator % prime
        and (number.numerator - int(residue) * number.denominator) % prime == 0
        for number, residue in zip(numbers, residues, strict=True)
    )


__all__ = ["Lift", "lift", "primes_from", "reconstruct"]
