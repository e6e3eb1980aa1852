"""The host's part of a replay on one device: upload, launch round by round, download."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import attrs
import numpy as np

from alkahest.backends.groebner_gpu.dense import Dense, check_inverse
from alkahest.backends.groebner_gpu.kept import THREADS, Part, blocks_for
from alkahest.backends.groebner_gpu.sessions import Words
from alkahest.errors import CudaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.record import Record, Round
    from alkahest.backends.groebner_gpu.sessions import Device, Session

_T = TypeVar("_T")

_LARGEST_GROUP = 8
"""Lanes of a block at most, where its columns fit into shared memory."""

_LONG_GROUP = 32
"""Lanes of a block where they do not: a warp's accesses to global memory then lie side by side."""

_BLOCKS_OF_A_MULTIPROCESSOR = 2
"""Blocks that should fit side by side, so that one computes while another waits for memory."""

_SHARED_BYTES_OF_A_BLOCK = 1 << 10
"""Shared memory that the system takes for each block."""

_RESERVED_BYTES = 64 << 20
"""Device memory that is left alone."""

_SHARES_OF_KEPT = 4
"""Coefficients stay on a device where they take at most one in so many parts of what is free."""


@attrs.frozen(kw_only=True)
class Shape:
    """How a replay is laid out on a device.

    Attributes:
        group: lanes that one block works on; the primes of a pass are a multiple of it.
        threads: of a block that reduces a row, or None for what suits the lengths of pivot rows.
    """

    group: int
    threads: int | None = None

    @classmethod
    def fitting(cls, record: Record, shared_bytes: int) -> Shape:
        """The largest group with which a block's columns leave room for another block."""
        budget = shared_bytes // _BLOCKS_OF_A_MULTIPROCESSOR - _SHARED_BYTES_OF_A_BLOCK
        group = _LARGEST_GROUP
        while group > 1 and 4 * record.columns * group > budget:
            group //= 2
        if 4 * record.columns * group > shared_bytes:
            group = _LONG_GROUP
        return cls(group=group)

    def threads_for(self, one: Round) -> int:
        """Threads of a block that reduces a row of a round."""
        if self.threads is not None:
            return self.threads
        return block_threads(one.mean_length, self.group)


def block_threads(mean_length: float, group: int) -> int:
    """Threads of a block that reduces a row: two entries of a pivot row for each, whole warps."""
    return min(512, max(64, 32 * math.ceil(mean_length * group / 64)))


def field_of(primes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What the kernels need of primes, shape ``(3, n)``: see ``Prime`` in ``residues.cu``."""
    columns = [(p, pow(p, -1, 1 << 32), (1 << 64) % p) for p in primes.tolist()]
    return np.ascontiguousarray(np.array(columns, np.uint64).T.astype(np.uint32))


def replay(
    device: Device,
    record: Record,
    inputs: NDArray[np.uint32],
    primes: Sequence[int],
    checkpoint: Callable[[], None],
    shape: Shape | None = None,
    seconds: dict[str, float] | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """The recorded run modulo any number of odd primes below 2**31, on one device.

    Args:
        device: where.
        record: what to do.
        inputs: coefficients of the generators, shape ``(record.input_terms, len(primes))``.
        primes: not necessarily distinct.
        checkpoint: called between rounds, when the device is idle; raises to stop.
        shape: None for one that fits.
        seconds: where to add the wall time of ``"upload"``, ``"reduce"``, ``"combine"`` and
            ``"download"``; the device is then waited for after each.

    Returns:
        Coefficients of the last round, shape ``(terms, len(primes))``, and for each prime whether
        the record fits it.

    Raises:
        CudaError: E-CUDA-003 when the memory does not suffice for a single group of primes, or a
            block's for a column of a square, or the driver refuses a request; E-CUDA-006 when a
            kernel fails.
    """

    def read(session: Session, images: _Images) -> NDArray[np.uint32]:
        return images.read(session)

    tails, lucky = _replay(device, record, inputs, primes, checkpoint, shape, seconds, read)
    return tails[0] if len(tails) == 1 else np.concatenate(tails, axis=1), lucky


def replay_kept(
    device: Device,
    record: Record,
    inputs: NDArray[np.uint32],
    primes: Sequence[int],
    checkpoint: Callable[[], None],
    shape: Shape | None = None,
    seconds: dict[str, float] | None = None,
) -> tuple[Part | NDArray[np.uint32], NDArray[np.bool_]]:
    """The same, but the coefficients stay on the device.

    They do not where its memory is short: they come down if it takes several passes to compute
    them, or if they would leave too little for the next ones.
    """

    def keep(session: Session, images: _Images) -> Part | NDArray[np.uint32]:
        kept = images.kept(session, device) if len(images.lucky) == len(primes) else None
        return images.read(session) if kept is None else kept

    found, lucky = _replay(device, record, inputs, primes, checkpoint, shape, seconds, keep)
    if len(found) == 1:
        return found[0], lucky
    arrays = [part for part in found if not isinstance(part, Part)]
    return np.concatenate(arrays, axis=1), lucky


@attrs.frozen(eq=False)
class _Images:
    """What a pass leaves on the device, ``[term][lane]``; whoever takes it frees or keeps it."""

    words: Words
    terms: int
    primes: NDArray[np.uint32]
    lucky: NDArray[np.bool_]

    def read(self, session: Session) -> NDArray[np.uint32]:
        """Shape ``(terms, primes)``."""
        tails = np.empty((self.terms, len(self.primes)), np.uint32)
        session.read(self.words, tails)
        session.free(self.words)
        return tails[:, : len(self.lucky)]

    def kept(self, session: Session, device: Device) -> Part | None:
        """The same on the device, or None where it would take too much of its memory."""
        size = 4 * self.terms * len(self.primes)
        if size * _SHARES_OF_KEPT > session.free_bytes() + size:
            return None
        return Part(device, session, self.words, self.terms, self.primes)


def _replay(
    device: Device,
    record: Record,
    inputs: NDArray[np.uint32],
    primes: Sequence[int],
    checkpoint: Callable[[], None],
    shape: Shape | None,
    seconds: dict[str, float] | None,
    take: Callable[[Session, _Images], _T],
) -> tuple[list[_T], NDArray[np.bool_]]:
    """What ``take`` makes of each pass, and for each prime whether the record fits it."""
    taken: list[_T] = []
    lucky: list[NDArray[np.bool_]] = []
    check_inverse(device, record.square_rows)
    shape = shape or Shape.fitting(record, device.shared_bytes)
    with device.session() as session:
        words = session.allocate(len(record.words))
        clock = _Clock(session, seconds)
        session.write(words, record.words)
        clock.spent("upload")
        step = _lanes_of_a_pass(session, device, record, shape, len(primes))
        for first in range(0, len(primes), step):
            part = slice(first, min(first + step, len(primes)))
            run = _Pass(session, device, record, words, shape, checkpoint, clock)
            images = run.compute(inputs[:, part], np.array(primes[part]))
            taken.append(take(session, images))
            lucky.append(images.lucky)
            clock.spent("download")
    return taken, np.concatenate(lucky)


def _lanes_of_a_pass(
    session: Session, device: Device, record: Record, shape: Shape, wanted: int
) -> int:
    """As many lanes as memory allows, whole groups."""
    group = shape.group
    words = 2 * record.terms - record.first_result + record.dense_words + record.square_rows**2
    words += record.inversion_words
    words += max(
        (one.rows * one.columns for one in record.rounds if _is_long(one, shape, device)), default=0
    )
    free = 4 * free_words(session)
    fitting = free // (4 * words * group) * group
    if fitting == 0:
        raise CudaError(
            "E-CUDA-003",
            f"device {device.ordinal} has {free} bytes free, and a replay for {group} primes needs "
            f"{4 * words * group}",
            remediation="Free memory of the device, or compute with device=None.",
        )
    return min(fitting, -(-wanted // group) * group)


def free_words(session: Session) -> int:
    """Words of memory that a computation may take."""
    free = session.free_bytes()
    return (free - min(_RESERVED_BYTES, free // 8)) // 4


def _is_long(one: Round, shape: Shape, device: Device) -> bool:
    return 4 * one.columns * shape.group > device.shared_bytes


class _Clock:
    """Adds up where time goes, if anybody wants to know."""

    def __init__(self, session: Session, seconds: dict[str, float] | None) -> None:
        self._session = session
        self._seconds = seconds
        self._last = perf_counter()

    def spent(self, phase: str) -> None:
        """What was queued since the last call belongs to ``phase``."""
        if self._seconds is not None:
            self._session.wait()
            now = perf_counter()
            self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._last
            self._last = now


@attrs.define(eq=False)
class _Pass:
    """A replay for as many primes as fit into memory at once."""

    session: Session
    device: Device
    record: Record
    words: Words
    shape: Shape
    checkpoint: Callable[[], None]
    clock: _Clock

    def compute(self, inputs: NDArray[np.uint32], primes: NDArray[np.int64]) -> _Images:
        """Everything for these primes."""
        record, session, group = self.record, self.session, self.shape.group
        count = len(primes)
        lanes = -(-count // group) * group
        # A group that is not full repeats its last prime.
        filled = np.minimum(np.arange(lanes), count - 1)
        all_primes = primes[filled].astype(np.uint32)
        field = session.allocate(3 * lanes)
        session.write(field, field_of(all_primes))
        bad = session.allocate(lanes)
        session.zero(bad, lanes)
        coefficients = session.allocate(record.terms * lanes)
        for number in range(lanes // group):
            part = inputs[:, filled[number * group : (number + 1) * group]]
            at = coefficients + number * record.terms * group
            session.write(at, np.ascontiguousarray(part))
        dense = session.allocate(record.dense_words * lanes)
        squares = session.allocate(record.square_rows**2 * lanes)
        self.clock.spent("upload")
        for one in record.rounds:
            self._reduce(one, field, lanes, coefficients, dense, bad)
            self.clock.spent("reduce")
            if one.has_leads:
                self._combine(one, field, lanes, coefficients, dense, squares, bad)
                self.clock.spent("combine")
            session.wait()
            self.checkpoint()
        session.free(dense)
        session.free(squares)
        collected = self._collect(lanes, coefficients)
        flags = np.empty(lanes, np.uint32)
        session.read(bad, flags)
        for memory in (field, bad, coefficients):
            session.free(memory)
        terms = record.terms - record.first_result
        return _Images(collected, terms, all_primes, flags[:count] == 0)

    def _reduce(
        self, one: Round, field: Words, lanes: int, coefficients: Words, dense: Words, bad: Words
    ) -> None:
        """Reduce a round's rows; without leads, that gives its terms."""
        group = self.shape.group
        arguments = (
            self.words + one.pivots_at, one.pivots, self.words + one.rows_at, one.rows,
            self.words + one.entries_at, one.columns, coefficients, self.record.terms, field, lanes,
            dense if one.has_leads else None,
            None if one.has_leads else self.words + one.place_at, bad,
        )  # fmt: skip
        grid, block = (one.rows * lanes // group,), (self.shape.threads_for(one),)
        if _is_long(one, self.shape, self.device):
            tiles = self.session.allocate(one.rows * one.columns * lanes)
            self.session.launch("reduce_long_rows", group, grid, block, 0, *arguments, tiles)
            self.session.free(tiles)
        else:
            shared = 4 * one.columns * group
            self.session.launch("reduce_rows", group, grid, block, shared, *arguments)

    def _combine(
        self,
        one: Round,
        field: Words,
        lanes: int,
        coefficients: Words,
        dense: Words,
        squares: Words,
        bad: Words,
    ) -> None:
        """Bring the reduced rows to reduced echelon form, whose entries are the round's terms."""
        n, width = one.rows, one.width
        work = Dense(
            session=self.session,
            device=self.device,
            field=field,
            lanes=lanes,
            bad=bad,
            group=self.shape.group,
        )
        work.gather(dense, n, width, 0, n, self.words + one.leads_at, n, squares)
        work.invert(squares, n)
        work.multiply(
            "combine", (n, width, n),
            squares, dense, n, width, self.words + one.place_at, field, lanes, coefficients,
            self.record.terms, bad,
        )  # fmt: skip

    def _collect(self, lanes: int, coefficients: Words) -> Words:
        """The last round's coefficients, ``[term][lane]``."""
        record = self.record
        size = (record.terms - record.first_result) * lanes
        collected = self.session.allocate(size)
        self.session.launch(
            "collect_terms", self.shape.group, blocks_for(size), (THREADS,), 0,
            coefficients, record.terms, record.first_result, lanes, collected,
        )  # fmt: skip
        return collected


__all__ = ["Shape", "block_threads", "field_of", "free_words", "replay", "replay_kept"]
