"""Python numbers, and those of NumPy and others, as the payloads of constant nodes."""

from __future__ import annotations

import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

from alkahest.errors import PoolError

Number: TypeAlias = "complex | Fraction | Decimal | SupportsIndex | SupportsFloat"
"""What type checkers accept as a number; :func:`payload` decides at run time."""

Payload: TypeAlias = "int | Fraction | float | complex"

MAX_DECIMAL_EXPONENT = 100_000
"""Decimals are converted exactly, so ``Decimal("1e999999999")`` would fill the memory."""


def payload(value: object) -> Payload | None:
    """The exact value of a number, or None when ``value`` is not one.

    Booleans count as 0 and 1, a fraction of denominator 1 as an integer. Arrays, including those
    of shape (), texts and None are no numbers. NumPy is never imported: its scalars are known by
    the abstract classes of :mod:`numbers` that they register with.

    Raises:
        PoolError: E-POOL-006 for a Decimal whose exact value is too long to write down, and for a
            float of a wider type, such as ``numpy.longdouble``, that no float64 equals.
    """
    kind = type(value)
    if kind is int or kind is float or kind is complex:  # without the cost of abstract classes
        return value  # type: ignore[return-value]
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else value
    if isinstance(value, numbers.Integral):  # bool, int subclasses, numpy.int64, gmpy2.mpz
        return int(value)
    if isinstance(value, numbers.Rational):
        fraction = Fraction(int(value.numerator), int(value.denominator))
        return fraction.numerator if fraction.denominator == 1 else fraction
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, numbers.Real):  # float subclasses, numpy.float32
        return _from_real(value)
    if isinstance(value, numbers.Complex):  # complex subclasses, numpy.complex64
        return complex(_from_real(value.real), _from_real(value.imag))
    # numpy.bool_ is the one NumPy scalar that no abstract class knows.
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return int(bool(value))
    return None


def truth(value: object) -> bool | None:
    """The value of a bool or ``numpy.bool_``, or None when ``value`` is neither."""
    kind = type(value)
    if kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        return bool(value)
    return None


def _from_real(value: Any) -> float:
    number = float(value)
    # Both sides are compared in the wider type; nan alone differs from itself.
    if number != value and value == value:
        raise PoolError(
            "E-POOL-006",
            f"{value!r} has more digits or range than float64",
            remediation="Round it with float(), or pass its exact value as a Fraction or Decimal.",
        )
    return number


def _from_decimal(value: Decimal) -> Payload:
    if not value.is_finite():
        return float("nan") if value.is_nan() else float(value)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and abs(exponent) > MAX_DECIMAL_EXPONENT:
        raise PoolError("E-POOL-006", f"the exact value of Decimal({str(value)!r}) is too long")
    return payload(Fraction(value))  # type: ignore[return-value]
