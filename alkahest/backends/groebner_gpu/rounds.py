"""The host's part of reducing matrices modulo one prime on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu.dense import Dense
from alkahest.backends.groebner_gpu.record import ROW_WORDS, stretches
from alkahest.backends.groebner_gpu.replay import block_threads, field_of, free_words
from alkahest.backends.groebner_gpu.sessions import Words
from alkahest.errors import CudaError
from alkahest.groebner.engine.lanes import LANES
from alkahest.groebner.engine.profile import independent_images, preferred
from alkahest.groebner.engine.reduction import ReducedRows, vanishing_lanes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.sessions import Device, Session
    from alkahest.groebner.engine.symbolic import SymbolicMatrix

_FEW_ROWS = 8
"""Rows that are reduced as they are, since combining them at random saves nothing."""

_LEARNED_ROWS = 4
"""Rows that learning reduces at once, for each multiprocessor."""

_THREADS = 512
"""Threads of a block that works on one dense row."""

_FILLING_BLOCKS = 1 << 11

_HALF_PERIOD = 1 << 63
"""Added to the seed of a random projection: its words are half the generator's period away from those
of combinations with the same seed."""

_SPARE_COLUMNS = 8
"""Columns that a random projection has beyond the number of rows it must keep apart."""


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
        exact = vanishing is None
        rows = _Echelon(
            session, device, work.field, prime, width, most, batch, exact=exact, seed=seed
        )
        reduced = 0
        while rows.rank < most and (vanishing is not None or reduced < nlower):
            count = batch if vanishing is not None else min(batch, nlower - reduced)
            if vanishing is not None:
                work.mix(rows.fresh, matrix.lower, reduced, count, seed)
            else:
                work.reduce(rows.fresh, matrix.lower[reduced : reduced + count])
            kept = rows.absorb(count)
            reduced += count
            checkpoint()
            if vanishing is not None and len(kept) <= count - vanishing:
                break
        return rows.reduced(reduced, device)


def echelon_with_rows(
    device: Device,
    matrix: SymbolicMatrix,
    coefficients: NDArray[np.uint32],
    prime: int,
    seed: int,
    checkpoint: Callable[[], None],
) -> tuple[ReducedRows, NDArray[np.int64]]:
    """The same, and lower rows that span the row space of all.

    As :func:`alkahest.groebner.engine.profile.echelon_with_rows`; but the lower rows themselves are
    reduced, in the order in which they are preferred, and those that are independent of the ones
    before them are the rows wanted as well as what the echelon form is made of. After a batch that
    brings nothing, random combinations of all that are left tell whether anything will come.
    """
    _check(prime)
    lower, width = preferred(matrix), len(matrix.columns) - matrix.pivots
    most = min(len(lower), width)
    vanishing = vanishing_lanes(prime) if len(lower) > _FEW_ROWS else None
    batch = max(vanishing or 1, min(_LEARNED_ROWS * device.multiprocessors, len(lower)))
    exact = vanishing is None
    chosen = []
    with device.session() as session:
        work = _Matrix.uploaded(session, device, matrix, coefficients, prime)
        rows = _Echelon(
            session, device, work.field, prime, width, most, batch, exact=exact, seed=seed
        )
        for first in range(0, len(lower), batch):
            if rows.rank == most:
                break
            part, left = lower[first : first + batch], lower[first + batch :]
            work.reduce(rows.fresh, part)
            chosen.append(part[rows.absorb(len(part))])
            checkpoint()
            if vanishing is None or len(chosen[-1]) or not len(left):
                continue
            work.mix(rows.fresh, left, 0, vanishing, seed + first)
            if rows.contain(vanishing):
                break
        found = rows.reduced(min(len(lower), batch * len(chosen)), device)
    return found, np.concatenate([lower[:0], *chosen])


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
            # A row takes its description, its tile where columns are many, and what is left of it.
            step = free_words(session) // (len(matrix.columns) + width + ROW_WORDS)
            step = max(1, min(nlower, step))
            dense = session.allocate(step * width)
            for first in range(0, nlower, step):
                part = matrix.lower[first : first + step]
                work.reduce(dense, part)
                session.read(dense, rows[first : first + len(part)])
                checkpoint()
    return ReducedRows(
        rows=rows,
        leads=np.empty(0, np.int32),
        reduced=nlower,
        random=False,
        on_gpu=device.is_gpu,
    )


def _halves(seed: int, away: int = 0) -> list[int]:
    """A seed for the kernels, mixed, ``away`` from it: lower and upper half as signed words."""
    mixed = np.uint64((seed * 0x2545F4914F6CDD1D + away) % 2**64)
    halves: list[int] = np.array([mixed]).view(np.int32).tolist()
    return halves


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
        self.session.free(rows)
        self.session.free(unused)

    def mix(self, dense: Words, lower: NDArray[Any], first: int, count: int, seed: int) -> None:
        """Random combinations of rows to ``dense``, from number ``first`` on, pivots eliminated."""
        described = stretches(self.matrix, lower, skip=0)
        rows = self.session.allocate(described.size)
        self.session.write(rows, described)
        self._launch(
            "mixtures", count,
            self.pivots, self.matrix.pivots, rows, len(described), self.entries,
            len(self.matrix.columns), self.coefficients, self.field, *_halves(seed), first, dense,
        )  # fmt: skip
        self.session.free(rows)

    def _launch(self, what: str, count: int, *arguments: Any) -> None:
        columns, block = len(self.matrix.columns), (block_threads(self.mean_length, 1),)
        if 4 * columns <= self.device.shared_bytes:
            self.session.launch(f"reduce_{what}", 1, (count,), block, 4 * columns, *arguments)
            return
        tiles = self.session.allocate(count * columns)
        self.session.launch(f"reduce_long_{what}", 1, (count,), block, 0, *arguments, tiles)
        self.session.free(tiles)


class _Echelon:
    """Rows in reduced echelon form on the device.

    Attributes:
        rank: rows found independent so far.
        fresh: room for a batch of rows to come.
    """

    def __init__(
        self,
        session: Session,
        device: Device,
        field: Words,
        prime: int,
        width: int,
        most: int,
        batch: int,
        *,
        exact: bool,
        seed: int,
    ) -> None:
        """Room for ``most`` rows, and ``batch`` more.

        Args:
            session: of the device.
            device: whose it is.
            field: what the kernels need of the prime.
            prime: the same prime.
            width: columns.
            most: rows that can be independent.
            batch: rows that come at once, at most.
            exact: find independent rows by elimination, and not by a random projection.
            seed: of the projection.
        """
        self.rank = 0
        self.fresh = session.allocate(batch * width)
        self._session = session
        self._field = field
        unused = session.allocate(1)
        self._dense = Dense(session=session, device=device, field=field, lanes=1, bad=unused)
        self._prime = prime
        self._width = width
        self._most = most
        self._exact = exact
        self._room = min(most, batch) + batch
        self._rows = session.allocate(self._room * width)
        self._leads = session.allocate(most + batch)
        self._numbers = session.allocate(batch)
        if not exact:
            self._across = -(-(batch + _SPARE_COLUMNS) // LANES) * LANES
            self._images = session.allocate(batch * self._across)
            self._projection = session.allocate(width * self._across)
            blocks = max(1, min(_FILLING_BLOCKS, -(-width * self._across // _THREADS)))
            session.launch(
                "fill_randomly", 1, (blocks,), (_THREADS,), 0,
                self._projection, width * self._across, field, *_halves(seed, _HALF_PERIOD),
            )  # fmt: skip

    def absorb(self, count: int) -> NDArray[np.int64]:
        """Take in the first ``count`` rows that lie at :attr:`fresh`.

        Returns:
            The numbers of those that are independent of the rows before them.
        """
        session, width, rank = self._session, self._width, self.rank
        self._subtract(self.fresh, count, self._rows, self._leads, rank)
        kept = np.arange(count) if self._exact else self._independent(count)
        self._make_room(rank + len(kept))
        new, leads, n = self._rows + rank * width, self._leads + rank, len(kept)
        if not n:
            return kept
        session.write(self._numbers, kept.astype(np.int32))
        session.launch(
            "gather_rows", 1, (n,), (_THREADS,), 0, self.fresh, width, self._numbers, new
        )
        for row in range(n):
            session.launch(
                "enter_row", 1, (n,), (_THREADS,), 0, new, width, row, self._field, leads
            )
        session.launch("scale_rows", 1, (n,), (_THREADS,), 0, new, width, self._field, leads)
        if self._exact:
            kept = self._without_zeros(new, leads, n)
        self._subtract(self._rows, rank, new, leads, len(kept))
        self.rank += len(kept)
        return kept

    def _make_room(self, rows: int) -> None:
        """Move the rows to a larger place where so many do not fit; most matrices have few."""
        if rows <= self._room:
            return
        session, width = self._session, self._width
        self._room = max(rows, min(2 * self._room, self._most))
        larger = session.allocate(self._room * width)
        session.copy(self._rows, larger, self.rank * width)
        session.free(self._rows)
        self._rows = larger

    def contain(self, count: int) -> bool:
        """Whether the first ``count`` rows at :attr:`fresh` are nothing new."""
        self._subtract(self.fresh, count, self._rows, self._leads, self.rank)
        return not len(self._independent(count))

    def _independent(self, count: int) -> NDArray[np.int64]:
        """Which fresh rows are independent, by their images under a random projection."""
        session, across = self._session, self._across
        session.zero(self._images, count * across)
        # The sign of an image does not matter.
        self._subtract_product(
            self._images, count, across, self.fresh, self._projection, self._width
        )
        images = np.empty((count, across), np.uint32)
        session.read(self._images, images)
        return independent_images(images, min(count, self._most - self.rank), self._prime)

    def _without_zeros(self, rows: Words, leads: Words, count: int) -> NDArray[np.int64]:
        """Close the gaps that rows of zeros leave; the numbers of the others."""
        session, width = self._session, self._width
        found = np.empty(count, np.int32)
        session.read(leads, found)
        kept = np.flatnonzero(found >= 0)
        for place, row in enumerate(kept.tolist()):
            if place != row:
                session.copy(rows + row * width, rows + place * width, width)
        if len(kept):
            session.write(leads, found[kept])
        return kept

    def _subtract(self, rows: Words, nrows: int, others: Words, leads: Words, n: int) -> None:
        """Clear the leads of other rows, which have a one there, out of rows."""
        if not nrows or not n:
            return
        factors = self._session.allocate(nrows * n)
        self._session.launch(
            "gather_leads", 1, (nrows,), (128,), 0, rows, self._width, leads, n, factors
        )
        self._subtract_product(rows, nrows, self._width, factors, others, n)
        self._session.free(factors)

    def _subtract_product(
        self, rows: Words, nrows: int, width: int, factors: Words, others: Words, n: int
    ) -> None:
        self._dense.multiply(
            "subtract_product", (nrows, width, n),
            rows, nrows, width, factors, others, n, self._field,
        )  # fmt: skip

    def reduced(self, count: int, device: Device) -> ReducedRows:
        """The rows, the one of least leading monomial first, found from ``count`` of them."""
        rows = np.empty((self.rank, self._width), np.uint32)
        leads = np.empty(self.rank, np.int32)
        if self.rank:
            self._session.read(self._rows, rows)
            self._session.read(self._leads, leads)
        order = np.argsort(-leads)
        return ReducedRows(
            rows=rows[order],
            leads=leads[order],
            reduced=count,
            random=not self._exact,
            on_gpu=device.is_gpu,
        )


__all__ = ["echelon", "echelon_with_rows", "normal_forms"]
