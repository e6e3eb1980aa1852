"""Elimination, intersection, saturation, change of order."""

from __future__ import annotations

import pytest

from alkahest import GF, QQ, GroebnerBasis, InputTypeError, SolverError

FIELDS = [QQ, GF(65521), GF(7)]


@pytest.mark.parametrize("order", ["grevlex", "lex", "grlex", "elimination(2)", "weights(1, 2, 3)"])
def test_elimination_is_right_under_every_order(order):
    polys = ["x + 2*y + 2*z - 1", "x^2 + 2*y^2 + 2*z^2 - x", "2*x*y + 2*y*z - y"]
    basis = GroebnerBasis.compute(polys, "x y z", order)
    left = basis.eliminate("x y")
    assert left.variables() == ("z",)
    assert list(map(str, left)) == ["z**4 - 10/21*z**3 + 1/84*z**2 + 1/84*z"]
    assert basis.eliminate(["z", "y"]).variables() == ("x",)
    assert basis.eliminate([]) == basis.reordered("grevlex")


@pytest.mark.parametrize("field", [QQ, GF(2**31 - 1)])
def test_points_are_projected_without_an_elimination_order(field):
    from groebner_benchmark.systems import system

    polys, names = system("cyclic-6")
    basis = GroebnerBasis.compute(polys, names, field=field)
    (last,) = basis.eliminate(names[:-1])
    assert last.degree() == 48
    assert basis.contains({(0, 0, 0, 0, 0, *e): c for e, c in last.terms()})
    two = basis.eliminate(names[1:3] + names[4:])
    assert two.variables() == ("x1", "x4")
    assert all(basis.contains({(e[0], 0, 0, e[1], 0, 0): c for e, c in p.terms()}) for p in two)
    two.verify()


def test_the_implicit_equation_of_a_parametrised_curve_and_surface():
    cubic = GroebnerBasis.compute(["x - t^2", "y - t^3"], "t x y").eliminate("t")
    assert list(map(str, cubic)) == ["x**3 - y**2"]
    whitney = GroebnerBasis.compute(["x - u*v", "y - v", "z - u^2"], "u v x y z")
    assert list(map(str, whitney.eliminate("u v"))) == ["y**2*z - x**2"]


def test_elimination_names_what_it_cannot_eliminate():
    basis = GroebnerBasis.compute(["x*y"], "x y")
    for variables in ("z", "x y", ["q"]):
        with pytest.raises(SolverError) as caught:
            basis.eliminate(variables)
        assert caught.value.code == "E-SOLVE-009"
    assert list(basis.eliminate("x")) == []


@pytest.mark.parametrize("field", FIELDS)
def test_the_intersection_holds_what_lies_in_both(field):
    points = [["x", "y"], ["x - 1", "y"], ["x", "y - 1"]]
    bases = [GroebnerBasis.compute(p, "x y", field=field) for p in points]
    both = bases[0].intersect(bases[1]).intersect(bases[2])
    assert both.degree() == 3
    assert both.contains("x*y")
    assert both.contains("x^2 - x")
    assert not both.contains("x")
    assert both == bases[2].intersect(bases[0].intersect(bases[1]))
    zero = GroebnerBasis.compute([0], "x y", field=field)
    assert list(both.intersect(zero)) == []
    one = GroebnerBasis.compute([1], "x y", field=field)
    assert both.intersect(one) == both


@pytest.mark.parametrize("field", FIELDS)
def test_saturation_takes_components_away(field):
    basis = GroebnerBasis.compute(["x^2*y", "x*z"], "x y z", "lex", field)
    assert list(map(str, basis.saturate("x"))) == ["y", "z"]
    assert basis.saturate("x").order == "lex"
    assert basis.saturate(1) == basis
    assert basis.saturate(0).is_unit()
    assert basis.saturate("x*y").is_unit()
    assert list(map(str, basis.saturate("z"))) == ["x"]


def test_only_bases_of_one_ring_intersect():
    basis = GroebnerBasis.compute(["x"], "x y")
    with pytest.raises(InputTypeError):
        basis.intersect(["x"])  # type: ignore[arg-type]
    for other in (
        GroebnerBasis.compute(["x"], "x z"),
        GroebnerBasis.compute(["x"], "x y", field=GF(7)),
    ):
        with pytest.raises(SolverError) as caught:
            basis.intersect(other)
        assert caught.value.code == "E-SOLVE-015"


def test_a_name_like_the_auxiliary_variable_s_is_no_obstacle():
    a = GroebnerBasis.compute(["t", "t_"], "t t_")
    b = GroebnerBasis.compute(["t - 1", "t_"], "t t_")
    assert list(map(str, a.intersect(b))) == ["t**2 - t", "t_"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("order", ["lex", "grlex", "block(1, 2)", "weights(3, 2, 1)"])
def test_converting_gives_the_basis_that_is_computed_outright(field, order):
    polys = ["x^2 + y*z - 2", "x*z + y^2 - 3", "x*y + z^2 - 5"]
    direct = GroebnerBasis.compute(polys, "x y z", order, field)
    graded = GroebnerBasis.compute(polys, "x y z", "grevlex", field)
    assert graded.fglm(order) == direct
    assert direct.fglm("grevlex") == graded
    assert graded.reordered(order) == direct


def test_converting_needs_finitely_many_solutions():
    with pytest.raises(SolverError) as caught:
        GroebnerBasis.compute(["x*y"], "x y").fglm("lex")
    assert caught.value.code == "E-SOLVE-004"
    assert "reordered(order)" in caught.value.remediation
    assert list(map(str, GroebnerBasis.compute(["x*y - z", "x^2"], "x y z", "lex"))) == [
        "x**2",
        "x*y - z",
        "x*z",
        "z**2",
    ]


def test_large_coefficients_survive_the_conversion():
    n = 10**90 + 7
    basis = GroebnerBasis.compute(["x^2 - 3", f"y^3 - x*y - {n}", "z*x - y"], "x y z").fglm("lex")
    assert basis.contains("x^2 - 3")
    assert basis.contains(f"y^3 - x*y - {n}")
    assert basis.degree() == 6
    basis.verify()
