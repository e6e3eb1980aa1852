"""Kernels on a device against their twins and the engine, on recorded computations."""

from __future__ import annotations

import numpy as np
import pytest
from keptresidues import (
    PRIMES,
    assert_lifted,
    kept_on,
    lift_of,
    random_polynomials,
    residues_of,
)
from polysystems import dictionaries, named, system
from traces import learned, on_the_processor, some_primes

from alkahest.backends.groebner_gpu import compiling
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.backends.groebner_gpu.gpu import Gpu
from alkahest.backends.groebner_gpu.lifting import settle
from alkahest.backends.groebner_gpu.record import record_of
from alkahest.backends.groebner_gpu.reducer import GpuReducer
from alkahest.backends.groebner_gpu.replay import Shape, replay
from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.records import MonomialOrder


def nothing() -> None:
    """A checkpoint that lets everything pass."""


@pytest.mark.sanitize
@pytest.mark.parametrize("group", compiling.GROUPS)
def test_a_replay_is_that_of_the_twins_unlucky_primes_included(device: Gpu, group: int) -> None:
    for name in ("katsura-4", "eco-6"):
        given, trace = learned(name)
        record = record_of(trace)
        primes = [*some_primes(given, 30), 7, 11, 101]
        inputs = given.images(primes)
        tails, lucky = replay(EmulatedDevice(), record, inputs, primes, nothing)
        for threads in (64, 256, None):
            shape = Shape(group=group, threads=threads)
            found = replay(device, record, inputs, primes, nothing, shape)
            assert found[1].tolist() == lucky.tolist()
            assert np.array_equal(found[0][:, lucky], tails[:, lucky])


@pytest.mark.sanitize
def test_rows_that_do_not_fit_into_shared_memory_are_reduced_in_global_memory(device: Gpu) -> None:
    small = Gpu(device=device.device, shared_bytes=2048)
    given, trace = learned("katsura-4")
    primes = some_primes(given, 40)
    inputs = given.images(primes)
    expected, _ = replay(EmulatedDevice(), record_of(trace), inputs, primes, nothing)
    tails, lucky = replay(small, record_of(trace), inputs, primes, nothing, Shape(group=32))
    assert lucky.all()
    assert np.array_equal(tails, expected)


@pytest.mark.parametrize("name", ["katsura-8", "cyclic-7", "noon-6", "eco-9"])
@pytest.mark.parametrize("count", [64, 200])
def test_every_lane_of_a_large_replay_is_the_processor_s_image(
    device: Gpu, name: str, count: int
) -> None:
    given, trace = learned(name)
    primes = some_primes(given, count)
    tails, lucky = replay(device, record_of(trace), given.images(primes), primes, nothing)
    assert lucky.all()
    for column in (0, 1, count // 2, count - 1):
        expected, _ = on_the_processor(trace, given, primes[column])
        assert np.array_equal(tails[:, column], expected)


@pytest.mark.sanitize
@pytest.mark.parametrize(("bits", "count"), [(20, 6), (150, 9), (2500, 90), (15000, 511)])
def test_lifted_numbers_are_exact(device: Gpu, bits: int, count: int) -> None:
    polynomials = random_polynomials(bits, count=40, terms=20, bits=bits)
    primes = PRIMES[:count]
    residues = residues_of(polynomials, primes)
    half = count // 2
    parts = [
        (kept_on(device, residues[:, part], primes[part], extra=30), range(part.stop - part.start))
        for part in (slice(0, half), slice(half, count))
    ]
    for kept in (parts, [(kept_on(device, residues, primes), range(count))]):
        lift = lift_of(polynomials, threads=2, leads=1)
        assert settle(lift, kept, primes, nothing)
        assert_lifted(lift, polynomials)
        for one, _ in kept:
            one.close()


def test_large_liftings_are_the_processor_s(device: Gpu) -> None:
    # Limbs of some dozen megabytes, which threads bring down.
    polynomials = random_polynomials(1, count=300, terms=2000, bits=900)
    primes = PRIMES[:40]
    residues = residues_of(polynomials, primes)
    lift, expected = lift_of(polynomials, threads=4), lift_of(polynomials, threads=4)
    kept = kept_on(device, residues, primes, extra=24)
    assert settle(lift, [(kept, range(40))], primes, nothing)
    assert np.array_equal(kept.columns([3, 17]), residues[:, [3, 17]])
    expected.settle(residues, primes)
    assert expected.settled
    assert lift.denominators == expected.denominators
    width = lift.limbs.shape[1]
    assert np.array_equal(lift.limbs, expected.limbs[:, :width])
    assert not expected.limbs[:, width:].any()
    assert np.array_equal(lift.negative, expected.negative)


@pytest.mark.sanitize
@pytest.mark.parametrize("prime", [3, 101, 65521, 2147483647])
def test_bases_over_prime_fields_are_the_processor_s(device: Gpu, prime: int) -> None:
    for name in ("katsura-5", "cyclic-5", "noon-4"):
        polynomials, n = named(name)
        given, order = system(polynomials, n), MonomialOrder.grevlex(n)
        expected = groebner_modp(given, prime, order)[0]
        found, report, _ = groebner_modp(given, prime, order, reducer=GpuReducer([device]))
        assert dictionaries(found) == dictionaries(expected)
        assert report.reductions_on_cpu == 0


@pytest.mark.parametrize("name", ["katsura-9", "eco-10", "cyclic-7"])
def test_large_bases_over_a_prime_field_are_the_processor_s(device: Gpu, name: str) -> None:
    polynomials, n = named(name)
    given, order = system(polynomials, n), MonomialOrder.grevlex(n)
    expected = groebner_modp(given, 2147483647, order)[0]
    found = groebner_modp(given, 2147483647, order, reducer=GpuReducer([device]))[0]
    assert np.array_equal(found.exponents, expected.exponents)
    assert np.array_equal(found.residues, expected.residues)
