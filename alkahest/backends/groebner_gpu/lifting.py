"""Lifting on a device: the host's part of ``kernels/lift.cu``.

Denominators are found on the processor, from a few random combinations of each polynomial's
residues, which the device makes. With them the device computes the numerators of all terms and checks
them. What is left over, polynomials whose combinations are longer than the primes allow or miss
a factor of the denominator, the processor settles as it does without a device, from their
residues alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.backends.groebner_gpu.kept import THREADS, Kept, Part, blocks_for, gather
from alkahest.backends.groebner_gpu.replay import field_of
from alkahest.groebner.engine.lift import Attempt, Lift

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.backends.groebner_gpu.sessions import Argument, Session, Words

MOST_PRIMES = 511
"""Primes to lift from at most: a 64-bit sum holds as many products of a residue and a digit."""

MIXTURES, STRIPES = 8, 8
"""Combinations of a polynomial, and terms that a block mixes at once."""

_SHARE = 2
"""Terms are lifted in slices that take at most one in so many parts of the free memory."""


def settle(
    lift: Lift,
    kept: Sequence[tuple[Kept, Sequence[int]]],
    primes: tuple[int, ...],
    checkpoint: Callable[[], None],
) -> bool:
    """Settle what the primes settle, on the device that keeps the first residues.

    Args:
        lift: what is known so far.
        kept: residues, and which lanes of them.
        primes: of the lanes in their order; the last one checks the result.
        checkpoint: called between polynomials on the processor and slices on the device.

    Returns:
        Whether it was tried: False where there is nothing to do, where the primes are too many
        or memory does not suffice for the longest polynomial.

    Raises:
        CudaError: E-CUDA-003 or 006 when a device fails. What is not settled then can still be.
    """
    if not 2 <= len(primes) <= MOST_PRIMES + 1 or not lift.offsets[-1]:
        return False
    runs = [run for one, lanes in kept for run in one.runs(lanes)]
    work = _Settling(lift, runs, Attempt.of(partial(_rows, runs), primes), primes, checkpoint)
    slices = work.slices()
    if slices is None:
        return False
    denominators = work.denominators()
    if all(denominators):
        work.write(denominators, slices)
        lift.settle_each(lift.waiting, work.attempt, checkpoint)
    return True


def _rows(runs: list[tuple[Part, list[int]]], first: int, last: int) -> NDArray[np.uint32]:
    """The residues of some terms, from the devices."""
    return np.concatenate([part.rows(first, last)[:, columns] for part, columns in runs], axis=1)


@attrs.define(eq=False)
class _Settling:
    """One attempt."""

    lift: Lift
    runs: list[tuple[Part, list[int]]]
    attempt: Attempt
    primes: tuple[int, ...]
    checkpoint: Callable[[], None]

    def slices(self) -> list[tuple[int, int]] | None:
        """Polynomials to lift at once, first and last; None where one is too long."""
        n, words = len(self.primes), self.attempt.modulus.limbs
        lanes = max(part.lanes for part, _ in self.runs)
        with self.runs[0][0].device.session() as session:
            most = session.free_bytes() // _SHARE // (4 * (3 * n + 2 * words + lanes + 6))
        # A polynomial has numbers of its own beside those of its terms.
        rows = self.lift.offsets + np.arange(len(self.lift.offsets))
        if np.diff(rows).max() > most:
            return None
        ends = [0]
        while ends[-1] < len(rows) - 1:
            ends.append(int(np.searchsorted(rows, rows[ends[-1]] + most, side="right")) - 1)
        return list(pairwise(ends))

    def denominators(self) -> list[int]:
        """Of all polynomials; 0 where there is one that the primes do not suffice for.

        A few polynomials are settled on the processor first: if they cannot be, no others are
        tried.
        """
        from alkahest.groebner.engine.denominators import denominators_of

        found = list(self.lift.denominators)
        waiting = self.lift.waiting
        if not self._tried(found, self.lift.witnesses()):
            return found
        mixed = denominators_of(self._mixtures(waiting), self.attempt, self.lift.threads)
        for i, denominator in zip(waiting, mixed, strict=True):
            found[i] = found[i] or denominator
        left = [i for i, denominator in enumerate(found) if not denominator]
        # The primes may suffice for the coefficients where a combination is too long.
        share = max(4, 4 * self.lift.threads)
        for first in range(0, len(left), share):
            if not self._tried(found, left[first : first + share]):
                break
        return found

    def _tried(self, found: list[int], indices: list[int]) -> bool:
        """Find the denominators of some polynomials on the processor; whether it found all."""
        sizes = np.diff(self.lift.offsets)[indices]
        trial = Lift(np.concatenate([[0], np.cumsum(sizes)]), self.lift.threads)
        # Where one without terms begins the next one does too, and comes later here.
        begins = self.lift.offsets[indices].tolist()
        begin_of = dict(zip(trial.offsets.tolist(), begins, strict=False))

        def rows(first: int, last: int) -> NDArray[np.uint32]:
            return self.attempt.rows(begin_of[first], begin_of[first] + last - first)

        trial.settle_each(trial.waiting, attrs.evolve(self.attempt, rows=rows), self.checkpoint)
        for i, denominator in zip(indices, trial.denominators, strict=True):
            found[i] = denominator
        return trial.settled

    def _mixtures(self, indices: list[int]) -> NDArray[np.uint32]:
        """Combinations of some polynomials, shape ``(polynomials, combinations, primes)``."""
        offsets = self.lift.offsets
        spans = np.stack([offsets[:-1], offsets[1:]], axis=1)[indices].astype(np.int32)
        found = [_mixed(part, spans)[:, :, columns] for part, columns in self.runs]
        return np.ascontiguousarray(np.concatenate(found, axis=2)[:, :, :-1])

    def write(self, denominators: list[int], slices: list[tuple[int, int]]) -> None:
        """Compute all numerators; what does not pass the check is left unsettled."""
        self.lift.restart(1)
        for first, last in slices:
            with self.runs[0][0].device.session() as session:
                passed = _Slice(session, self, first, last).lift(denominators[first:last])
            for i in range(first, last):
                self.lift.denominators[i] = denominators[i] if passed[i - first] else 0
            self.checkpoint()


def _mixed(part: Part, spans: NDArray[np.int32]) -> NDArray[np.uint32]:
    """The combinations for all lanes of a part."""
    found = np.empty((len(spans), MIXTURES, part.lanes), np.uint32)
    with part.device.session() as session:
        where, field = session.allocate(spans.size), session.allocate(3 * part.lanes)
        mixtures = session.allocate(found.size)
        session.write(where, spans)
        session.write(field, field_of(part.primes))
        session.launch(
            "mix_terms", 1, (len(spans), -(-part.lanes // 32)), (32, STRIPES), 0,
            part.words, part.lanes, where, field, mixtures,
        )  # fmt: skip
        session.read(mixtures, found)
    return found


def _remainders(numbers: list[int], primes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Positive numbers modulo primes below 2**32, shape ``(numbers, primes)``."""
    words = -(-max(n.bit_length() for n in numbers) // 32)
    data = b"".join(n.to_bytes(4 * words, "big") for n in numbers)
    limbs = np.frombuffer(data, ">u4").reshape(len(numbers), words).astype(np.uint64)
    found = np.zeros((len(numbers), len(primes)), np.uint64)
    for limb in limbs.T:
        found = (found << np.uint64(32) | limb[:, None]) % primes
    return found


class _Slice:
    """Some polynomials, one after another, whose numerators are computed in one session."""

    def __init__(self, session: Session, work: _Settling, first: int, last: int) -> None:
        self._session = session
        self._work = work
        self._lift = work.lift
        self._first = first
        self._offsets = work.lift.offsets[first : last + 1]
        self._count = last - first
        self._terms = int(self._offsets[-1] - self._offsets[0])
        self._rows = self._terms + self._lift.leads * self._count

    def lift(self, denominators: list[int]) -> NDArray[np.bool_]:
        """Write all numerators to the lift; which polynomials passed the check."""
        work, modulus = self._work, self._work.attempt.modulus
        n, primes = len(work.primes) - 1, np.array(work.primes, np.uint32)
        remainders = _remainders(denominators, np.array(work.primes, np.uint64))
        factors = (remainders[:, :n] * modulus.inverses % modulus.primes).astype(np.uint32)
        residues, width, columns = self._residues()
        owners, limbs = self._numerators(residues, width, columns[:n], factors, primes[:n])
        negative, failed = self._zeros(self._rows), self._zeros(self._count)
        used = self._zeros(1)
        self._launch(
            "check_terms", self._terms,
            limbs, modulus.limbs, self._terms, owners, work.attempt.most_bits, residues, width,
            columns[n], self._uploaded(field_of(primes[n:])),
            self._uploaded(remainders[:, n].astype(np.uint32)), self._lift.leads, negative, failed,
            used,
        )  # fmt: skip
        words = max(1, int(self._read(used, 1)[0]))
        self._collect(limbs, owners, negative, words)
        return np.equal(self._read(failed, self._count), 0)

    def _residues(self) -> tuple[Words, int, list[int]]:
        """Rows of residues on this device, their length, and the primes' columns in them."""
        first, runs = int(self._offsets[0]), self._work.runs
        device = runs[0][0].device
        if len(runs) == 1:
            part, columns = runs[0]
            return part.words + first * part.lanes, part.lanes, columns
        width, at = len(self._work.primes), 0
        table = self._session.allocate(width * self._terms)
        for part, columns in runs:
            if part.device is device:
                source = part.words + first * part.lanes
            else:
                source = self._uploaded(part.rows(first, first + self._terms))
            gather(self._session, source, part.lanes, columns, self._terms, table, width, at)
            at += len(columns)
            if part.device is not device:
                self._session.free(source)
        return table, width, list(range(width))

    def _numerators(
        self,
        residues: Words,
        width: int,
        columns: list[int],
        factors: NDArray[np.uint32],
        primes: NDArray[np.uint32],
    ) -> tuple[Words, Words]:
        """The polynomial of each term, and its numerator in two's complement."""
        session, modulus = self._session, self._work.attempt.modulus
        terms, n = self._terms, len(primes)
        owners, multiples = session.allocate(terms), session.allocate(terms)
        scaled = session.allocate(n * terms)
        starts = (self._offsets - self._offsets[0]).astype(np.int32)
        self._launch(
            "scale_terms", terms,
            residues, width, self._uploaded(np.array(columns, np.int32)), n, self._uploaded(starts),
            self._count, terms, self._uploaded(factors), self._uploaded(field_of(primes)), owners,
            scaled, multiples,
        )  # fmt: skip
        limbs = session.allocate(modulus.limbs * terms)
        self._launch(
            "add_cofactors", terms,
            scaled, multiples, terms, self._uploaded(modulus.cofactors),
            self._uploaded(modulus.digits.astype(np.uint32)), n, len(modulus.digits), modulus.limbs,
            limbs,
        )  # fmt: skip
        session.free(scaled)
        return owners, limbs

    def _collect(self, limbs: Words, owners: Words, negative: Words, words: int) -> None:
        """Bring the numerators down, the lowest ``words`` words of them, and their signs."""
        lift = self._lift
        lift.widen(words)
        collected = self._zeros(self._rows * words)
        self._launch(
            "collect_limbs", self._terms * words,
            limbs, self._terms, owners, lift.leads, words, collected,
        )  # fmt: skip
        at = int(self._offsets[0]) + lift.leads * self._first
        target = lift.limbs[at : at + self._rows]
        if words == target.shape[1]:
            self._session.read(collected, target)
        else:
            target[:, :words] = self._read(collected, self._rows * words).reshape(-1, words)
            target[:, words:] = 0
        lift.negative[at : at + self._rows] = self._read(negative, self._rows)

    def _launch(self, kernel: str, items: int, *arguments: Argument) -> None:
        self._session.launch(kernel, 1, blocks_for(items), (THREADS,), 0, *arguments)

    def _uploaded(self, values: NDArray[Any]) -> Words:
        words = self._session.allocate(values.size)
        self._session.write(words, np.ascontiguousarray(values))
        return words

    def _zeros(self, count: int) -> Words:
        words = self._session.allocate(count)
        self._session.zero(words, count)
        return words

    def _read(self, words: Words, count: int) -> NDArray[np.uint32]:
        values = np.empty(count, np.uint32)
        self._session.read(words, values)
        return values


__all__ = ["MIXTURES", "MOST_PRIMES", "settle"]
