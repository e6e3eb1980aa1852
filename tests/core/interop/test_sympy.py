"""Expressions to SymPy and back."""

import math
from fractions import Fraction

import pytest
import sympy as sp
from sympy.codegen import cfunctions

import alkahest as ak
from alkahest import functions as f
from alkahest.errors import InputError, InputTypeError
from alkahest.expr.walk import postorder
from alkahest.interop.sympy_functions import round_half_even, truncate
from alkahest.interop.sympy_writer import _FUNCTIONS

X, Y = sp.symbols("x y")
P, Q = sp.Symbol("p"), sp.Symbol("q")


@pytest.fixture
def pool():
    return ak.ExprPool()


def head_samples(pool):
    """One expression for every head that takes arguments, in the interior of its domain."""
    x, y = pool.symbol("x"), pool.symbol("y")
    condition, other = f.Lt(x, y), f.Gt(x, pool.rational(1, 8))
    special = {
        "add": x + y,
        "mul": x * y,
        "pow": x**y,
        "not": f.piecewise((x, f.Not(f.Eq(x, y))), default=y),
        "and": f.piecewise((x, f.And(condition, other)), default=y),
        "or": f.piecewise((x, f.Or(condition, other)), default=y),
        "piecewise": f.piecewise((x, condition), (y, other)),
        "fma": f.fma(x, y, x),
    }
    for head in ("lt", "le", "gt", "ge", "eq", "ne"):
        special[head] = f.piecewise((x, pool.func(head, (x, y))), default=y)
    for head in ("atan2", "hypot", "mod", "min", "max"):
        special[head] = pool.func(head, (x, y))
    special["acosh"] = f.acosh(x + 1)
    plain = {head: pool.func(head, (x,)) for head in _FUNCTIONS if head not in special}
    return plain | special


@pytest.mark.parametrize("head", sorted(_FUNCTIONS))
def test_every_head_goes_to_sympy_and_back_with_its_value(head, pool):
    expr = head_samples(pool)[head]
    written = ak.to_sympy(expr)
    back = ak.from_sympy(written, pool)
    at = {"x": 0.3125, "y": 0.75}
    want = ak.eval_expr(expr, at)
    assert ak.eval_expr(back, at) == pytest.approx(want, rel=1e-14)
    exact = {sp.Symbol(name): sp.Rational(value) for name, value in at.items()}
    assert complex(sp.N(written.expand(func=True).subs(exact), 20)) == pytest.approx(
        want, rel=1e-13
    )


@pytest.mark.parametrize("head", sorted(set(_FUNCTIONS) - {"rsqrt"}))
def test_every_head_keeps_its_name_on_the_way(head, pool):
    expr = head_samples(pool)[head]
    if head in ("re", "im", "conjugate", "arg"):  # of a plain symbol, which may be complex
        assert ak.from_sympy(ak.to_sympy(expr), pool) == expr
        return
    heads = {node.head for node in postorder(ak.from_sympy(ak.to_sympy(expr), pool))}
    opposite = {"not": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
    assert head in heads or opposite.get(head) in heads


SAME_VALUE = [
    sp.sec(X) + sp.csc(X) + sp.cot(X),
    sp.asec(X + 1) + sp.acsc(X + 1) + sp.acot(X) + sp.acot(-X),
    sp.sech(X) + sp.csch(X) + sp.coth(X),
    sp.asech(X) + sp.acsch(X) + sp.acoth(X + 1),
    sp.frac(X + 3) + sp.factorial(X) + sp.sinc(X),
    sp.exp(X) ** 2 + sp.E**Y + 2**X + sp.sqrt(X) / sp.sqrt(Y),
    sp.cbrt(X) + sp.root(Y, 5) + sp.real_root(X, 3),
    sp.log(X, 2) + sp.log(Y, 10),
    sp.Mod(X, Y) + sp.Mod(-X, Y),
    sp.Max(X, Y, 0) + sp.Min(X, Y, 1),
    sp.GoldenRatio + sp.EulerGamma + sp.Catalan * X,
    sp.Heaviside(X - Y) + sp.Heaviside(Y - X, 1),
    sp.Piecewise((X, (X > Y) ^ (Y > 0)), (Y, sp.Implies(X > 0, Y > 1)), (X + Y, True)),
    sp.Piecewise((X, sp.ITE(X > 0, Y > 1, Y < -1)), (Y, True)),
    sp.Piecewise((X, sp.Equivalent(X > 0, Y > 1, evaluate=False)), (Y, True)),
    sp.polygamma(0, X) + sp.loggamma(Y) + sp.besselj(1, X) + sp.bessely(0, Y),
    sp.Sum(X**P, (P, 0, 5)) + sp.Product(1 + Y / Q, (Q, 1, 4)),
    sp.Derivative(sp.sin(X) * Y, X) + sp.Integral(sp.cos(P), (P, 0, X)),
    sp.Subs(sp.Derivative(sp.exp(P), P), P, X),
    sp.UnevaluatedExpr(X + Y) * 2,
    sp.Abs(X - Y) + sp.sign(X - Y) + sp.floor(3 * X) + sp.ceiling(3 * Y),
    cfunctions.log2(X) + cfunctions.Sqrt(X) + cfunctions.exp2(Y),
]


@pytest.mark.parametrize("expr", SAME_VALUE, ids=str)
def test_expressions_of_sympy_have_the_value_that_sympy_gives(expr, pool):
    at = {X: sp.Rational(5, 16), Y: sp.Rational(3, 4)}
    want = complex(sp.N(expr.expand(func=True).subs(at).doit(), 20))
    got = ak.eval_expr(ak.from_sympy(expr, pool), {"x": 0.3125, "y": 0.75})
    assert got == pytest.approx(want, rel=1e-13)


def test_the_square_root_of_sympy_is_sqrt_and_its_cube_root_a_power(pool):
    x = pool.symbol("x")
    assert ak.from_sympy(sp.sqrt(X), pool) == f.sqrt(x)
    assert ak.from_sympy(sp.cbrt(X), pool) == x ** Fraction(1, 3)
    assert math.isnan(ak.eval_expr(ak.from_sympy(sp.cbrt(X), pool), {"x": -8.0}))
    assert ak.eval_expr(ak.from_sympy(cfunctions.Cbrt(X), pool), {"x": -8.0}) == -2.0


def test_numbers_stay_exact_and_floats_are_what_they_were(pool):
    assert ak.from_sympy(sp.Rational(1, 3), pool) == pool.rational(1, 3)
    assert ak.from_sympy(sp.Integer(10) ** 40, pool) == pool.integer(10**40)
    assert ak.from_sympy(sp.Float(0.1), pool) == pool.float(0.1)
    assert ak.from_sympy(7, pool) == pool.integer(7)
    assert ak.from_sympy(-sp.oo, pool) == pool.float(-math.inf)
    assert ak.from_sympy(sp.pi, pool) == pool.pi()
    assert ak.to_sympy(pool.rational(-2, 7)) == sp.Rational(-2, 7)
    assert ak.to_sympy(pool.float(0.1)) == sp.Float(0.1)
    assert ak.to_sympy(pool.float(math.inf)) is sp.oo
    assert ak.to_sympy(pool.float(math.nan)) is sp.nan
    assert ak.to_sympy(pool.pred_true()) is sp.true
    assert ak.to_sympy(pool.e() + pool.imaginary_unit()) == sp.E + sp.I


def test_the_step_has_the_value_at_zero_that_it_was_made_with(pool):
    at_zero = [sp.Heaviside(X), sp.Heaviside(X, 0), sp.Heaviside(X, 1)]
    values = [ak.eval_expr(ak.from_sympy(step, pool), {"x": 0.0}) for step in at_zero]
    assert values == [0.5, 0.0, 1.0]


def test_a_piecewise_without_a_true_condition_is_nan(pool):
    expr = ak.from_sympy(sp.Piecewise((X, X > 0)), pool)
    assert math.isnan(ak.eval_expr(expr, {"x": -1.0}))


def test_matrices_are_lists_of_rows_and_sequences_lists(pool):
    x, y = pool.symbol("x"), pool.symbol("y")
    assert ak.from_sympy(sp.Matrix([[X, Y], [0, X * Y]]), pool) == [
        [x, y],
        [pool.integer(0), x * y],
    ]
    assert ak.from_sympy(sp.ImmutableMatrix([[X]]) * 2, pool) == [[2 * x]]
    assert ak.from_sympy(sp.Identity(2), pool) == [
        [pool.integer(1), pool.integer(0)],
        [pool.integer(0), pool.integer(1)],
    ]
    assert ak.from_sympy((X, [Y]), pool) == [x, [y]]
    assert ak.from_sympy(sp.Array([X, Y]), pool) == [x, y]
    assert ak.to_sympy([x, y]) == [X, Y]


def test_elements_of_matrix_symbols_are_symbols(pool):
    matrix = sp.MatrixSymbol("M", 2, 2)
    expr = ak.from_sympy(matrix[0, 1] * 2, pool)
    assert expr == 2 * pool.symbol("M[0, 1]")


def test_symbols_given_to_the_writer_keep_their_assumptions(pool):
    positive = sp.Symbol("x", positive=True)
    written = ak.to_sympy(f.sqrt(pool.symbol("x") ** 2), {"x": positive})
    assert written == positive


def test_two_symbols_of_one_name_are_refused(pool):
    mixed = sp.Symbol("x", positive=True) + X
    with pytest.raises(InputError, match="two symbols are called 'x'") as caught:
        ak.from_sympy(mixed, pool)
    assert caught.value.code == "E-SYMPY-002"
    dummies = sp.Dummy("x") + sp.Dummy("x")
    assert len(ak.from_sympy(dummies, pool).free_symbols) == 2


@pytest.mark.parametrize(
    ("expr", "named"),
    [
        (sp.Function("g")(X), "undefined function g(x)"),
        (sp.zeta(X), "zeta"),
        (sp.besselj(2, X), "besselj"),
        (sp.polygamma(1, X), "polygamma"),
        (sp.DiracDelta(X), "DiracDelta"),
        (sp.zoo * X, "zoo"),
        (sp.Integral(sp.Function("g")(X), X), "Integral"),
        (sp.Derivative(sp.Function("g")(X), X), "Derivative"),
        (sp.Contains(X, sp.Interval(0, 1)), "Contains"),
        (sp.MatrixSymbol("M", P, P), "has no explicit size"),
        ("sin(x)", "str"),
        (object(), "object"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_has_no_equivalent_is_an_error_that_names_it(expr, named, pool):
    with pytest.raises(InputTypeError) as caught:
        ak.from_sympy(expr, pool)
    assert caught.value.code == "E-SYMPY-001"
    assert named in caught.value.message


def test_a_jacobian_goes_there_and_back_as_its_rows(pool):
    x, y = pool.symbols("x y")
    rows = ak.jacobian([x * y, ak.sin(x)], [x, y])
    written = sp.Matrix(ak.to_sympy(rows))
    assert written == sp.Matrix([X * Y, sp.sin(X)]).jacobian([X, Y])
    assert ak.from_sympy(written, pool) == rows
    assert ak.to_sympy([]) == []


@pytest.mark.parametrize("wrong", [3, [3], [[X]], "x", None])
def test_only_expressions_go_to_sympy(wrong):
    with pytest.raises(InputTypeError, match="to_sympy takes expressions, got") as caught:
        ak.to_sympy(wrong)
    assert caught.value.code == "E-INPUT-008"


def test_deep_expressions_need_no_recursion(pool):
    x = pool.symbol("x")
    expr = x
    for _ in range(2000):
        expr = f.sin(expr) + 1
    node = X
    for _ in range(2000):
        node = sp.sin(node, evaluate=False) + 1
    assert ak.from_sympy(node, pool) == expr


def test_rounding_functions_know_numbers_and_have_no_slope():
    assert [round_half_even(sp.Rational(n, 2)) for n in (-3, -1, 1, 3, 5)] == [-2, 0, 0, 2, 2]
    assert [truncate(sp.Rational(n, 2)) for n in (-3, -1, 1, 3)] == [-1, 0, 0, 1]
    assert truncate(sp.Symbol("n", integer=True)) == sp.Symbol("n", integer=True)
    assert round_half_even(X).diff(X) == truncate(X).diff(X) == 0
    numeric = sp.lambdify(X, round_half_even(X) + 10 * truncate(X), "numpy")
    assert numeric(2.5) == 22.0


def test_sympy_missing_is_an_error_with_the_remedy(monkeypatch):
    import sys

    for name in [n for n in sys.modules if n.startswith("alkahest.interop.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'alkahest\[sympy\]"):
        ak.interop.to_sympy  # noqa: B018


def test_the_inverse_of_erfc_is_that_of_erf_from_the_other_end(pool):
    expr = ak.from_sympy(sp.erfcinv(X), pool)
    assert math.erfc(ak.eval_expr(expr, {"x": 0.3125})) == pytest.approx(0.3125, rel=1e-14)
