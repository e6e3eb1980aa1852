"""Primes of 31 bits, one after another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache


def primes_below(bound: int, coefficients: Iterable[int]) -> Iterator[int]:
    """Primes at most ``bound`` that divide none of the coefficients, the largest first."""
    product = math.prod(set(coefficients))
    candidate = bound if bound % 2 else bound - 1
    while candidate > 2**30:
        if product % candidate and is_prime(candidate):
            yield candidate
        candidate -= 2


@lru_cache(maxsize=1 << 14)
def is_prime(number: int) -> bool:
    """Whether an odd number below 3,215,031,751 is prime (Miller-Rabin, bases 2, 3, 5 and 7)."""
    if number < 11:
        return number in (3, 5, 7)
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    for base in (2, 3, 5, 7):
        value = pow(base, odd, number)
        if value in (1, number - 1):
            continue
        if not any((value := value * value % number) == number - 1 for _ in range(twos - 1)):
            return False
    return True
