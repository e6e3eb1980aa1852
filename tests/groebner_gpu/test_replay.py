"""Replays on an emulated device: the host's part with the kernels' twins, against the engine."""

import numpy as np
import pytest
from traces import learned, on_the_processor, some_primes

from alkahest import CudaError
from alkahest.backends.groebner_gpu import compiling
from alkahest.backends.groebner_gpu import replay as replaying
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.backends.groebner_gpu.record import record_of
from alkahest.backends.groebner_gpu.replay import Shape, replay

SYSTEMS = ["katsura-4", "katsura-7", "cyclic-5", "noon-5", "eco-7"]


def run(name, primes, device=None, checkpoint=lambda: None, shape=None):
    given, trace = learned(name)
    device = device or EmulatedDevice()
    return replay(device, record_of(trace), given.images(primes), primes, checkpoint, shape)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_lane_is_the_image_that_the_processor_computes(name):
    given, trace = learned(name)
    primes = some_primes(given, 11)
    tails, lucky = run(name, primes)
    assert lucky.all()
    for column, prime in enumerate(primes):
        assert np.array_equal(tails[:, column], on_the_processor(trace, given, prime)[0])


@pytest.mark.parametrize("name", ["katsura-4", "cyclic-5", "noon-4"])
def test_an_unlucky_prime_is_found_out_and_spoils_no_other(name):
    given, trace = learned(name)
    candidates = [
        p for p in (3, 5, 7, 11, 13, 17, 19, 23, 29) if all(c % p for c in given.leading())
    ]
    primes = [*some_primes(given, 3), *candidates, *some_primes(given, 2, 2**30 + 4000)]
    expected = [on_the_processor(trace, given, p) for p in primes]
    assert not all(flag for _, flag in expected), "this test needs an unlucky prime"
    tails, lucky = run(name, primes)
    assert lucky.tolist() == [flag for _, flag in expected]
    for column, (wanted, flag) in enumerate(expected):
        if flag:
            assert np.array_equal(tails[:, column], wanted)


def test_a_prime_whose_leads_are_dependent_is_unlucky_at_its_lane_only():
    # Wrong inputs for one lane: its rows vanish, while the others stay as they are.
    given, trace = learned("katsura-4")
    primes = some_primes(given, 6)
    inputs = given.images(primes)
    good, _ = replay(EmulatedDevice(), record_of(trace), inputs, primes, lambda: None)
    inputs[:, 2] = 1
    tails, lucky = replay(EmulatedDevice(), record_of(trace), inputs, primes, lambda: None)
    assert lucky.tolist() == [True, True, False, True, True, True]
    assert np.array_equal(np.delete(tails, 2, axis=1), np.delete(good, 2, axis=1))


@pytest.mark.parametrize("group", compiling.GROUPS)
def test_any_group_gives_the_same(group):
    given, _ = learned("eco-6")
    primes = some_primes(given, 9)
    expected, _ = run("eco-6", primes)
    tails, lucky = run("eco-6", primes, shape=Shape(group=group))
    assert lucky.all()
    assert np.array_equal(tails, expected)


def test_groups_are_as_large_as_shared_memory_allows():
    record = record_of(learned("katsura-4")[1])
    size = 4 * record.columns
    room = 2 * (8 * size + 1024)
    for shared, group in ((room, 8), (room - 2, 4), (2 * size, 1), (size, 1), (size - 4, 32)):
        assert Shape.fitting(record, shared).group == group
    assert [replaying.block_threads(n, 4) for n in (0, 20, 160, 10_000)] == [64, 64, 320, 512]


def test_short_memory_takes_the_primes_in_several_passes_and_none_is_an_error():
    given, _ = learned("katsura-4")
    primes = some_primes(given, 20)
    plenty = EmulatedDevice()
    expected, _ = run("katsura-4", primes, plenty)
    record = record_of(learned("katsura-4")[1])
    need = 2 * record.terms - record.first_result + record.dense_words + record.square_rows**2
    fixed = 4 * len(record.words)
    short = EmulatedDevice(memory=fixed + 4 * need * 10)
    tails, lucky = run("katsura-4", primes, short, shape=Shape(group=4))
    assert lucky.all()
    assert np.array_equal(tails, expected)
    assert len(short.launches) > len(plenty.launches)
    with pytest.raises(CudaError, match=r"and a replay for 4 primes needs \d+") as caught:
        run("katsura-4", primes, EmulatedDevice(memory=fixed + 4 * need * 2), shape=Shape(group=4))
    assert caught.value.code == "E-CUDA-003"
    with pytest.raises(CudaError, match="CUDA_ERROR_OUT_OF_MEMORY") as caught:
        run("katsura-4", primes, EmulatedDevice(memory=fixed - 4))
    assert caught.value.code == "E-CUDA-003"


def test_squares_whose_columns_do_not_fit_into_shared_memory_are_refused_before_anything_is_done():
    given, _ = learned("katsura-4")
    primes = some_primes(given, 3)
    expected, _ = run("katsura-4", primes)
    rows = record_of(learned("katsura-4")[1]).square_rows
    needed = 4 * (2 * rows + 2)
    just = EmulatedDevice(shared_bytes=needed)
    assert np.array_equal(run("katsura-4", primes, just)[0], expected)
    assert "invert_panel" in just.launches
    small = EmulatedDevice(ordinal=3, shared_bytes=needed - 1)
    text = rf"device 3 has {needed - 1} bytes of shared .* a square of {rows} rows needs {needed}"
    with pytest.raises(CudaError, match=text) as caught:
        run("katsura-4", primes, small)
    assert caught.value.code == "E-CUDA-003"
    assert not small.launches


def test_a_device_that_is_lost_at_any_launch_is_an_error_that_says_so():
    given, _ = learned("katsura-3")
    primes = some_primes(given, 4)
    whole = EmulatedDevice()
    run("katsura-3", primes, whole)
    assert len(whole.launches) > 5
    for number in range(1, len(whole.launches) + 1):
        with pytest.raises(CudaError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
            run("katsura-3", primes, EmulatedDevice(fails_at=number))
        assert caught.value.code == "E-CUDA-006"


def test_a_checkpoint_that_raises_ends_the_run_between_rounds():
    given, trace = learned("katsura-4")
    primes = some_primes(given, 2)
    calls = []

    def checkpoint():
        calls.append(1)
        if len(calls) == 2:
            raise TimeoutError

    device = EmulatedDevice()
    with pytest.raises(TimeoutError):
        run("katsura-4", primes, device, checkpoint)
    assert len(calls) == 2
    whole = EmulatedDevice()
    run("katsura-4", primes, whole, lambda: calls.append(1))
    assert len(calls) == 2 + len(trace.rounds)
    assert whole.launches[: len(device.launches)] == device.launches


def test_a_wrong_kernel_is_noticed():
    def launch(kernel, group, grid, block, shared, arguments):
        from alkahest.backends.groebner_gpu.emulated import run_twin

        run_twin(kernel, group, grid, block, shared, arguments)
        if kernel == "reduce_rows" and arguments[10] is not None:
            arguments[10][1] ^= 1  # one bit of a reduced row

    given, trace = learned("katsura-4")
    primes = some_primes(given, 2)
    tails, lucky = run("katsura-4", primes, EmulatedDevice(launch=launch))
    assert not lucky[0] or not np.array_equal(
        tails[:, 0], on_the_processor(trace, given, primes[0])[0]
    )
