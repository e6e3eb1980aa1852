"""From input polynomials to distinct, sorted terms; exact until a prime is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.packing import Layout
    from alkahest.groebner.engine.records import PolynomialSystem


@attrs.frozen(kw_only=True, eq=False)
class Generators:
    """Non-zero input polynomials, the one of least leading monomial first.

    Attributes:
        words: packed monomials, distinct and descending within each polynomial.
        coefficients: integers, or residues modulo the prime they were made for; none is zero.
        sizes: int64, number of terms of each polynomial.
    """

    words: NDArray[np.uint64]
    coefficients: list[int]
    sizes: NDArray[np.int64]

    def leading(self) -> list[int]:
        """Leading coefficients."""
        starts = np.cumsum(self.sizes) - self.sizes
        return [self.coefficients[at] for at in starts]

    def images(self, primes: Sequence[int]) -> NDArray[np.uint32]:
        """Coefficients modulo primes, scaled to leading coefficient 1, shape ``(terms, primes)``.

        Raises:
            ZeroDivisionError: a prime divides a leading coefficient.
        """
        moduli = np.array(primes, np.int64)
        try:
            residues = np.array(self.coefficients, np.int64)[:, None] % moduli
        except OverflowError:
            rows = [[c % p for p in primes] for c in self.coefficients]
            residues = np.array(rows, np.int64).reshape(-1, len(primes))
        leads = residues[np.cumsum(self.sizes) - self.sizes]
        if not leads.all():
            raise ZeroDivisionError
        scales = [
            [pow(c, -1, p) for c, p in zip(row, primes, strict=True)] for row in leads.tolist()
        ]
        scale = np.array(scales, np.int64).reshape(leads.shape)
        product: NDArray[np.int64] = residues * np.repeat(scale, self.sizes, axis=0) % moduli
        return product.astype(np.uint32)


def merged(
    system: PolynomialSystem, layout: Layout, prime: int = 0
) -> tuple[NDArray[np.uint64], list[int], NDArray[np.int64]]:
    """Merge equal monomials, drop what is zero, sort terms; modulo ``prime`` unless it is 0.

    Returns:
        Packed monomials, coefficients and the number of terms of each polynomial, in their order.

    Raises:
        ExponentOverflowError: a monomial does not fit ``layout``.
    """
    words = layout.pack(system.exponents)
    polynomial = np.repeat(np.arange(len(system)), np.diff(system.offsets))
    keys = ~(words ^ layout.flip)
    order = np.lexsort((*keys.T[::-1], polynomial))
    words, polynomial = words[order], polynomial[order]
    values = [int(system.coefficients[k]) for k in order]
    same = np.zeros(len(words), np.bool_)
    same[1:] = (words[1:] == words[:-1]).all(axis=1) & (polynomial[1:] == polynomial[:-1])
    for k in np.nonzero(same)[0]:
        values[k] += values[k - 1]
        values[k - 1] = 0
    if prime:
        values = [value % prime for value in values]
    kept = np.array([value != 0 for value in values], np.bool_)
    sizes = np.bincount(polynomial[kept], minlength=len(system)).astype(np.int64)
    return words[kept], [value for value in values if value], sizes


def generators(system: PolynomialSystem, layout: Layout, prime: int = 0) -> Generators:
    """The non-zero polynomials of ``system``; arguments and errors as of :func:`merged`."""
    words, values, sizes = merged(system, layout, prime)
    sizes = sizes[sizes > 0]
    starts = np.cumsum(sizes) - sizes
    ascending = layout.descending(words[starts])[::-1]
    terms = spans(starts[ascending], sizes[ascending])
    return Generators(
        words=words[terms], coefficients=[values[t] for t in terms], sizes=sizes[ascending]
    )


def spans(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers ``start, ..., start + size - 1`` of each pair, one after another."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    shifts: NDArray[np.int64] = np.repeat(starts - (ends - sizes), sizes)
    return np.arange(total, dtype=np.int64) + shifts
