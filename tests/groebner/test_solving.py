"""Solutions: how many, where, how often, and how sure."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from groebner_benchmark.systems import system

import alkahest as ak
from alkahest import GF, GroebnerBasis, InputError, SolverError, real_roots, solve, triangularize
from alkahest.groebner.parametrisation import Parametrisation
from alkahest.groebner.settings import Settings


def satisfied(solutions, equations, tolerance=1e-9):
    """Whether the middles of the boxes nearly satisfy equations given as functions."""
    return all(
        abs(f(*map(complex, s.coordinates()))) < tolerance for s in solutions for f in equations
    )


def test_a_circle_and_a_line_meet_in_two_exact_points():
    pool = ak.ExprPool()
    x, y = pool.symbols("x y")
    found = solve([x**2 + y**2 - 1, ak.Eq(x, y)], [x, y])
    assert [str(s[x]) for s in found] == ["-sqrt(2)/2", "sqrt(2)/2"]
    assert found[0]["x"] == found[0][x]
    half = Fraction(1, 2)
    assert found[1][x].surd == (0, half, 2)
    exact = found[1][x].exact(pool)
    assert exact is not None
    assert ak.eval_expr(exact, {}) == pytest.approx(2**-0.5)
    for s in found:
        assert s.is_real
        assert s.multiplicity == 1
        box = s[x].real
        assert box.width < Fraction(1, 10**15)
        assert box.lower**2 < half < box.upper**2 or box.upper**2 < half < box.lower**2
    assert list(found[0]) == ["x", "y"]
    assert found[0].to_floats() == pytest.approx((-(2**-0.5),) * 2)
    with pytest.raises(KeyError):
        found[0]["z"]


def test_complex_solutions_are_left_out_of_the_real_domain_only():
    assert list(solve(["x^2 + 1"], "x")) == []
    both = solve(["x^2 + 1"], "x", "complex")
    assert [str(s["x"]) for s in both] == ["-I", "I"]
    assert [s.is_real for s in both] == [False, False]
    assert both[0].to_floats() == (-1j,)


def test_roots_without_a_closed_form_are_enclosed_and_never_dropped():
    found = solve(["x^5 - x - 1"], "x", "complex", digits=40)
    assert len(found) == 5
    (real,) = solve(["x^5 - x - 1"], "x", digits=40)
    assert real == found[0]
    value = real["x"]
    assert value.exact() is None
    assert value.real.width < Fraction(1, 10**40)
    low, high = value.real.lower, value.real.upper
    assert low**5 - low - 1 < 0 < high**5 - high - 1
    assert str(value).startswith("1.16730397826")
    with pytest.raises(TypeError, match="not known to be real"):
        float(found[1]["x"])


def test_the_eight_solutions_of_three_quadrics():
    polys = [
        "(2*a-8*b)^2+(5*a-10*b)^2+(10*a-7*b)^2-437",
        "(7*b-10*c)^2+(8*b-c)^2+(10*b-9*c)^2-474",
        "(-10*a+10*c)^2+(-5*a+9*c)^2+(-2*a+c)^2-885",
    ]
    equations = [
        lambda a, b, c: (2 * a - 8 * b) ** 2 + (5 * a - 10 * b) ** 2 + (10 * a - 7 * b) ** 2 - 437,
        lambda a, b, c: (7 * b - 10 * c) ** 2 + (8 * b - c) ** 2 + (10 * b - 9 * c) ** 2 - 474,
        lambda a, b, c: (-10 * a + 10 * c) ** 2 + (-5 * a + 9 * c) ** 2 + (-2 * a + c) ** 2 - 885,
    ]
    found = solve(polys, "a b c", "complex")
    assert len(found) == 8
    assert satisfied(found, equations)
    rational = [tuple(c.rational for c in s.coordinates()) for s in found]
    assert [p for p in rational if None not in p] == [(-1, -2, -3), (1, 2, 3)]
    assert len(solve(polys, "a b c")) == 4


def test_multiplicities_add_up_to_the_degree():
    found = solve(["(x - 1)^2*(x + 2)", "y^2 - x"], "x y", "complex")
    assert [(str(s["x"]), str(s["y"]), s.multiplicity) for s in found] == [
        ("1", "-1", 2),
        ("1", "1", 2),
        ("-2", "-I*sqrt(2)", 1),
        ("-2", "I*sqrt(2)", 1),
    ]
    assert sum(s.multiplicity for s in found) == found.basis.degree()
    (fat,) = solve(["x^2", "x*y", "y^2"], "x y")
    assert (fat.multiplicity, [str(c) for c in fat.coordinates()]) == (3, ["0", "0"])
    (fat,) = solve(["(x - 3)^3"], "x")
    assert (fat.multiplicity, fat["x"].rational) == (3, 3)


def test_no_variable_need_tell_the_solutions_apart():
    found = solve(["x^2 - 1", "y^2 - 1", "z^2 - 1"], "x y z")
    points = [tuple(int(c.rational) for c in s.coordinates()) for s in found]
    assert points == [(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]


def test_close_roots_are_told_apart():
    found = solve(["(x^2 - 2)*(x^2 - 2 - 1/10^40)", "y - x"], "x y", digits=5)
    assert len(found) == 4
    boxes = [s["x"].real for s in found]
    assert all(a.upper < b.lower for a, b in pairwise(boxes))


def test_a_certified_result_says_so():
    system = ["x + 2*y + 2*z - 1", "x^2 + 2*y^2 + 2*z^2 - x", "2*x*y + 2*y*z - y"]
    sure = solve(system, "x y z", certify=True)
    assert sure.certainty == "certified"
    usual = solve(system, "x y z")
    assert usual.certainty == "probabilistic"
    assert usual.report.certainty == "probabilistic"
    assert list(sure) == list(usual)
    assert str(sure[1]["x"]) == "1/3"


def test_systems_without_solutions_and_with_too_many():
    assert list(solve(["x", "x - 1"], "x")) == []
    assert list(solve([1], "x y")) == []
    for equations in (["x*y"], [0], ["x^2 + y^2"]):
        with pytest.raises(SolverError, match="infinitely many") as caught:
            solve(equations, "x y")
        assert caught.value.code == "E-SOLVE-004"


@pytest.mark.parametrize(
    "options",
    [{"domain": "rational"}, {"digits": 0}, {"digits": 1.5}, {"numeric": True}, {"fallback": "x"}],
)
def test_unknown_options_are_refused(options):
    with pytest.raises(InputError) as caught:
        solve(["x"], "x", **options)
    assert caught.value.code == "E-INPUT-011"


def test_a_deadline_covers_the_whole_of_solving_and_of_converting():
    polys, names = system("noon-4")
    basis = GroebnerBasis.compute(polys, names)
    with pytest.raises(SolverError, match="deadline") as caught:
        solve(polys, names, deadline=1e-9)
    assert caught.value.code == "E-SOLVE-012"
    hurried = Settings(deadline=1e-9)
    found = GroebnerBasis(basis.ring, basis.engine_basis, (), hurried, basis.report)
    for convert in (found.fglm, found.reordered):
        with pytest.raises(SolverError, match="deadline"):
            convert("lex")
    with pytest.raises(SolverError, match="deadline"):
        Parametrisation.of(basis, until=0.0)


def test_systems_over_finite_fields_are_not_solved():
    from alkahest import GbPoly

    for function in (solve, triangularize):
        with pytest.raises(SolverError) as caught:
            function([GbPoly("x", "x", GF(7))], "x")
        assert caught.value.code == "E-SOLVE-007"


def test_decimals_are_read_as_ratios_when_asked_to():
    polys = [
        "0.144*x*y+0.018*x**2+0.05*x-1.577",
        "0.072*y**2+0.036*x*y+0.05*y-1.423",
    ]
    with pytest.raises(SolverError):
        solve(polys, "x y")
    found = solve(polys, "x y", "complex", exact_floats=True)
    assert len(found) == 4
    assert satisfied(found, [lambda x, y: 0.144 * x * y + 0.018 * x**2 + 0.05 * x - 1.577])


def test_triangular_parts_are_irreducible_and_have_the_solutions():
    parts = triangularize(["x**2 - 1", "y - x"], "x y")
    assert [list(map(str, part)) for part in parts] == [["x + 1", "y + 1"], ["x - 1", "y - 1"]]
    system = ["(x - 1)^2*(x + 2)", "y^2 - x"]
    parts = triangularize(system, "x y")
    assert [part.degree() for part in parts] == [1, 1, 2]
    assert [part.order for part in parts] == ["lex"] * 3
    assert list(map(str, parts[2])) == ["x + 2", "y**2 + 2"]
    for part in parts:
        assert len(part) == 2
        assert part.contains("(x - 1)*(x + 2)")
    assert triangularize(["x", "x - 1"], "x") == []
    with pytest.raises(SolverError) as caught:
        triangularize(["x*y", "x*z"], "x y z")
    assert caught.value.code == "E-SOLVE-004"


def test_a_larger_system_is_solved():
    polys, names = system("katsura-5")
    found = solve(polys, names, "complex")
    assert len(found) == 32
    for s in found:
        values = list(map(complex, s.coordinates()))
        for poly in polys:
            total = 0
            for exponents, c in poly.items():
                term = complex(c)
                for v, e in zip(values, exponents, strict=True):
                    term *= v**e
                total += term
            assert abs(total) < 1e-9
    assert sum(s.is_real for s in found) == len(solve(polys, names)) == 16


def test_roots_beyond_the_largest_float_are_enclosed_and_shown():
    found = solve(["x^3 - 10^1200*x - 7", "y*x - 1"], "x y", domain="complex")
    assert [str(s["x"]) for s in found][::2] == [
        "-1.0000000000000000e+600",
        "1.0000000000000000e+600",
    ]
    assert found[0].to_floats()[0] == -math.inf
    for s in found:
        x = s["x"].real
        assert x.lower < x.upper or x.lower**3 == 10**1200 * x.lower + 7
    assert [float(r) for r in real_roots("x^3 - 10^1200*x - 7", "x")][::2] == [-math.inf, math.inf]


def test_the_options_that_there_are_are_listed():
    with pytest.raises(InputError, match="'bogus'") as caught:
        solve(["x"], "x", bogus=1)
    assert "_start" not in caught.value.remediation
