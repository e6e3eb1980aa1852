"""Polynomial systems for tests of the Gröbner engine: conversions, references, random ideals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

from alkahest.groebner.engine.records import PolynomialSystem

DATA = Path(__file__).parents[1] / "data" / "groebner"


def system(polynomials, nvars):
    """Dictionaries {exponents: integer} as the engine takes them."""
    exponents = [e for f in polynomials for e in f]
    return PolynomialSystem(
        exponents=np.array(exponents, np.uint32).reshape(len(exponents), nvars),
        coefficients=[c for f in polynomials for c in f.values()],
        offsets=np.cumsum([0, *map(len, polynomials)], dtype=np.int64),
    )


def dictionaries(basis):
    """An engine basis as monic dictionaries, the largest leading monomial first."""
    found = []
    for i in range(len(basis)):
        part = slice(int(basis.offsets[i]), int(basis.offsets[i + 1]))
        numbers = basis.integers(i)
        if not basis.characteristic:
            numbers = [Fraction(c, numbers[0]) for c in numbers]
        exponents = map(tuple, basis.exponents[part].tolist())
        found.append(dict(zip(exponents, numbers, strict=True)))
    return found


def reference(name):
    """Characteristic and monic basis of a file such as ``cyclic-5_qq``, the largest first."""
    data = json.loads((DATA / f"{name}.json").read_text())
    basis = [{tuple(e): Fraction(c) for e, c in f} for f in data["basis"]]
    return data["characteristic"], len(data["vars"]), basis[::-1]


def _monomial(n, *indices):
    exponents = [0] * n
    for i in indices:
        exponents[i] += 1
    return tuple(exponents)


def _sum(terms):
    total = {}
    for monomial, c in terms:
        total[monomial] = total.get(monomial, 0) + c
    return {m: c for m, c in total.items() if c}


def katsura(n):
    polynomials = [
        _sum(
            [(_monomial(n + 1, abs(k), abs(m - k)), 1) for k in range(-n, n + 1) if abs(m - k) <= n]
            + [(_monomial(n + 1, m), -1)]
        )
        for m in range(n)
    ]
    linear = [(_monomial(n + 1), -1), (_monomial(n + 1, 0), 1)]
    polynomials.append(_sum(linear + [(_monomial(n + 1, i), 2) for i in range(1, n + 1)]))
    return polynomials, n + 1


def cyclic(n):
    polynomials = [
        _sum((_monomial(n, *((i + j) % n for j in range(k))), 1) for i in range(n))
        for k in range(1, n)
    ]
    return [*polynomials, {_monomial(n, *range(n)): 1, _monomial(n): -1}], n


def noon(n):
    return [
        _sum(
            [(_monomial(n, i, j, j), 10) for j in range(n) if j != i]
            + [(_monomial(n, i), -11), (_monomial(n), 10)]
        )
        for i in range(n)
    ], n


def eco(n):
    polynomials = [
        _sum(
            [(_monomial(n, n - 1, k - 1), 1), (_monomial(n), -k)]
            + [(_monomial(n, n - 1, i - 1, i + k - 1), 1) for i in range(1, n - k)]
        )
        for k in range(1, n)
    ]
    linear = [(_monomial(n), 1)] + [(_monomial(n, i), 1) for i in range(n - 1)]
    return [*polynomials, _sum(linear)], n


FAMILIES = {"katsura": katsura, "cyclic": cyclic, "noon": noon, "eco": eco}


def named(name):
    """``"katsura-4"``: polynomials and number of variables."""
    family, n = name.rsplit("-", 1)
    return FAMILIES[family](int(n))


def random_ideal(rng, nvars, prime=0):
    """Up to four small polynomials: dense, sparse, monomials, binomials or squares."""
    kind = rng.choice(["dense", "sparse", "monomial", "binomial", "square"])
    terms = {"dense": (3, 7), "sparse": (1, 4), "monomial": (1, 1), "binomial": (2, 2)}
    polynomials = []
    for _ in range(rng.randint(1, 4)):
        count = rng.randint(*terms.get(kind, (1, 2)))
        f = {}
        for _ in range(count):
            degree = rng.randint(0, 2 if kind in ("square", "dense") else 3)
            monomial = _monomial(nvars, *(rng.randrange(nvars) for _ in range(degree)))
            f[monomial] = rng.randint(1, prime - 1) if prime else rng.choice((-3, -2, -1, 1, 2, 5))
        if kind == "square":
            f = _sum(
                (tuple(a + b for a, b in zip(m, n, strict=True)), c * d)
                for m, c in f.items()
                for n, d in f.items()
            )
        polynomials.append(f)
    if rng.random() < 0.1:
        polynomials.append({})
    if rng.random() < 0.1:
        polynomials.append(dict(polynomials[0]))
    return polynomials
