"""From images modulo primes to rational numbers.

Images modulo more and more primes are lifted by :mod:`alkahest.groebner.engine.lift` until one
prime that was not used agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner.engine.lift import Lift
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.records import LARGEST_PRIME

Image = NDArray[np.uint64]

MAX_FRUITLESS = 100
"""Primes in a row that may give no image before the lift is given up."""


def lift(
    image: Callable[[int], Image | None],
    groups: Sequence[int],
    start: int = LARGEST_PRIME,
    limits: Limits | None = None,
) -> tuple[list[Fraction], tuple[int, ...]]:
    """Rational numbers from their images.

    Args:
        image: residues modulo a prime, or None for a prime that gives none.
        groups: lengths of the runs of numbers that share a denominator.
        start: the largest prime to use.
        limits: asked between primes, or None.

    Returns:
        The numbers, and the primes that were used; the last one only checked.

    Raises:
        SolverError: E-SOLVE-011 when the primes run out, E-SOLVE-012 at a limit.
    """
    state = Lift(np.cumsum([0, *groups], dtype=np.int64))
    limits = limits or Limits()
    columns: list[NDArray[np.uint32]] = []
    used: list[int] = []
    next_try, fruitless = 2, 0
    for prime in primes_below(start):
        limits.checkpoint()
        residues = image(prime)
        if residues is None:
            fruitless += 1
            if fruitless > MAX_FRUITLESS:
                break
            continue
        fruitless = 0
        columns.append(residues.astype(np.uint32))
        used.append(prime)
        if len(used) < next_try:
            continue
        table = np.column_stack(columns)
        state.settle(table, tuple(used), limits.checkpoint)
        if state.settled:
            state.recheck(table[:, -1:], (prime,))
        if state.settled:
            return _fractions(state), tuple(used)
        next_try = len(used) + 1 + len(used) // 6
    raise SolverError(
        "E-SOLVE-011", f"no rational numbers fit the images modulo {len(used)} primes"
    )


def _fractions(state: Lift) -> list[Fraction]:
    numerators = state.integers(np.ones(len(state.limbs), np.bool_))
    denominators = np.repeat(np.array(state.denominators, object), np.diff(state.offsets))
    return [Fraction(n, d) for n, d in zip(numerators, denominators.tolist(), strict=True)]


__all__ = ["Image", "lift"]
