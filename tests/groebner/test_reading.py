"""What counts as a polynomial, and what is said of everything else."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy

import alkahest as ak
from alkahest import GF, QQ, GbPoly, GroebnerBasis, InputTypeError, PoolError, SolverError

X, Y = sympy.symbols("x y")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("2*x + 3*y - x", "x + 3*y"),
        ("(x+1)**2 - x**2", "2*x + 1"),
        ("x*x", "x**2"),
        ("3*x/2", "3/2*x"),
        ("(x-y)*(x+y)", "x**2 - y**2"),
        ("x^2", "x**2"),
        ("Eq(x, y**2)", "-y**2 + x"),
        ("(2 + 1)^-1 * x", "1/3*x"),
        (7, "7"),
        (Fraction(1, 3), "1/3"),
        (Decimal("0.25"), "1/4"),
        (np.int64(3), "3"),
        ({(1, 2): 3, (0, 0): -1}, "3*x*y**2 - 1"),
        ([((1, 0), 2), ((1, 0), Fraction(1, 2))], "5/2*x"),
        ([((np.int32(1), np.uint8(0)), 2)], "2*x"),
        ({(1, 0): flint.fmpq(1, 3), (0, 1): flint.fmpz(2)}, "1/3*x + 2*y"),
        ([], "0"),
        ({}, "0"),
        (X**2 * Y - sympy.Rational(1, 2), "x**2*y - 1/2"),
        (sympy.Eq(X, Y), "x - y"),
        ((X - Y) * (X + Y), "x**2 - y**2"),
        (sympy.Poly(X * Y - 1, X, Y), "x*y - 1"),
        (sympy.Poly(X * Y - 1, Y, X), "x*y - 1"),
        (sympy.Poly(X * Y - 1, Y), "x*y - 1"),
    ],
)
def test_a_polynomial_is_read_from_anything_that_is_one(source, expected):
    assert str(GbPoly(source, "x y")) == expected


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("x + sin(x)", "E-SOLVE-001", r"sin\(x\) is no polynomial in x, y"),
        ("y + 1/x", "E-SOLVE-001", "1/x is no polynomial"),
        ("x**y", "E-SOLVE-001", r"x\*\*y is no polynomial"),
        ("x**(1/2)", "E-SOLVE-001", r"x\*\*\(1/2\) is no polynomial"),
        ("x*pi", "E-SOLVE-001", "pi is no polynomial"),
        ("x*I", "E-SOLVE-001", "I is no polynomial"),
        ("x < y", "E-SOLVE-001", "x < y is no polynomial"),
        ("x + z", "E-SOLVE-009", "z is no variable"),
        ("x + 0.5", "E-SOLVE-006", r"0\.5 is a float"),
        ("x*nan", "E-SOLVE-006", "nan is no number"),
        ("x**4294967296", "E-SOLVE-013", "degree 4294967296"),
        ("(x**65536)**65536", "E-SOLVE-013", "degree 4294967296"),
        ("(x + y + 1)**10000", "E-SOLVE-013", "50015001 terms"),
    ],
)
def test_what_is_no_polynomial_is_refused_by_number_and_term(text, code, named):
    with pytest.raises(SolverError, match=f"polynomial 2: .*{named}") as caught:
        GroebnerBasis.compute(["x", text], "x y")
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (sympy.sin(X), "E-SOLVE-001"),
        (1 / X, "E-SOLVE-001"),
        (X ** sympy.Rational(1, 2), "E-SOLVE-001"),
        (X * sympy.I, "E-SOLVE-001"),
        (sympy.Symbol("q"), "E-SOLVE-009"),
        (X * sympy.Float("0.5"), "E-SOLVE-006"),
        (sympy.Poly(X / 3, X, Y).set_domain(sympy.RR), "E-SOLVE-006"),
        (0.5, "E-SOLVE-006"),
        (1j, "E-SOLVE-006"),
        (float("inf"), "E-SOLVE-006"),
        ({(-1, 0): 1}, "E-SOLVE-001"),
        ({(2**31, 0): 1}, "E-SOLVE-013"),
    ],
)
def test_other_sources_are_refused_alike(source, code):
    with pytest.raises(SolverError) as caught:
        GbPoly(source, "x y")
    assert caught.value.code == code


@pytest.mark.parametrize(
    "source", [None, object(), {(1,): 1}, {(1.5, 0): 1}, [(1, 2, 3)], {"x": 1}]
)
def test_what_is_no_source_at_all_is_a_type_error(source):
    with pytest.raises(InputTypeError) as caught:
        GbPoly(source, "x y")
    assert caught.value.code == "E-INPUT-008"


def test_floats_are_read_as_the_decimals_that_they_print_as_when_asked_to():
    assert str(GbPoly("0.144*x - 1.577", "x", exact_floats=True)) == "18/125*x - 1577/1000"
    assert str(GbPoly(0.1, "x", exact_floats=True)) == "1/10"
    assert str(GbPoly(sympy.Float("0.1") * X, [X], exact_floats=True)) == "1/10*x"
    with pytest.raises(SolverError):
        GbPoly(float("nan"), "x", exact_floats=True)


def test_a_zero_denominator_in_the_field_is_refused():
    with pytest.raises(SolverError, match="1/3 has no meaning") as caught:
        GroebnerBasis.compute(["x/3"], "x", field=GF(3))
    assert caught.value.code == "E-SOLVE-005"
    # Only the expanded coefficient counts.
    assert str(GbPoly("x/3 + 2*x/3", "x", GF(3))) == "x"


def test_variables_of_every_kind_are_read_and_checked():
    pool = ak.ExprPool()
    x, y = pool.symbols("x y")
    assert GbPoly(x, [x, y]).variables() == ("x", "y")
    assert GbPoly(X, (X, Y)) == GbPoly("x", "x, y") == GbPoly("x", ["x", "y"])
    for variables in ([], ""):
        with pytest.raises(SolverError) as caught:
            GbPoly(1, variables)
        assert caught.value.code == "E-SOLVE-009"
    with pytest.raises(SolverError, match="'x' is listed twice"):
        GbPoly(1, [x, x])
    for variables in ([x + y], [3], {x}, x):
        with pytest.raises(InputTypeError):
            GbPoly(1, variables)


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ({(1,): 1}, InputTypeError, r"\(1,\) are not the exponents of 2 variables"),
        ({(1, 0): "one"}, InputTypeError, "coefficient one is no number"),
        ({(1, -1): 1}, SolverError, r"exponents \(1, -1\): a negative power"),
        (object, InputTypeError, "is no polynomial"),
    ],
)
def test_whatever_is_wrong_about_data_the_polynomial_is_named(source, error, said):
    with pytest.raises(error, match=f"polynomial 2: .*{said}"):
        GroebnerBasis.compute(["x", source], "x y")


def test_pools_do_not_mix():
    one, other = ak.ExprPool(), ak.ExprPool()
    x = one.symbol("x")
    for polys, variables in (([other.symbol("x")], [x]), ([x], [x, other.symbol("y")])):
        with pytest.raises(PoolError) as caught:
            GroebnerBasis.compute(polys, variables)
        assert caught.value.code == "E-POOL-001"


@pytest.mark.parametrize("polys", ["x", None, 3, GbPoly("x", "x")])
def test_polynomials_come_in_a_list(polys):
    with pytest.raises(InputTypeError, match="must be a list"):
        GroebnerBasis.compute(polys, "x")


def test_no_polynomial_is_an_error_and_zero_is_a_polynomial():
    with pytest.raises(SolverError) as caught:
        GroebnerBasis.compute([], "x")
    assert caught.value.code == "E-SOLVE-003"
    assert list(GroebnerBasis.compute([0], "x")) == []


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_field_that_sympy_polynomials_carry_is_used(symmetric):
    polys = [
        sympy.Poly(p, X, Y, domain=sympy.GF(257, symmetric=symmetric))
        for p in (X + 1, Y + 1, X * Y - 1)
    ]
    basis = GroebnerBasis.compute(polys, [X, Y], "lex")
    assert basis.field == GF(257)
    assert [str(p) for p in basis] == ["x + 1", "y + 1"]
    assert basis == GroebnerBasis.compute(polys, [X, Y], "lex", GF(257))
    for conflicting in (QQ, GF(7)):
        with pytest.raises(SolverError) as caught:
            GroebnerBasis.compute(polys, [X, Y], "lex", conflicting)
        assert caught.value.code == "E-SOLVE-007"
    with pytest.raises(SolverError, match="is over"):
        GroebnerBasis.compute([*polys, sympy.Poly(X, X, Y, domain=sympy.QQ)], [X, Y])


def test_a_polynomial_of_another_ring_is_moved_by_the_names_of_its_variables():
    p = GbPoly("x^2 - y", "y x")
    assert str(GbPoly(p, "x y z")) == "x**2 - y"
    with pytest.raises(SolverError) as caught:
        GbPoly(GbPoly("q", "q x"), "x y")
    assert caught.value.code == "E-SOLVE-009"


@pytest.mark.parametrize("field", [7, "QQ", sympy.QQ])
def test_a_field_is_qq_or_gf(field):
    with pytest.raises(InputTypeError):
        GroebnerBasis.compute(["x"], "x", field=field)
