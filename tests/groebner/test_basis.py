"""Bases as sequences, and what they tell of their ideals."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

import alkahest as ak
from alkahest import GF, QQ, GbPoly, GroebnerBasis, InputError, InputTypeError, SolverError
from alkahest.groebner.hilbert import hilbert_series

CIRCLE = ["x**2 + y**2 - 1", "x - y"]


def test_a_basis_is_a_sequence_of_monic_polynomials_the_largest_first():
    basis = GroebnerBasis.compute(CIRCLE, "x y")
    assert isinstance(basis, Sequence)
    assert list(map(str, basis)) == ["y**2 - 1/2", "x - y"]
    assert basis[-1] is basis[1]
    assert basis[0:1] == [basis[0]]
    assert GbPoly("x - y", "x y") in basis
    assert basis.index(GbPoly("x - y", "x y")) == 1
    with pytest.raises(IndexError):
        basis[2]
    assert basis.order == "grevlex"
    assert basis.field == QQ
    assert basis.variables() == ("x", "y")
    assert basis.leading_monomials == [(0, 2), (1, 0)]
    assert repr(basis) == "GroebnerBasis([y**2 - 1/2, x - y], order='grevlex', field=QQ)"


def test_bases_are_equal_when_ring_order_and_elements_are():
    basis = GroebnerBasis.compute(CIRCLE, "x y")
    assert basis == GroebnerBasis.compute([*CIRCLE, "x^2 - y^2"], "x y")
    assert hash(basis) == hash(GroebnerBasis.compute(CIRCLE[::-1], "x y"))
    assert basis != GroebnerBasis.compute(CIRCLE, "x y", "lex")
    assert basis != GroebnerBasis.compute(CIRCLE, "x y", field=GF(7))
    assert basis != "x"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x - 3", "x + 3"),  # a sign
        ("x - 3", "x - 4"),
        ("x - 3", f"x - {2**40 + 3}"),  # a limb more
        (f"x - {2**70}", f"x - {2**70 + 2**64}"),
        ("x - 3", "2*x - 3"),
        ("x - 3", "y - 3"),
    ],
)
@pytest.mark.parametrize("field", [QQ, GF(65521), GF(2**61 - 1)])
def test_bases_of_different_ideals_are_different(left, right, field):
    one, other = (GroebnerBasis.compute([p], "x y", field=field) for p in (left, right))
    assert (one == other) == (list(one) == list(other)) == (str(one) == str(other))
    assert one == GroebnerBasis.compute([f"5*({left})"], "x y", field=field)


def test_a_basis_pickles():
    pool = ak.ExprPool()
    x, y = pool.symbols("x y")
    basis = GroebnerBasis.compute([x**2 + y**2 - 1, x - y], [x, y], progress=lambda _: None)
    copied = pickle.loads(pickle.dumps(basis))
    assert copied == basis
    assert copied.report == basis.report
    assert copied.reduce("x^2") == basis.reduce("x^2")
    assert copied.to_exprs()[0] is basis.to_exprs()[0]


def test_elements_turn_into_expressions_of_the_variables_pool():
    pool = ak.ExprPool()
    x, y = pool.symbols("x y")
    exprs = GroebnerBasis.compute([x**2 + y**2 - 1, ak.Eq(x, y)], [x, y]).to_exprs()
    assert exprs[1] is x - y
    assert exprs[0].pool is pool


def test_the_zero_ideal_and_the_whole_ring():
    zero = GroebnerBasis.compute([0, "x - x"], "x y")
    assert len(zero) == 0
    assert (zero.dimension(), zero.degree(), str(zero.hilbert_series())) == (2, 1, "(1)/(1 - t)**2")
    assert zero.reduce("x + 1") == GbPoly("x + 1", "x y")
    assert not zero.contains(1)
    assert zero.contains(0)
    one = GroebnerBasis.compute(["x", "x - 1"], "x y")
    assert list(map(str, one)) == ["1"]
    assert one.is_unit()
    assert not zero.is_unit()
    assert (one.dimension(), one.degree(), one.quotient_basis()) == (-1, 0, [])
    assert one.is_zero_dimensional
    assert str(one.hilbert_series()) == "0"
    assert one.contains("x*y + 7")
    assert one.fglm("lex") == GroebnerBasis.compute([3], "x y", "lex")


def test_normal_forms_are_equal_exactly_for_equal_residues():
    basis = GroebnerBasis.compute(CIRCLE, "x y")
    assert str(basis.reduce("x**3")) == "1/2*y"
    assert basis.reduce("x**3") == basis.reduce("y/2")
    assert basis.contains("x**2 - y**2")
    assert not basis.contains("x")
    with pytest.raises(SolverError):
        basis.contains("z")


def test_dimension_degree_and_residues_of_a_curve_and_of_points():
    curve = GroebnerBasis.compute(["y - x^2", "z - x^3"], "x y z")
    assert (curve.dimension(), curve.degree(), curve.is_zero_dimensional) == (1, 3, False)
    assert str(curve.hilbert_series()) == "(1 + 2*t)/(1 - t)"
    # The series does not depend on the order of the basis.
    assert curve.reordered("lex").hilbert_series() == curve.hilbert_series()
    with pytest.raises(SolverError, match="dimension 1") as caught:
        curve.quotient_basis()
    assert caught.value.code == "E-SOLVE-004"
    points = GroebnerBasis.compute(["x^2 - 1", "y^3 - x"], "x y")
    assert points.degree() == 6 == len(points.quotient_basis())
    assert str(points.hilbert_series()) == "1 + 2*t + 2*t**2 + t**3"
    assert points.hilbert_series() == hilbert_series(points.leading_monomials, 2)
    assert points.fglm("lex").hilbert_series() == points.hilbert_series()
    assert list(map(str, points.quotient_basis())) == ["1", "y", "x", "y**2", "x*y", "x*y**2"]


def test_generators_and_report_are_kept():
    basis = GroebnerBasis.compute([*CIRCLE, 0], "x y", field=GF(65521))
    assert list(map(str, basis.generators)) == ["x**2 + y**2 + 65520", "x + 65520*y", "0"]
    report = basis.report
    assert report.certainty in ("exact", "probabilistic", "certified")
    assert not report.ran_on_gpu()
    assert not report.fell_back_to_cpu()
    assert report.total_seconds > 0
    assert report.to_dict()["requested_device"] is None
    assert report.certainty in str(report)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"fallback": "gpu"}, "E-INPUT-011"),
        ({"device": "tpu"}, "E-INPUT-011"),
        ({"device": -1}, "E-INPUT-011"),
        ({"device": True}, "E-INPUT-011"),
        ({"seed": 1.5}, "E-INPUT-011"),
        ({"deadline": 0}, "E-INPUT-011"),
        ({"deadline": "soon"}, "E-INPUT-011"),
        ({"memory": -5}, "E-INPUT-011"),
        ({"executor": 3}, "E-INPUT-008"),
        ({"order": "degree"}, "E-SOLVE-008"),
        ({"field": GF(2**61 - 1), "order": "block(1, 2)"}, "E-SOLVE-008"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, code):
    with pytest.raises((InputError, InputTypeError, SolverError)) as caught:
        GroebnerBasis.compute(CIRCLE, "x y", **options)
    assert caught.value.code == code


def test_a_gpu_that_is_not_here_is_an_error_and_never_the_processor():
    for device in ("cuda", "cuda:7", 0):
        with pytest.raises(ak.CudaError) as caught:
            GroebnerBasis.compute(CIRCLE, "x y", device=device)
        assert caught.value.code == "E-CUDA-003"
    with pytest.raises(ak.CudaError):
        ak.solve(CIRCLE, "x y", device="cuda")
    with pytest.raises(ak.CudaError):
        ak.triangularize(CIRCLE, "x y", device="cuda")
    assert GroebnerBasis.compute(CIRCLE, "x y", device="cpu").report.requested_device == "cpu"


def test_equal_seeds_and_others_give_equal_bases():
    bases = {GroebnerBasis.compute(CIRCLE, "x y", seed=seed) for seed in (None, 0, 1, 12345)}
    assert len(bases) == 1


def test_an_exception_of_the_progress_callback_reaches_the_caller_and_leaves_no_trace():
    seen = []

    def stop(progress):
        seen.append(progress)
        raise KeyboardInterrupt

    cyclic = ["a+b+c+d", "a*b+b*c+c*d+d*a", "a*b*c+b*c*d+c*d*a+d*a*b", "a*b*c*d-1"]
    with pytest.raises(KeyboardInterrupt):
        GroebnerBasis.compute(cyclic, "a b c d", field=GF(32003), progress=stop)
    assert seen
    assert len(GroebnerBasis.compute(cyclic, "a b c d", field=GF(32003))) == 7


@pytest.mark.parametrize("field", [QQ, GF(2**31 - 1)])
@pytest.mark.parametrize("seconds", [1e-9, 0.05])
def test_a_deadline_that_has_passed_stops_the_run(field, seconds):
    from groebner_benchmark.systems import system

    polys, names = system("katsura-11")
    with pytest.raises(SolverError, match="deadline") as caught:
        GroebnerBasis.compute(polys, names, field=field, deadline=seconds)
    assert caught.value.code == "E-SOLVE-012"


def test_a_memory_limit_stops_the_run():
    from groebner_benchmark.systems import system

    polys, names = system("katsura-9")
    with pytest.raises(SolverError, match="memory") as caught:
        GroebnerBasis.compute(polys, names, field=GF(2**31 - 1), memory=1)
    assert caught.value.code == "E-SOLVE-012"
