"""Lifting from residues that a device keeps, against exact numbers and the processor's lifting."""

from __future__ import annotations

from fractions import Fraction

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

from alkahest import CudaError
from alkahest.backends.groebner_gpu import lifting
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.backends.groebner_gpu.kept import Kept
from alkahest.backends.groebner_gpu.lifting import settle


def nothing():
    """A checkpoint that lets everything pass."""


def lifted(polynomials, primes, device=None, lift=None, extra=3):
    device = device or EmulatedDevice()
    lift = lift or lift_of(polynomials, leads=1)
    kept = kept_on(device, residues_of(polynomials, primes), primes, extra)
    assert settle(lift, [(kept, range(len(primes)))], primes, nothing)
    kept.close()
    assert device.kept == 0
    return lift


def by_the_processor(polynomials, primes, leads=1):
    lift = lift_of(polynomials, leads=leads)
    lift.settle(residues_of(polynomials, primes), primes)
    return lift


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("leads", [0, 1])
def test_polynomials_get_their_least_denominators_and_exact_numerators(threads, leads):
    for seed in range(6):
        polynomials = random_polynomials(seed)
        device = EmulatedDevice()
        lift = lifted(polynomials, PRIMES[:9], device, lift_of(polynomials, threads, leads))
        assert_lifted(lift, polynomials)
        assert device.launches.count("check_terms") == 1
        assert lift.limbs.shape[1] == max(1, lift.words())


@pytest.mark.parametrize("bits", [31, 1000, 2500, 7800])
def test_numbers_of_any_length_are_found(bits):
    value = Fraction(2**bits - 159, 3**7)
    polynomials = [[value], [-value, Fraction(0), Fraction(1)], [Fraction(0)], []]
    count = (bits + 12 + 40) // 30 + 3
    assert_lifted(lifted(polynomials, PRIMES[:count]), polynomials)


def test_with_more_primes_than_a_sum_holds_the_processor_lifts():
    polynomials = [[Fraction(22, 7)]]
    for count, tried in (
        (lifting.MOST_PRIMES + 1, True),
        (lifting.MOST_PRIMES + 2, False),
        (1, False),
    ):
        primes = PRIMES[:count]
        lift = lift_of(polynomials)
        kept = kept_on(EmulatedDevice(), residues_of(polynomials, primes), primes)
        assert settle(lift, [(kept, range(count))], primes, nothing) is tried
        assert lift.denominators == ([7] if tried else [0])


def test_primes_that_do_not_suffice_leave_open_what_the_processor_leaves_open():
    polynomials = random_polynomials(3, bits=200)
    for count in range(2, 14):
        lift = lifted(polynomials, PRIMES[:count])
        expected = by_the_processor(polynomials, PRIMES[:count])
        assert lift.settled == expected.settled
        if lift.settled:
            assert_lifted(lift, polynomials)
    assert lift.settled


def test_what_is_known_is_used_again_and_given_up_where_another_prime_disagrees():
    polynomials = random_polynomials(4)
    lift = lifted(polynomials, PRIMES[:9])
    assert_lifted(lifted(polynomials, PRIMES[:12], lift=lift), polynomials)
    wrong = residues_of(polynomials, PRIMES[:12])
    wrong[int(lift.offsets[-1]) - 1, -1] ^= 1
    device = EmulatedDevice()
    settle(lift, [(kept_on(device, wrong, PRIMES[:12]), range(12))], PRIMES[:12], nothing)
    last = max(i for i, f in enumerate(polynomials) if f)
    assert [i for i, d in enumerate(lift.denominators) if not d] == [last]


def test_a_prime_that_divides_a_denominator_makes_no_wrong_number():
    p = PRIMES[2]
    polynomials = [[Fraction(1, 3)], [Fraction(5, p), Fraction(2)], [Fraction(7)]]
    lift = lifted(polynomials, PRIMES[:8])
    expected = by_the_processor(polynomials, PRIMES[:8])
    assert lift.denominators == expected.denominators
    numerators = lift.integers(np.ones(len(lift.limbs), np.bool_))
    assert numerators == expected.integers(np.ones(len(expected.limbs), np.bool_))
    # The prime has no say: it divides the denominator once more.
    assert Fraction(numerators[3], lift.denominators[1]) == Fraction(5, p)
    others = [k for k in range(8) if k != 2]
    kept = kept_on(EmulatedDevice(), residues_of(polynomials, PRIMES[:8]), PRIMES[:8])
    primes = tuple(PRIMES[k] for k in others)
    lift = lift_of(polynomials)
    assert settle(lift, [(kept, others)], primes, nothing)
    assert_lifted(lift, polynomials)


def test_an_unlucky_lane_is_left_out_and_with_it_the_result_is_the_processor_s():
    polynomials = random_polynomials(5)
    primes = PRIMES[:12]
    residues = residues_of(polynomials, primes)
    residues[:, 4] = 1
    lucky = [k for k in range(12) if k != 4]
    kept = kept_on(EmulatedDevice(), residues, primes)
    lift = lift_of(polynomials, leads=1)
    assert settle(lift, [(kept, lucky)], tuple(primes[k] for k in lucky), nothing)
    assert_lifted(lift, polynomials)
    lift = lift_of(polynomials, leads=1)
    assert settle(lift, [(kept, range(12))], primes, nothing)
    expected = lift_of(polynomials, leads=1)
    expected.settle(residues, primes)
    assert lift.denominators == expected.denominators
    every = np.ones(len(lift.limbs), np.bool_)
    assert lift.integers(every) == expected.integers(every)


def test_a_factor_that_all_combinations_miss_is_found_by_the_processor():
    device = EmulatedDevice(launch=_no_mixtures)
    polynomials = random_polynomials(6)
    lift = lifted(polynomials, PRIMES[:9], device)
    assert_lifted(lift, polynomials)


def _no_mixtures(kernel, group, grid, block, shared, arguments):
    from alkahest.backends.groebner_gpu.emulated import run_twin

    run_twin(kernel, group, grid, block, shared, arguments)
    if kernel == "mix_terms":
        arguments[-1][:] = 0  # as if all weights were


def test_combinations_that_are_too_long_leave_the_denominators_to_the_processor():
    # As long as the primes allow: the weights of a combination are eight bits too much.
    primes = PRIMES[:5]
    modulus = primes[0] * primes[1] * primes[2] * primes[3]
    polynomials = [[Fraction(-(2 ** (modulus.bit_length() - 40)) + 1)] * 3, [Fraction(1, 2)]]
    assert_lifted(lifted(polynomials, primes), polynomials)


def test_several_parts_and_devices_give_the_same():
    polynomials = random_polynomials(7)
    residues = residues_of(polynomials, PRIMES[:10])
    first, other = EmulatedDevice(), EmulatedDevice(ordinal=1)
    parts = []
    for device, part in ((first, slice(4)), (other, slice(4, 7)), (first, slice(7, 10))):
        parts.append(kept_on(device, residues[:, part], PRIMES[part], extra=1))
    one = Kept(
        tuple(kept.parts[0] for kept in parts[:2]), tuple(kept.counts[0] for kept in parts[:2])
    )
    assert np.array_equal(one.columns([1, 5]), residues[:, [1, 5]])
    assert np.array_equal(one.columns(range(7)), residues[:, :7])
    assert one.columns([]).shape == (len(residues), 0)
    lift = lift_of(polynomials, leads=1)
    assert settle(lift, [(one, range(7)), (parts[2], [0, 1, 2])], PRIMES[:10], nothing)
    assert_lifted(lift, polynomials)
    assert "check_terms" in first.launches
    assert set(other.launches) <= {"mix_terms", "gather_lanes"}


def test_short_memory_is_lifted_in_slices_and_none_leaves_it_to_the_processor():
    polynomials = random_polynomials(8, count=40)
    primes = PRIMES[:9]
    residues = residues_of(polynomials, primes)
    for room, slices in ((1 << 20, 1), (30_000, 4), (1000, None)):
        device = EmulatedDevice()
        kept = kept_on(device, residues, primes)
        device.memory = device.kept + room
        lift = lift_of(polynomials, leads=1)
        assert settle(lift, [(kept, range(9))], primes, nothing) is (slices is not None)
        if slices is None:
            assert not any(lift.denominators)
        else:
            assert_lifted(lift, polynomials)
            assert device.launches.count("check_terms") >= slices


def test_a_device_that_is_lost_at_any_launch_loses_nothing_that_is_known():
    polynomials = random_polynomials(9)
    primes = PRIMES[:9]
    residues = residues_of(polynomials, primes)
    whole = EmulatedDevice()
    lifted(polynomials, primes, whole)
    assert len(whole.launches) >= 5
    for number in range(1, len(whole.launches) + 1):
        device = EmulatedDevice(fails_at=number)
        kept = kept_on(device, residues, primes)
        lift = lift_of(polynomials, leads=1)
        with pytest.raises(CudaError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
            settle(lift, [(kept, range(9))], primes, nothing)
        assert caught.value.code == "E-CUDA-006"
        lift.settle(residues, primes)
        assert_lifted(lift, polynomials)
        kept.close()
        assert device.kept == 0


def test_residues_that_nobody_refers_to_any_more_are_given_back():
    device = EmulatedDevice()
    kept = kept_on(device, np.zeros((5, 2), np.uint32), PRIMES[:2])
    assert device.kept == 4 * 10
    kept.close()
    kept.close()
    assert device.kept == 0
    kept = kept_on(device, np.zeros((5, 2), np.uint32), PRIMES[:2])
    del kept
    assert device.kept == 0


def test_a_checkpoint_that_raises_ends_the_lifting():
    polynomials = random_polynomials(10)
    kept = kept_on(EmulatedDevice(), residues_of(polynomials, PRIMES[:9]), PRIMES[:9])

    def late():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        settle(lift_of(polynomials), [(kept, range(9))], PRIMES[:9], late)
