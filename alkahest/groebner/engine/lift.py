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

import math
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
from alkahest.groebner.engine.records import integers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLACK_BITS = 40
"""A remainder counts as found when it is this much shorter than the modulus."""

_MIX, _PROBE, _WRITE = range(3)
"""What is looked at: a combination, the first coefficient not yet integral, each in turn."""

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


@kernel(
    "int64(uint32[:, ::1], uint64[::1], uint64[::1], uint32[:, ::1], int64[::1],"
    "uint32[:, ::1], uint8[::1], int64[::1], int64)"
)
def _settle(residues, inverses, primes, cofactors, modulus, limbs, negative, denominator, most):
    """Find the denominator of a polynomial and write the numerators to ``limbs``.

    Returns:
        1, or 0 when the primes do not suffice.
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
                return 0
            # The primes may suffice for a single coefficient where a mixture is too much.
            stage = _PROBE if probe < count else _WRITE
            continue
        if not extend(denominator, factors, primes, work[3], scratch):
            return 0
        integral, row = 0, 0
        if stage == _PROBE:
            stage = _MIX
    return 1


@kernel("boolean(uint32[:, ::1], uint8[::1], uint32[::1], uint64, uint64)")
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


def numbers(digits: NDArray[np.int64]) -> list[int]:
    """The numbers whose digits are in the rows of an array, the least significant first."""
    assert DIGIT_BITS == 24
    octets = digits.astype("<u4").view(np.uint8).reshape(*digits.shape, 4)[:, :, :3]
    data, size = octets.tobytes(), 3 * digits.shape[1]
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _digits(value: int, count: int) -> NDArray[np.int64]:
    """The lowest ``count`` digits of a number, least significant first."""
    assert DIGIT_BITS == 24
    octets = np.frombuffer(value.to_bytes(3 * count, "little"), np.uint8).reshape(count, 3)
    digits: NDArray[np.int64] = octets.astype(np.int64) @ np.array([1, 1 << 8, 1 << 16])
    return digits


@attrs.frozen(eq=False)
class Modulus:
    """Primes together with what Chinese remaindering needs of them.

    Attributes:
        primes: uint64.
        product: their product.
        inverses: uint64: of ``product // p`` modulo ``p``.
        cofactors: uint32, shape ``(primes, ndigits)``: digits of ``product // p``.
        digits: int64, digits of the product.
    """

    primes: NDArray[np.uint64]
    product: int
    inverses: NDArray[np.uint64]
    cofactors: NDArray[np.uint32]
    digits: NDArray[np.int64]

    @classmethod
    def of(cls, primes: tuple[int, ...]) -> Modulus:
        """The modulus of distinct primes below 2**31."""
        product = math.prod(primes)
        count = -(-(product.bit_length() // DIGIT_BITS + 3) // LANES) * LANES
        cofactors = [product // p for p in primes]
        inverses = [pow(c % p, -1, p) for c, p in zip(cofactors, primes, strict=True)]
        return cls(
            primes=np.array(primes, np.uint64),
            product=product,
            inverses=np.array(inverses, np.uint64),
            cofactors=np.array([_digits(c, count) for c in cofactors]).astype(np.uint32),
            digits=_digits(product, count),
        )

    @property
    def limbs(self) -> int:
        """32-bit words that hold any remainder."""
        return -(-self.product.bit_length() // 32) + 1


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

    def __attrs_post_init__(self) -> None:
        count = len(self.offsets) - 1
        rows = int(self.offsets[-1]) + self.leads * count
        self.limbs = np.zeros((rows, 1), np.uint32)
        self.negative = np.zeros(rows, np.uint8)
        self.denominators = [0] * count

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
        chosen = range(len(self.denominators)) if indices is None else list(indices)
        for column, p in enumerate(primes):
            for i in chosen:
                check = residues[self.offsets[i] : self.offsets[i + 1], column]
                if self.denominators[i] and not self._agrees(i, check, self.denominators[i], p):
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
        if self.threads == 1:
            for i in indices:
                checkpoint()
                self._settle(i, attempt)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(self._settle, i, attempt) for i in indices]
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

    def _settle(self, index: int, attempt: Attempt) -> None:
        modulus = attempt.modulus
        residues = attempt.rows(int(self.offsets[index]), int(self.offsets[index + 1]))
        part = self._rows(index)
        digits = np.empty(len(modulus.digits), np.int64)
        found = _settle(
            np.ascontiguousarray(residues), modulus.inverses, modulus.primes, modulus.cofactors,
            modulus.digits, self.limbs[part], self.negative[part], digits, attempt.most_bits,
        )  # fmt: skip
        if not found:
            return
        denominator = numbers(digits[None])[0]
        if self._agrees(index, residues[:, -1], denominator, attempt.fresh):
            self.denominators[index] = denominator

    def _agrees(
        self, index: int, residues: NDArray[np.uint32], denominator: int, prime: int
    ) -> bool:
        part = self._rows(index)
        return denominator > 0 and _agree(
            self.limbs[part], self.negative[part], np.ascontiguousarray(residues),
            denominator % prime, prime,
        )  # fmt: skip

    def _rows(self, index: int) -> slice:
        """Where the limbs of a polynomial are."""
        free = self.leads * (index + 1)
        return slice(int(self.offsets[index]) + free, int(self.offsets[index + 1]) + free)
