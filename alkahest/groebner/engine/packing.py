"""Monomials as machine words: one addition multiplies, one comparison orders.

A monomial is a row of 64-bit words, cut into fields of 8, 16, 32 or 64 bits. A field holds the
value of one non-negative linear form of the exponents: either a single exponent or a degree. The
fields follow the order's weight matrix, most significant first, so that after flipping the fields
that count against a monomial (``words ^ flip``) the order is that of the words as unsigned
numbers. Every exponent has a field too, and the top bit of each field is free:

* the product of two monomials is the sum of their words; a set top bit is an overflow, answered
  by starting again with wider fields;
* ``a`` divides ``b`` when ``(b | guard) - a`` leaves every top bit set, since no field borrowed.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import attrs
import numpy as np

from alkahest.groebner.engine._kernel import inlined, kernel
from alkahest.groebner.engine.threads import Team

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.records import MonomialOrder

WIDTHS = (8, 16, 32, 64)
"""Field widths in bits, tried in this order."""


class ExponentOverflowError(Exception):
    """A field is too narrow for a monomial; the run starts again with the next width."""


@kernel("void(uint64[:, ::1], uint32[:, ::1], int64[::1], int64, int64, int64)")
def _unpack(packed, exponents, variable_at, bits, first, last):
    mask = (np.uint64(1) << np.uint64(bits - 1)) - np.uint64(1)
    for i in range(first, last):
        for v in range(variable_at.size):
            at = variable_at[v]
            exponents[i, v] = (packed[i, at >> 6] >> np.uint64(at & 63)) & mask


@attrs.frozen(kw_only=True, eq=False)
class Layout:
    """Where the fields of a packed monomial lie.

    Attributes:
        bits: width of a field.
        words: number of 64-bit words of a monomial.
        forms: int64, shape ``(nforms, nvars)``: linear forms that have a field. The first is the
            grading, which gives the degree of a monomial.
        form_at: int64, shape ``(nforms,)``: ``64 * word + shift`` of their fields.
        variable_at: int64, shape ``(nvars,)``: the same for the exponents.
        flip: uint64, shape ``(words,)``: fields that count against a monomial.
        guard: uint64, shape ``(words,)``: top bits of all fields.
        salt: uint64, shape ``(words,)``: odd multipliers of the additive hash.
    """

    bits: int
    words: int
    forms: NDArray[np.int64]
    form_at: NDArray[np.int64]
    variable_at: NDArray[np.int64]
    flip: NDArray[np.uint64]
    guard: NDArray[np.uint64]
    salt: NDArray[np.uint64]

    @property
    def nvars(self) -> int:
        """Number of variables."""
        return len(self.variable_at)

    @property
    def largest(self) -> int:
        """Largest value of a field."""
        return (1 << (self.bits - 1)) - 1

    def pack(self, exponents: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Words of monomials given by exponents, shape ``(n, nvars)`` to ``(n, words)``."""
        packed = np.zeros((len(exponents), self.words), dtype=np.uint64)
        wide = exponents.astype(np.int64)
        values = np.concatenate([wide @ self.forms.T, wide], axis=1)
        if values.size and int(values.max()) > self.largest:
            raise ExponentOverflowError
        for column, at in enumerate([*self.form_at.tolist(), *self.variable_at.tolist()]):
            packed[:, at // 64] |= values[:, column].astype(np.uint64) << np.uint64(at % 64)
        return packed

    def unpack(self, packed: NDArray[np.uint64], threads: int = 1) -> NDArray[np.uint32]:
        """Exponents of packed monomials, shape ``(n, words)`` to ``(n, nvars)``."""
        packed = np.ascontiguousarray(packed)
        exponents = np.empty((len(packed), self.nvars), dtype=np.uint32)
        with Team(threads) as team:
            work = partial(_unpack, packed, exponents, self.variable_at, self.bits)
            team.each(work, team.split(len(packed)))
        return exponents

    def descending(self, packed: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Indices that sort packed monomials, the largest first."""
        keys = ~(packed ^ self.flip)
        if self.words == 1:
            return keys[:, 0].argsort(kind="stable")
        return np.lexsort(keys.T[::-1])


def _compared_fields(weights: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], bool]]:
    """Rows of a weight matrix as non-negative forms with the flag whether to flip them."""
    fields: list[tuple[NDArray[np.int64], bool]] = []
    before = np.zeros(weights.shape[1], dtype=np.int64)
    for row in weights[weights.any(axis=1)]:
        if np.count_nonzero(row) == 1 and row.sum() == -1:
            fields.append((-row, True))
        elif (row >= 0).all():
            fields.append((row, False))
        else:
            # Rows above decide first, so adding a multiple of them changes nothing; the first
            # non-zero entry of a column is positive, so some multiple makes the row non-negative.
            fields.append((row + before * int(-row.min()), False))
        before = before + fields[-1][0] * (not fields[-1][1])
    return fields


@lru_cache(maxsize=256)
def layout(order: MonomialOrder, bits: int, seed: int = 0) -> Layout:
    """The packed representation of monomials under ``order`` with fields of ``bits`` bits."""
    nvars = order.nvars
    grading = order.weights[0] if order.is_graded else np.ones(nvars, dtype=np.int64)
    fields = _compared_fields(order.weights)
    if not any(np.array_equal(form, grading) and not flipped for form, flipped in fields):
        fields.append((grading, False))
    units = np.eye(nvars, dtype=np.int64)
    present = {form.tobytes() for form, _ in fields}
    fields.extend((unit, False) for unit in units if unit.tobytes() not in present)
    per_word = 64 // bits
    words = max(1, -(-len(fields) // per_word))
    flip = np.zeros(words, dtype=np.uint64)
    guard = np.zeros(words, dtype=np.uint64)
    at: dict[bytes, int] = {}
    forms: list[tuple[NDArray[np.int64], int]] = []
    for index, (form, flipped) in enumerate(fields):
        word, place = divmod(index, per_word)
        shift = 64 - bits * (place + 1)
        guard[word] |= np.uint64(1) << np.uint64(shift + bits - 1)
        if flipped:
            flip[word] |= np.uint64((1 << (bits - 1)) - 1) << np.uint64(shift)
        at.setdefault(form.tobytes(), 64 * word + shift)
        forms.append((form, 64 * word + shift))
    grades = [entry for entry in forms if np.array_equal(entry[0], grading)][:1]
    others = [entry for entry in forms if entry[0].sum() != 1 or entry[1] != at[entry[0].tobytes()]]
    ordered = grades + [entry for entry in others if entry[1] != grades[0][1]]
    rng = np.random.default_rng(seed % 2**64)
    return Layout(
        bits=bits,
        words=words,
        forms=np.array([form for form, _ in ordered], dtype=np.int64).reshape(len(ordered), nvars),
        form_at=np.array([place for _, place in ordered], dtype=np.int64),
        variable_at=np.array([at[unit.tobytes()] for unit in units], dtype=np.int64),
        flip=flip,
        guard=guard,
        salt=rng.integers(0, 2**64, words, dtype=np.uint64) | np.uint64(1),
    )


@inlined
def divides(a, i, b, j, guard):
    """Whether monomial ``a[i]`` divides ``b[j]``."""
    lost = np.uint64(0)
    for w in range(guard.size):
        lost |= ~((b[j, w] | guard[w]) - a[i, w]) & guard[w]
    return lost == 0


@inlined
def equal(a, i, b, j):
    """Whether monomials ``a[i]`` and ``b[j]`` are the same."""
    difference = np.uint64(0)
    for w in range(a.shape[1]):
        difference |= a[i, w] ^ b[j, w]
    return difference == 0


@inlined
def field(a, i, at, bits):
    """Value of the field at ``at`` of monomial ``a[i]``."""
    mask = (np.uint64(1) << np.uint64(bits - 1)) - np.uint64(1)
    return np.int64((a[i, at >> 6] >> np.uint64(at & 63)) & mask)


@inlined
def lcm(a, i, b, j, out, k, form_at, forms, variable_at, guard, bits):
    """Write the lcm of ``a[i]`` and ``b[j]`` to ``out[k]``; whether it fits its fields.

    The larger of each pair of fields is chosen for a word at once: ``full`` has all value bits of
    the fields where ``b`` is not smaller. That is wrong for degrees, which are computed after.
    """
    for w in range(guard.size):
        x = a[i, w]
        y = b[j, w]
        g = guard[w]
        not_smaller = ((y | g) - x) & g
        full = not_smaller - (not_smaller >> np.uint64(bits - 1))
        out[k, w] = (y & full) | (x & ~full)
    mask = (np.uint64(1) << np.uint64(bits - 1)) - np.uint64(1)
    for f in range(form_at.size):
        total = np.uint64(0)
        for v in range(variable_at.size):
            if forms[f, v] != 0:
                at = variable_at[v]
                e = (out[k, at >> 6] >> np.uint64(at & 63)) & mask
                total += np.uint64(forms[f, v]) * e
        if total > mask:
            return False
        word = form_at[f] >> 6
        shift = np.uint64(form_at[f] & 63)
        out[k, word] = (out[k, word] & ~(mask << shift)) | (total << shift)
    return True
