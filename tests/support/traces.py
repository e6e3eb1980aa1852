"""Recorded computations of standard systems, and their images by the processor."""

from __future__ import annotations

from functools import cache

from polysystems import named, system

from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.lanes import LANES
from alkahest.groebner.engine.prepare import generators
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.engine.records import LARGEST_PRIME, MonomialOrder
from alkahest.groebner.engine.replay import replay


@cache
def learned(name):
    """The generators of ``"katsura-4"`` and the trace of their computation."""
    polynomials, nvars = named(name)
    packed = system(polynomials, nvars)
    trace = groebner_modp(packed, LARGEST_PRIME, MonomialOrder.grevlex(nvars), record=True)[2]
    return generators(packed, trace.layout), trace


def some_primes(given, count, bound=LARGEST_PRIME - 1000):
    """Primes that divide no leading coefficient, the largest first."""
    found = primes_below(bound, given.leading())
    return [next(found) for _ in range(count)]


def on_the_processor(trace, given, prime):
    """Coefficients of the result modulo one prime, and whether the trace fits it."""
    images = replay(trace, given.images([prime] * LANES), [prime] * LANES, lambda: None)
    return images.tails[:, 0], images.lucky[0]
