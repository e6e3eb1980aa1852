"""Bases over prime fields beyond the engine's words: Buchberger's algorithm on Python's integers.

Exact, and slow: the pair with the smallest least common multiple comes first, pairs of coprime
leading monomials are left out, and of pairs that a third element settles one is (Buchberger 1979).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import attrs
import numpy as np

from alkahest.groebner.flintpoly import Exponents
from alkahest.groebner.orders import Order

Residues = dict[Exponents, int]


@attrs.frozen(eq=False)
class LargeField:
    """Arithmetic of polynomials over GF(``prime``) under ``order``.

    Attributes:
        prime: any prime.
        order: of the monomials.
        checkpoint: called between reductions; what it raises ends the computation.
    """

    prime: int
    order: Order
    checkpoint: Callable[[], None] = lambda: None
    _keys: dict[Exponents, tuple[int, ...]] = attrs.field(factory=dict, init=False)

    def key(self, monomial: Exponents) -> tuple[int, ...]:
        """What monomials are compared by."""
        key = self._keys.get(monomial)
        if key is None:
            values = self.order.engine.weights @ np.array(monomial, dtype=np.int64)
            key = self._keys[monomial] = tuple(values.tolist())
        return key

    def leading(self, polynomial: Residues) -> Exponents:
        """The largest monomial."""
        return max(polynomial, key=self.key)

    def monic(self, polynomial: Residues) -> Residues:
        """The multiple with leading coefficient 1."""
        inverse = pow(polynomial[self.leading(polynomial)], -1, self.prime)
        return {m: c * inverse % self.prime for m, c in polynomial.items()}

    def subtract(self, target: Residues, factor: int, shift: Exponents, source: Residues) -> None:
        """``target -= factor * x**shift * source``."""
        for monomial, c in source.items():
            at = tuple(a + b for a, b in zip(monomial, shift, strict=True))
            value = (target.pop(at, 0) - factor * c) % self.prime
            if value:
                target[at] = value

    def remainder(self, polynomial: Residues, basis: Iterable[Residues]) -> Residues:
        """What is left after division by monic polynomials."""
        self.checkpoint()
        divisors = [(self.leading(g), g) for g in basis]
        rest, open_terms = {}, dict(polynomial)
        while open_terms:
            top = self.leading(open_terms)
            for lead, divisor in divisors:
                if _divides(lead, top):
                    shift = tuple(a - b for a, b in zip(top, lead, strict=True))
                    self.subtract(open_terms, open_terms[top], shift, divisor)
                    break
            else:
                rest[top] = open_terms.pop(top)
        return rest

    def s_polynomial(self, f: Residues, g: Residues) -> Residues:
        """The difference of the least multiples with equal leading terms."""
        a, b = self.leading(f), self.leading(g)
        lcm = tuple(map(max, a, b))
        total: Residues = {}
        self.subtract(total, -1, tuple(x - y for x, y in zip(lcm, a, strict=True)), f)
        self.subtract(total, 1, tuple(x - y for x, y in zip(lcm, b, strict=True)), g)
        return total

    def reduced_basis(self, generators: Sequence[Residues]) -> list[Residues]:
        """The reduced basis, in no particular order."""
        basis: list[Residues] = []
        leads: list[Exponents] = []
        pairs: list[tuple[tuple[int, ...], int, int]] = []
        waiting: set[tuple[int, int]] = set()

        def take(polynomial: Residues) -> None:
            rest = self.remainder(polynomial, basis)
            if not rest:
                return
            new = self.monic(rest)
            lead = self.leading(new)
            for i, other in enumerate(leads):
                if any(a and b for a, b in zip(lead, other, strict=True)):
                    lcm = tuple(map(max, lead, other))
                    heapq.heappush(pairs, (self.key(lcm), i, len(basis)))
                    waiting.add((i, len(basis)))
            basis.append(new)
            leads.append(lead)

        for generator in generators:
            take(generator)
        while pairs:
            _, i, j = heapq.heappop(pairs)
            waiting.discard((i, j))
            lcm = tuple(map(max, leads[i], leads[j]))
            settled = (
                k not in (i, j)
                and _divides(leads[k], lcm)
                and (min(i, k), max(i, k)) not in waiting
                and (min(j, k), max(j, k)) not in waiting
                for k in range(len(basis))
            )
            if not any(settled):
                take(self.s_polynomial(basis[i], basis[j]))
        return self._interreduced(basis)

    def _interreduced(self, basis: Sequence[Residues]) -> list[Residues]:
        minimal: list[Residues] = []
        for f in sorted(basis, key=lambda f: self.key(self.leading(f))):
            if not any(_divides(self.leading(g), self.leading(f)) for g in minimal):
                minimal.append(f)
        reduced = []
        for f in minimal:
            others = [g for g in minimal if g is not f]
            lead = self.leading(f)
            tail = {m: c for m, c in f.items() if m != lead}
            reduced.append({lead: 1, **self.remainder(tail, others)})
        return reduced


def _divides(a: Exponents, b: Exponents) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


__all__ = ["LargeField"]
