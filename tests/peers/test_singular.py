"""Bases that Singular, an engine that shares nothing with ours, computes as well.

``ALKAHEST_RANDOM_IDEALS`` is the number of random ideals, 1,500 by default. Ten thousand take a quarter of
an hour.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
import singular
from groebner_benchmark import results
from groebner_benchmark.systems import PRIME, system
from randomideals import KINDS, random_ideal

from alkahest import GF, QQ, GroebnerBasis

INDEX = Path(__file__).parents[1] / "data" / "groebner" / "index.json"

PRIMES = (0, 2, 3, 5, 65521, 2147483647)
"""Characteristics."""

IDEALS = -(-int(os.environ.get("ALKAHEST_RANDOM_IDEALS", "1500")) // (len(KINDS) * len(PRIMES)))
"""Of each kind over each field."""

SYSTEMS = {
    PRIME: "katsura-2 katsura-3 katsura-5 katsura-7 cyclic-3 cyclic-4 noon-3 noon-5 noon-6 eco-4 "
    "eco-5 eco-7 eco-9 reimer-2 reimer-4 reimer-5 henrion-6 chandra-4 chandra-6 chandra-7 chandra-8 "
    "chandra-9 random-2 random-3 random-4 random-6 random-7 random-8",
    0: "katsura-2 katsura-3 katsura-5 katsura-7 cyclic-3 cyclic-4 noon-3 noon-6 eco-4 eco-5 eco-6 "
    "eco-8 eco-9 reimer-2 reimer-3 reimer-5 henrion-5 chandra-4 chandra-5 chandra-7 chandra-8 "
    "random-2 random-3 random-4",
}
"""By characteristic, systems without a reference basis that Singular finishes."""


def compare(ideals, seconds=300):
    """Compare elements, leading monomials and digests; the first ideals that differ."""
    differing = []
    for ideal, theirs in zip(ideals, singular.bases(ideals, seconds), strict=True):
        polys, names, order, prime = ideal
        basis = GroebnerBasis.compute(polys, names, order, GF(prime) if prime else QQ)
        ours = ",".join(map(str, basis))
        theirs = "" if theirs == "0" else theirs
        leading = [next(iter(e)) for e in results.elements(theirs, names)]
        if (
            len(leading) != len(basis)
            or sorted(leading) != sorted(basis.leading_monomials)
            or results.digest(theirs, names, prime) != results.digest(ours, names, prime)
        ):
            differing.append((ideal, theirs, ours))
    return differing[:3]


@pytest.mark.parametrize("prime", PRIMES)
@pytest.mark.parametrize("kind", KINDS)
def test_random_ideals_have_the_basis_of_singular(kind, prime):
    draw = random.Random(f"{kind} {prime}")
    ideals = []
    for _ in range(IDEALS):
        n = draw.choice([2, 3, 3, 4])
        names = [f"x{i}" for i in range(n)]
        weights = ", ".join(str(draw.randint(1, 4)) for _ in names)
        orders = ["grevlex", "grlex", f"elimination({n // 2})", f"weights({weights})", "lex"]
        ideals.append((random_ideal(draw, kind, n, prime), names, draw.choice(orders), prime))
    assert not compare(ideals)


@pytest.mark.parametrize("prime", SYSTEMS)
def test_standard_systems_without_a_reference_have_the_basis_of_singular(prime):
    known = json.loads(INDEX.read_text(encoding="utf-8"))
    names = SYSTEMS[prime].split()
    assert not {f"{name}@{'gfp' if prime else 'qq'}" for name in names} & known.keys()
    assert not compare([(*system(name), "grevlex", prime) for name in names])
