"""Rational numbers, their residues, and these on devices."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import islice
from math import lcm

import numpy as np

from alkahest.backends.groebner_gpu.kept import Kept, Part
from alkahest.groebner.engine.lift import Lift
from alkahest.groebner.engine.primes import primes_below

PRIMES = tuple(islice(primes_below(2**31 - 1, []), 600))


def residues_of(polynomials, primes):
    """Shape ``(terms, primes)``; where a prime divides a denominator, any number."""
    values = [c for f in polynomials for c in f]
    rows = [
        [v.numerator * pow(v.denominator, -1, p) % p if v.denominator % p else 5 for p in primes]
        for v in values
    ]
    return np.array(rows, np.uint32).reshape(len(values), len(primes))


def kept_on(device, residues, primes, extra=0):
    """Residues as a pass of a replay leaves them, the last prime repeated ``extra`` times."""
    filled = np.minimum(np.arange(len(primes) + extra), len(primes) - 1)
    with device.session() as session:
        words = session.allocate(residues.shape[0] * len(filled))
        session.write(words, np.ascontiguousarray(residues[:, filled]))
        part = Part(device, session, words, len(residues), np.array(primes, np.uint32)[filled])
    return Kept((part,), (len(primes),))


def random_polynomials(seed, count=12, terms=9, bits=150, below=(1, 2, 3, 35, 10**9)):
    """Of any number of terms, none included, with zeros, ones, and numbers of either sign."""
    rng = random.Random(seed)

    def coefficient():
        kind = rng.randrange(12)
        if kind == 0:
            return Fraction(rng.choice((0, 1, -1)))
        size = rng.getrandbits(rng.randint(1, bits))
        return Fraction(rng.choice((-1, 1)) * size, rng.choice(below))

    return [[coefficient() for _ in range(rng.randint(0, terms))] for _ in range(count)]


def lift_of(polynomials, threads=1, leads=0):
    """What nothing is known of yet."""
    return Lift(np.cumsum([0, *map(len, polynomials)]), threads, leads)


def assert_lifted(lift, polynomials):
    """The least common denominators, and the numerators over them."""
    assert lift.denominators == [lcm(*(c.denominator for c in f)) for f in polynomials]
    rows = np.zeros(len(lift.limbs), np.bool_)
    for i in range(len(polynomials)):
        rows[slice(*(lift.offsets[i : i + 2] + lift.leads * (i + 1)))] = True
    wanted = [int(c * lcm(*(c.denominator for c in f))) for f in polynomials for c in f]
    assert lift.integers(rows) == wanted
    assert not lift.limbs[~rows].any()
    assert not lift.negative[~rows].any()
