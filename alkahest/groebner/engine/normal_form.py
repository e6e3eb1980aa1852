"""Normal forms of many polynomials modulo a Gröbner basis, exactly.

Over the rationals quotients and remainders are lifted and proved together; see
:mod:`~alkahest.groebner.engine.division`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner.engine.basis import Basis
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.packing import WIDTHS, ExponentOverflowError, Layout, layout
from alkahest.groebner.engine.prepare import merged
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.records import (
    LARGEST_PRIME,
    EngineBasis,
    MonomialOrder,
    PolynomialSystem,
    integers_of,
)
from alkahest.groebner.engine.reduction import normal_forms
from alkahest.groebner.engine.seeds import LOWER, rows_as_they_are
from alkahest.groebner.engine.symbolic import SymbolicMatrix, build_matrix


@attrs.frozen(kw_only=True, eq=False)
class NormalForms:
    """Remainders of division by a basis, one for each polynomial given, in their order.

    Attributes:
        exponents: uint32, shape ``(terms, nvars)``, each polynomial's terms in descending order.
        numerators: integers, or residues over GF(p).
        offsets: int64, shape ``(polynomials + 1,)``.
        denominators: positive integers: remainder i is its numerators over ``denominators[i]``.
    """

    exponents: NDArray[np.uint32]
    numerators: list[int]
    offsets: NDArray[np.int64]
    denominators: list[int]


def reduce_modp(
    system: PolynomialSystem,
    basis: EngineBasis,
    prime: int,
    order: MonomialOrder,
    *,
    deadline: float | None = None,
) -> NormalForms:
    """Remainders modulo a Gröbner basis over GF(``prime``).

    Args:
        system: the polynomials to divide.
        basis: monic polynomials modulo ``prime``.
        prime: below 2**31.
        order: the order of the basis.
        deadline: reading of :func:`time.monotonic` at which to give up, or None.

    Raises:
        SolverError: E-SOLVE-012 at the deadline, E-SOLVE-013 for exponents beyond 63 bits.
    """
    limits = Limits(deadline=deadline)
    for packing in _layouts(order):
        try:
            job = _Job.make(system, basis, packing, prime, limits)
        except ExponentOverflowError:
            continue
        given = np.array(job.coefficients, np.uint32)
        rows = normal_forms(
            job.matrix, np.concatenate([basis.residues, given]), prime,
            limits.checkpoint,
        ).rows  # fmt: skip
        row, column = np.nonzero(rows)
        return NormalForms(
            exponents=packing.unpack(job.matrix.columns[job.matrix.pivots :][column]),
            numerators=rows[row, column].tolist(),
            offsets=job.offsets(np.bincount(row, minlength=len(rows))),
            denominators=[1] * len(system),
        )
    raise _too_large()


def reduce_rational(
    system: PolynomialSystem,
    basis: EngineBasis,
    order: MonomialOrder,
    *,
    deadline: float | None = None,
) -> NormalForms:
    """Remainders modulo a Gröbner basis over the rationals, proved by their quotients.

    Arguments and errors as in :func:`reduce_modp`; ``basis`` is one over the rationals.
    """
    limits = Limits(deadline=deadline)
    for packing in _layouts(order):
        try:
            job = _Job.make(system, basis, packing, 0, limits)
        except ExponentOverflowError:
            continue
        # Imported here because their functions take seconds to compile the first time.
        from alkahest.groebner.engine.division import Division, DivisorImages, Images
        from alkahest.groebner.engine.recording import trace_round

        matrix, nothing = job.matrix, np.zeros(0, np.int32)
        starts = basis.offsets[:-1]
        leading = integers_of(basis.limbs[starts], basis.negative[starts])
        division = Division(
            program=trace_round(matrix, matrix.lower, nothing, nothing, nothing, 0, 0),
            images=Images(
                DivisorImages(basis, leading, job.coefficients),
                primes_below(LARGEST_PRIME, leading),
            ),
            scales=[leading[g] for g in matrix.row_of[matrix.pivot_row]],
            given_bits=max((c.bit_length() for c in job.coefficients), default=0),
            divisor_bits=32 * basis.limbs.shape[1],
            limits=limits,
        )
        division.run()
        remainder = division.column >= matrix.pivots
        column = division.column[remainder]
        counts = np.bincount(division.row[remainder], minlength=len(job.matrix.lower))
        return NormalForms(
            exponents=packing.unpack(job.matrix.columns[column]),
            numerators=division.lift.integers(remainder),
            offsets=job.offsets(counts),
            denominators=job.spread(division.lift.denominators, 1),
        )
    raise _too_large()


def _layouts(order: MonomialOrder) -> Iterator[Layout]:
    return (layout(order, bits) for bits in WIDTHS)


def _too_large() -> SolverError:
    return SolverError("E-SOLVE-013", "an exponent of the division does not fit into 63 bits")


@attrs.frozen(kw_only=True, eq=False)
class _Job:
    """Polynomials to divide as the lower rows of a matrix whose pivots are the basis' multiples.

    Attributes:
        matrix: row_term counts the terms of the basis first, then those of the polynomials.
        coefficients: of the polynomials.
        nonzero: which of the polynomials given have a row.
    """

    matrix: SymbolicMatrix
    coefficients: list[int]
    nonzero: NDArray[np.bool_]

    @classmethod
    def make(
        cls,
        system: PolynomialSystem,
        basis: EngineBasis,
        packing: Layout,
        prime: int,
        limits: Limits,
    ) -> _Job:
        words, coefficients, sizes = merged(system, packing, prime)
        store = Basis.empty(packing)
        unused = np.zeros(len(basis.exponents), np.uint32)
        store.append(packing.pack(basis.exponents), unused, np.diff(basis.offsets))
        store.refresh_active()
        nonzero = sizes > 0
        first = store.append(words, np.zeros(len(words), np.uint32), sizes[nonzero])
        rows = np.arange(first, store.count, dtype=np.int32)
        matrix = build_matrix(store, rows_as_they_are(store, rows, LOWER), limits)
        return cls(matrix=matrix, coefficients=coefficients, nonzero=nonzero)

    def spread(self, values: Sequence[int], default: int) -> list[int]:
        """Values of the rows as values of the polynomials."""
        rest = iter(values)
        return [next(rest) if has_row else default for has_row in self.nonzero]

    def offsets(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Offsets of remainders with so many terms a row."""
        return np.cumsum([0, *self.spread(counts.tolist(), 0)], dtype=np.int64)
