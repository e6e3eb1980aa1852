"""The host's part of reducing matrices modulo one prime on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu.dense import Dense
from alkahest.backends.groebner_gpu.record import stretches
from alkahest.backends.groebner_gpu.replay import block_threads, field_of
from alkahest.backends.groebner_gpu.sessions import Words
from alkahest.errors import CudaError
from alkahest.groebner.engine.reduction import ReducedRows, vanishing_lanes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.sessions import Device, Session
    from alkahest.groebner.engine.symbolic import SymbolicMatrix

_FEW_ROWS = 8
"""Rows that are reduced as they are, since combining them at random saves nothing."""

_CLEAR_THREADS = 256
_ENTER_THREADS = 512


def echelon(
    device: Device,
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    seed: int,
    checkpoint: Callable[[], None],
) -> ReducedRows:
    """Reduced row echelon form of the lower rows, the one of least leading monomial first.

    As :func:`alkahest.groebner.engine.reduction.echelon`, with batches of many rows.

    Raises:
        CudaError: E-CUDA-004 for the prime 2; E-CUDA-003 and 006 where the driver refuses.
    """
    _check(prime)
    nlower, width = len(matrix.lower), len(matrix.columns) - matrix.pivots
    most = min(nlower, width)
    vanishing = vanishing_lanes(prime) if nlower > _FEW_ROWS else None
    batch = min(2 * device.multiprocessors, most + (vanishing or 0))
    if vanishing is not None:
        # A whole batch has to vanish where it is smaller than what proves the rank.
        batch = max(batch, vanishing)
    with device.session() as session:
        work = _Matrix.uploaded(session, device, matrix, coefficients, prime)
        rows = _Echelon(session, device, work.field, width, most + batch)
        reduced = 0
        while rows.rank < most and (vanishing is not None or reduced < nlower):
            count = batch if vanishing is not None else min(batch, nlower - reduced)
            if vanishing is not None:
                work.mix(rows.next, reduced, count, seed)
            else:
                work.reduce(rows.next, matrix.lower[reduced : reduced + count])
            before = rows.rank
            rows.absorb(count)
            reduced += count
            checkpoint()
            if vanishing is not None and rows.rank <= before + count - vanishing:
                break
        found, leads = rows.read()
    order = np.argsort(-leads)
    return ReducedRows(
        rows=found[order],
        leads=leads[order],
        reduced=reduced,
        random=vanishing is not None,
        on_gpu=device.is_gpu,
    )


def normal_forms(
    device: Device,
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    checkpoint: Callable[[], None],
) -> ReducedRows:
    """Each lower row reduced by the known pivots, in their order; errors as above."""
    _check(prime)
    nlower, width = len(matrix.lower), len(matrix.columns) - matrix.pivots
    rows = np.empty((nlower, width), np.uint32)
    if nlower:
        with device.session() as session:
            work = _Matrix.uploaded(session, device, matrix, coefficients, prime)
            dense = session.allocate(nlower * width)
            work.reduce(dense, matrix.lower)
            session.read(dense, rows)
    checkpoint()
    return ReducedRows(
        rows=rows,
        leads=np.empty(0, np.int32),
        reduced=nlower,
        random=False,
        on_gpu=device.is_gpu,
    )


def _check(prime: int) -> None:
    if prime == 2:
        raise CudaError(
            "E-CUDA-004",
            "matrices over GF(2) are not reduced on a GPU, whose arithmetic is for odd primes",
            remediation="Compute with device=None.",
        )


@attrs.define(eq=False)
class _Matrix:
    """A round's matrix on the device."""

    session: Session
    device: Device
    matrix: SymbolicMatrix
    field: Words
    pivots: Words
    entries: Words
    coefficients: Words
    terms: int
    mean_length: float

    @classmethod
    def uploaded(
        cls,
        session: Session,
        device: Device,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
    ) -> _Matrix:
        pivots = stretches(matrix, matrix.pivot_row, skip=1)

        def put(values: NDArray[Any]) -> Words:
            words = session.allocate(values.size)
            session.write(words, np.ascontiguousarray(values))
            return words

        return cls(
            session=session,
            device=device,
            matrix=matrix,
            field=put(field_of(np.array([prime], np.uint32))),
            pivots=put(pivots),
            entries=put(matrix.entries.astype(np.int32, copy=False)),
            coefficients=put(coefficients),
            terms=len(coefficients),
            mean_length=float(pivots[:, 1].mean()) if len(pivots) else 0.0,
        )

    def reduce(self, dense: Words, lower: NDArray[Any]) -> None:
        """Rows of the matrix to ``dense``, pivots eliminated."""
        described = stretches(self.matrix, lower, skip=0)
        rows = self.session.allocate(described.size)
        self.session.write(rows, described)
        columns, count = len(self.matrix.columns), len(lower)
        unused = self.session.allocate(1)
        self._launch(
            "rows", count,
            self.pivots, self.matrix.pivots, rows, count, self.entries, columns, self.coefficients,
            self.terms, self.field, 1, dense, None, unused,
        )  # fmt: skip

    def mix(self, dense: Words, first: int, count: int, seed: int) -> None:
        """Random combinations of all lower rows to ``dense``, pivots eliminated."""
        described = stretches(self.matrix, self.matrix.lower, skip=0)
        rows = self.session.allocate(described.size)
        self.session.write(rows, described)
        mixed = np.uint64(seed * 0x2545F4914F6CDD1D % 2**64)
        low, high = np.array([mixed]).view(np.int32).tolist()
        self._launch(
            "mixtures", count,
            self.pivots, self.matrix.pivots, rows, len(described), self.entries,
            len(self.matrix.columns), self.coefficients, self.field, low, high, first, dense,
        )  # fmt: skip

    def _launch(self, what: str, count: int, *arguments: Any) -> None:
        columns, block = len(self.matrix.columns), (block_threads(self.mean_length, 1),)
        if 4 * columns <= self.device.shared_bytes:
            self.session.launch(f"reduce_{what}", 1, (count,), block, 4 * columns, *arguments)
            return
        tiles = self.session.allocate(count * columns)
        self.session.launch(f"reduce_long_{what}", 1, (count,), block, 0, *arguments, tiles)
        self.session.free(tiles)


class _Echelon:
    """Rows in reduced echelon form on the device, and room for rows to come.

    Attributes:
        rank: rows found independent so far.
    """

    def __init__(
        self, session: Session, device: Device, field: Words, width: int, room: int
    ) -> None:
        self.rank = 0
        self._session = session
        self._field = field
        unused = session.allocate(1)
        self._dense = Dense(session=session, device=device, field=field, lanes=1, bad=unused)
        self._width = width
        self._rows = session.allocate(room * width)
        self._leads = session.allocate(room)
        self._factors = session.allocate(room)

    @property
    def next(self) -> Words:
        """Where the next rows go."""
        return self._rows + self.rank * self._width

    def absorb(self, count: int) -> None:
        """Take in ``count`` reduced rows that lie at :attr:`next`."""
        session, width, rank = self._session, self._width, self.rank
        new, leads = self.next, self._leads + rank
        self._subtract(new, count, self._rows, self._leads, rank)
        stretches_of_a_row = -(-width // _CLEAR_THREADS)
        for row in range(count):
            session.launch(
                "enter_row", 1, (1,), (_ENTER_THREADS,), 0,
                new, count, width, row, self._field, leads, self._factors,
            )  # fmt: skip
            session.launch(
                "clear_column", 1, (stretches_of_a_row, count), (_CLEAR_THREADS,), 0,
                new, width, row, self._field, self._factors,
            )  # fmt: skip
        self._subtract(self._rows, rank, new, leads, count)
        found = np.empty(count, np.int32)
        session.read(leads, found)
        kept = np.flatnonzero(found >= 0)
        for place, row in enumerate(kept.tolist()):
            if place != row:  # rows of zeros before it are overwritten
                session.copy(new + row * width, new + place * width, width)
        if len(kept):
            session.write(leads, found[kept])
        self.rank += len(kept)

    def _subtract(self, rows: Words, nrows: int, others: Words, leads: Words, n: int) -> None:
        """Clear the leads of other rows, which have a one there, out of rows."""
        if not nrows or not n:
            return
        session = self._session
        factors = session.allocate(nrows * n)
        session.launch("gather_leads", 1, (nrows,), (128,), 0, rows, self._width, leads, n, factors)
        self._dense.multiply(
            "subtract_product", (nrows, self._width, n),
            rows, nrows, self._width, factors, others, n, self._field,
        )  # fmt: skip
        session.free(factors)

    def read(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The rows and their leads."""
        rows = np.empty((self.rank, self._width), np.uint32)
        leads = np.empty(self.rank, np.int32)
        if self.rank:
            self._session.read(self._rows, rows)
            self._session.read(self._leads, leads)
        return rows, leads


__all__ = ["echelon", "normal_forms"]
