"""Changes of order that a device follows, against the processor."""

from __future__ import annotations

import numpy as np
import pytest
from polysystems import named

from alkahest import GroebnerBasis, compute_groebner_basis_gpu
from alkahest.backends.groebner_gpu.conversion import follow
from alkahest.backends.groebner_gpu.gpu import Gpu
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.fglm import Conversion
from alkahest.groebner.following import walk_of
from alkahest.groebner.orders import order_of
from alkahest.groebner.quotient import Border


def nothing() -> None:
    """A checkpoint that lets everything pass."""


def compare(device: Gpu, name: str, order: str, primes: list[int], looked_at: list[int]) -> None:
    """Follow on the device and, for some of the primes, on the processor."""
    polynomials, n = named(name)
    basis = GroebnerBasis.compute(polynomials, [f"x{i}" for i in range(n)])
    border = Border.of(basis)
    steps = Conversion.modulo(basis, border, order_of(order, n), 2147483647, range(n))
    assert steps is not None
    walk = walk_of(steps, basis.engine_basis, border)
    lucky, tails, rows = follow(device, walk, primes, nothing, vectors=True)
    assert rows is not None
    for q in looked_at:
        expected = steps.followed(basis, border, steps.needed(border), primes[q])
        assert lucky[q] == (expected is not None)
        if expected is not None:
            assert np.array_equal(rows[q], expected.vectors)
            assert np.array_equal(tails[q], expected.tails[:, : walk.vectors])


@pytest.mark.parametrize(
    ("name", "order"),
    [
        pytest.param("katsura-4", "lex", marks=pytest.mark.sanitize),
        pytest.param("cyclic-5", "elimination(2)", marks=pytest.mark.sanitize),
        ("cyclic-6", "lex"),
    ],
)
def test_every_prime_is_followed_or_unlucky_as_on_the_processor(
    device: Gpu, name: str, order: str
) -> None:
    primes = [2147483629, 2147483587, 65521, 101, 11, 7, 5, 3]
    compare(device, name, order, primes, list(range(len(primes))))


@pytest.mark.parametrize("name", ["katsura-8", "noon-5", "eco-9"])
def test_large_conversions_for_many_primes(device: Gpu, name: str) -> None:
    source = primes_below(2**31 - 1000)
    compare(device, name, "lex", [next(source) for _ in range(70)], [0, 1, 35, 69])


@pytest.mark.parametrize("name", ["katsura-6", "cyclic-6", "noon-4"])
def test_rational_bases_under_lex_are_the_processor_s(name: str) -> None:
    polynomials, n = named(name)
    names = [f"x{i}" for i in range(n)]
    basis, report = compute_groebner_basis_gpu(polynomials, names, "lex")
    assert report.ran_on_gpu()
    assert report.seconds["follow"] > 0
    assert basis == GroebnerBasis.compute(polynomials, names, "lex")
