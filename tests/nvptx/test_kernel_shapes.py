"""Points per thread and threads per block."""

import pytest

import alkahest as ak
from alkahest.backends.nvptx.accuracy import DEFAULT, FAST, STRICT
from alkahest.backends.nvptx.shapes import (
    BLOCKS,
    live_values,
    points_per_thread,
    threads_per_block,
)
from alkahest.program import lower

SYMBOLS = ak.symbols(" ".join(f"x{k}" for k in range(12)))
X, Y = SYMBOLS[:2]


def points(expressions, inputs, dtype="float64", mode=DEFAULT):
    return points_per_thread(lower(expressions, inputs, dtype), mode)


def test_few_columns_and_little_code_make_threads_of_sixteen_bytes():
    assert points([ak.sin(X) * Y], [X, Y]) == 2
    assert points([X + Y], [X, Y], "float32") == 4
    assert points([X + Y], [X, Y], "complex128") == 1


def test_many_columns_make_threads_of_one_point():
    assert points([sum(SYMBOLS[:4], start=Y)], SYMBOLS[:4]) == 2
    assert points([sum(SYMBOLS[:5], start=Y)], SYMBOLS[:5]) == 1
    assert points([X + k for k in range(5)], [X]) == 1


def test_much_code_makes_threads_of_one_point():
    value = X
    for _ in range(12):
        value = ak.sin(value) + Y
    assert points([value], [X, Y]) == points([value], [X, Y], mode=FAST) == 1
    assert points([ak.sin(X) * ak.cos(Y)], [X, Y], mode=STRICT) == 2


def test_many_values_at_once_make_threads_of_one_point():
    powers = [(X + k) * (Y - k) for k in range(40)]
    total = powers[0]
    for left, right in zip(powers, reversed(powers), strict=True):
        total = total + left / right
    assert live_values(lower([total], [X, Y])) > 3
    assert points([total], [X, Y]) == 1


@pytest.mark.parametrize("registers", [0, 16, 32, 40, 56, 64, 72, 80, 96, 128, 168, 255])
def test_the_block_is_the_one_of_which_most_threads_are_resident(registers):
    taken = -(-max(registers, 1) // 8) * 8

    def resident(block):
        return min(65536 // (taken * block), 2048 // block) * block

    assert resident(threads_per_block(registers)) == max(map(resident, BLOCKS))


def test_of_blocks_that_are_as_good_the_smallest_is_taken():
    assert threads_per_block(32) == threads_per_block(40) == threads_per_block(64) == 128


def test_a_thread_of_most_registers_still_has_a_block():
    assert threads_per_block(255) == 128
