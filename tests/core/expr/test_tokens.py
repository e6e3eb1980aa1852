"""Spelling of names and numbers."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkahest.errors import ParseError
from alkahest.expr.tokens import (
    TokenKind,
    float_text,
    float_value,
    integer_text,
    integer_value,
    name_text,
    tokenise,
)


@pytest.fixture
def strictest_digit_limit():
    """The lowest limit that Python allows for conversions between int and text."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    yield
    sys.set_int_max_str_digits(limit)


def only_token(text):
    token, end = tokenise(text)
    assert end.kind == TokenKind.END
    return token


def test_tokens_carry_half_open_offsets():
    tokens = [(t.text, t.span) for t in tokenise(" x1  **2.5e-3\n<=`a b`")]
    assert tokens == [
        ("x1", (1, 3)),
        ("**", (5, 7)),
        ("2.5e-3", (7, 13)),
        ("<=", (14, 16)),
        ("a b", (16, 21)),
        ("", (21, 21)),
    ]


@pytest.mark.parametrize("text", [".5", "5.", "1.5e3", "1E5", "1e+5", "1_0.2_5", "0e0", "00.5"])
def test_decimal_literals_are_pythons(text):
    token = only_token(text)
    assert token.kind == TokenKind.FLOAT
    assert float_value(token) == float(text)


@pytest.mark.parametrize("text", ["0", "00", "7", "1_000", "9" * 30])
def test_integer_literals_are_pythons(text):
    token = only_token(text)
    assert token.kind == TokenKind.INTEGER
    assert integer_value(token) == int(text)


@pytest.mark.parametrize("text", ["007", "0_1", "00_7"])
def test_leading_zeros_are_refused_as_in_python(text):
    with pytest.raises(ParseError, match="starts with a zero") as error:
        integer_value(only_token(text))
    assert error.value.span == (0, len(text))


@pytest.mark.usefixtures("strictest_digit_limit")
@pytest.mark.parametrize("digits", [599, 600, 601, 1200, 1201, 4301, 30_000])
def test_integers_of_any_length_convert_both_ways(digits):
    for value in (10**digits, 10**digits - 1, 7 * 10 ** (digits // 2) + 1, -(3**digits)):
        text = integer_text(value)
        if value < 0:
            assert text[0] == "-"
            value, text = -value, text[1:]
        assert text[0] != "0"
        assert integer_value(only_token(text)) == value


@given(st.integers(0, 1 << 6000))
def test_integer_text_is_the_decimal_expansion(value):
    assert integer_text(value) == f"{value}"


@given(st.floats())
def test_floats_read_back_bit_for_bit(value):
    text = float_text(value)
    if math.isfinite(value):
        sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
        again = sign * float_value(only_token(digits))
        assert again == value
        assert math.copysign(1, again) == math.copysign(1, value)
    else:
        assert text == ("nan" if value != value else "oo" if value > 0 else "-oo")


def test_a_literal_beyond_float64_is_refused_and_not_read_as_infinity():
    with pytest.raises(ParseError, match="outside the range of float64"):
        float_value(only_token("1e999"))
    assert float_value(only_token("1e-999")) == 0.0


@given(st.text(min_size=1))
def test_every_name_reads_back(name):
    token = only_token(name_text(name))
    assert token.text == name
    assert token.kind in (TokenKind.NAME, TokenKind.QUOTED)


@pytest.mark.parametrize(
    "name", ["x", "_x", "x_1", "lambda", "for", "sin", "α", "été", "漢字", "e1"]
)
def test_ordinary_names_are_not_quoted(name):
    assert name_text(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("x y", "x-y", "\\beta", "x_{0}", "C(t)", "1x", "x'"),
        *("not", "and", "or", "pi", "E", "True", "zoo"),
        *("\uff58", "\U0001d431", "x\u00b2", "x\u207f", "\u2126", "e\u0301", "x\u200b", "\u0663"),
    ],
)
def test_names_that_would_read_as_something_else_are_quoted(name):
    assert name_text(name) == f"`{name}`"


def test_a_backquote_inside_a_name_is_doubled():
    assert name_text("a`b") == "`a``b`"
    assert only_token("`a``b`").text == "a`b"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("\uff58", (0, 1)),  # full-width x, which Python would read as x
        ("x.__\U0001d41c\U0001d425\U0001d41a\U0001d42c\U0001d42c__", (1, 2)),
        (" x\u00b2", (1, 3)),
        ("x\u0000", (1, 2)),
        ("'a'", (0, 1)),
        ("x\u00a0y", (1, 2)),
        ("x[0]", (1, 2)),
        ("`x", (0, 2)),
        ("``", (0, 2)),
        ("x = 3", (2, 3)),
        ("x!", (1, 2)),
        ("x\\y", (1, 2)),
        ("3 @ x", (2, 3)),
    ],
)
def test_characters_outside_the_language_are_refused_where_they_stand(text, span):
    with pytest.raises(ParseError) as error:
        list(tokenise(text))
    assert (error.value.code, error.value.span) == ("E-PARSE-001", span)
    assert error.value.remediation
