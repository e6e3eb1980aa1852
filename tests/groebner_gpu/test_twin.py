"""The kernels' twins against exact arithmetic."""

import numpy as np
import pytest
from flint import nmod_mat

from alkahest.backends.groebner_gpu import twin
from alkahest.backends.groebner_gpu.replay import field_of

ONE = twin.Launched(group=1, grid=(1,))


def residues(rng, shape, p):
    return rng.integers(0, p, shape).astype(np.uint32)


def exact(matrix, p):
    return nmod_mat(matrix.shape[0], matrix.shape[1], [int(v) for v in matrix.flat], int(p))


def plain(matrix):
    table = [[int(v) for v in row] for row in matrix.tolist()]
    return np.array(table, np.uint32).reshape(matrix.nrows(), matrix.ncols())


@pytest.mark.parametrize("p", [2147483647, 65521, 5])
def test_a_row_is_reduced_as_flint_solves_the_triangular_system(p):
    rng = np.random.default_rng(p)
    npivots, columns, nrows = 7, 15, 4
    entries, rows, values = [], [], []

    def add(where, numbers):
        rows.append([len(entries), len(where), len(values), 0])
        entries.extend(where)
        values.extend(numbers)

    full = np.zeros((npivots + nrows, columns), np.uint32)
    for r in range(npivots + nrows):
        first = r if r < npivots else 0
        others = np.sort(rng.choice(np.arange(first + 1, columns), 6, replace=False))
        where = [first, *others.tolist()]
        numbers = [1, *residues(rng, 6, p).tolist()]
        full[r, where] = numbers
        add(where, numbers)
    stretches = np.array(rows, np.int32)
    pivots = stretches[:npivots] + np.array([1, -1, 1, 0], np.int32)
    dense = np.zeros(nrows * (columns - npivots), np.uint32)
    twin.reduce_rows(
        ONE, pivots.reshape(-1).view(np.uint32), npivots,
        stretches[npivots:].reshape(-1).view(np.uint32), nrows, np.array(entries, np.uint32),
        columns, np.array(values, np.uint32), len(values), field_of(np.array([p])).reshape(-1), 1,
        dense, None, np.zeros(1, np.uint32),
    )  # fmt: skip
    a, b = exact(full[:npivots, :npivots], p), exact(full[:npivots, npivots:], p)
    c, d = exact(full[npivots:, :npivots], p), exact(full[npivots:, npivots:], p)
    assert np.array_equal(dense.reshape(nrows, -1), plain(d - c * a.inv() * b))


def test_weights_are_those_of_splitmix64():
    # The first outputs of the generator started with 0, from its authors' C code.
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    p = 2147483647
    assert twin.weights(0, 0, 3, p).tolist() == [value % p for value in known]
    assert twin.weights(0, 1, 2, p).tolist() == [value % p for value in known[1:]]


@pytest.mark.parametrize("p", [2147483647, 65521, 5, 3])
def test_rows_entered_one_after_another_are_in_reduced_echelon_form(p):
    rng = np.random.default_rng(p)
    n, width = 6, 9
    rows = residues(rng, (n, width), p)
    rows[4] = (rows[1].astype(np.uint64) + rows[2]) % p  # vanishes when it is entered
    expected, rank = exact(rows, p).rref()
    flat, leads = rows.reshape(-1), np.zeros(n, np.uint32)
    field, launched = field_of(np.array([p])).reshape(-1), twin.Launched(group=1, grid=(n,))
    for row in range(n):
        twin.enter_row(launched, flat, width, row, field, leads)
    twin.scale_rows(launched, flat, width, field, leads)
    found = leads.view(np.int32)
    assert (found >= 0).sum() == rank
    assert found[4] == -1 or rank < n - 1
    order = np.argsort(np.where(found < 0, width, found))
    assert np.array_equal(rows[order], plain(expected))


def test_rows_are_gathered_in_any_order_and_random_residues_are_the_weights():
    rng = np.random.default_rng(2)
    rows = residues(rng, (5, 7), 101)
    numbers, target = np.array([3, 0, 3], np.int32), np.zeros(3 * 7, np.uint32)
    twin.gather_rows(
        twin.Launched(group=1, grid=(3,)), rows.reshape(-1), 7, numbers.view(np.uint32), target
    )
    assert np.array_equal(target.reshape(3, 7), rows[[3, 0, 3]])
    values = np.zeros(40, np.uint32)
    twin.fill_randomly(ONE, values, 33, field_of(np.array([101])).reshape(-1), -5, 7)
    assert values[:33].tolist() == twin.weights((7 << 32) + 2**32 - 5, 0, 33, 101).tolist()
    assert not values[33:].any()
