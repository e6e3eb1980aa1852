"""Dense products and inverses on a device, in both forms, against the twins and exact algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flint import nmod_mat

from alkahest.backends.groebner_gpu.dense import Dense, launch_product
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice
from alkahest.backends.groebner_gpu.gpu import Gpu
from alkahest.backends.groebner_gpu.replay import field_of

PRIMES = np.array([2147483647, 2147483629, 65537, 101, 3], np.uint32)


def residues(n: int, width: int) -> Any:
    """For each prime a matrix."""
    rng = np.random.default_rng(n)
    return np.stack([rng.integers(0, p, (n, width)).astype(np.uint32) for p in PRIMES])


def dense_of(session: Any, device: Any) -> Dense:
    """Lanes of the primes above."""
    bad, field = session.allocate(len(PRIMES)), session.allocate(3 * len(PRIMES))
    session.zero(bad, len(PRIMES))
    session.write(field, field_of(PRIMES))
    return Dense(session=session, device=device, field=field, lanes=len(PRIMES), bad=bad)


def combined(device: Any, tensor: bool, inverses: Any, rows: Any) -> Any:
    """Products of each lane."""
    n, width = rows.shape[1:]
    found = np.empty((len(PRIMES), n, width), np.uint32)
    place = np.arange(n * width, dtype=np.int32)
    with device.session() as session:
        dense = dense_of(session, device)
        words = []
        for values in (inverses, rows, place, found):
            words.append(session.allocate(values.size))
            session.write(words[-1], values)
        launch_product(
            session, "combine", 1, (n, width, dense.lanes), tensor,
            words[0], words[1], n, width, words[2], dense.field, dense.lanes, words[3], n * width,
            dense.bad,
        )  # fmt: skip
        session.read(words[3], found)
    return found


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((1, 1), marks=pytest.mark.sanitize),
        pytest.param((33, 65), marks=pytest.mark.sanitize),
        (70, 130),
        (200, 301),
    ],
    ids=str,
)
def test_products_are_exact_by_integers_and_on_tensor_cores(
    device: Gpu, shape: tuple[int, int]
) -> None:
    n, width = shape
    inverses, rows = residues(n, n), residues(n, width)
    expected = combined(EmulatedDevice(), False, inverses, rows)
    forms = (False, True) if device.device.capability >= (8, 0) else (False,)
    for tensor in forms:
        assert np.array_equal(combined(device, tensor, inverses, rows), expected)


def test_long_sums_of_the_largest_residues_are_exact(device: Gpu) -> None:
    n = 2000
    largest = np.stack([np.full((n, n), p - 1, np.uint32) for p in PRIMES])
    forms = (False, True) if device.device.capability >= (8, 0) else (False,)
    for tensor in forms:
        found = combined(device, tensor, largest, largest)
        assert [set(lane.flat) for lane in found] == [{n % int(p)} for p in PRIMES]


@pytest.mark.parametrize("n", [1, 33, pytest.param(97, marks=pytest.mark.sanitize), 128, 150, 300])
def test_squares_are_inverted_and_singular_ones_are_bad(device: Gpu, n: int) -> None:
    squares = residues(n, n)
    squares[1, n - 1] = 0
    found = np.empty_like(squares)
    bad = np.empty(len(PRIMES), np.uint32)
    with device.session() as session:
        dense = dense_of(session, device)
        memory = session.allocate(squares.size)
        session.write(memory, squares)
        dense.invert(memory, n)
        session.read(memory, found)
        session.read(dense.bad, bad)
    for q, p in enumerate(PRIMES.tolist()):
        exact = nmod_mat(n, n, [int(v) for v in squares[q].flat], p)
        assert bool(bad[q]) == (int(exact.det()) == 0)
        if not bad[q]:
            assert [int(v) for v in found[q].flat] == [int(v) for v in exact.inv().entries()]
