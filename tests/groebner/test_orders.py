"""Monomial orders by name."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from alkahest import SolverError
from alkahest.groebner.orders import elimination, order_of

MONOMIALS = [m for m in product(range(4), repeat=3) if sum(m) <= 4]


def grevlex(m: tuple[int, ...]) -> tuple[int, ...]:
    return (sum(m), *(-e for e in reversed(m)))


KEYS = {
    "lex": lambda m: m,
    "grlex": lambda m: (sum(m), m),
    "grevlex": grevlex,
    "elimination(1)": lambda m: (grevlex(m[:1]), grevlex(m[1:])),
    "elimination(2)": lambda m: (grevlex(m[:2]), grevlex(m[2:])),
    "block(1, 1, 1)": lambda m: m,
    "weights(1, 2, 3)": lambda m: (m[0] + 2 * m[1] + 3 * m[2], *grevlex(m)[1:]),
}


@pytest.mark.parametrize("name", KEYS)
def test_an_order_sorts_as_its_definition_says(name: str) -> None:
    exponents = np.array(MONOMIALS, dtype=np.uint32)
    places = order_of(name, 3).descending(exponents)
    found = [MONOMIALS[i] for i in places]
    assert found == sorted(MONOMIALS, key=KEYS[name], reverse=True)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "grevlx",
            "",
            "deglex",
            "lex()",
            "lex(1)",
            "grevlex(2)",
            "weights",
            "block",
            "LEX",
            3,
            None,
        ),
        *("weights(1, 2)", "weights(0, 1, 1)", "weights(-1, 1, 1)", "block(1, 1)", "block(0, 3)"),
        *("elimination(0)", "elimination(4)", "elimination(1, 2)", "block(a)"),
    ],
)
def test_an_unknown_order_and_numbers_that_do_not_fit_are_errors(name: object) -> None:
    with pytest.raises(SolverError) as caught:
        order_of(name, 3)
    assert caught.value.code == "E-SOLVE-008"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("elimination(4)", "elimination takes how many variables to eliminate, from 1 to 3"),
        ("block(1, 1)", "block takes block sizes from 1 that add up to 3"),
        ("weights(1, 2)", "weights takes one number from 1 to 2147483647 per variable"),
    ],
)
def test_numbers_that_do_not_fit_are_explained_in_the_order_s_own_terms(
    name: str, said: str
) -> None:
    with pytest.raises(SolverError, match=f"does not fit 3 variables: {said}"):
        order_of(name, 3)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(SolverError, match="did you mean 'grevlex'"):
        order_of("grevlx", 2)


def test_an_order_knows_what_it_eliminates_and_whether_degrees_decide() -> None:
    assert order_of("lex", 3).eliminates(1)
    assert order_of("lex", 3).eliminates(2)
    assert elimination(2, 3).eliminates(2)
    assert not elimination(2, 3).eliminates(1)
    assert not order_of("grevlex", 3).eliminates(1)
    graded = [name for name in KEYS if order_of(name, 3).is_graded]
    assert graded == ["grlex", "grevlex"]
    assert order_of("weights(2, 2, 2)", 3).is_graded


def test_an_order_s_text_names_it() -> None:
    for name in KEYS:
        order = order_of(name, 3)
        assert order_of(repr(order), 3) == order
