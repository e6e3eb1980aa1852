"""Small random ideals of every kind against an independent engine."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import sympy
from buchberger import Arithmetic

from alkahest import GF, QQ, GbPoly, GroebnerBasis
from alkahest.groebner.orders import order_of

NAMES = ("x", "y", "z")
ORDERS = ("grevlex", "lex", "grlex", "elimination(1)", "weights(1, 2, 3)")


def ideal(draw: random.Random, prime: int) -> list[dict[tuple[int, ...], int]]:
    """A few polynomials, sparse or dense, small, with products and powers now and then."""
    polys = []
    for _ in range(draw.randint(1, 4)):
        terms = {}
        for _ in range(draw.randint(1, draw.choice([2, 3, 6]))):
            exponents = tuple(draw.choice([0, 0, 0, 1, 1, 2]) for _ in NAMES)
            c = draw.randrange(1, prime) if prime else draw.choice([-5, -2, -1, 1, 1, 1, 2, 3, 7])
            terms[exponents] = c
        polys.append(terms)
    if draw.random() < 0.3:  # not radical
        polys[0] = {tuple(2 * min(e, 1) for e in m): c for m, c in polys[0].items()}
    if draw.random() < 0.2:  # positive-dimensional
        polys = [{(m[0] + 1, *m[1:]): c for m, c in p.items()} for p in polys]
    return polys


def is_reduced_basis(found, polys, order, prime) -> bool:
    """Whether ``found`` is the reduced basis of ``polys``, by Buchberger's algorithm under grevlex.

    Under grevlex it is compared; under other orders, where that algorithm may take minutes, it has
    to be a reduced basis of an ideal that contains the polynomials and is contained in theirs.
    """
    graded = Arithmetic(order_of("grevlex", 3).engine.weights, prime)
    reference = graded.groebner(polys)
    if order == "grevlex":
        return found == reference
    own = Arithmetic(order_of(order, 3).engine.weights, prime)
    pairs = [(own.lead(p), p) for p in found]
    theirs = [(graded.lead(p), p) for p in reference]
    leads = [lead for lead, _ in pairs]
    reduced = all(
        p[lead] == 1 and own.reduce(p, [q for q in pairs if q[0] != lead]) == p for lead, p in pairs
    )
    return (
        reduced
        and leads == sorted(leads, key=own.key, reverse=True)
        and own.is_basis(found)
        and not any(own.reduce(own.clean(p), pairs) for p in polys)
        and not any(graded.reduce(p, theirs) for p in found)
    )


@pytest.mark.parametrize("prime", [0, 2, 3, 5, 7, 65521, 2**31 - 1])
@pytest.mark.parametrize("block", range(3))
def test_random_ideals_have_the_basis_of_plain_buchberger(prime, block):
    draw = random.Random(1000 * block + prime)
    for _ in range(20):
        polys, order = ideal(draw, prime), draw.choice(ORDERS)
        field = GF(prime) if prime else QQ
        basis = GroebnerBasis.compute(polys, NAMES, order, field)
        assert is_reduced_basis([dict(p.terms()) for p in basis], polys, order, prime)


@pytest.mark.parametrize("prime", [0, 2, 3, 5, 65521])
def test_random_ideals_have_the_basis_of_sympy(prime):
    draw = random.Random(prime)
    gens = sympy.symbols(NAMES)
    domain = sympy.GF(prime, symmetric=False) if prime else sympy.QQ
    for _ in range(25):
        polys, order = ideal(draw, prime), draw.choice(["grevlex", "lex", "grlex"])
        field = GF(prime) if prime else QQ
        theirs = sympy.groebner(
            [sympy.Poly.from_dict(dict(p), *gens, domain=domain) for p in polys],
            *gens,
            order=order,
            domain=domain,
        )
        ours = GroebnerBasis.compute(polys, NAMES, order, field)
        expected = {GbPoly(p, NAMES, field) for p in theirs.polys if not p.is_zero}
        assert set(ours) == expected, (polys, order)


@pytest.mark.parametrize("prime", [0, 7, 65521])
def test_normal_forms_are_those_of_plain_division(prime):
    draw = random.Random(prime + 1)
    for _ in range(15):
        polys, order = ideal(draw, prime), draw.choice(ORDERS)
        basis = GroebnerBasis.compute(polys, NAMES, order, GF(prime) if prime else QQ)
        arithmetic = Arithmetic(order_of(order, 3).engine.weights, prime)
        pairs = [(p.leading_monomial, dict(p.terms())) for p in basis]
        for poly in ideal(draw, prime):
            if not prime:
                poly = {m: Fraction(c, draw.randint(1, 9)) for m, c in poly.items()}
            expected = arithmetic.reduce(arithmetic.clean(poly), pairs)
            assert dict(basis.reduce(poly).terms()) == expected
