"""How far results may be from the exact ones, by accuracy mode, in double precision.

What is not listed is the same in every mode: arithmetic is correctly rounded, functions are
libdevice's, whose errors NVIDIA documents, or have their bound in the table of operations. Single
precision uses libdevice's functions in every mode; sums of products and powers are as listed.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from alkahest.backends.nvptx.accuracy import DEFAULT, FAST, STRICT
from alkahest.backends.nvptx.fastmath import FUNCTIONS


@attrs.frozen
class Bound:
    """A bound on the error of one operation.

    Attributes:
        ulp: units in the last place of the exact result.
        per_power: whether that is for each of the exponent's units.
        remark: where it holds, and what happens elsewhere; "" for everywhere.
    """

    ulp: float
    per_power: bool = False
    remark: str = ""

    def of(self, parameter: int | None = None) -> float:
        """In ulps, for an exponent where the operation has one."""
        return self.ulp * abs(parameter) if self.per_power and parameter else self.ulp

    @property
    def text(self) -> str:
        """For tables."""
        size = f"{self.ulp:g} ulp" + " times the exponent" * self.per_power
        return f"{size}; {self.remark}" if self.remark else size


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
        FAST: Bound(
            1,
            per_power=True,
            remark="up to exponents of 1024; reciprocals of what overflows are 0",
        ),
    },
    "div": {
        STRICT: _ROUNDED,
        DEFAULT: Bound(
            0.5, remark="1 ulp where a quotient by a constant is below 2**-966 in magnitude"
        ),
        FAST: Bound(
            1.5, remark="subnormal divisors count as 0, and those above 2**1022 as infinite"
        ),
    },
}
"""Operation whose code depends on the mode -> mode -> bound."""
