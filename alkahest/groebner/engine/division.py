"""Division of rows by pivots over the rationals, with a proof.

Quotients and remainders are computed modulo many primes and lifted. What is lifted satisfies
``d * f = sum of q[k] * g[k] + r`` modulo each of the primes, with integers on both sides. Once the
product of the primes exceeds a bound of the difference of the two sides, which the lifted numbers
give, the equation holds over the integers, and nothing is left to chance.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.lanes import LANES, moduli
from alkahest.groebner.engine.lift import Lift
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.records import EngineBasis
from alkahest.groebner.engine.replay import reduced_rows
from alkahest.groebner.engine.trace import TraceRound


def inverses_modulo(integers: Sequence[int], primes: Sequence[int]) -> NDArray[np.uint64]:
    """Inverses of integers, none of which a prime divides, shape ``(integers, primes)``."""
    rows = [[pow(c % p, -1, p) for p in primes] for c in integers]
    return np.array(rows, np.uint64).reshape(len(integers), len(primes))


@attrs.define(eq=False)
class Images:
    """Coefficients modulo eight primes at a time, computed once however often they are asked for.

    Attributes:
        compute: from eight primes to an array of shape ``(terms, 8)``, or None where one of the
            primes is of no use.
        primes: which primes to try.
    """

    compute: Callable[[Sequence[int]], NDArray[np.uint32] | None]
    primes: Iterator[int]
    done: list[tuple[tuple[int, ...], NDArray[np.uint32]]] = attrs.field(init=False, factory=list)

    def batch(self, number: int) -> tuple[tuple[int, ...], NDArray[np.uint32]]:
        """The primes and images of one batch."""
        while len(self.done) <= number:
            primes = tuple(next(self.primes) for _ in range(LANES))
            images = self.compute(primes)
            if images is not None:
                self.done.append((primes, images))
        return self.done[number]


@attrs.define(eq=False, kw_only=True)
class Division:
    """Rows as combinations of pivot rows and a remainder.

    Attributes:
        program: the matrix; its lower rows are divided, its pivot rows are the divisors.
        images: coefficients that the rows refer to; pivot rows are monic.
        scales: for each pivot column an integer that makes its monic row integral; quotients are
            those by the integral rows.
        given_bits: bound of the bit lengths of the rows to divide, made integral.
        divisor_bits: the same for the pivot rows.
        row_bits: bound of the bit lengths of the factors that make the rows to divide integral.
        limits: asked between rows.
        row, column: positions of what is not zero, in row order: quotients in columns with a
            pivot, remainders in the others.
        lift: their values, one denominator for each row.
    """

    program: TraceRound
    images: Images
    scales: list[int]
    given_bits: int
    divisor_bits: int
    row_bits: int = 0
    limits: Limits
    row: NDArray[np.int64] = attrs.field(init=False)
    column: NDArray[np.int64] = attrs.field(init=False)
    lift: Lift = attrs.field(init=False)

    def run(self) -> None:
        """Divide modulo more and more primes until the result is proved."""
        mask = np.zeros((len(self.program.lower), self.program.columns), np.bool_)
        used: list[int] = []
        residues = self._start(mask)
        number, next_try = 0, 2
        while not self._proved(used):
            self.limits.checkpoint()
            primes, images = self._divide(number)
            number += 1
            seen = (images != 0).any(axis=2)
            if (seen & ~mask).any():
                # Entries that the primes so far did not show: begin again, looking for them too.
                mask |= seen
                used, residues, next_try = [], self._start(mask), 2
            used += primes
            residues = np.concatenate([residues, images[mask]], axis=1)
            if self.lift.settled:
                self.lift.recheck(images[mask], primes)
            elif len(used) >= next_try:
                next_try = len(used) + 1 + len(used) // 8
                self.lift.settle(residues, tuple(used), self.limits.checkpoint)
                if self.lift.settled:
                    self.lift.recheck(residues, tuple(used))

    def _start(self, mask: NDArray[np.bool_]) -> NDArray[np.uint32]:
        self.row, self.column = np.nonzero(mask)
        self.lift = Lift(np.searchsorted(self.row, np.arange(len(mask) + 1)))
        return np.zeros((len(self.row), 0), np.uint32)

    def _divide(self, number: int) -> tuple[tuple[int, ...], NDArray[np.uint32]]:
        """Quotients and remainders modulo eight primes, shape ``(rows, columns, 8)``."""
        primes, coefficients = self.images.batch(number)
        field, one = moduli(primes), self.program
        images = np.empty((len(one.lower), one.columns, LANES), np.uint32)
        for first, rows in reduced_rows(one, coefficients, field, self.limits.checkpoint):
            images[first : first + len(rows)] = rows.reshape(len(rows), one.columns, LANES)
        quotients = images[:, : one.pivots] * inverses_modulo(self.scales, primes)
        images[:, : one.pivots] = quotients % field[0]
        return primes, images

    def _proved(self, used: list[int]) -> bool:
        """Whether the primes exceed the difference of the two sides of every equation."""
        if not used or not self.lift.settled:
            return False
        denominator = max((d.bit_length() for d in self.lift.denominators), default=0)
        terms = (self.program.columns + 1).bit_length()
        largest = self.lift.bits() + self.divisor_bits + self.row_bits + terms
        bound = max(self.given_bits + denominator, largest) + 2
        return sum(p.bit_length() - 1 for p in used) > bound


@attrs.frozen(eq=False)
class DivisorImages:
    """Coefficients of the basis, monic, and of the polynomials to divide, modulo eight primes."""

    basis: EngineBasis
    leading: list[int]
    divided: list[int]

    def __call__(self, primes: Sequence[int]) -> NDArray[np.uint32]:
        moduli = np.array(primes, np.uint64)
        known = len(self.basis.limbs)
        found = np.empty((known + len(self.divided), LANES), np.uint32)
        _images_of_limbs(
            self.basis.limbs, self.basis.negative.view(np.uint8), moduli, found[:known]
        )
        inverses = inverses_modulo(self.leading, primes)
        scale = np.repeat(inverses, np.diff(self.basis.offsets), axis=0)
        found[:known] = found[:known] * scale % moduli
        for at, value in enumerate(self.divided):
            found[known + at] = [value % p for p in primes]
        return found


@kernel("void(uint32[:, ::1], uint8[::1], uint64[::1], uint32[:, ::1])")
def _images_of_limbs(limbs, negative, primes, out):
    for row in range(limbs.shape[0]):
        for lane in range(primes.size):
            p = primes[lane]
            value = np.uint64(0)
            for k in range(limbs.shape[1] - 1, -1, -1):
                value = ((value << np.uint64(32)) | np.uint64(limbs[row, k])) % p
            if negative[row] and value:
                value = p - value
            out[row, lane] = value
