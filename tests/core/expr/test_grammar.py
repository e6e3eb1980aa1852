"""The tables of the expression language."""

import ast

import pytest

from alkahest.expr import ExprPool, functions, heads, parse
from alkahest.expr.grammar import CONSTANTS, FUNCTIONS, INFIX, PREFIX
from alkahest.expr.tokens import RESERVED

ARGUMENTS = ("x", "y", "z")


@pytest.fixture
def pool():
    return ExprPool()


def test_every_function_head_can_be_called_by_its_name(pool):
    symbols = [pool.symbol(name) for name in ARGUMENTS]
    for head, arity in heads.FUNCTIONS.items():
        text = f"{head}({', '.join(ARGUMENTS[:arity])})"
        assert parse(text, pool) is pool.func(head, symbols[:arity])


def test_every_public_function_is_in_the_language():
    assert set(functions.__all__) <= set(FUNCTIONS)


def test_the_printer_quotes_exactly_the_names_of_constants():
    assert set(RESERVED) == {*CONSTANTS, "zoo"}


def test_operators_bind_as_in_python():
    """Every pair of binary operators groups the way Python's own parser groups it."""
    arithmetic = ["+", "-", "*", "/", "%", "//", "**"]
    for first in arithmetic:
        for second in arithmetic:
            tree = ast.parse(f"a {first} b {second} c", mode="eval").body
            assert isinstance(tree, ast.BinOp)
            left_first = isinstance(tree.left, ast.BinOp)
            one, two = INFIX[first], INFIX[second]
            ours = one.binds > two.binds or (one.binds == two.binds and not two.right)
            assert ours == left_first, (first, second)
    assert INFIX["^"] == INFIX["**"]
    ranks = [INFIX[o].binds for o in ("or", "and", "<", "|", "&", "+", "*", "**")]
    assert ranks == sorted(ranks)
    assert INFIX["and"].binds < PREFIX["not"].binds < INFIX["<"].binds
    assert INFIX["*"].binds < PREFIX["-"].binds == PREFIX["~"].binds < INFIX["**"].binds


@pytest.mark.parametrize(
    ("spelled", "same"),
    [
        ("Abs(x)", "abs(x)"),
        ("ceiling(x)", "ceil(x)"),
        ("ln(x)", "log(x)"),
        ("log(x, 2)", "log2(x)"),
        ("log(x, 10)", "log10(x)"),
        ("log(x, y)", "log(x)/log(y)"),
        ("Mod(x, y)", "x % y"),
        ("mod(x, y)", "x % y"),
        ("floor(x/y)", "x // y"),
        ("Min(x, y, z)", "min(z, min(y, x))"),
        ("Max(x)", "x"),
        ("loggamma(x)", "lgamma(x)"),
        ("polygamma(0, x)", "digamma(x)"),
        ("besselj(0, x) + besselj(1, x)", "j0(x) + j1(x)"),
        ("bessely(0, x) + bessely(1, x)", "y0(x) + y1(x)"),
        ("bessel_j0(x) + bessel_j1(x)", "j0(x) + j1(x)"),
        ("arcsin(x) + arctan2(y, x) + arcsinh(x)", "asin(x) + atan2(y, x) + asinh(x)"),
        ("sec(x) + csc(x) + cot(x)", "1/cos(x) + 1/sin(x) + 1/tan(x)"),
        ("sech(x) + csch(x) + coth(x)", "1/cosh(x) + 1/sinh(x) + 1/tanh(x)"),
        ("asec(x) + acsc(x) + acot(x)", "acos(1/x) + asin(1/x) + atan(1/x)"),
        ("asech(x) + acsch(x) + acoth(x)", "acosh(1/x) + asinh(1/x) + atanh(1/x)"),
        ("root(x, 3)", "x**(1/3)"),
        ("Pow(x, y)", "x**y"),
        ("pow(x, y)", "x^y"),
        ("Rational(6, -4)", "-3/2"),
        ("Rational(5)", "5"),
        ("Rational(10**400 + 1, 10**399)", "(10**400 + 1)/10**399"),
        ("Integer(12)", "12"),
        ("Float(1/4)", "0.25"),
        ("Float(0.1)", "0.1"),
        ("Heaviside(x)", "Piecewise((0, x < 0), (1/2, Eq(x, 0)), (1, x > 0))"),
        ("Heaviside(x, 0)", "Piecewise((0, x < 0), (0, Eq(x, 0)), (1, x > 0))"),
        ("sinc(x)", "Piecewise((sin(x)/x, x != 0), (1, True))"),
        ("frac(x)", "x % 1"),
        ("factorial(x)", "gamma(x + 1)"),
        ("ITE(x < 0, y, z)", "Piecewise((y, x < 0), (z, True))"),
        ("ITE(x < 0, y < 0, z < 0)", "(x < 0) & (y < 0) | ~(x < 0) & (z < 0)"),
        ("Eq(x, y)", "x == y"),
        ("Ne(x, y)", "x != y"),
        ("And(Lt(x, y), Le(x, z))", "(x < y) & (x <= z)"),
        ("Or(Gt(x, y), Ge(x, z))", "(x > y) | (x >= z)"),
        ("Not(x < y)", "~(x < y)"),
        ("piecewise((x, x < 0))", "Piecewise((x, x < 0))"),
        ("And(x < 0)", "x < 0"),
    ],
)
def test_other_spellings_build_the_same_node(pool, spelled, same):
    assert parse(spelled, pool) is parse(same, pool)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("besselj(2, x)", "besselj of an order other than"),
        ("polygamma(1, x)", "polygamma is known for order 0 only"),
        ("Rational(x, 2)", "an exact number is needed here, not x"),
        ("Rational(0.5)", "an exact number is needed here, not 0.5"),
        ("Integer(1/2)", "must be an integer"),
        ("Float(x)", "an exact number is needed here, not x"),
    ],
)
def test_literal_arguments_are_demanded_where_they_are_needed(pool, text, message):
    with pytest.raises(ValueError, match=message) as error:
        parse("1 + " + text, pool)
    assert error.value.code == "E-PARSE-003"
    assert error.value.span == (4, 4 + text.index("("))
