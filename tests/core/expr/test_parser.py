"""Text to expressions."""

import sys
from fractions import Fraction

import pytest
from casefiles import open_cases, semantics_cases, workloads
from hypothesis import given, settings
from hypothesis import strategies as st

from alkahest.errors import (
    AlkahestError,
    InputTypeError,
    ParseDivisionError,
    ParseError,
    PoolError,
)
from alkahest.expr import ExprPool, eval_expr, functions, gamma, parse, piecewise, sin


@pytest.fixture
def pool():
    return ExprPool()


def value(text, **bindings):
    return eval_expr(parse(text, ExprPool(), symbols=list(bindings)), bindings)


# Numbers


def test_decimal_literals_are_the_nearest_float64(pool):
    for text in ("0.1", "1e-10", "5e-324", "1.7976931348623157e308", "123456789.123456789", "2."):
        assert parse(text, pool) is pool.float(float(text))


def test_integers_and_their_ratios_are_exact(pool):
    assert parse("1/2", pool) is pool.rational(1, 2)
    assert parse("-3/6", pool) is pool.rational(-1, 2)
    assert parse("x**(5/2)", pool).args[1].value == Fraction(5, 2)
    assert parse("18446744073709551617", pool).value == 2**64 + 1
    assert parse("x**(10**30 + 1)", pool).args[1].value == 10**30 + 1
    assert parse("10**400", pool).value == 10**400
    assert parse("1_000*x", pool) is 1000 * pool.symbol("x")


def test_integers_longer_than_pythons_limit_on_digits_are_read(pool):
    limit = sys.get_int_max_str_digits()
    assert limit == 0 or limit < 20_000
    assert parse("1" + "0" * 20_000, pool).value == 10**20_000


def test_a_minus_before_a_decimal_literal_belongs_to_it(pool):
    x = pool.symbol("x")
    assert parse("-1.5", pool) is pool.float(-1.5)
    assert parse("x**-1.5", pool) is x**-1.5
    assert parse("-1.5*x", pool) is -1.5 * x
    assert parse("-oo", pool) is pool.float(float("-inf"))
    assert str(parse("-0.0", pool)) == "-0.0"
    assert parse("-(1.5)", pool) is -pool.float(1.5)
    assert parse("-1.5**2", pool) is -(pool.float(1.5) ** 2)
    assert parse("x - 1.5", pool) is x - 1.5


@pytest.mark.parametrize(
    ("text", "span", "hint"),
    [
        ("2x", (1, 2), "Multiplication is always written"),
        ("2 x", (2, 3), "Multiplication is always written"),
        ("1e5x", (3, 4), "Multiplication is always written"),
        ("2(x)", (1, 2), "Multiplication is always written"),
        ("(x)(y)", (3, 4), "Multiplication is always written"),
        ("1.1e1j*x", (5, 6), "no imaginary literals"),
        ("3J", (1, 2), "no imaginary literals"),
        ("0x10*x", (1, 4), "Integers are decimal"),
        ("1__0", (1, 4), "Multiplication is always written"),
        ("1..5", (2, 4), "Multiplication is always written"),
    ],
)
def test_numbers_are_never_read_as_something_else(pool, text, span, hint):
    with pytest.raises(ParseError) as error:
        parse(text, pool)
    assert (error.value.code, error.value.span) == ("E-PARSE-001", span)
    assert hint in error.value.remediation


# Operators


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("-x**2", {"x": 3}, -9),
        ("2**-x", {"x": 2}, 0.25),
        ("2**-x**2", {"x": 2}, 0.0625),
        ("2**3**2", {}, 512),
        ("2^3^2", {}, 512),
        ("-(2 - x)", {"x": 3}, 1),
        ("a/b/c", {"a": 8, "b": 4, "c": 2}, 1),
        ("a/b*c", {"a": 8, "b": 4, "c": 2}, 4),
        ("a - (b - c)", {"a": 8, "b": 4, "c": 2}, 6),
        ("a - b - c", {"a": 8, "b": 4, "c": 2}, 2),
        ("--x", {"x": 3}, 3),
        ("-+-x", {"x": 3}, 3),
        ("-2**2", {}, -4),
        ("a*-b", {"a": 8, "b": 4}, -32),
        ("-2*Mod(p, q)", {"p": 5, "q": 3}, -4),
        ("-p/Mod(p, q)", {"p": 5, "q": 3}, -2.5),
        ("-2*p % q", {"p": 5, "q": 3}, 2),
        ("7 // x * 2", {"x": 2}, 6),
        ("-7 // x", {"x": 2}, -4),
        ("(-8)**(1/3) + 0*x", {"x": 1}, float("nan")),
        ("a + b * c ** 2 / 4 - 1", {"a": 1, "b": 2, "c": 6}, 18),
    ],
)
def test_operators_group_as_in_python(text, at, expected):
    assert value(text, **at) == pytest.approx(expected, rel=1e-15, nan_ok=True)


def test_sums_and_products_are_one_node_however_they_are_bracketed(pool):
    assert parse("(a + b) + (c - d)", pool) is parse("a + b + c - d", pool)
    assert parse("(a*b)*(c/d)", pool) is parse("a*b*c/d", pool)
    assert len(parse("a + (b + (c + d))", pool).args) == 4


def test_the_same_nodes_come_from_text_and_from_operators(pool):
    x, y = pool.symbol("x"), pool.symbol("y")
    assert parse("x - 2.0*y", pool) is x - 2.0 * y
    assert parse("x/y**2", pool) is x / y**2
    assert parse("x**-2", pool) is x**-2
    assert parse("1/(2*x)", pool) is 1 / (2 * x)
    assert parse("-x/2", pool) is -x / 2
    assert parse("x % y // 2", pool) is x % y // 2
    assert parse("~(x < y) | (x >= 1) & (y != 2)", pool) is ~(x < y) | (x >= 1) & functions.Ne(y, 2)


def test_words_and_signs_connect_conditions(pool):
    words = parse("not x < 0 and y > 1 or x == y", pool)
    assert words is parse("(~(x < 0) & (y > 1)) | Eq(x, y)", pool)
    assert parse("not not x < 1", pool).args[0] is parse("~(x < 1)", pool)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a < b < c", (6, 7)),
        ("x < 0 & y > 1", (6, 7)),
        ("x & y", (2, 3)),
        ("(x < 1) + 2", (8, 9)),
        ("-(x < 1)", (0, 1)),
        ("~x", (0, 1)),
        ("sin(x < 1)", (0, 3)),
        ("And(x, y < 1)", (0, 3)),
        ("Piecewise((x, y))", (0, 9)),
        ("Piecewise((x < 1, True))", (0, 9)),
        ("ITE(x, 1, 2)", (0, 3)),
        ("ITE(x < 1, 1, y < 2)", (0, 3)),
        ("(x < 1)**2", (7, 9)),
        ("2/(x < 1)", (1, 2)),
        ("True + 1", (5, 6)),
    ],
)
def test_conditions_and_numbers_do_not_mix(pool, text, span):
    with pytest.raises(
        ParseError, match=r"takes a (number|condition); a (number|condition)"
    ) as error:
        parse(text, pool)
    assert (error.value.code, error.value.span) == ("E-PARSE-001", span)
    assert "(a < b) & (b < c)" in error.value.remediation


def test_a_piecewise_keeps_its_pairs(pool):
    x, y = pool.symbol("x"), pool.symbol("y")
    parsed = parse("Piecewise((1/x, y < -1), (x, y <= 1), (1/x, True))", pool)
    assert parsed is piecewise((1 / x, y < -1), (x, y <= 1), (1 / x, True))
    assert parse("Piecewise((x, x < 0))", pool) is piecewise((x, x < 0))


# Names


def test_declared_symbols_win_over_functions_and_constants(pool):
    names = ["alpha", "beta", "y", "gamma", "zeta", "Chi", "lambda", "E", "I", "pi", "N"]
    parsed = parse("-gamma*zeta + Chi - lambda*beta + E*I*pi*N", pool, symbols=names)
    assert {s.value for s in parsed.free_symbols} == set(names) - {"alpha", "y"}
    assert parse("E", pool, symbols=[pool.symbol("E")]) is pool.symbol("E")
    assert parse("E", pool) is pool.e()


def test_names_of_functions_are_symbols_unless_called(pool):
    assert parse("gamma*gamma(x)", pool) is pool.symbol("gamma") * gamma(pool.symbol("x"))
    assert parse("sin + lambda", pool) is pool.symbol("sin") + pool.symbol("lambda")


def test_a_declared_symbol_cannot_be_called(pool):
    with pytest.raises(ParseError, match="'gamma' is declared as a symbol") as error:
        parse("2*gamma(x)", pool, symbols=["gamma"])
    assert (error.value.code, error.value.span) == ("E-PARSE-003", (2, 7))


def test_a_mapping_says_what_names_stand_for(pool):
    x = pool.symbol("x")
    assert parse("t**2 + u", pool, symbols={"t": sin(x)}) is sin(x) ** 2 + pool.symbol("u")


def test_quoted_names_are_symbols_whatever_they_contain(pool):
    parsed = parse("`x y` + 2*x_y - `C(t)`*`pi` + `a``b`", pool)
    assert {s.value for s in parsed.free_symbols} == {"x y", "x_y", "C(t)", "pi", "a`b"}


def test_a_quoted_name_leaves_the_constant_of_that_name_alone(pool):
    assert parse("`E`*E + `E`", pool) is pool.symbol("E") * pool.e() + pool.symbol("E")


def test_a_part_can_be_named(pool):
    x = pool.symbol("x")
    part = x + 1
    assert parse("(t := x + 1)**2 * sin(t)", pool) is part**2 * sin(part)
    assert parse("(a := (b := x + 1)**2) + a*b", pool) is part**2 + part**2 * part


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("t + (t := x)", (5, 6)),
        ("(t := x) + (t := y)", (12, 13)),
        ("(pi := x)", (1, 3)),
        ("sin(t := x)", (4, 5)),
        ("t := x", (0, 1)),
        ("(1 + t := x)", (5, 6)),
        ("(t := x, y)", (7, 8)),
        ("(t := t)*(t := 1)", (10, 11)),
    ],
)
def test_a_name_of_a_part_must_be_new_and_stand_in_brackets(pool, text, span):
    with pytest.raises(ParseError) as error:
        parse(text, pool)
    assert (error.value.code, error.value.span) == ("E-PARSE-001", span)


def test_constants_are_what_they_are_called(pool):
    assert parse("pi", pool) is pool.pi()
    assert parse("I", pool) is pool.imaginary_unit()
    assert parse("oo", pool) is pool.pos_infinity()
    assert parse("nan", pool) is pool.float(float("nan"))
    assert parse("True", pool) is pool.pred_true()
    assert parse("False", pool) is pool.pred_false()


# Errors


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("", (0, 0)),
        ("   ", (3, 3)),
        ("1+", (2, 2)),
        ("(x", (2, 2)),
        ("x)", (1, 2)),
        ("sin(x))", (6, 7)),
        ("x $ y", (2, 3)),
        ("sin x", (4, 5)),
        ("sin(", (4, 4)),
        ("sin(x,)", (6, 7)),
        ("()", (1, 2)),
        ("x, y", (1, 2)),
        ("(x, y)", (6, 6)),
        ("(x, y) + 1", (7, 8)),
        ("sin((x, y))", (0, 3)),
        ("* x", (0, 1)),
        ("x + * y", (4, 5)),
        ("x + not y < 1", (4, 7)),
        ("x and", (5, 5)),
        ("Piecewise(x, y)", (0, 9)),
        ("Piecewise((x, y < 1, 2))", (0, 9)),
        ("zoo", (0, 3)),
        ("x.real", (1, 2)),
        ("sin('__import__')", (4, 5)),
        ("x[0]", (1, 2)),
        ("x if y else z", (2, 4)),
        ("lambda: 0", (6, 7)),
    ],
)
def test_what_is_not_an_expression_is_refused_where_it_stops_being_one(pool, text, span):
    with pytest.raises(ParseError) as error:
        parse(text, pool)
    assert (error.value.code, error.value.span) == ("E-PARSE-001", span)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1/0", (1, 2)),
        ("x + y/(1 - 1)", (5, 6)),
        ("x // 0", (2, 4)),
        ("0**-1", (1, 3)),
        ("Rational(1, 0)", (0, 8)),
    ],
)
def test_division_by_an_exact_zero_is_an_error_of_its_own(pool, text, span):
    with pytest.raises(ParseDivisionError) as error:
        parse(text, pool)
    assert isinstance(error.value, ZeroDivisionError)
    assert (error.value.code, error.value.span) == ("E-PARSE-002", span)


def test_division_by_a_float_zero_follows_ieee():
    assert value("1/0.0 + x", x=1) == float("inf")


@pytest.mark.parametrize(
    ("text", "span", "message"),
    [
        ("foo(x)", (0, 3), "unknown function 'foo'"),
        ("1 + sine(x)", (4, 8), "unknown function 'sine'"),
        ("symbols(x)", (0, 7), "unknown function 'symbols'"),
        ("pi(x)", (0, 2), "unknown function 'pi'"),
        ("sin(x, y)", (0, 3), "sin takes 1 argument; 2 given"),
        ("sin()", (0, 3), "sin takes 1 argument; 0 given"),
        ("x*atan2(y)", (2, 7), "atan2 takes 2 arguments; 1 given"),
        ("log(x, 2, 3)", (0, 3), "log takes 1 or 2 arguments; 3 given"),
        ("Min()", (0, 3), "Min takes 1 argument or more; 0 given"),
    ],
)
def test_unknown_functions_and_wrong_numbers_of_arguments_are_named(pool, text, span, message):
    with pytest.raises(ParseError, match=message) as error:
        parse(text, pool)
    assert (error.value.code, error.value.span) == ("E-PARSE-003", span)


def test_similar_functions_are_suggested(pool):
    with pytest.raises(ParseError) as error:
        parse("arcsine(x)", pool)
    assert "Did you mean arcsin" in error.value.remediation


@pytest.mark.parametrize("text", ["a" * 10_000 + "(x)", "x " + "a" * 10_000, "1e" * 10_000])
def test_messages_stay_short_whatever_the_text(pool, text):
    with pytest.raises(ParseError) as error:
        parse(text, pool)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("text", [None, 3, b"x", ["x"]])
def test_only_texts_are_parsed(pool, text):
    with pytest.raises(InputTypeError, match="the text must be a str") as error:
        parse(text, pool)
    assert error.value.code == "E-INPUT-008"


def test_the_pool_must_be_one():
    with pytest.raises(InputTypeError, match="pool must be an ExprPool, not int"):
        parse("x", 3)


@pytest.mark.parametrize("symbols", ["x y", [3], {"x": 3}, [("x", 1)], 5])
def test_declarations_are_names_and_expressions(pool, symbols):
    with pytest.raises(InputTypeError, match="symbols") as error:
        parse("x", pool, symbols=symbols)
    assert error.value.code == "E-INPUT-008"


def test_a_declared_expression_that_is_no_symbol_needs_a_name(pool):
    with pytest.raises(InputTypeError, match="neither a name nor a symbol"):
        parse("x", pool, symbols=[pool.symbol("x") + 1])


def test_declared_symbols_belong_to_the_pool(pool):
    with pytest.raises(PoolError, match="'x' belongs to another pool") as error:
        parse("x", pool, symbols=[ExprPool().symbol("x")])
    assert error.value.code == "E-POOL-001"


@settings(max_examples=300)
@given(st.text(alphabet="x1.(),+-*/^<=&|~ `e0:!nsi_\n'µ"))
def test_any_text_gives_an_expression_or_a_parse_error_with_a_span(text):
    try:
        parsed = parse(text, ExprPool())
    except ParseError as error:
        start, end = error.span
        assert 0 <= start <= end <= len(text)
    else:
        assert parse(str(parsed), parsed.pool) is parsed


# Whole documents


@pytest.mark.parametrize("case", semantics_cases() + open_cases(), ids=str)
def test_every_collected_case_parses_and_reads_back(case):
    pool = ExprPool()
    try:
        expr, _ = case.expression(pool)
    except AlkahestError:
        assert case.expected is None
        return
    if not case.program:
        assert parse(str(expr), pool) is expr


@pytest.mark.parametrize("workload", workloads(), ids=str)
def test_every_published_formula_reads_back_and_has_its_values(workload):
    exprs, symbols = workload.expressions(ExprPool())
    for expr, output in zip(exprs, workload.outputs, strict=True):
        assert parse(str(expr), expr.pool) is expr
        for row in (0, len(output["expected"]) // 2):
            point = {s: workload.points[s.value][row] for s in symbols}
            got, want = eval_expr(expr, point), float(output["expected"][row])
            both_nan = got != got and want != want
            assert both_nan or abs(got - want) <= float(output["abs_tol"][row])
