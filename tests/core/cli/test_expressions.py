"""The EXPR arguments."""

from __future__ import annotations

import pytest

from alkahest.cli.expressions import columns_used, inputs_of, parse_outputs
from alkahest.errors import IoError, ParseError


def names_and_texts(*items: str) -> list[tuple[str, str]]:
    outputs = parse_outputs(items, ["x", "y", "flow rate"], "data.csv")
    return [(output.name, str(output.expr)) for output in outputs]


def test_outputs_are_named_by_the_user_or_by_their_place() -> None:
    assert names_and_texts("x", "speed=y", "x*y") == [("f0", "x"), ("speed", "y"), ("f2", "x*y")]


def test_odd_names_go_between_backquotes() -> None:
    (output,) = names_and_texts("`a``b [m/s]` = `flow rate`")
    assert output == ("a`b [m/s]", "`flow rate`")


@pytest.mark.parametrize("text", ["x == y", "x <= y", "x >= y", "x != y", "Eq(x, y)"])
def test_comparisons_are_not_taken_for_names(text: str) -> None:
    ((name, _),) = names_and_texts(text)
    assert name == "f0"


def test_a_columns_name_wins_over_a_constant_and_a_function() -> None:
    outputs = parse_outputs(["E*gamma + pi"], ["E", "gamma"], "data.csv")
    assert columns_used(outputs, ["E", "gamma", "other"]) == ["E", "gamma"]


def test_only_columns_that_are_read_are_used_in_the_order_of_the_table() -> None:
    outputs = parse_outputs(["c + a", "a"], ["a", "b", "c"], "data.csv")
    assert columns_used(outputs, ["a", "b", "c"]) == ["a", "c"]
    assert [str(symbol) for symbol in inputs_of(outputs, ["a", "c"])] == ["a", "c"]


def test_a_mistake_is_pointed_at() -> None:
    with pytest.raises(ParseError) as caught:
        parse_outputs(["speed=x + * y"], ["x", "y"], "data.csv")
    (note,) = caught.value.__notes__
    text, carets = note.split("\n")
    assert text == "  x + * y"
    assert carets.index("^") == text.index("*")


def test_a_missing_column_is_pointed_at_and_the_nearest_is_offered() -> None:
    with pytest.raises(IoError) as caught:
        parse_outputs(["max(x, presure)"], ["x", "pressure"], "data.csv")
    error = caught.value
    assert error.code == "E-IO-004"
    assert error.message == "data.csv has no column 'presure'; it has: x, pressure"
    assert error.remediation == "Did you mean 'pressure'?"
    text, carets = error.__notes__[0].split("\n")
    assert carets.strip() == "^" * len("presure")
    assert carets.index("^") == text.index("presure")


def test_a_column_that_needs_backquotes_is_offered_with_them() -> None:
    with pytest.raises(IoError) as caught:
        parse_outputs(["2*rate"], ["flow rate"], "data.csv")
    assert caught.value.remediation == "Did you mean `flow rate`?"


def test_of_many_columns_only_some_are_listed() -> None:
    with pytest.raises(IoError) as caught:
        parse_outputs(["zzz"], [f"c{k}" for k in range(1000)], "data.csv")
    assert len(caught.value.message) < 200
