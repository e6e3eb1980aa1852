"""Open addressing for packed monomials: what the tables of columns and of rows share.

The hash of a monomial is linear in its words, hence the hash of a product is the sum of hashes.
A slot holds the upper half of a hash beside the number of an entry plus one, so that most misses
need no second look; an empty slot is zero.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alkahest.groebner.engine._kernel import inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray


def empty_slots(count: int) -> NDArray[np.uint64]:
    """A table that ``count`` entries fill to a half at most."""
    return np.zeros(1 << (2 * count).bit_length(), np.uint64)


@inlined
def hashed(words, i, salt):
    """Hash of the packed monomial ``words[i]``."""
    h = np.uint64(0)
    for w in range(salt.size):
        h += words[i, w] * salt[w]
    return h


@inlined
def place_shift(slots):
    """What takes a 32-bit hash to a place in the table: its upper bits."""
    shift = np.uint64(32)
    size = slots.size
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    return shift


@inlined
def enter(slots, shift, h, number):
    """Put an entry that is not there yet into the table, by its 64-bit hash."""
    mask = np.uint64(slots.size - 1)
    h >>= np.uint64(32)
    at = h >> shift
    while slots[at] != 0:
        at = (at + np.uint64(1)) & mask
    slots[at] = (h << np.uint64(32)) | np.uint64(number + 1)
