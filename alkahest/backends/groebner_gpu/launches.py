"""What the twins of kernels know of a launch, and how they look at buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]


@attrs.frozen
class Launched:
    """What a kernel knows of its launch.

    Attributes:
        group: what it was compiled for as ``LANES``.
        grid: number of blocks along x, y and z.
    """

    group: int
    grid: tuple[int, ...]


def grouped(words: Words, group: int, terms: int, lanes: int) -> Words:
    """Coefficients as ``[group][term][lane of the group]``, a view."""
    return words[: terms * lanes].reshape(lanes // group, terms, group)


def random_words(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Words ``first`` and on of splitmix64."""
    numbers = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = np.uint64(seed) + numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def signed(words: Words) -> NDArray[np.int32]:
    """The same words as signed integers."""
    return words.view(np.int32)


def emit(values: Words, place: NDArray[np.int32], known: Words, bad: Words) -> None:
    """Entries, shape ``(rows, width, lanes)``, to their terms; the others have to be zero."""
    groups, _, group = known.shape
    named = place >= 0
    terms = values[named].reshape(-1, groups, group)
    known[:, place[named]] = terms.transpose(1, 0, 2)
    bad[np.flatnonzero(values[~named].any(axis=0))] = 1


__all__ = ["Launched", "emit", "grouped", "random_words", "signed"]
