"""Products and inverses of dense matrices, by the twins and by the sources, against exact algebra."""

import numpy as np
import pytest
from flint import nmod_mat
from hostkernels import HostKernels

from alkahest.backends.groebner_gpu import compiling
from alkahest.backends.groebner_gpu.dense import (
    LARGEST_OF_A_BLOCK,
    LEAST_SIDE,
    MOST_TERMS,
    Dense,
    pays_on_tensor_cores,
)
from alkahest.backends.groebner_gpu.emulated import EmulatedDevice, run_twin
from alkahest.backends.groebner_gpu.replay import field_of
from alkahest.backends.groebner_gpu.twin_dense import by_halves

PRIMES = np.array([2147483647, 2147483629, 65537, 3], np.uint32)
SHAPES = [(1, 1, 1), (5, 33, 7), (33, 65, 40)]

JOINING = """
#include "residues.cu"
#include "dense.cu"
#include "fragments.cu"

extern "C" __global__ void join(const u32 *sums, const u32 *field, u32 *out)
{
    int i = threadIdx.x, n = blockDim.x;
    const u64 *wide = (const u64 *)sums;
    out[i] = joined((double)wide[i], (double)wide[n + i], (double)wide[2 * n + i],
                    prime_of(field, n, i));
}
"""


@pytest.fixture(params=["twins", "sources", "sources, last thread first"])
def launch(request, compiled):
    """What runs kernels."""
    if request.param == "twins":
        return run_twin
    return compiled(1, backward="last" in request.param)


@pytest.fixture(params=[False, True], ids=["integers", "tensor cores"])
def device(request, launch):
    return EmulatedDevice(launch=launch, tensor_cores=request.param)


def residues(rng, *shape, largest=False):
    """For each prime a matrix, at random or of the largest residues; shape ``(primes, ...)``."""
    if largest:
        return np.stack([np.full(shape, p - 1, np.uint32) for p in PRIMES])
    return np.stack([rng.integers(0, p, shape).astype(np.uint32) for p in PRIMES])


def exact(matrix, p):
    return nmod_mat(*matrix.shape, [int(v) for v in matrix.flat], int(p))


def plain(matrix):
    table = [[int(v) for v in row] for row in matrix.tolist()]
    return np.array(table, np.uint32).reshape(matrix.nrows(), matrix.ncols())


def products(left, right):
    return [plain(exact(a, p) * exact(b, p)) for a, b, p in zip(left, right, PRIMES, strict=True)]


def uploaded(session, values):
    words = session.allocate(values.size)
    session.write(words, np.ascontiguousarray(values))
    return words


def downloaded(session, words, shape):
    values = np.empty(shape, np.uint32)
    session.read(words, values)
    return values


def dense_of(session, device, primes=PRIMES):
    bad = uploaded(session, np.zeros(len(primes), np.uint32))
    field = uploaded(session, field_of(primes))
    return Dense(session=session, device=device, field=field, lanes=len(primes), bad=bad)


@pytest.mark.parametrize(
    ("shape", "largest"), [*((shape, False) for shape in SHAPES), (SHAPES[-1], True)], ids=str
)
def test_products_become_terms_and_lanes_with_others_are_bad(device, shape, largest):
    n, width, _ = shape
    rng = np.random.default_rng(n)
    inverses, rows = residues(rng, n, n, largest=largest), residues(rng, n, width, largest=largest)
    expected = np.stack(products(inverses, rows), axis=2)
    place = rng.permutation(n * width).astype(np.int32).reshape(n, width)
    dropped = place < n * width // 3  # some entries have no term
    place[dropped] = -1
    with device.session() as session:
        dense = dense_of(session, device)
        terms = uploaded(session, np.zeros((len(PRIMES), n * width), np.uint32))
        dense.multiply(
            "combine", (n, width, n),
            uploaded(session, inverses), uploaded(session, rows), n, width,
            uploaded(session, place), dense.field, dense.lanes, terms, n * width, dense.bad,
        )  # fmt: skip
        found = downloaded(session, terms, (len(PRIMES), n * width))
        bad = downloaded(session, dense.bad, len(PRIMES))
    is_tensor = device.tensor_cores and min(n, width) >= LEAST_SIDE
    assert device.launches == ["combine_tensor" if is_tensor else "combine"]
    for q in range(len(PRIMES)):
        assert np.array_equal(found[q, place[~dropped]], expected[..., q][~dropped])
        assert bool(bad[q]) == bool(expected[..., q][dropped].any())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_subtracted_from_rows(device, shape):
    nrows, width, n = shape
    rng = np.random.default_rng(n)
    rows, factors, others = (
        residues(rng, nrows, width),
        residues(rng, nrows, n),
        residues(rng, n, width),
    )
    expected = products(factors, others)
    for q, p in enumerate(PRIMES):
        with device.session() as session:
            dense = dense_of(session, device, PRIMES[q : q + 1])
            memory = uploaded(session, rows[q])
            dense.multiply(
                "subtract_product", shape,
                memory, nrows, width, uploaded(session, factors[q]),
                uploaded(session, others[q]), n, dense.field,
            )  # fmt: skip
            found = downloaded(session, memory, (nrows, width))
        difference = rows[q].astype(np.int64) - expected[q]
        assert np.array_equal(found, difference % int(p))


@pytest.mark.parametrize("n", [1, 5, LARGEST_OF_A_BLOCK + 1])
def test_squares_are_inverted_and_singular_ones_are_bad_by_themselves(device, n):
    rng = np.random.default_rng(n)
    squares = residues(rng, n, n)
    squares[0, : n // 2] = 0  # pivots are not where they are looked for first
    squares[0, : n // 2, n // 2 : n // 2 * 2] = np.eye(n // 2)
    squares[1, n - 1] = 0
    if n > 1:
        squares[2, n - 1] = squares[2, 0]  # found out in the last column
    with device.session() as session:
        dense = dense_of(session, device)
        memory = uploaded(session, squares)
        dense.invert(memory, n)
        found = downloaded(session, memory, squares.shape)
        bad = downloaded(session, dense.bad, len(PRIMES))
    exactly = [exact(square, p) for square, p in zip(squares, PRIMES, strict=True)]
    singular = [int(square.det()) == 0 for square in exactly]
    assert bad.astype(bool).tolist() == singular
    assert singular[1]
    assert not all(singular)
    for q, square in enumerate(exactly):
        if not singular[q]:
            assert np.array_equal(found[q], plain(square.inv()))


@pytest.mark.parametrize(("nrows", "n", "width"), [(3, 5, 9), (33, 34, 40)])
def test_relations_have_zeros_where_they_must_and_hold_in_all_columns(device, nrows, n, width):
    rng = np.random.default_rng(n)
    smaller = rng.integers(1, n, nrows).astype(np.int32)
    relations = residues(rng, nrows, n)
    for row, count in zip(relations.transpose(1, 0, 2), smaller, strict=True):
        row[:, count:] = 0
    relations[1, 0, n - 1] = 1  # not a combination of the smaller ones
    rows = residues(rng, n, width)
    pivots = rng.permutation(width)[:n].astype(np.int32)
    others = np.stack(products(relations, rows))
    column = next(c for c in range(width) if c not in pivots)
    others[2, 0, column] = (others[2, 0, column] + 1) % PRIMES[2]
    above = residues(rng, 2, width)
    everything = np.concatenate([above, rows, others], axis=1)
    lanes, total = len(PRIMES), 2 + n + nrows
    with device.session() as session:
        dense = dense_of(session, device)
        memory, columns = uploaded(session, everything), uploaded(session, pivots)
        squares, known = session.allocate(lanes * n * n), session.allocate(lanes * nrows * n)
        out = session.allocate(lanes * nrows * n)
        dense.gather(memory, total, width, 2, n, columns, n, squares)
        dense.gather(memory, total, width, 2 + n, nrows, columns, n, known)
        dense.invert(squares, n)
        invertible = downloaded(session, dense.bad, lanes) == 0
        dense.multiply(
            "relate", (nrows, n, n),
            known, nrows, n, squares, uploaded(session, smaller), dense.field, lanes, out,
            dense.bad,
        )  # fmt: skip
        related = downloaded(session, dense.bad, lanes) == 0
        dense.multiply(
            "compare", (nrows, width, n),
            out, nrows, n, memory, total, width, 2, dense.field, lanes, dense.bad,
        )  # fmt: skip
        found = downloaded(session, out, relations.shape)
        right = downloaded(session, dense.bad, lanes) == 0
    assert invertible[:3].all()
    assert np.array_equal(found[invertible], relations[invertible])
    assert related.tolist() == [bool(flag) and q != 1 for q, flag in enumerate(invertible)]
    assert right.tolist() == [bool(flag) and q not in (1, 2) for q, flag in enumerate(invertible)]


def test_the_longest_sums_on_tensor_cores_are_exact():
    p = PRIMES[:1]
    largest = np.full((1, MOST_TERMS), p[0] - 1, np.uint32)
    assert by_halves(largest, largest.T, int(p[0])).tolist() == [[MOST_TERMS]]  # (-1)(-1) each


def test_the_parts_of_the_longest_sums_are_joined_exactly(tmp_path):
    (tmp_path / "join.cu").write_text(JOINING)
    for name in ("residues.cu", "dense.cu", "fragments.cu"):
        (tmp_path / name).write_text((compiling.FOLDER / name).read_text())
    kernels = HostKernels(tmp_path / "join.cu", ["join"], tmp_path, 1)
    rng = np.random.default_rng(1)
    primes = [3, 101, 65521, 65537, 65539, 131071, 1048573, 2147483629, 2147483647]
    cases = [(p, a, b) for p in primes for a, b in [(p - 1, p - 1), *rng.integers(0, p, (9, 2))]]
    sums = np.empty((3, len(cases)), np.uint64)
    for i, (_, a, b) in enumerate(cases):
        (high, low), (above, below) = divmod(int(a), 1 << 16), divmod(int(b), 1 << 16)
        parts = (low * below, (low + high) * (below + above), high * above)
        sums[:, i] = [MOST_TERMS * part for part in parts]
    assert sums.max() < 2**53
    out = np.zeros(len(cases), np.uint32)
    field = field_of(np.array([p for p, _, _ in cases], np.uint32))
    kernels("join", 1, (1,), (len(cases),), 0, [sums.view(np.uint32), field, out])
    assert out.tolist() == [MOST_TERMS * int(a) * int(b) % p for p, a, b in cases]


def test_products_go_to_tensor_cores_where_these_exist_and_are_filled():
    device, other = EmulatedDevice(), EmulatedDevice(tensor_cores=False)
    assert pays_on_tensor_cores(device, 100, 100, MOST_TERMS)
    assert not pays_on_tensor_cores(other, 100, 100, 100)
    assert not pays_on_tensor_cores(device, 100, 100, MOST_TERMS + 1)
    for side in range(3):
        shape = [100, 100, 100]
        shape[side] = LEAST_SIDE - 1
        assert not pays_on_tensor_cores(device, *shape)
