"""Operands at the ends of the domains, where shortcuts show: huge, tiny, next to poles and zeros."""

from __future__ import annotations

import math

from alkahest.ops import OPS
from alkahest.testing.oracle import Point, to_float32

_MAX = 1.7976931348623157e308
_MIN = 2.0**-1022
_TINY = 5e-324
_LARGEST_FLOAT32 = 3.4028234663852886e38
_BELOW_1 = 1 - 2.0**-53
_ABOVE_1 = 1 + 2.0**-52

_ANGLES = (math.pi, math.pi / 2, 1e22, 3e38, 1e300, _MAX, 1e-300)
_LOGARITHMS = (_TINY, 1e-44, _MIN, 2.0**-126, _BELOW_1, _ABOVE_1, 1 + 2.0**-23, 3e38, _MAX)
_INTEGERS = (0.49999999999999994, 0.5, -0.5, 4503599627370495.5, -8388607.5, 1e300, _TINY)
_SMALL = (1e-9, -1e-300, 1e-30)

_ONE_OPERAND: dict[str, tuple[float, ...]] = {
    "neg": (_MAX, _TINY),
    "abs": (-_MAX, -_TINY),
    "sign": (_MAX, -1e-300),
    "floor": _INTEGERS,
    "ceil": _INTEGERS,
    "round": _INTEGERS,
    "trunc": _INTEGERS,
    "exp": (709.782712893384, -708.3, -745.1, 88.72, -87.3, -103.2, *_SMALL),
    "exp2": (1023.9999999999999, -1022.5, 127.99999, -126.5, -148.5, *_SMALL),
    "expm1": (709.782712893384, 88.72, -36.7, -17.3, *_SMALL),
    "log": _LOGARITHMS,
    "log2": _LOGARITHMS,
    "log10": _LOGARITHMS,
    "log1p": (-_BELOW_1, 2.0**-24 - 1, _MAX, 3e38, *_SMALL),
    "sqrt": (_TINY, 1e-44, _MIN, _MAX, 3e38, _BELOW_1, _ABOVE_1),
    "rsqrt": (_TINY, 1e-44, _MIN, _MAX, 3e38, _BELOW_1, _ABOVE_1),
    "cbrt": (_TINY, 1e-44, -_MIN, _MAX, -3e38),
    "sin": _ANGLES,
    "cos": _ANGLES,
    "tan": _ANGLES,
    "asin": (_BELOW_1, -_BELOW_1, 1 - 2.0**-24, 0.5, *_SMALL),
    "acos": (_BELOW_1, -_BELOW_1, 1 - 2.0**-24, 0.5, *_SMALL),
    "atan": (_MAX, -3e38, 1.0, *_SMALL),
    "sinh": (710.4, -89.3, 0.3, *_SMALL),
    "cosh": (710.4, -89.3, 0.3, *_SMALL),
    "tanh": (19.06, -9.0, 0.55, *_SMALL),
    "asinh": (_MAX, -3e38, 0.5, *_SMALL),
    "acosh": (_ABOVE_1, 1 + 2.0**-23, 3e38, _MAX),
    "atanh": (_BELOW_1, 2.0**-24 - 1, 0.5, *_SMALL),
    "erf": (0.84375, 5.9, -3.9, *_SMALL),
    "erfc": (26.5, 10.0, -5.8, 0.5, *_SMALL),
    "erfinv": (_BELOW_1, 2.0**-24 - 1, 0.5, *_SMALL),
    "gamma": (171.6, 35.0, -0.5, -10.5, -34.5, 1e-300, 1e-30),
    "lgamma": (1e305, 1e36, -0.5, -2.4570247382208006, _ABOVE_1, 1e-300, 1e-30),
    "digamma": (1e300, 1e36, -0.5, 1.4616321449683622, 1e-300, 1e-30),
    "j0": (2.404825557695773, 1e4, -1e4, 1e-30),
    "j1": (3.8317059702075125, 1e4, -1e4, 1e-30),
    "y0": (0.8935769662791675, 1e4, 1e-30),
    "y1": (2.197141326031017, 1e4, 1e-30),
}

_TWO_OPERANDS: dict[str, tuple[tuple[float, float], ...]] = {
    "add": ((1e308, 1e292), (1.0, 2.0**-53), (_ABOVE_1, 2.0**-53), (_MAX, 1e292), (_MIN, -_TINY)),
    "sub": ((1e308, 1e292), (1.0, 2.0**-54), (_MIN, _TINY), (3e38, 1e31)),
    "mul": ((1.3407807929942596e154, 1.3407807929942596e154), (1e-160, 1e-150), (1e19, 1e19)),
    "div": ((_MAX, _BELOW_1), (1e-300, 1e10), (1.0, 3.0), (1e-30, 1e10), (_MIN, 3.0)),
    "pow": (
        (_ABOVE_1, 3e18),
        (_BELOW_1, 5e18),
        (1 + 2.0**-23, 5e8),
        (10.0, 308.0),
        (10.0, -307.0),
        (10.0, 38.0),
        (2.0, -1074.0),
        (2.0, -149.0),
        (-3.0, 201.0),
        (-3.0, -75.0),
        (1e-300, 0.1),
        (_TINY, 0.5),
    ),
    "mod": ((1e308, 3.0), (3e38, -7.0), (-1e-300, 5.0), (1e22, 1e-5), (_TINY, 2.0)),
    "hypot": ((1e308, 1e308), (2e38, 2e38), (1e-200, 1e-200), (1e-30, 1e-30), (1e300, 1e-300)),
    "atan2": ((1e-300, 1e300), (1e300, 1e-300), (-1e-30, -1e30), (3e38, -3e38), (1.0, 1.0)),
}

POINTS: dict[str, tuple[Point, ...]] = {
    op: tuple((x,) for x in _ONE_OPERAND[op]) if op in _ONE_OPERAND else _TWO_OPERANDS[op]
    for op in OPS
    if op in _ONE_OPERAND or op in _TWO_OPERANDS
}
"""Operation -> operands."""


def points(op: str, dtype: str) -> list[Point]:
    """Those of one operation as numbers of ``dtype``, without what is too large or small for it."""
    if dtype == "float64":
        return list(POINTS.get(op, ()))
    near = [p for p in POINTS.get(op, ()) if all(abs(x) <= _LARGEST_FLOAT32 for x in p)]
    rounded = [tuple(to_float32(x) for x in p) for p in near]
    return [p for p in rounded if all(p)]
