"""Checking a recorded result modulo another prime."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from traces import learned, on_the_processor, some_primes

from alkahest.groebner.engine import confirm
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.linear_algebra import LinearAlgebra
from alkahest.groebner.engine.reducers import host_reducer


@pytest.fixture(params=[0, 1 << 20], ids=["a matrix for each degree", "one matrix"], autouse=True)
def together(request, monkeypatch):
    monkeypatch.setattr(confirm, "_TOGETHER", request.param)


def is_confirmed(trace, tails, given, prime):
    algebra = LinearAlgebra(host_reducer())
    return confirm.is_confirmed(trace, tails, given, prime, Limits(), algebra)


@pytest.mark.parametrize("name", ["cyclic-5", "katsura-4", "noon-4"])
def test_a_replayed_basis_is_confirmed(name):
    given, trace = learned(name)
    (prime,) = some_primes(given, 1)
    tails, lucky = on_the_processor(trace, given, prime)
    assert lucky
    assert is_confirmed(trace, tails, given, prime)


@pytest.mark.parametrize("place", [0, -1])
def test_a_wrong_coefficient_is_noticed(place):
    given, trace = learned("katsura-4")
    (prime,) = some_primes(given, 1)
    tails, _ = on_the_processor(trace, given, prime)
    tails[place] ^= 1
    assert not is_confirmed(trace, tails, given, prime)


def test_generators_that_are_no_basis_are_noticed_by_their_s_polynomials():
    given, trace = learned("cyclic-4")
    (prime,) = some_primes(given, 1)
    images = given.images([prime])[:, 0]
    starts = np.cumsum([0, *given.sizes])
    largest_first = [slice(*starts[i : i + 2]) for i in reversed(range(len(given.sizes)))]
    claimed = attrs.evolve(
        trace,
        offsets=np.cumsum([0, *given.sizes[::-1]]),
        words=np.concatenate([given.words[part] for part in largest_first]),
    )
    tails = np.concatenate([images[part][1:] for part in largest_first])
    assert not is_confirmed(claimed, tails, given, prime)
