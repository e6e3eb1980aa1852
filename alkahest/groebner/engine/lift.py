"""From residues to rational coefficients: Chinese remainders and one denominator a polynomial.

Nothing becomes a Python integer but the denominators at the end. With ``M`` the product of the
primes, the remainder is the sum of ``t[i] * (M / p[i])`` less a multiple of M, where ``t[i]`` is a
residue modulo ``p[i]``. The sum is taken in digits of 24 bits held in 64-bit words, and the
multiple is the integer nearest to the sum of ``t[i] / p[i]``, which doubles give reliably for the
remainders that are looked for, those much shorter than M.

The denominator ``d`` of a polynomial is built up from random combinations of its coefficients, or
from single ones where the primes do not suffice for the denominator of a combination: each
time what is missing is the denominator of ``d`` times the coefficient. In the end all of them, times
``d`` modulo each prime, must have short remainders, which are the numerators.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import inlined, kernel
from alkahest.groebner.engine.euclid import (
    DIGIT_BITS,
    DIGIT_MASK,
    bit_length,
    fraction,
    length,
)
from alkahest.groebner.engine.lanes import LANES, add_products
from alkahest.groebner.engine.modulus import Modulus, numbers
from alkahest.groebner.engine.records import integers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLACK_BITS = 40
"""A remainder counts as found when it is this much shorter than the modulus."""

_MIX, _PROBE, _WRITE = range(3)
"""What is looked at: a combination, the first coefficient not yet integral, each in turn."""

_GROUP = 1 << 16
"""Residues of the polynomials that are settled by one call."""

_COMBINATIONS = 2
"""Random combinations that must be integers before a denominator is tried on all coefficients."""


@inlined
def _carry(digits):
    """Bring signed words into digit range; what goes out at the top."""
    carry = np.int64(0)
    for k in range(digits.size):
        value = digits[k] + carry
        digits[k] = value & DIGIT_MASK
        carry = value >> DIGIT_BITS
    return carry


@inlined
def remainder(residues, factors, primes, cofactors, modulus, digits):
    """Digits of the absolute value of the remainder nearest to zero; whether it is negative."""
    ndigits = modulus.size
    for k in range(ndigits):
        digits[k] = 0
    multiple = 0.0
    for i in range(primes.size):
        t = np.uint64(residues[i]) * factors[i] % primes[i]
        multiple += np.float64(t) / np.float64(primes[i])
        add_products(
            digits.ctypes.data, cofactors.ctypes.data + 4 * i * ndigits, ndigits // LANES, t
        )
        if i % 64 == 63:
            digits[ndigits - 1] += _carry(digits) << DIGIT_BITS
    q = np.int64(np.floor(multiple + 0.5))
    for k in range(ndigits):
        digits[k] -= q * modulus[k]
    negative = _carry(digits) < 0
    if negative:
        for k in range(ndigits):
            digits[k] = -digits[k]
        _carry(digits)
    return negative


@inlined
def _modulo(digits, prime):
    value = np.uint64(0)
    for k in range(digits.size - 1, -1, -1):
        value = ((value << np.uint64(DIGIT_BITS)) + np.uint64(digits[k])) % prime
    return value


@inlined
def _multiply(product, digits, scratch):
    """Multiply the number ``product`` by another in place; False if it does not fit."""
    n = product.size
    for k in range(n):
        scratch[k] = product[k]
        product[k] = 0
    for k in range(n):
        if digits[k] == 0:
            continue
        carry = np.int64(0)
        for j in range(n - k):
            value = product[k + j] + scratch[j] * digits[k] + carry
            product[k + j] = value & DIGIT_MASK
            carry = value >> DIGIT_BITS
        if carry:
            return False
    return True


@inlined
def extend(denominator, factors, primes, found, scratch):
    """Multiply the denominator, and the factors that carry it, by a newly found part."""
    for i in range(primes.size):
        factors[i] = factors[i] * _modulo(found, primes[i]) % primes[i]
    return _multiply(denominator, found, scratch)


@inlined
def is_one(digits):
    return digits[0] == 1 and length(digits) == 1


@inlined
def _mixture(residues, primes, state, vector):
    """A random combination of all rows; the next state of the generator (xorshift)."""
    sums = np.zeros(primes.size, np.uint64)
    for row in range(residues.shape[0]):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        weight = state & np.uint64(0xFF)
        for i in range(primes.size):
            sums[i] += weight * np.uint64(residues[row, i])
    for i in range(primes.size):
        vector[i] = sums[i] % primes[i]
    return state


@inlined
def _store(digits, limbs, row):
    """Cut digits into limbs of 32 bits."""
    for k in range(limbs.shape[1]):
        limbs[row, k] = 0
    for k in range(digits.size):
        if digits[k]:
            at = (DIGIT_BITS * k) >> 5
            wide = np.uint64(digits[k]) << np.uint64((DIGIT_BITS * k) & 31)
            limbs[row, at] |= np.uint32(wide & np.uint64(0xFFFFFFFF))
            if wide >> np.uint64(32):
                limbs[row, at + 1] |= np.uint32(wide >> np.uint64(32))


@inlined
def _settle(residues, inverses, primes, cofactors, modulus, limbs, negative, denominator, most):
    """Find the denominator of a polynomial and write the numerators to ``limbs``.

    ``residues`` may have further columns than those of ``primes``.

    Returns:
        Whether the primes suffice.
    """
    ndigits = modulus.size
    digits = np.empty(ndigits, np.int64)
    scratch = np.empty(ndigits, np.int64)
    work = np.empty((6, ndigits), np.int64)
    factors = np.empty(primes.size, np.uint64)
    vector = np.empty(primes.size, np.uint32)
    for i in range(primes.size):
        factors[i] = inverses[i]
    for k in range(ndigits):
        denominator[k] = 0
    denominator[0] = 1
    state = np.uint64(88172645463325252)
    count = residues.shape[0]
    probe, row, integral = 0, 0, 0
    stage = _MIX if count else _WRITE
    while stage != _WRITE or row < count:
        if stage == _MIX:
            state = _mixture(residues, primes, state, vector)
        else:
            at = probe if stage == _PROBE else row
            for i in range(primes.size):
                vector[i] = residues[at, i]
        sign = remainder(vector, factors, primes, cofactors, modulus, digits)
        if bit_length(digits) <= most:
            if stage == _MIX:
                integral += 1
                if integral == _COMBINATIONS:
                    stage = _WRITE
            elif stage == _PROBE:
                probe += 1
                if probe == count:
                    stage = _WRITE
            else:
                negative[row] = sign
                _store(digits, limbs, row)
                row += 1
            continue
        if fraction(modulus, digits, work) == 0 or is_one(work[3]):
            if stage != _MIX:
                return False
            # The primes may suffice for a single coefficient where a mixture is too much.
            stage = _PROBE if probe < count else _WRITE
            continue
        if not extend(denominator, factors, primes, work[3], scratch):
            return False
        integral, row = 0, 0
        if stage == _PROBE:
            stage = _MIX
    return True


@inlined
def _agree(limbs, negative, residues, denominator, prime):
    """Whether each row's integer is ``denominator * residue`` modulo ``prime``."""
    for row in range(residues.size):
        value = np.uint64(0)
        for k in range(limbs.shape[1] - 1, -1, -1):
            value = ((value << np.uint64(32)) | np.uint64(limbs[row, k])) % prime
        if negative[row] and value:
            value = prime - value
        if value != np.uint64(residues[row]) * denominator % prime:
            return False
    return True


@kernel(
    "void(uint32[:, ::1], int64[::1], int64[::1], uint64[::1], uint64[::1], uint32[:, ::1],"
    "int64[::1], int64, uint64, uint32[:, ::1], uint8[::1], int64[:, ::1], uint8[::1])"
)
def _settle_each(
    residues, begins, places, inverses, primes, cofactors, modulus, most, fresh, limbs, negative,
    denominators, found,
):  # fmt: skip
    """Settle polynomials and check them modulo ``fresh``, whose residues are the last column."""
    for k in range(found.size):
        own = residues[begins[k] : begins[k + 1]]
        to = slice(places[k], places[k] + begins[k + 1] - begins[k])
        found[k] = _settle(
            own, inverses, primes, cofactors, modulus, limbs[to], negative[to], denominators[k],
            most,
        ) and _agree(
            limbs[to], negative[to], own[:, primes.size], _modulo(denominators[k], fresh), fresh
        )  # fmt: skip


@kernel(
    "void(uint32[:, ::1], uint8[::1], int64[::1], int64[::1], int64[::1], uint32[::1],"
    "uint64[::1], uint64, uint8[::1])"
)
def _agree_each(limbs, negative, places, offsets, chosen, residues, denominators, prime, agrees):
    """Whether chosen polynomials agree with the residues of all terms modulo a further prime."""
    for k in range(chosen.size):
        i = chosen[k]
        own = residues[offsets[i] : offsets[i + 1]]
        to = slice(places[i], places[i] + own.size)
        agrees[k] = _agree(limbs[to], negative[to], own, denominators[k], prime)


@attrs.frozen(eq=False)
class Attempt:
    """What is lifted from.

    Attributes:
        rows: gives the residues of the terms from one number to another, shape ``(terms, n)``.
        modulus: of the first ``n - 1`` primes.
        fresh: the last prime, which is not lifted from but checks the result.
    """

    rows: Callable[[int, int], NDArray[np.uint32]]
    modulus: Modulus
    fresh: int

    @classmethod
    def of(cls, rows: Callable[[int, int], NDArray[np.uint32]], primes: tuple[int, ...]) -> Attempt:
        """From residues modulo some primes, two at least."""
        return cls(rows, Modulus.of(primes[:-1]), primes[-1])

    @property
    def most_bits(self) -> int:
        """Longest numerators that count as found."""
        return self.modulus.product.bit_length() - _SLACK_BITS


@attrs.define(eq=False)
class Lift:
    """Rational coefficients of a basis, as far as they are known.

    Attributes:
        offsets: where the terms of each polynomial begin, leading terms not counted.
        threads: that settle polynomials side by side.
        leads: rows of ``limbs`` and ``negative`` that are left free before each polynomial.
        limbs: uint32, shape ``(terms and free rows, n)``: numerators over the polynomial's
            denominator.
        negative: uint8, their signs.
        denominators: positive integers, 0 where the polynomial is not settled.
    """

    offsets: NDArray[np.int64]
    threads: int = 1
    leads: int = 0
    limbs: NDArray[np.uint32] = attrs.field(init=False)
    negative: NDArray[np.uint8] = attrs.field(init=False)
    denominators: list[int] = attrs.field(init=False)
    _places: NDArray[np.int64] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        count = len(self.offsets) - 1
        rows = int(self.offsets[-1]) + self.leads * count
        self.limbs = np.zeros((rows, 1), np.uint32)
        self.negative = np.zeros(rows, np.uint8)
        self.denominators = [0] * count
        self._places = self.offsets[:-1] + self.leads * np.arange(1, count + 1)

    @property
    def settled(self) -> bool:
        """Whether every polynomial is known."""
        return all(self.denominators)

    @property
    def waiting(self) -> list[int]:
        """Numbers of the polynomials that are not known."""
        return [i for i, d in enumerate(self.denominators) if not d]

    def integers(self, where: NDArray[np.bool_]) -> list[int]:
        """Numerators of the chosen rows."""
        return integers_of(self.limbs[where], self.negative[where])

    def bits(self) -> int:
        """A bound of the bit lengths of all numerators."""
        return 32 * self.words()

    def words(self) -> int:
        """Limbs that the longest numerator has."""
        words = int(self.limbs.shape[1])
        while words and not self.limbs[:, words - 1].any():
            words -= 1
        return words

    def recheck(
        self,
        residues: NDArray[np.uint32],
        primes: tuple[int, ...],
        indices: Iterable[int] | None = None,
    ) -> None:
        """Give up polynomials, all or some, that disagree with residues modulo any prime."""
        every = range(len(self.denominators)) if indices is None else indices
        chosen = np.array([i for i in every if self.denominators[i]], np.int64)
        agrees = np.empty(len(chosen), np.uint8)
        for column, p in zip(residues.T, primes, strict=True):
            _agree_each(
                self.limbs, self.negative, self._places, self.offsets, chosen,
                np.ascontiguousarray(column),
                np.array([self.denominators[i] % p for i in chosen], np.uint64), p, agrees,
            )  # fmt: skip
            for i in chosen[agrees == 0]:
                self.denominators[i] = 0

    def settle(
        self,
        residues: NDArray[np.uint32],
        primes: tuple[int, ...],
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """Find what can be found; a few polynomials go first, and the rest only if they succeed.

        Args:
            residues: shape ``(terms, len(primes))``.
            primes: the last one is not lifted from but checks the result.
            checkpoint: called between polynomials; raises to stop.
        """
        attempt = Attempt.of(lambda first, last: residues[first:last], primes)
        witnesses = self.witnesses()
        self.settle_each(witnesses, attempt, lambda: None)
        if all(self.denominators[i] for i in witnesses):
            self.settle_each(self.waiting, attempt, checkpoint)

    def witnesses(self) -> list[int]:
        """A few of the polynomials that are not known."""
        waiting = self.waiting
        return waiting[:: max(1, len(waiting) // 4)]

    def settle_each(
        self, indices: list[int], attempt: Attempt, checkpoint: Callable[[], None]
    ) -> None:
        """Find what can be found of some polynomials."""
        if not indices:
            return
        self.widen(attempt.modulus.limbs)
        groups = self._groups(indices, attempt)
        if self.threads == 1:
            for group in groups:
                checkpoint()
                self._settle(group, attempt)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(self._settle, group, attempt) for group in groups]
            try:
                for future in futures:
                    future.result()
                    checkpoint()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def restart(self, width: int) -> None:
        """Forget everything, and make room for numerators of ``width`` limbs."""
        self.limbs = np.zeros((len(self.limbs), width), np.uint32)
        self.denominators = [0] * len(self.denominators)

    def widen(self, width: int) -> None:
        """Make room for numerators of ``width`` limbs."""
        if width > self.limbs.shape[1]:
            wider = np.zeros((len(self.limbs), width), np.uint32)
            if any(self.denominators):
                wider[:, : self.limbs.shape[1]] = self.limbs
            self.limbs = wider

    def _groups(self, indices: list[int], attempt: Attempt) -> list[list[int]]:
        """Polynomials to settle by one call each, few enough for checkpoints between them."""
        primes = len(attempt.modulus.primes)
        groups: list[list[int]] = []
        room = 0
        for i in indices:
            size = int(self.offsets[i + 1] - self.offsets[i]) * primes
            if room < size or not groups:
                groups.append([])
                room = _GROUP
            groups[-1].append(i)
            room -= size
        return groups

    def _settle(self, group: list[int], attempt: Attempt) -> None:
        modulus, bounds = attempt.modulus, [self.offsets[i : i + 2].tolist() for i in group]
        parts = [attempt.rows(first, last) for first, last in bounds]
        residues = np.ascontiguousarray(np.concatenate(parts))
        begins = np.cumsum([0, *(last - first for first, last in bounds)], dtype=np.int64)
        digits = np.empty((len(group), len(modulus.digits)), np.int64)
        found = np.empty(len(group), np.uint8)
        _settle_each(
            residues, begins, self._places[group], modulus.inverses, modulus.primes,
            modulus.cofactors, modulus.digits, attempt.most_bits, attempt.fresh, self.limbs,
            self.negative, digits, found,
        )  # fmt: skip
        for i, flag, denominator in zip(group, found.tolist(), numbers(digits), strict=True):
            if flag:
                self.denominators[i] = denominator
