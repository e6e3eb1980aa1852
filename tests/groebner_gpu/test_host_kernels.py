"""The kernels' very sources, compiled for the host, against their twins and exact arithmetic."""

import random

import numpy as np
import pytest
from hostkernels import HostKernels
from keptresidues import PRIMES as PRIMES_DOWN
from keptresidues import assert_lifted, kept_on, lift_of, random_polynomials, residues_of
from polysystems import dictionaries, named, system
from traces import learned, some_primes
from tracing import equal

from alkahest.backends.groebner_gpu import compiling, twin
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice, run_twin
from alkahest.backends.groebner_gpu.lifting import settle
from alkahest.backends.groebner_gpu.record import record_of
from alkahest.backends.groebner_gpu.reducer import GpuReducer
from alkahest.backends.groebner_gpu.replay import Shape, field_of, replay
from alkahest.groebner.engine.f4 import groebner_modp
from alkahest.groebner.engine.records import MonomialOrder

PRIMES = (3, 5, 101, 65521, 2147483629, 2147483647)

ARITHMETIC = """
#include "residues.cu"

extern "C" __global__ void everything(const u32 *a, const u32 *b, const u32 *field, u32 *out)
{
    int i = threadIdx.x, n = blockDim.x;
    Prime f = prime_of(field, n, i);
    out[i] = product(a[i], b[i], f);
    out[n + i] = times(factor(a[i], f), b[i], f.p);
    out[2 * n + i] = add_product(a[i], negated(b[i], f), b[i], f.p);
    out[3 * n + i] = inverted(a[i], f);
    out[4 * n + i] = reduced((u64)(f.p - 1) << 32 | 0xffffffffu, f);
}
"""


@pytest.mark.parametrize("p", PRIMES)
def test_residues_are_multiplied_added_and_inverted_exactly(p, tmp_path):
    (tmp_path / "arithmetic.cu").write_text(ARITHMETIC)
    (tmp_path / "residues.cu").write_text((compiling.FOLDER / "residues.cu").read_text())
    run = HostKernels(tmp_path / "arithmetic.cu", ["everything"], tmp_path, 1)
    rng = random.Random(p)
    edges = [0, 1, 2, p // 2, p - 2, p - 1]
    pairs = [(a % p, b % p) for a in edges for b in edges]
    pairs += [(rng.randrange(p), rng.randrange(p)) for _ in range(220)]
    a, b = (np.array(values, np.uint32) for values in zip(*pairs, strict=True))
    out = np.zeros((5, len(pairs)), np.uint32)
    field = field_of(np.full(len(pairs), p, np.uint32))
    run("everything", 1, (1,), (len(pairs),), 0, [a, b, field, out])
    assert out[0].tolist() == [x * y % p for x, y in pairs]
    assert out[1].tolist() == [x * y % p for x, y in pairs]
    assert out[2].tolist() == [(x - y * y) % p for x, y in pairs]
    assert out[3].tolist() == [pow(x, -1, p) if x else 0 for x, _ in pairs]
    high = ((p - 1) << 32 | 0xFFFFFFFF) * pow(1 << 32, -1, p) % p
    assert set(out[4].tolist()) == {high}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("group", "threads"), [(1, 32), (4, 64), (32, 96)])
def test_a_replay_by_the_sources_is_that_of_the_twins(compiled, group, threads, backward):
    launch = compiled(group, backward=backward)
    for name, count in (("katsura-3", 5), ("eco-5", 33)):
        given, trace = learned(name)
        record = record_of(trace)
        primes = [*some_primes(given, count - 3), 101, 7, 11]
        inputs = given.images(primes)
        tails, lucky = replay(EmulatedDevice(), record, inputs, primes, lambda: None)
        shape = Shape(group=group, threads=threads)
        for shared in (227 << 10, 4 * record.columns * group - 4):
            device = EmulatedDevice(launch=launch, shared_bytes=shared)
            found = replay(device, record, inputs, primes, lambda: None, shape)
            assert found[1].tolist() == lucky.tolist()
            assert np.array_equal(found[0][:, lucky], tails[:, lucky])
            assert ("reduce_long_rows" in device.launches) == (shared < 227 << 10)


def random_matrix(rng, pivots, columns, rows):
    """Entries, and where pivot rows and rows begin and end, of lengths and gaps of every kind."""
    stretches, entries, terms = [], [], 0
    for number in range(pivots + rows):
        first, length = number + 1, rng.choice([0, 1, 2, 9, 9, 9, 33, 70, 140, 450])
        if number >= pivots:  # a row with columns here and there, far apart
            first, length = 0, rng.choice([1, 3, 20])
        length = min(length, columns - first)
        stretches.append((len(entries), length, terms, 0))
        entries += sorted(rng.sample(range(first, columns), length))
        terms += length
    words = np.array(stretches, np.int32)
    return np.array(entries, np.int32), words[:pivots], words[pivots:], terms


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("group", "threads"), [(1, 32), (1, 96), (4, 64), (32, 64)])
def test_rows_are_reduced_whatever_the_lengths_of_pivots_and_the_gaps(
    compiled, group, threads, backward
):
    launch, lanes, columns = compiled(group, backward=backward), max(group, 2), 640
    rng = random.Random(group + threads)
    numbers = np.random.default_rng(threads)
    primes = numbers.choice(np.array(PRIMES, np.uint32), lanes)
    for pivots, rows in ((1, 2), (33, 3), (130, 4)):
        entries, pivot_rows, lower, terms = random_matrix(rng, pivots, columns, rows)
        values = numbers.integers(0, 1 << 31, (terms, lanes), np.int64) % primes
        known = values.reshape(terms, lanes // group, group).transpose(1, 0, 2).astype(np.uint32)
        width = columns - pivots
        expected, found, long = (np.full(lanes * rows * width, 7, np.uint32) for _ in range(3))
        matrix = [
            pivot_rows.reshape(-1).view(np.uint32), pivots, lower.reshape(-1).view(np.uint32), rows,
            entries.view(np.uint32), columns, known.reshape(-1), terms,
            field_of(primes).reshape(-1), lanes,
        ]  # fmt: skip
        rest = [None, np.zeros(lanes, np.uint32)]
        grid = (rows * lanes // group,)
        twin.reduce_rows(twin.Launched(group=group, grid=grid), *matrix, expected, *rest)
        shared = 4 * columns * group
        launch("reduce_rows", group, grid, (threads,), shared, [*matrix, found, *rest])
        assert np.array_equal(found, expected)
        tiles = np.full(rows * columns * lanes, 7, np.uint32)
        launch("reduce_long_rows", group, grid, (threads,), 0, [*matrix, long, *rest, tiles])
        assert np.array_equal(long, expected)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("bits", "count"), [(20, 6), (150, 9), (2500, 90), (15000, 511)])
def test_numbers_lifted_by_the_sources_are_exact(compiled, bits, count, backward):
    polynomials = random_polynomials(bits, count=6, terms=5, bits=bits)
    residues, primes = residues_of(polynomials, PRIMES_DOWN[:count]), PRIMES_DOWN[:count]
    device = EmulatedDevice(launch=compiled(1, backward=backward))
    half = count // 2
    parts = [
        kept_on(device, residues[:, part], primes[part], extra=2)
        for part in (slice(half), slice(half, count))
    ]
    kept = [(parts[0], range(half)), (parts[1], range(count - half))]
    for chosen in (kept, [(kept_on(device, residues, primes), range(count))]):
        lift = lift_of(polynomials, leads=1)
        assert settle(lift, chosen, primes, lambda: None)
        assert_lifted(lift, polynomials)


@pytest.mark.parametrize("backward", [False, True])
def test_every_kernel_of_a_lifting_leaves_what_its_twin_leaves(compiled, backward):
    source, compared = compiled(1, backward=backward), []

    def both(kernel, group, grid, block, shared, arguments):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        run_twin(kernel, group, grid, block, shared, copies)
        source(kernel, group, grid, block, shared, arguments)
        for mine, theirs in zip(arguments, copies, strict=True):
            assert not isinstance(mine, np.ndarray) or np.array_equal(mine, theirs), kernel
        compared.append(kernel)

    # Primes that do not suffice for all, and one whose residues are wrong, make long remainders.
    polynomials = random_polynomials(2, count=30, bits=120)
    primes = PRIMES_DOWN[:8]
    for wrong in (None, 3, 7):
        residues = residues_of(polynomials, primes)
        if wrong is not None:
            residues[::3, wrong] = 1
        kept = kept_on(EmulatedDevice(launch=both), residues, primes, extra=30)
        settle(lift_of(polynomials, leads=1), [(kept, range(8))], primes, lambda: None)
        kept.columns([2, 5])
    assert set(compared) == set(compiling.SOURCES["lift.cu"])


@pytest.mark.parametrize("backward", [False, True])
def test_bases_over_prime_fields_by_the_sources_are_those_of_the_processor(compiled, backward):
    launch = compiled(1, backward=backward)
    for name, p in (("katsura-4", 2147483647), ("cyclic-4", 101), ("noon-3", 3), ("eco-5", 65521)):
        polynomials, n = named(name)
        given, order = system(polynomials, n), MonomialOrder.grevlex(n)
        expected = dictionaries(groebner_modp(given, p, order)[0])
        for multiprocessors, shared in ((2, 227 << 10), (132, 64)):
            device = EmulatedDevice(
                launch=launch, multiprocessors=multiprocessors, shared_bytes=shared
            )
            found = groebner_modp(given, p, order, reducer=GpuReducer([device]))[0]
            assert dictionaries(found) == expected, name


@pytest.mark.parametrize("backward", [False, True])
def test_learning_by_the_sources_gives_the_processor_s_record(compiled, backward):
    launch = compiled(1, backward=backward)
    for name in ("katsura-4", "eco-5"):
        polynomials, n = named(name)
        given, order = system(polynomials, n), MonomialOrder.grevlex(n)
        expected = groebner_modp(given, 2147483647, order, record=True)[2]
        for multiprocessors, shared in ((2, 227 << 10), (132, 64)):
            device = EmulatedDevice(
                launch=launch, multiprocessors=multiprocessors, shared_bytes=shared
            )
            reducer = GpuReducer([device])
            found = groebner_modp(given, 2147483647, order, reducer=reducer, record=True)[2]
            assert equal(found, expected)
            assert "gather_rows" in device.launches
