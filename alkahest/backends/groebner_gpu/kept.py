"""Coefficients of a replay that stay on the devices where they were computed."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.sessions import Device, Session, Words

THREADS = 256
"""Threads of a block of kernels that go through terms one by one."""

_MOST_BLOCKS = 1 << 16


def blocks_for(items: int) -> tuple[int]:
    """The grid of such a kernel; a thread takes several items where there are very many."""
    return (min(_MOST_BLOCKS, max(1, -(-items // THREADS))),)


class Part:
    """The coefficients of one pass on one device, ``[term][lane]``.

    The memory goes back when it is closed, or nobody refers to it any more.

    Attributes:
        device: where.
        words: the coefficients.
        terms: number of terms.
        primes: of the lanes, those that fill the last group included.
        close: gives the memory back; more than once does no harm.
    """

    def __init__(
        self,
        device: Device,
        session: Session,
        words: Words,
        terms: int,
        primes: NDArray[np.uint32],
    ) -> None:
        """Take memory over from a session, once everything is in it: other threads may read it."""
        session.wait()
        self.device = device
        self.words = words
        self.terms = terms
        self.primes = primes
        session.keep(words)
        self.close = weakref.finalize(self, _give_back, os.getpid(), device, words)
        self.close.atexit = False

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self.primes)

    def columns(self, columns: Sequence[int]) -> NDArray[np.uint32]:
        """Some lanes, shape ``(terms, len(columns))``."""
        if 2 * len(columns) > self.lanes:
            return self.rows(0, self.terms)[:, list(columns)]
        found = np.empty((self.terms, len(columns)), np.uint32)
        if found.size:
            with self.device.session() as session:
                words = session.allocate(found.size)
                width = len(columns)
                gather(session, self.words, self.lanes, columns, self.terms, words, width, 0)
                session.read(words, found)
        return found

    def rows(self, first: int, last: int) -> NDArray[np.uint32]:
        """All lanes of some terms, shape ``(last - first, lanes)``."""
        found = np.empty((last - first, self.lanes), np.uint32)
        if found.size:
            with self.device.session() as session:
                session.read(self.words + first * self.lanes, found)
        return found


def _give_back(process: int, device: Device, words: Words) -> None:
    if process == os.getpid():
        device.release(words)


def gather(
    session: Session,
    source: Words,
    lanes: int,
    columns: Sequence[int],
    terms: int,
    target: Words,
    width: int,
    at: int,
) -> None:
    """Put some of the lanes of ``source`` into columns ``at`` and on of a table of ``width``."""
    chosen = session.allocate(len(columns))
    session.write(chosen, np.array(columns, np.int32))
    session.launch(
        "gather_lanes", 1, blocks_for(terms * len(columns)), (THREADS,), 0,
        source, lanes, chosen, len(columns), terms, target, width, at,
    )  # fmt: skip
    session.free(chosen)


@attrs.frozen(eq=False)
class Kept:
    """The lanes of one replay, which may lie in several parts.

    Attributes:
        parts: in the order of the lanes.
        counts: how many lanes of the replay each has.
    """

    parts: tuple[Part, ...]
    counts: tuple[int, ...]

    def runs(self, lanes: Sequence[int]) -> list[tuple[Part, list[int]]]:
        """Where lanes are: parts, and in each the columns that come next."""
        places = [(n, k) for n, count in enumerate(self.counts) for k in range(count)]
        grouped = groupby((places[lane] for lane in lanes), key=lambda place: place[0])
        return [(self.parts[n], [column for _, column in run]) for n, run in grouped]

    def columns(self, lanes: Sequence[int]) -> NDArray[np.uint32]:
        """See :class:`alkahest.groebner.engine.trace.KeptResidues`."""
        found = [part.columns(columns) for part, columns in self.runs(lanes)]
        if len(found) == 1:
            return found[0]
        nothing = np.empty((self.parts[0].terms, 0), np.uint32)
        return np.concatenate([nothing, *found], axis=1)

    def close(self) -> None:
        """Give the memory back."""
        for part in self.parts:
            part.close()


def joined(
    parts: Sequence[tuple[Part | NDArray[np.uint32], int]],
) -> Kept | NDArray[np.uint32]:
    """Parts and their numbers of lanes as one; an array if one of them is."""
    kept = [(part, count) for part, count in parts if isinstance(part, Part)]
    if len(kept) == len(parts):
        return Kept(tuple(part for part, _ in kept), tuple(count for _, count in kept))
    arrays = []
    for part, count in parts:
        if isinstance(part, Part):
            arrays.append(part.columns(range(count)))
            part.close()
        else:
            arrays.append(part)
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


__all__ = ["THREADS", "Kept", "Part", "blocks_for", "gather", "joined"]
