"""What users of Gröbner engines reported as wrong, with the right answers."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
import sympy
from buchberger import Arithmetic

from alkahest import GF, QQ, GbPoly, GroebnerBasis, SolverError

DATA = Path(__file__).parents[1] / "data"
CASES = {
    case["id"]: case
    for case in json.loads((DATA / "cases_open.json").read_text(encoding="utf-8"))
    if case["form"] == "groebner"
}


def field_of(text):
    match = re.fullmatch(r"GF\((\d+)\)", text)
    return GF(int(match[1])) if match else QQ


@pytest.mark.parametrize("name", CASES)
def test_a_reported_system_has_its_right_basis(name):
    case = CASES[name]
    gens, order = case["inputs"]["gens"], case["inputs"]["order"]
    field = field_of(case["inputs"]["field"])
    basis = GroebnerBasis.compute(case["expr"], gens, order, field)
    expected = [
        [(tuple(exponents), Fraction(c)) for c, exponents in terms]
        for terms in case["expected_terms"]
    ]
    assert [element.terms() for element in basis] == expected
    assert basis == GroebnerBasis.compute(case["expected"], gens, order, field)
    basis.verify()


@pytest.mark.parametrize("zeros", [1, 3])
def test_zeros_among_the_generators_change_nothing(zeros):
    polys = [*["0"] * zeros, "x^2+y^2+z^2", "x+y+z", "x+y*z"]
    basis = GroebnerBasis.compute(polys, "x y z", field=GF(257))
    expected = ["z^3+y+z", "y^2+z^2+y+z", "y*z-y-z", "x+y+z"]
    assert list(basis) == [GbPoly(p, "x y z", GF(257)) for p in expected]
    assert basis.degree() == 4
    assert [str(p) for p in GroebnerBasis.compute(["x1", "0"], "x1 x2", field=GF(17))] == ["x1"]


def test_the_unit_ideal_over_two_elements_is_found():
    basis = GroebnerBasis.compute(["x^2+1", "x*y", "y*z+1"], "x y z", field=GF(2))
    assert [str(p) for p in basis] == ["1"]


def test_decimals_give_the_basis_of_the_ratios():
    polys = ["0.144*x*y+0.018*x**2+0.05*x-1.577", "0.072*y**2+0.036*x*y+0.05*y-1.423"]
    for source in (polys, [sympy.sympify(p) for p in polys]):
        basis = GroebnerBasis.compute(source, "x y", "lex", exact_floats=True)
        expected = [
            "25614*x-7776*y^3-7200*y^2+95662*y+35575",
            "15552*y^4+14400*y^3-88868*y^2-2024929",
        ]
        assert list(basis) == [GbPoly(p, "x y", order="lex").monic() for p in expected]
        assert basis.degree() == 4


def test_the_last_element_of_three_quadrics():
    polys = [
        "(2*a-8*b)^2+(5*a-10*b)^2+(10*a-7*b)^2-437",
        "(7*b-10*c)^2+(8*b-c)^2+(10*b-9*c)^2-474",
        "(-10*a+10*c)^2+(-5*a+9*c)^2+(-2*a+c)^2-885",
    ]
    basis = GroebnerBasis.compute(polys, "a b c")
    assert len(basis) == 6
    assert basis.degree() == 8
    quartic = "13233038*c^4-674501139*a*c-215634384*b*c+106879167*c^2+1283521140"
    assert GbPoly(quartic, "a b c").monic() in basis


def test_elimination_is_the_same_in_every_run():
    polys = ["x+2*y+2*z-1", "x^2+2*y^2+2*z^2-x", "2*x*y+2*y*z-y"]
    for seed in range(4):
        basis = GroebnerBasis.compute(polys, "x y z", "elimination(2)", seed=seed)
        (last,) = basis.eliminate("x y")
        assert last == GbPoly("84*z^4-40*z^3+z^2+z", "z").monic()
        lex = GroebnerBasis.compute(polys, "x y z", "lex", seed=seed)
        rest = ["7*x-420*z^3+158*z^2+8*z-7", "7*y+210*z^3-79*z^2+3*z"]
        assert lex[:2] == [GbPoly(p, "x y z", order="lex").monic() for p in rest]


@pytest.mark.parametrize("prime", [2, 3, 5, 65521, 65537, 2**30 - 35, 2**31 - 1])
def test_products_of_the_largest_residues_do_not_overflow(prime):
    most = prime - 1
    polys = [f"x - {most}", f"y - {most}", "x*y - 1"]
    basis = GroebnerBasis.compute(polys, "x y", "lex", GF(prime))
    assert list(basis) == [GbPoly(p, "x y", GF(prime)) for p in ("x + 1", "y + 1")]


@pytest.mark.parametrize("prime", [4294967291, 18446744073709551557, 4722366482869645213711])
def test_primes_beyond_the_engine_s_words_are_exact(prime):
    basis = GroebnerBasis.compute(["x*y - 1", "2*x - 3*y"], "x y", "lex", GF(prime))
    half, third = pow(2, -1, prime), pow(3, -1, prime)
    expected = [{(1, 0): 1, (0, 1): -3 * half}, {(0, 2): 1, (0, 0): -2 * third}]
    assert list(basis) == [GbPoly(p, "x y", GF(prime)) for p in expected]


@pytest.mark.parametrize("n", [1, 0, -7, 6, 9, 561, 2**31])
def test_a_composite_modulus_is_refused(n):
    with pytest.raises(SolverError) as caught:
        GroebnerBasis.compute(["x"], "x", field=GF(n))
    assert caught.value.code == "E-SOLVE-007"


@pytest.mark.parametrize("field", [QQ, GF(32003)])
@pytest.mark.parametrize(("n", "size"), [(4, 7), (5, 20), (6, 45)])
def test_cyclic_systems_have_the_known_sizes(n, size, field):
    from groebner_benchmark.systems import system

    polys, names = system(f"cyclic-{n}")
    assert len(GroebnerBasis.compute(polys, names, field=field)) == size


@pytest.mark.parametrize("field", [QQ, GF(32003)])
@pytest.mark.parametrize("name", ["katsura-5", "reimer-4"])
def test_lexicographic_bases_of_zero_dimensional_systems_finish(name, field):
    from groebner_benchmark.systems import system

    polys, names = system(name)
    lex = GroebnerBasis.compute(polys, names, "lex", field)
    graded = GroebnerBasis.compute(polys, names, "grevlex", field)
    assert lex.degree() == graded.degree()
    assert lex.fglm("grevlex") == graded


def test_the_order_of_the_variables_and_the_order_s_name_are_used():
    polys = ["x^2-3*y-x+1", "y^2-2*x+y-1"]
    lex = GroebnerBasis.compute(polys, "x y", "lex")
    swapped = GroebnerBasis.compute(polys, "y x", "lex")
    assert lex[-1].variables() == ("x", "y")
    assert lex[-1].degree("x") == 0
    assert swapped[-1].degree("y") == 0
    assert str(lex[-1]) == "y**4 + 2*y**3 - 3*y**2 - 16*y + 7"


def test_the_reference_for_small_systems_is_itself_a_basis():
    arithmetic = Arithmetic([[1, 1], [0, -1]])
    found = arithmetic.groebner([{(2, 0): 1, (0, 2): 1, (0, 0): -1}, {(1, 0): 1, (0, 1): -1}])
    assert arithmetic.is_basis(found)
    assert len(found) == 2
