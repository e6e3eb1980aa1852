"""Small random ideals of every kind that engines get wrong."""

from __future__ import annotations

from itertools import product

KINDS = ("sparse", "dense", "non-radical", "positive-dimensional", "parameters")


def random_ideal(draw, kind, n, prime):
    """One to ``n + 1`` polynomials in ``n`` variables, ``{exponents: coefficient}``.

    ``kind``: a few terms each; most monomials of degree at most 2; products and powers; a common
    factor or few equations; dense ones with coefficients 0 and 1 alone, as where parameters of a
    family vanish. Now and then a polynomial is zero or repeated.
    """
    count = draw.randint(1, n + 1)
    if kind == "parameters":
        # The same monomials in each; a parameter switches each of them on or off.
        support = [_power(draw, n, 3) for _ in range(6)]
        polys = [{m: 1 for m in support if draw.random() < 0.5} for _ in range(count)]
    elif kind == "dense":
        support = [m for m in product(range(3), repeat=n) if sum(m) <= 2]
        polys = [
            {m: _coefficient(draw, prime) for m in support if draw.random() < 0.8}
            for _ in range(max(2, count))
        ]
    else:
        polys = [
            {_power(draw, n, 3): _coefficient(draw, prime) for _ in range(draw.randint(1, 4))}
            for _ in range(count)
        ]
    if kind == "non-radical":
        place = draw.randrange(len(polys))
        polys[place] = _times(polys[place], polys[draw.choice([place, -1])])
    if kind == "positive-dimensional":
        factor = {_power(draw, n, 1): 1, _power(draw, n, 1): _coefficient(draw, prime)}
        polys = [_times(p, factor) for p in polys] if draw.random() < 0.5 else polys[: n - 1]
    if draw.random() < 0.1:
        polys.append(dict(draw.choice([{}, polys[0]])))
    return polys


def _power(draw, n, degree):
    exponents = [0] * n
    for _ in range(draw.randint(0, degree)):
        exponents[draw.randrange(n)] += 1
    return tuple(exponents)


def _coefficient(draw, prime):
    return draw.randrange(1, prime) if prime else draw.choice([-7, -3, -2, -1, 1, 1, 2, 5])


def _times(f, g):
    terms = {}
    for (a, c), (b, d) in product(f.items(), g.items()):
        m = tuple(map(sum, zip(a, b, strict=True)))
        terms[m] = terms.get(m, 0) + c * d
    return {m: c for m, c in terms.items() if c}
