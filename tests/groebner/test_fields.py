"""The rationals and the prime fields."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from alkahest import GF, QQ, InputTypeError, SolverError


@pytest.mark.parametrize("number", [1, 0, -7, 4, 6, 9, 25, 561, 2**31, 65521 * 65537, 2**61])
def test_a_number_that_is_no_prime_makes_no_field(number: int) -> None:
    with pytest.raises(SolverError, match=f"{number} is not a prime") as caught:
        GF(number)
    assert caught.value.code == "E-SOLVE-007"


@pytest.mark.parametrize("prime", [2, 3, 5, 257, 65521, 2**31 - 1, 2**61 - 1, 2**64 - 59])
def test_a_prime_makes_a_field(prime: int) -> None:
    field = GF(prime)
    assert field.characteristic == prime
    assert repr(field) == f"GF({prime})"
    assert pickle.loads(pickle.dumps(field)) == field == GF(prime)


@pytest.mark.parametrize("value", [7.0, "7", None, True])
def test_a_prime_is_an_integer(value: object) -> None:
    with pytest.raises(InputTypeError) as caught:
        GF(value)  # type: ignore[arg-type]
    assert caught.value.code == "E-INPUT-008"


def test_coefficients_take_the_form_of_their_field() -> None:
    assert QQ.coerce(Fraction(6, 3)) == 2
    assert isinstance(QQ.coerce(Fraction(6, 3)), int)
    assert GF(7).coerce(-1) == 6
    assert GF(7).coerce(Fraction(1, 3)) == 5


def test_a_denominator_that_the_prime_divides_is_refused() -> None:
    with pytest.raises(SolverError, match=r"1/7 has no meaning in GF\(7\)") as caught:
        GF(7).coerce(Fraction(1, 7))
    assert caught.value.code == "E-SOLVE-005"
