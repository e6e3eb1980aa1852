"""Critical pairs: the Gebauer-Möller criteria, and which pairs to take next.

Source: R. Gebauer, H. M. Möller, "On an installation of Buchberger's algorithm", Journal of
Symbolic Computation 6 (1988), in the form of T. Becker, V. Weispfenning, "Gröbner Bases",
section 5.5; sugar degrees after A. Giovini et al., "One sugar cube, please" (ISSAC 1991).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.packing import (
    ExponentOverflowError,
    Layout,
    divides,
    equal,
    field,
    lcm,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.basis import Basis

_OVERFLOW = -1


@kernel(
    "int64(int64, int64, uint64[:, ::1], uint8[::1], int64[::1], uint64[:, ::1], int32[:, ::1],"
    "int64[::1], int64[::1], uint64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1],"
    "uint64[::1], int64)"
)
def _update(
    first,
    last,
    leads,
    redundant,
    sugar,
    pair_lcm,
    pair_of,
    pair_degree,
    count,
    lcms,
    scratch,
    form_at,
    forms,
    variable_at,
    guard,
    bits,
):
    """Add basis elements ``first:last`` one by one; the first one not added, or an overflow.

    ``count[0]`` is the number of pairs. It stops before an element whose pairs may not fit.
    """
    words = guard.size
    for h in range(first, last):
        n = count[0]
        if n + h > pair_degree.size:
            return h
        for i in range(h):
            if not lcm(leads, i, leads, h, lcms, i, form_at, forms, variable_at, guard, bits):
                return _OVERFLOW
        # Criterion B: a pair whose lcm the new lead divides follows from the two pairs with h.
        kept = 0
        for k in range(n):
            a = pair_of[k, 0]
            b = pair_of[k, 1]
            if (
                divides(leads, h, pair_lcm, k, guard)
                and not equal(lcms, a, pair_lcm, k)
                and not equal(lcms, b, pair_lcm, k)
            ):
                continue
            if kept != k:
                for w in range(words):
                    pair_lcm[kept, w] = pair_lcm[k, w]
                pair_of[kept, 0] = a
                pair_of[kept, 1] = b
                pair_degree[kept] = pair_degree[k]
            kept += 1
        n = kept
        # Criteria M and F: of the new pairs stay those of minimal lcm, one for each. A pair of
        # coprime leads suppresses others like any pair, and is itself dropped at the end.
        degree_h = field(leads, h, form_at[0], bits)
        minimal = 0
        divisible = False
        for i in range(h):
            if redundant[i]:
                continue
            if equal(lcms, i, leads, h):
                divisible = True
            coprime = np.int64(
                field(lcms, i, form_at[0], bits) == degree_h + field(leads, i, form_at[0], bits)
            )
            dropped = False
            for k in range(minimal):
                if divides(lcms, scratch[k, 0], lcms, i, guard):
                    dropped = True
                    if coprime and equal(lcms, scratch[k, 0], lcms, i):
                        scratch[k, 1] = 1
                    # What has divided one lcm probably divides the next: let it be first.
                    for c in range(2):
                        scratch[0, c], scratch[k, c] = scratch[k, c], scratch[0, c]
                    break
            if dropped:
                continue
            stay = 0
            for k in range(minimal):
                if not divides(lcms, i, lcms, scratch[k, 0], guard):
                    scratch[stay, 0] = scratch[k, 0]
                    scratch[stay, 1] = scratch[k, 1]
                    stay += 1
            scratch[stay, 0] = i
            scratch[stay, 1] = coprime
            minimal = stay + 1
        for k in range(minimal):
            if scratch[k, 1]:
                continue
            i = scratch[k, 0]
            for w in range(words):
                pair_lcm[n, w] = lcms[i, w]
            pair_of[n, 0] = i
            pair_of[n, 1] = h
            ahead = max(sugar[i] - field(leads, i, form_at[0], bits), sugar[h] - degree_h)
            pair_degree[n] = ahead + field(lcms, i, form_at[0], bits)
            n += 1
        count[0] = n
        if divisible:
            redundant[h] = 1
            continue
        for i in range(h):
            if not redundant[i] and equal(lcms, i, leads, i):
                redundant[i] = 1
    return last


@kernel(
    "UniTuple(int64, 2)(uint64[:, ::1], int32[:, ::1], int64[::1], int64, uint64[:, ::1],"
    "int32[:, ::1])"
)
def _take(pair_lcm, pair_of, pair_degree, count, lcm, of):
    """Move the pairs of the least degree to other arrays; that degree, and how many they are."""
    degree = pair_degree[0]
    for k in range(count):
        degree = min(degree, pair_degree[k])
    taken = 0
    for k in range(count):
        chosen = pair_degree[k] == degree
        to_lcm, to_of, at = (lcm, of, taken) if chosen else (pair_lcm, pair_of, k - taken)
        for w in range(lcm.shape[1]):
            to_lcm[at, w] = pair_lcm[k, w]
        to_of[at, 0] = pair_of[k, 0]
        to_of[at, 1] = pair_of[k, 1]
        if chosen:
            taken += 1
        else:
            pair_degree[at] = pair_degree[k]
    return degree, taken


@attrs.define(eq=False)
class PairQueue:
    """The critical pairs still to be reduced.

    Attributes:
        layout: how monomials are packed.
        count: number of pairs; the arrays have room for more.
        lcm: packed, shape ``(capacity, words)``.
        of: int32, shape ``(capacity, 2)``: the basis elements.
        degree: sugar degrees, which are the degrees of the lcms for graded orders.
    """

    layout: Layout
    count: int
    lcm: NDArray[np.uint64]
    of: NDArray[np.int32]
    degree: NDArray[np.int64]

    @classmethod
    def empty(cls, layout: Layout, capacity: int = 256) -> PairQueue:
        """No pairs."""
        return cls(
            layout,
            0,
            np.empty((capacity, layout.words), np.uint64),
            np.empty((capacity, 2), np.int32),
            np.empty(capacity, np.int64),
        )

    def update(self, basis: Basis, first: int) -> None:
        """Pairs of the basis elements from ``first`` on, which become known to the criteria."""
        layout = self.layout
        last = basis.count
        lcms = np.empty((last, layout.words), np.uint64)
        scratch = np.empty((last, 2), np.int64)
        count = np.array([self.count])
        while first < last:
            first = _update(
                first, last, basis.leads, basis.redundant, basis.sugar, self.lcm, self.of,
                self.degree, count, lcms, scratch, layout.form_at, layout.forms,
                layout.variable_at, layout.guard, layout.bits,
            )  # fmt: skip
            if first == _OVERFLOW:
                raise ExponentOverflowError
            self.count = int(count[0])
            if first < last:
                self._reserve(2 * (self.count + last))
        basis.refresh_active()

    def _reserve(self, capacity: int) -> None:
        for name in ("lcm", "of", "degree"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)

    def take_lowest(self) -> tuple[int, NDArray[np.uint64], NDArray[np.int32]]:
        """Remove all pairs of the least degree: the degree, their lcms and their elements."""
        lcm = np.empty((self.count, self.layout.words), np.uint64)
        of = np.empty((self.count, 2), np.int32)
        lowest, taken = _take(self.lcm, self.of, self.degree, self.count, lcm, of)
        self.count -= taken
        return lowest, lcm[:taken], of[:taken]
