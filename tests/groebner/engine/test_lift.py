"""Chinese remainders and rational reconstruction in arrays."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from alkahest.groebner.engine import lift as lift_module
from alkahest.groebner.engine._kernel import kernel
from alkahest.groebner.engine.euclid import DIGIT_BITS, bit_length, fraction
from alkahest.groebner.engine.lift import Lift
from alkahest.groebner.engine.modulus import Modulus
from alkahest.groebner.engine.primes import primes_below

PRIMES = tuple(islice(primes_below(2**31 - 1, []), 80))


@kernel("int64(int64[::1], int64[::1], int64[:, ::1])")
def _fraction(modulus, value, work):
    return fraction(modulus, value, work)


@kernel("int64(int64[::1])")
def _bit_length(digits):
    return bit_length(digits)


def _digits(value, count):
    return np.array([value >> (DIGIT_BITS * k) & 0xFFFFFF for k in range(count)], np.int64)


def _number(digits):
    return sum(int(d) << (DIGIT_BITS * k) for k, d in enumerate(digits))


@pytest.mark.parametrize("count", [3, 8, 40, 80])
def test_fractions_are_found_from_their_residues(count):
    rng = random.Random(count)
    modulus = math.prod(PRIMES[:count])
    n = modulus.bit_length() // DIGIT_BITS + 2
    work = np.empty((6, n), np.int64)
    for _ in range(200):
        bits = rng.randint(1, modulus.bit_length() - 42)
        numerator = rng.getrandbits(bits) * rng.choice((-1, 1))
        denominator = rng.getrandbits(modulus.bit_length() - 40 - bits) | 1
        expected = Fraction(numerator, denominator)
        value = numerator * pow(denominator, -1, modulus) % modulus
        sign = _fraction(_digits(modulus, n), _digits(value, n), work)
        found = Fraction(sign * _number(work[1]), _number(work[3])) if value else Fraction(0)
        assert sign
        assert found == expected


def test_residues_of_no_small_fraction_are_given_up():
    rng = random.Random(1)
    modulus = math.prod(PRIMES[:20])
    n = modulus.bit_length() // DIGIT_BITS + 2
    work = np.empty((6, n), np.int64)
    found = [
        _fraction(_digits(modulus, n), _digits(rng.randrange(modulus), n), work)
        for _ in range(2000)
    ]
    assert found.count(0) == 2000


def test_bit_lengths_are_pythons():
    for value in (0, 1, 2**24 - 1, 2**24, 2**100 + 5):
        assert _bit_length(_digits(value, 6)) == value.bit_length()


def _residues(values, primes):
    rows = [[v.numerator * pow(v.denominator, -1, p) % p for p in primes] for v in values]
    return np.array(rows, np.uint32).reshape(len(values), len(primes))


@pytest.mark.parametrize("threads", [1, 3])
def test_polynomials_get_their_common_denominator_and_primitive_numerators(threads):
    rng = random.Random(3)
    polynomials = [
        [
            Fraction(rng.getrandbits(rng.randint(1, 150)) - 2**40, rng.choice((1, 2, 3, 35, 10**9)))
            for _ in range(rng.randint(0, 30))
        ]
        for _ in range(40)
    ]
    offsets = np.cumsum([0, *map(len, polynomials)])
    lift = Lift(offsets, threads)
    values = [c for f in polynomials for c in f]
    done = 1
    while not lift.settled:
        done += 1
        assert done < 20
        lift.settle(_residues(values, PRIMES[:done]), PRIMES[:done])
    numerators = lift.integers(np.ones(len(values), np.bool_))
    for i, f in enumerate(polynomials):
        common = math.lcm(*(c.denominator for c in f))
        assert lift.denominators[i] == common
        part = slice(int(offsets[i]), int(offsets[i + 1]))
        assert numerators[part] == [int(c * common) for c in f]
    assert max(n.bit_length() for n in numerators) <= lift.bits()


def test_more_than_a_batch_of_64_primes_is_carried():
    value = Fraction(7**600, 5**200)
    lift = Lift(np.array([0, 1]))
    lift.settle(_residues([value], PRIMES), PRIMES)
    assert lift.denominators == [5**200]
    assert lift.integers(np.ones(1, np.bool_)) == [7**600]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_checkpoint_that_raises_ends_the_lifting(threads, monkeypatch):
    monkeypatch.setattr(lift_module, "_GROUP", 5)
    calls = []

    def checkpoint():
        calls.append(1)
        if len(calls) == 3:
            raise TimeoutError

    lift = Lift(np.arange(41), threads)
    values = [Fraction(22, 7)] * 40
    with pytest.raises(TimeoutError):
        lift.settle(_residues(values, PRIMES[:6]), PRIMES[:6], checkpoint)
    assert len(calls) == 3


def test_a_wrong_residue_of_the_checking_prime_leaves_a_polynomial_open():
    residues = _residues([Fraction(22, 7)], PRIMES[:6])
    residues[0, -1] ^= 1
    lift = Lift(np.array([0, 1]))
    lift.settle(residues, PRIMES[:6])
    assert lift.denominators == [0]


def test_rechecking_gives_up_what_disagrees():
    residues = _residues([Fraction(22, 7), Fraction(1, 3)], PRIMES[:6])
    lift = Lift(np.array([0, 1, 2]))
    lift.settle(residues, PRIMES[:6])
    assert lift.denominators == [7, 3]
    residues[1, 2] ^= 1
    lift.recheck(residues, PRIMES[:6])
    assert lift.denominators == [7, 0]


def test_the_modulus_combines_its_inverses():
    modulus = Modulus.of(PRIMES[:5])
    assert modulus.product == math.prod(PRIMES[:5])
    for p, inverse in zip(PRIMES, modulus.inverses.tolist(), strict=False):
        assert modulus.product // p * inverse % p == 1


def test_primes_are_prime_and_divide_no_coefficient():
    assert list(islice(primes_below(), 4)) == [2147483647, 2147483629, 2147483587, 2147483579]
    assert next(primes_below(46337 * 46327)) < 46337 * 46327  # a product of two primes
    assert next(primes_below(2147483628)) == 2147483587  # an even bound
    assert [p - 2**30 for p in primes_below(2**30 + 10)] == [9, 7, 3]  # the least of 31 bits
    assert next(primes_below(2**31 - 1, [6 * 2147483647])) == 2147483629
