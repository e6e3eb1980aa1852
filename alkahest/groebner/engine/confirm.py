"""Whether a recorded run leads to a Gröbner basis modulo another prime than its own.

A replay notices when something vanishes that should not. It cannot notice the opposite: rows that
vanished modulo the learning prime are not in the record, and modulo other primes they may not vanish.
So the replayed basis is checked once, modulo one of the other primes: all generators and all
S-polynomials that the criteria leave must reduce to zero. Those of several degrees share a matrix
as long as it is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.linear_algebra import LinearAlgebra
from alkahest.groebner.engine.pairs import PairQueue
from alkahest.groebner.engine.prepare import Generators, spans
from alkahest.groebner.engine.seeds import LOWER, Seeds, pair_seeds, rows_as_they_are
from alkahest.groebner.engine.symbolic import build_matrix
from alkahest.groebner.engine.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOGETHER = 1 << 20
"""Terms of rows with which no further degree joins a matrix."""


def is_confirmed(
    trace: Trace,
    tails: NDArray[np.uint32],
    given: Generators,
    prime: int,
    limits: Limits,
    algebra: LinearAlgebra,
) -> bool:
    """Whether the basis of ``trace`` modulo ``prime`` is a Gröbner basis of the generators.

    Args:
        trace: the record; its result is what is checked.
        tails: residues of all but the leading terms.
        given: the generators.
        prime: not the one that the trace was learned with.
        limits: asked between matrices.
        algebra: what reduces them.

    Raises:
        ExponentOverflowError: a monomial does not fit the trace's layout.
    """
    store, queue = Basis.empty(trace.layout), PairQueue.empty(trace.layout)
    coefficients = np.ones(len(trace.words), np.uint32)
    is_tail = np.ones(len(coefficients), np.bool_)
    is_tail[trace.offsets[:-1]] = False
    coefficients[is_tail] = tails
    # The least leading monomial first, as when the basis was found.
    sizes = np.diff(trace.offsets)[::-1]
    terms = spans(trace.offsets[:-1][::-1], sizes)
    store.append(trace.words[terms], coefficients[terms], sizes)
    queue.update(store, 0)
    first = store.append(given.words, given.images([prime])[:, 0], given.sizes)
    rows = np.arange(first, store.count, dtype=np.int32)
    for seeds in _to_vanish(store, queue, rows_as_they_are(store, rows, LOWER)):
        matrix = build_matrix(store, seeds, limits, algebra.threads)
        reduced = algebra.echelon(matrix, store.coefficients, prime, 0, limits.checkpoint)
        if len(reduced.rows):
            return False
    return True


def _to_vanish(store: Basis, queue: PairQueue, seeds: Seeds) -> Iterator[Seeds]:
    """Rows for one matrix after another: ``seeds`` and those of all pairs."""
    lengths = store.lengths()
    while queue.count:
        _, lcms, of = queue.take_lowest()
        pairs = pair_seeds(store, lcms, of)
        if int(lengths[seeds.of].sum()) < _TOGETHER:
            seeds = seeds.with_rows(pairs)
        else:
            yield seeds
            seeds = pairs
    yield seeds
