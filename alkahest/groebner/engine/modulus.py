"""Products of primes, and numbers, in digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine.euclid import DIGIT_BITS
from alkahest.groebner.engine.lanes import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray


def numbers(digits: NDArray[np.int64]) -> list[int]:
    """The numbers whose digits are in the rows of an array, the least significant first."""
    assert DIGIT_BITS == 24
    octets = digits.astype("<u4").view(np.uint8).reshape(*digits.shape, 4)[:, :, :3]
    data, size = octets.tobytes(), 3 * digits.shape[1]
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _digits(values: Sequence[int], count: int) -> NDArray[np.int64]:
    """The lowest ``count`` digits of each number, least significant first."""
    assert DIGIT_BITS == 24
    data = b"".join(value.to_bytes(3 * count, "little") for value in values)
    octets = np.frombuffer(data, np.uint8).reshape(len(values), count, 3)
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
            cofactors=_digits(cofactors, count).astype(np.uint32),
            digits=_digits([product], count)[0],
        )

    @property
    def limbs(self) -> int:
        """32-bit words that hold any remainder."""
        return -(-self.product.bit_length() // 32) + 1
