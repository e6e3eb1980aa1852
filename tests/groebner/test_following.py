"""Changes of order that a reducer follows for many primes: what it is told, and what is reported."""

import numpy as np
import pytest
from flint import nmod_mat
from polysystems import named

from alkahest import GroebnerBasis, SolverError
from alkahest.errors import CudaError
from alkahest.groebner import settings
from alkahest.groebner.engine.reducers import host_reducer
from alkahest.groebner.fglm import Conversion
from alkahest.groebner.following import Followed, walk_of
from alkahest.groebner.orders import order_of
from alkahest.groebner.quotient import Border, coefficients_modulo

SYSTEM = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
PRIME = 2147483629
CASES = [
    ("katsura-4", "lex", None),
    ("cyclic-5", "lex", None),
    ("noon-3", "elimination(2)", None),
    ("eco-5", "grlex", None),
    ("katsura-3", "grevlex", (1, 3)),
]


def learned(name, order, kept):
    polynomials, n = named(name)
    basis = GroebnerBasis.compute(polynomials, [f"x{i}" for i in range(n)])
    kept = range(n) if kept is None else kept
    border = Border.of(basis)
    steps = Conversion.modulo(basis, border, order_of(order, len(kept)), 2147483647, kept)
    return basis, border, steps


def rows_of(walk, basis, p):
    """Every row of a walk modulo p, in plain integers, from what the walk says alone."""
    rows = [[0] * walk.degree for _ in range(walk.rows)]
    coefficients = coefficients_modulo(basis.engine_basis, p).tolist()
    for row, element in zip(rows, walk.elements.tolist(), strict=False):
        first, end = walk.offsets[element : element + 2].tolist()
        factor = -pow(coefficients[first], -1, p)
        for term in range(first + 1, end):
            row[walk.terms_at[term]] = coefficients[term] * factor % p
    rows[walk.first][0] = 1
    for source, variable, target in walk.jobs.tolist():
        total = [rows[source][j] if j >= 0 else 0 for j in walk.moved_from[variable].tolist()]
        for column, number in walk.hits[variable].tolist():
            factor = rows[source][column]
            total = [t + factor * v for t, v in zip(total, rows[number], strict=True)]
        rows[target] = [t % p for t in total]
    return rows


class Reference:
    """A reducer that follows walks in plain integers; all else is the host's."""

    name = "reference"
    on_gpu = True

    def __init__(self, basis=None, fails=False):
        self.host = host_reducer()
        self.lanes = self.host.lanes
        self.basis = basis
        self.fails = fails
        self.asked = []

    def follow(self, walk, primes, checkpoint, *, vectors):
        self.asked.append(list(primes))
        if self.fails:
            raise CudaError("E-CUDA-006", "the launch failed")
        size, found, shown = walk.vectors, [], []
        for p in primes:
            rows = rows_of(walk, self.basis, p)[walk.first :]
            chosen = [[row[j] for j in walk.pivots.tolist()] for row in rows]
            square, others = nmod_mat(chosen[:size], p), nmod_mat(chosen[size:], p)
            found.append([[int(c) for c in row] for row in (others * square.inv()).tolist()])
            shown.append(rows[:size])
        return Followed(
            lucky=(True,) * len(primes),
            tails=np.array(found, np.uint32),
            vectors=np.array(shown, np.uint32) if vectors else None,
            on_gpu=True,
        )


@pytest.fixture
def plug(monkeypatch):
    def install(reducer):
        monkeypatch.setattr(settings, "make_reducer", lambda backend, device: reducer)
        return reducer

    return install


def graded(**options):
    """The basis of the system above under grevlex; conversions run as ``options`` say."""
    basis = GroebnerBasis.compute(SYSTEM, "x y z")
    asked = settings.Settings(**options)
    return GroebnerBasis(basis.ring, basis.engine_basis, basis.generator_terms, asked, basis.report)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_walk_says_all_that_is_needed_in_an_order_that_works(case):
    basis, border, steps = learned(*case)
    walk = walk_of(steps, basis.engine_basis, border)
    expected = steps.followed(basis, border, steps.needed(border), PRIME)
    assert rows_of(walk, basis, PRIME)[walk.first :][: walk.vectors] == expected.vectors.tolist()
    known = {*range(len(walk.elements)), walk.first}
    for first, end in zip(walk.waves[:-1], walk.waves[1:], strict=True):
        wave = walk.jobs[first:end]
        assert {int(row) for row in wave[:, 0]} <= known
        known |= {int(row) for row in wave[:, 2]}
    assert known == set(range(walk.rows))
    assert walk.work.products > 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_border_monomials_that_are_not_needed_change_nothing(case):
    basis, border, steps = learned(*case)
    some = steps.followed(basis, border, steps.needed(border), PRIME)
    every = steps.followed(basis, border, np.ones(len(border.parent), np.bool_), PRIME)
    assert np.array_equal(some.vectors, every.vectors)
    assert np.array_equal(some.tails, every.tails)


def test_residues_are_zero_beyond_the_smaller_standard_monomials():
    basis, border, _ = learned("cyclic-5", "lex", None)
    rows = border.residues(basis.engine_basis, PRIME)
    for row, bound in zip(rows, border.smaller.tolist(), strict=True):
        assert not row[bound:].any()
    assert border.smaller.min() > 0


@pytest.mark.parametrize("certify", [False, True])
def test_a_reducer_that_follows_is_asked_for_as_many_primes_as_it_takes(plug, certify):
    asked = graded(device="cuda", certify=certify)
    reference = plug(Reference(asked))
    found = asked.fglm("lex")
    assert found == GroebnerBasis.compute(SYSTEM, "x y z", "lex")
    assert [len(primes) for primes in reference.asked] == [reference.lanes]
    report = found.report
    assert report.reductions_on_gpu == 1
    assert report.planned_on_cpu == asked.report.planned_on_cpu + 1
    assert report.device_name == "reference"
    assert report.seconds["follow"] > 0


def test_a_reducer_that_does_not_follow_leaves_the_conversion_to_the_processor(plug):
    plug(host_reducer())
    found = graded(device="cuda").fglm("lex")
    assert found == GroebnerBasis.compute(SYSTEM, "x y z", "lex")
    assert "follow" not in found.report.seconds
    assert found.report.reductions_on_gpu == 0


def test_a_reducer_that_fails_is_an_error_or_is_not_asked_again(plug):
    plug(Reference(fails=True))
    with pytest.raises(SolverError, match=r"device='cuda' failed: the launch failed") as caught:
        graded(device="cuda").fglm("lex")
    assert caught.value.code == "E-SOLVE-010"
    reference = plug(Reference(fails=True))
    found = graded(device="cuda", fallback="cpu").fglm("lex")
    assert found == GroebnerBasis.compute(SYSTEM, "x y z", "lex")
    assert len(reference.asked) == 1
    assert found.report.fell_back_to_cpu()
    assert found.report.reductions_on_cpu == 1
    assert found.report.first_gpu_error == "[E-CUDA-006] the launch failed"


def test_without_a_device_the_report_is_that_of_the_processor():
    found = graded().fglm("lex")
    assert "follow" not in found.report.seconds
    assert found.report.seconds["fglm"] > 0
    assert found.report.planned_on_cpu == graded().report.planned_on_cpu
