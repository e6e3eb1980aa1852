"""How far results may be from the exact ones, by accuracy mode, in double precision.

Arithmetic, roots, rounding and comparisons are correctly rounded in every mode, but where a mode
computes a sum of products, or a quotient, in another way (:mod:`alkahest.backends.cpu.jit.passes`).
Single precision computes functions in double precision and rounds them once. Bounds are those of
processors with fused multiply-adds; on others functions are those of the C library in every mode, and
within the looser bounds of the table of operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from alkahest.backends.cpu.jit.options import DEFAULT, FAST, STRICT


@attrs.frozen
class Bound:
    """A bound on the error of one operation.

    Attributes:
        ulp: units in the last place of the exact result, or of 1 where that is larger and the
            table of operations says ``SPECIAL``.
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


def _modes(
    strict: Bound | float, default: Bound | float, fast: Bound | float | None = None
) -> Mapping[str, Bound]:
    chosen = (strict, default, default if fast is None else fast)
    bounds = [Bound(b) if isinstance(b, (int, float)) else b for b in chosen]
    return MappingProxyType(dict(zip((STRICT, DEFAULT, FAST), bounds, strict=True)))


_PRODUCTS = "products and quotients up to exponents of 4"

BOUNDS: Mapping[str, Mapping[str, Bound]] = MappingProxyType(
    {
        "powi": _modes(
            Bound(3, remark=f"{_PRODUCTS}, 1 ulp beyond"),
            Bound(3, remark=f"{_PRODUCTS}, 2 ulp beyond"),
            Bound(1, per_power=True, remark="up to exponents of 1024"),
        ),
        "div": _modes(0.5, 0.51, 1.5),
        "sqrt": _modes(0.5, 0.51),
        "pow": _modes(1, Bound(2, remark="1 ulp but for the exponent 1.5")),
        "mod": _modes(1, 1),
        "exp": _modes(0.9, 1.1),
        "exp2": _modes(0.9, 1.4),
        "expm1": _modes(1, 1),
        "log": _modes(0.7, 0.7),
        "log2": _modes(0.9, 0.9),
        "log10": _modes(0.7, 0.7),
        "log1p": _modes(0.7, 0.7),
        "rsqrt": _modes(0.6, 1.5),
        "cbrt": _modes(0.6, 0.6),
        "hypot": _modes(0.9, 0.9),
        "sin": _modes(0.8, 3),
        "cos": _modes(0.8, 3),
        "tan": _modes(1, 1),
        "asin": _modes(1, 1),
        "acos": _modes(1, 1),
        "atan": _modes(1, 1.5),
        "atan2": _modes(1, 1.5),
        "sinh": _modes(0.9, 0.9),
        "cosh": _modes(0.8, 0.8),
        "tanh": _modes(0.7, 0.7),
        "asinh": _modes(1, 1),
        "acosh": _modes(0.7, 0.7),
        "atanh": _modes(0.7, 0.7),
        "erf": _modes(0.9, 3.5),
        "erfc": _modes(1, 1.5),
        "erfinv": _modes(3, 3),
        "gamma": _modes(12, 12),
        "lgamma": _modes(8, 8),
        "digamma": _modes(16, 16),
        "j0": _modes(3, 3),
        "j1": _modes(3, 3),
        "y0": _modes(3, 3),
        "y1": _modes(3, 3),
    }
)
"""Operation that is not rounded correctly in every mode -> mode -> bound."""
