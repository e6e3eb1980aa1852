"""Primes of 31 bits, one after another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from alkahest.groebner.engine.records import LARGEST_PRIME


def primes_below(bound: int = LARGEST_PRIME, coefficients: Iterable[int] = ()) -> Iterator[int]:
    """Primes at most ``bound`` that divide none of the coefficients, the largest first."""
    from flint import fmpz

    product = math.prod(set(coefficients))
    for candidate in range(bound if bound % 2 else bound - 1, 2**30, -2):
        if fmpz(candidate).is_prime() and product % candidate:
            yield candidate
