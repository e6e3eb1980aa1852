"""Coefficient fields: the rationals and the prime fields.

A coefficient is a plain number: over :data:`QQ` an ``int``, or a ``Fraction`` that is no integer;
over ``GF(p)`` an ``int`` from 0 to ``p - 1``.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import TypeAlias

import attrs

from alkahest.errors import InputTypeError, SolverError

Coefficient: TypeAlias = "int | Fraction"

MAX_PRIME_BITS = 31
"""The engine computes over GF(p) for every prime of at most this many bits."""


@attrs.frozen(repr=False)
class RationalField:
    """The rationals; :data:`QQ` is the one there is."""

    @property
    def characteristic(self) -> int:
        """0: no sum of ones vanishes."""
        return 0

    def coerce(self, number: Coefficient) -> Coefficient:
        """``number`` in the form that coefficients have here."""
        return number.numerator if number.denominator == 1 else number

    def __repr__(self) -> str:
        return "QQ"


def _index(value: object) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise InputTypeError("E-INPUT-008", f"GF takes a prime number, not {value!r}")


@attrs.frozen(repr=False)
class GF:
    """The field of ``prime`` elements, for instance ``GF(65521)``.

    The engine computes over primes of at most 31 bits. Over larger ones bases are computed by plain
    algorithms on Python's integers, exactly but slowly, and are not converted between orders.

    Raises:
        InputTypeError: E-INPUT-008 for something that is no integer.
        SolverError: E-SOLVE-007 for a number that is not prime.
    """

    prime: int = attrs.field(converter=_index)

    def __attrs_post_init__(self) -> None:
        if self.prime < 2 or not _is_prime(self.prime):
            raise SolverError(
                "E-SOLVE-007",
                f"GF({self.prime}): {self.prime} is not a prime",
                remediation="Pass a prime; the field of p**k elements with k > 1 is not offered.",
            )

    @property
    def characteristic(self) -> int:
        """The prime."""
        return self.prime

    def coerce(self, number: Coefficient) -> int:
        """``number`` modulo the prime, from 0 to ``prime - 1``.

        Raises:
            SolverError: E-SOLVE-005 for a denominator that the prime divides.
        """
        if number.denominator == 1:
            return number.numerator % self.prime
        if number.denominator % self.prime == 0:
            raise SolverError(
                "E-SOLVE-005", f"{number} has no meaning in {self}: its denominator is 0 there"
            )
        return number.numerator * pow(number.denominator, -1, self.prime) % self.prime

    def __repr__(self) -> str:
        return f"GF({self.prime})"


Field: TypeAlias = "RationalField | GF"

QQ = RationalField()
"""The field of the rationals."""


def field_of(value: object) -> Field:
    """``value`` if it is a field.

    Raises:
        InputTypeError: E-INPUT-008 otherwise.
    """
    if isinstance(value, RationalField | GF):
        return value
    raise InputTypeError(
        "E-INPUT-008",
        f"field must be QQ or GF(p), not {value!r}",
        remediation="Import QQ and GF from alkahest.",
    )


def of_characteristic(characteristic: int) -> Field:
    """``QQ`` for 0, ``GF(p)`` for a prime."""
    return QQ if characteristic == 0 else GF(characteristic)


def _is_prime(n: int) -> bool:
    """Whether ``n`` is prime: trial division, then FLINT's proof."""
    if n < 4:
        return n > 1
    if n % 2 == 0 or n % 3 == 0:
        return False
    from flint import fmpz

    return bool(fmpz(n).is_prime())


__all__ = ["GF", "MAX_PRIME_BITS", "QQ", "Coefficient", "Field", "RationalField"]
