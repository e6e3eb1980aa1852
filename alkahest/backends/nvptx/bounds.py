"""How far results may be from the exact ones: by operation, dtype, accuracy mode and operands.

Arithmetic is correctly rounded. Functions are libdevice's, whose errors NVIDIA documents (CUDA C++
Programming Guide, "Mathematical Functions"), or our own. NVIDIA counts units in the last place from
the correctly rounded result; here they are counted from the exact one, which is half a unit more.

:data:`BOUNDS` has what depends on the mode. Single precision uses libdevice's functions in every
mode; integer powers are as listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from alkahest.backends.nvptx.accuracy import DEFAULT, FAST, STRICT
from alkahest.backends.nvptx.fastmath import FUNCTIONS
from alkahest.backends.nvptx.powers import LARGEST_COMPENSATED, LARGEST_PLAIN
from alkahest.ops import OPS, Exactness


@attrs.frozen
class Bound:
    """A bound on the error of one operation.

    Attributes:
        ulp: units in the last place of the exact result.
        per_power: whether that is for each of the exponent's units.
        remark: where it holds, and what happens elsewhere; "" for everywhere.
        scale: the units are those of ``max(|result|, scale)``.
    """

    ulp: float
    per_power: bool = False
    remark: str = ""
    scale: float = 0.0

    def of(self, parameter: int | None = None) -> float:
        """In ulps, for an exponent where the operation has one."""
        return self.ulp * abs(parameter) if self.per_power and parameter else self.ulp

    @property
    def text(self) -> str:
        """For tables."""
        size = f"{self.ulp:g} ulp" + " times the exponent" * self.per_power
        if self.scale:
            size += f" of max(|value|, {self.scale:g})"
        return f"{size}; {self.remark}" if self.remark else size


_LARGEST_PRODUCT = 4
"""Up to this exponent powers are products in every mode."""

_TURNS = "below 2**31 in magnitude, beyond that undefined numbers"
_ROUNDED = Bound(0.5)


def _own(name: str) -> Bound:
    return Bound(FUNCTIONS[name].ulp)


BOUNDS: Mapping[str, Mapping[str, Bound]] = {
    "sin": {STRICT: Bound(2), DEFAULT: _own("sin"), FAST: Bound(_own("sin").ulp, remark=_TURNS)},
    "cos": {STRICT: Bound(2), DEFAULT: _own("cos"), FAST: Bound(_own("cos").ulp, remark=_TURNS)},
    "exp": {STRICT: Bound(1), DEFAULT: _own("exp"), FAST: _own("exp")},
    "exp2": {STRICT: Bound(1), DEFAULT: _own("exp2"), FAST: _own("exp2")},
    "log": {STRICT: Bound(1), DEFAULT: _own("log"), FAST: _own("log")},
    "powi": {
        STRICT: Bound(
            3, remark="products and quotients up to exponents of 4, then libdevice's pow"
        ),
        DEFAULT: Bound(3, remark="2 ulp for exponents from 5 to 64"),
        FAST: Bound(1, per_power=True, remark="up to exponents of 1024"),
    },
    "div": {
        STRICT: _ROUNDED,
        DEFAULT: Bound(
            0.51, remark="1 ulp where a quotient by a constant is below 2**-966 in magnitude"
        ),
        FAST: Bound(
            1.5, remark="infinite where several quotients have one divisor and it is subnormal"
        ),
    },
    "sqrt": {STRICT: _ROUNDED, DEFAULT: _own("sqrt"), FAST: _own("sqrt")},
}
"""Operation whose code depends on the mode -> mode -> bound in double precision."""


# libdevice's documented errors


@attrs.frozen
class Documented:
    """What NVIDIA documents of a function: ulps of the correctly rounded result, or an absolute error.

    ``math.nan`` stands for a part of the domain where nothing is documented.
    """

    ulp: float = math.nan
    absolute: float = math.nan

    @property
    def text(self) -> str:
        """For tables."""
        if not math.isnan(self.absolute):
            return f"{self.absolute:g} absolute"
        return "" if math.isnan(self.ulp) else f"{self.ulp:g} ulp"


_LIBDEVICE: Mapping[str, tuple[float, float]] = {
    "pow": (2, 4),
    "exp": (1, 2),
    "exp2": (1, 2),
    "expm1": (1, 1),
    "log": (1, 1),
    "log2": (1, 1),
    "log10": (1, 2),
    "log1p": (1, 1),
    "rsqrt": (1, 2),
    "cbrt": (1, 1),
    "hypot": (2, 3),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (2, 4),
    "asin": (2, 2),
    "acos": (2, 2),
    "atan": (2, 2),
    "atan2": (2, 3),
    "sinh": (2, 3),
    "cosh": (1, 2),
    "tanh": (1, 2),
    "asinh": (3, 3),
    "acosh": (3, 4),
    "atanh": (2, 3),
    "erf": (2, 2),
    "erfc": (5, 4),
    "erfinv": (5, 2),
    "gamma": (10, 5),
    "lgamma": (4, 6),
    "j0": (7, 9),
    "j1": (7, 9),
    "y0": (7, 9),
    "y1": (7, 9),
}
_FROM_EXACT = 0.5
"""Between counting from the correctly rounded result and from the exact one."""

_BESSEL_FAR = {"float64": 5e-12, "float32": 2.2e-6}


def documented(op: str, dtype: str, part: str = "") -> Documented | None:
    """What NVIDIA documents of the function that libdevice has for ``op``, or None without any."""
    if op not in _LIBDEVICE:
        return None
    if part == _FAR_BESSEL:
        return Documented(absolute=_BESSEL_FAR[dtype])
    if part in _INSIDE.values():
        return Documented()
    return Documented(_LIBDEVICE[op][dtype == "float32"])


# Parts of the domain


@attrs.frozen
class Part:
    """A part of an operation's domain that has a bound, or the lack of one, of its own.

    Attributes:
        text: for tables; "" for the whole domain.
        contains: ``contains(exponent, *operands)``, for floats or arrays; the exponent is None where
            the operation has none.
    """

    text: str
    contains: Callable[..., Any]


WHOLE = Part("", lambda n, *operands: (operands[0] == operands[0]) | True)
"""The whole domain; a mask that is true, of the operands' shape."""

_FAR_BESSEL = "|x| >= 8"
_FAR_TURN = "|x| >= 2**31"
_FAR_DIGAMMA = "x <= -10"
_OUT_OF_RANGE = "n < 0, |x**n| beyond 2**±{}"
_INSIDE = {"float64": "-23.0001 < x < -2.2637", "float32": "-10.001 < x < -2.264"}
_GAP = {"float64": (-23.0001, -2.2637), "float32": (-10.001, -2.264)}
CANCELLING = {_FAR_DIGAMMA: 64.0}
"""Where the terms of the reflection formula cancel: digamma's have magnitudes up to 37, so that 64
units of 1 are two units of such a term."""

_EXPONENT = {"float64": 1021, "float32": 125}


def parts(op: str, dtype: str) -> tuple[Part, ...]:
    """The parts that the domain of ``op`` consists of."""
    if op in ("j0", "j1", "y0", "y1"):
        return _split("|x| < 8", lambda n, x: abs(x) < 8, _FAR_BESSEL)
    if op in ("sin", "cos") and dtype == "float64":
        return _split("|x| < 2**31", lambda n, x: abs(x) < 2.0**31, _FAR_TURN)
    if op == "lgamma":
        low, high = _GAP[dtype]
        return _split("elsewhere", lambda n, x: (x <= low) | (x >= high), _INSIDE[dtype])
    if op == "digamma":
        return _split("x > -10", lambda n, x: x > -10, _FAR_DIGAMMA)
    if op == "powi":
        largest = _EXPONENT[dtype]

        def ordinary(n: int, x: Any) -> Any:
            reach = 2.0 ** (largest / max(abs(n), 1))
            return ((abs(x) <= reach) & (abs(x) >= 1 / reach)) | (n >= 0)

        return _split("", ordinary, _OUT_OF_RANGE.format(largest))
    return (WHOLE,)


def _split(text: str, contains: Callable[..., Any], otherwise: str) -> tuple[Part, ...]:
    def rest(n: int | None, *operands: Any) -> Any:
        return contains(n, *operands) ^ True

    return Part(text, contains), Part(otherwise, rest)


def promised(
    op: str, dtype: str, mode: str, part: str = "", parameter: int | None = None
) -> Bound | None:
    """The bound of an operation on real numbers, for results that are.

    Args:
        op: the operation.
        dtype: ``"float64"`` or ``"float32"``.
        mode: the accuracy mode.
        part: text of one of :func:`parts`.
        parameter: the exponent of an integer power.

    Returns:
        None where the mode gives the operands up.
    """
    if op == "powi":
        return _of_power(dtype, mode, parameter or 0)
    if op in BOUNDS and dtype == "float64":
        if mode == FAST and part == _FAR_TURN:
            return None
        return attrs.evolve(BOUNDS[op][mode], remark="")
    row, known = OPS[op], documented(op, dtype, part)
    if part in CANCELLING:
        return Bound(CANCELLING[part], scale=1.0)
    if known is not None and not math.isnan(known.ulp):
        return Bound(known.ulp + _FROM_EXACT)
    if row.exactness is Exactness.SPECIAL:
        return Bound(row.ulp, scale=1.0)
    fixed = {Exactness.EXACT: 0.0, Exactness.ROUNDED: _ROUNDED.ulp}
    return Bound(fixed.get(row.exactness, row.ulp))


def _of_power(dtype: str, mode: str, n: int) -> Bound:
    by_products = Bound(BOUNDS["powi"][STRICT].ulp)
    if mode == FAST and abs(n) <= LARGEST_PLAIN:
        return attrs.evolve(BOUNDS["powi"][FAST], remark="")
    if abs(n) <= _LARGEST_PRODUCT:
        return by_products
    if mode == DEFAULT and abs(n) <= LARGEST_COMPENSATED:
        return Bound(2)
    return by_products if dtype == "float64" else Bound(_LIBDEVICE["pow"][1] + _FROM_EXACT)
