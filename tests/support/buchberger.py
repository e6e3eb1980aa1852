"""Buchberger's algorithm over dictionaries: slow, plain, and independent of the engine.

A polynomial is a dict ``{exponents: coefficient}`` with Fractions, or with residues of a prime.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

Polynomial = dict


class Arithmetic:
    """Polynomials over QQ (``prime=0``) or GF(prime) under an order given by weight rows."""

    def __init__(self, weights, prime=0):
        self.weights = [tuple(map(int, row)) for row in np.asarray(weights)]
        self.prime = prime
        self._keys = {}

    def key(self, monomial):
        found = self._keys.get(monomial)
        if found is None:
            found = self._keys[monomial] = self._key(monomial)
        return found

    def _key(self, monomial):
        return tuple(sum(w * e for w, e in zip(row, monomial, strict=True)) for row in self.weights)

    def clean(self, terms):
        if self.prime:
            terms = {m: int(c) % self.prime for m, c in terms.items()}
        else:
            terms = {m: Fraction(c) for m, c in terms.items()}
        return {m: c for m, c in terms.items() if c}

    def inverse(self, c):
        return pow(c, -1, self.prime) if self.prime else 1 / Fraction(c)

    def lead(self, f):
        return max(f, key=self.key)

    def monic(self, f):
        inverse = self.inverse(f[self.lead(f)])
        return self.clean({m: c * inverse for m, c in f.items()})

    def subtract_multiple(self, f, c, shift, g):
        """f - c * x**shift * g"""
        out = dict(f)
        for m, d in g.items():
            at = tuple(a + b for a, b in zip(m, shift, strict=True))
            value = out.get(at, 0) - c * d
            if self.prime:
                value %= self.prime
            if value:
                out[at] = value
            else:
                out.pop(at, None)
        return out

    def reduce(self, f, basis):
        """Normal form of f; the elements of basis are monic pairs (lead, polynomial)."""
        rest, f = {}, dict(f)
        while f:
            lead = self.lead(f)
            for g_lead, g in basis:
                if all(a >= b for a, b in zip(lead, g_lead, strict=True)):
                    shift = tuple(a - b for a, b in zip(lead, g_lead, strict=True))
                    f = self.subtract_multiple(f, f[lead], shift, g)
                    break
            else:
                rest[lead] = f.pop(lead)
        return rest

    def s_polynomial(self, f, g):
        a, b = self.lead(f), self.lead(g)
        top = tuple(map(max, a, b))
        up = self.subtract_multiple({}, -1, tuple(t - e for t, e in zip(top, a, strict=True)), f)
        return self.subtract_multiple(up, 1, tuple(t - e for t, e in zip(top, b, strict=True)), g)

    def is_basis(self, polynomials):
        """Buchberger's criterion, with every pair and nothing skipped but coprime leads."""
        basis = [(self.lead(f), self.monic(f)) for f in polynomials]
        return all(
            not self.reduce(self.s_polynomial(f, g), basis)
            for (a, f), (b, g) in combinations(basis, 2)
            if any(x and y for x, y in zip(a, b, strict=True))
        )

    def groebner(self, polynomials):
        """The reduced monic basis, the largest leading monomial first."""
        basis = []
        pairs = []

        def add(f):
            f = self.monic(f)
            lead = self.lead(f)
            for i, (other, _) in enumerate(basis):
                if any(x and y for x, y in zip(lead, other, strict=True)):
                    pairs.append((tuple(map(max, lead, other)), i, len(basis)))
            basis.append((lead, f))

        for f in polynomials:
            f = self.reduce(self.clean(f), basis)
            if f:
                add(f)
        while pairs:
            pairs.sort(key=lambda pair: self.key(pair[0]), reverse=True)
            _, i, j = pairs.pop()
            f = self.reduce(self.s_polynomial(basis[i][1], basis[j][1]), basis)
            if f:
                add(f)
        minimal = []
        for lead, f in sorted(basis, key=lambda item: self.key(item[0])):
            if not any(all(a >= b for a, b in zip(lead, low, strict=True)) for low, _ in minimal):
                minimal.append((lead, f))
        reduced = []
        for lead, f in minimal:
            others = [item for item in minimal if item[0] != lead]
            tail = self.reduce({m: c for m, c in f.items() if m != lead}, others)
            reduced.append(self.monic({lead: f[lead], **tail}))
        return sorted(reduced, key=lambda f: self.key(self.lead(f)), reverse=True)
