"""The host's part of following a change of order for many primes on one device.

The rows of a :class:`~alkahest.groebner.following.Walk` are computed wave by wave; then the square
of the columns in which the new standard monomials are independent is inverted for each prime, and
products with it give the new basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu.dense import Dense, check_inverse, words_to_invert
from alkahest.backends.groebner_gpu.replay import field_of, free_words
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.sessions import Device, Session, Words
    from alkahest.groebner.following import Walk

_COLUMNS, _STRIPES = 32, 8
"""Columns that a block multiplies, and rows that it reads side by side."""

_ENTER_THREADS = 128

_MOST_JOBS = 1 << 15
"""Jobs of a launch."""

_WAVES_AT_ONCE = 64
"""Waves that are queued before the device is waited for."""


def follow(
    device: Device,
    walk: Walk,
    primes: Sequence[int],
    checkpoint: Callable[[], None],
    *,
    vectors: bool,
) -> tuple[NDArray[np.bool_], NDArray[np.uint32], NDArray[np.uint32] | None]:
    """A walk modulo any number of odd primes below 2**31, on one device.

    Args:
        device: where.
        walk: what to compute.
        primes: not necessarily distinct.
        checkpoint: called when the device is idle; raises to stop.
        vectors: whether to return the residues of the new standard monomials as well.

    Returns:
        For each prime whether the walk fits it; tails, shape ``(primes, elements, vectors)``; and
        residues, shape ``(primes, vectors, columns)``, or None.

    Raises:
        CudaError: E-CUDA-003 when the memory does not suffice for a single prime, or a block's for
            a column of a square, or the driver refuses a request; E-CUDA-006 when a kernel fails.
    """
    size, relations = walk.vectors, len(walk.smaller)
    lucky = np.empty(len(primes), np.bool_)
    tails = np.empty((len(primes), relations, size), np.uint32)
    rows = np.empty((len(primes), size, walk.degree), np.uint32) if vectors else None
    check_inverse(device, size)
    with device.session() as session:
        given = _Given.uploaded(session, walk)
        step = _lanes_of_a_pass(session, device, walk, len(primes))
        for first in range(0, len(primes), step):
            part = slice(first, min(first + step, len(primes)))
            run = _Pass(session, device, walk, given, checkpoint, np.array(primes[part]))
            run.compute()
            run.read(lucky[part], tails[part], None if rows is None else rows[part])
            run.free()
    return lucky, tails, rows


def _lanes_of_a_pass(session: Session, device: Device, walk: Walk, wanted: int) -> int:
    """As many primes as memory allows."""
    size, relations = walk.vectors, len(walk.smaller)
    words = walk.rows * walk.degree + size**2 + words_to_invert(size) + 2 * relations * size + 8
    free = free_words(session)
    if free < words:
        raise CudaError(
            "E-CUDA-003",
            f"device {device.ordinal} has {4 * free} bytes free, and a change of order needs "
            f"{4 * words} for one prime",
            remediation="Free memory of the device, or compute with device=None.",
        )
    return min(wanted, free // words)


@attrs.frozen(kw_only=True)
class _Given:
    """What does not depend on primes, on the device."""

    limbs: Words
    negative: Words
    offsets: Words
    terms_at: Words
    row_of: Words
    jobs: Words
    moved_from: Words
    hits: Words
    first_hit: Words
    pivots: Words
    smaller: Words

    @classmethod
    def uploaded(cls, session: Session, walk: Walk) -> _Given:
        def put(values: NDArray[Any], kind: Any = np.int32) -> Words:
            words = session.allocate(values.size)
            if values.size:
                session.write(words, np.ascontiguousarray(values, kind))
            return words

        row_of = np.full(len(walk.offsets) - 1, -1, np.int32)
        row_of[walk.elements] = np.arange(len(walk.elements))
        return cls(
            limbs=put(walk.limbs.T, np.uint32),
            negative=put(walk.negative),
            offsets=put(walk.offsets),
            terms_at=put(walk.terms_at),
            row_of=put(row_of),
            jobs=put(walk.jobs),
            moved_from=put(walk.moved_from),
            hits=put(np.concatenate(walk.hits)),
            first_hit=put(np.cumsum([0, *map(len, walk.hits)])),
            pivots=put(walk.pivots),
            smaller=put(walk.smaller),
        )


class _Pass:
    """A walk for as many primes as fit into memory at once."""

    def __init__(
        self,
        session: Session,
        device: Device,
        walk: Walk,
        given: _Given,
        checkpoint: Callable[[], None],
        primes: NDArray[np.int64],
    ) -> None:
        lanes, size, relations = len(primes), walk.vectors, len(walk.smaller)
        self.session = session
        self.walk = walk
        self.given = given
        self.checkpoint = checkpoint
        field, bad = session.allocate(3 * lanes), session.allocate(lanes)
        session.write(field, field_of(primes.astype(np.uint32)))
        session.zero(bad, lanes)
        self.dense = Dense(session=session, device=device, field=field, lanes=lanes, bad=bad)
        self.rows = session.allocate(walk.rows * walk.degree * lanes)
        self.squares = session.allocate(size**2 * lanes)
        self.known = session.allocate(relations * size * lanes)
        self.relations = session.allocate(relations * size * lanes)

    def compute(self) -> None:
        """All rows, then the relations."""
        self._enter()
        for number, (first, end) in enumerate(pairwise(self.walk.waves.tolist()), 1):
            for at in range(first, end, _MOST_JOBS):
                self._multiply(at, min(_MOST_JOBS, end - at))
            if number % _WAVES_AT_ONCE == 0:
                self._pause()
        self._pause()
        self._relate()
        self._pause()

    def _pause(self) -> None:
        self.session.wait()
        self.checkpoint()

    def _enter(self) -> None:
        """The rows of the basis, and that of 1."""
        walk, given, dense = self.walk, self.given, self.dense
        self.session.zero(self.rows, walk.rows * walk.degree * dense.lanes)
        nterms, nlimbs = walk.limbs.shape
        self.session.launch(
            "enter_elements", 1, (len(walk.offsets) - 1, dense.lanes), (_ENTER_THREADS,), 0,
            given.limbs, nlimbs, given.negative, nterms, given.offsets, given.terms_at,
            given.row_of, dense.field, dense.lanes, self.rows, walk.rows, walk.degree, dense.bad,
        )  # fmt: skip
        one = np.ones(1, np.uint32)
        for lane in range(dense.lanes):
            self.session.write(self.rows + (lane * walk.rows + walk.first) * walk.degree, one)

    def _multiply(self, first: int, count: int) -> None:
        """The products of some jobs of one wave."""
        walk, given, dense = self.walk, self.given, self.dense
        self.session.launch(
            "times_variables", 1, (-(-walk.degree // _COLUMNS), count, dense.lanes),
            (_COLUMNS, _STRIPES), 0,
            self.rows, walk.rows, walk.degree, given.jobs + 3 * first, given.moved_from,
            given.hits, given.first_hit, dense.field, dense.lanes,
        )  # fmt: skip

    def _relate(self) -> None:
        """Tails, and whether they are tails in all columns."""
        walk, given, dense = self.walk, self.given, self.dense
        size, relations, width = walk.vectors, len(walk.smaller), walk.degree
        for first, count, chosen in (
            (walk.first, size, self.squares),
            (walk.first + size, relations, self.known),
        ):
            dense.gather(self.rows, walk.rows, width, first, count, given.pivots, size, chosen)
        dense.invert(self.squares, size)
        dense.multiply(
            "relate", (relations, size, size),
            self.known, relations, size, self.squares, given.smaller, dense.field, dense.lanes,
            self.relations, dense.bad,
        )  # fmt: skip
        if size < width:
            dense.multiply(
                "compare", (relations, width, size),
                self.relations, relations, size, self.rows, walk.rows, width, walk.first,
                dense.field, dense.lanes, dense.bad,
            )  # fmt: skip

    def read(
        self,
        lucky: NDArray[np.bool_],
        tails: NDArray[np.uint32],
        rows: NDArray[np.uint32] | None,
    ) -> None:
        """Fill arrays of this pass's primes."""
        flags = np.empty(len(lucky), np.uint32)
        self.session.read(self.dense.bad, flags)
        lucky[:] = flags == 0
        self.session.read(self.relations, tails)
        if rows is not None:
            walk = self.walk
            for lane, vectors in enumerate(rows):
                start = (lane * walk.rows + walk.first) * walk.degree
                self.session.read(self.rows + start, vectors)

    def free(self) -> None:
        """Give the memory back."""
        dense = self.dense
        for words in (
            dense.field, dense.bad, self.rows, self.squares, self.known, self.relations,
        ):  # fmt: skip
            self.session.free(words)


__all__ = ["follow"]
