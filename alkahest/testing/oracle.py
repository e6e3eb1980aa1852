"""The right values: operations in arbitrary precision, sample points, and distances in ulps.

The oracle is mpmath, an independent implementation; it is imported when first used. A single
operation is compared at :func:`samples` of its domain with the bound of its row in
:data:`alkahest.ops.OPS`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from alkahest.ops import OPS, Exactness, Op

if TYPE_CHECKING:
    from alkahest.program import Program

DIGITS = 60
"""Decimal digits in which the oracle works; reductions of 1e308 raise it by themselves."""

LEAST_NORMAL = {"float64": 2.0**-1022, "float32": 2.0**-126}
"""The smallest number of each dtype that is not subnormal."""

Point = tuple[float, ...]


def exact(op: str, point: Sequence[float | complex], parameter: int | None = None) -> Any:
    """The value of a real or complex operation as an mpmath number, or a bool.

    Args:
        op: key of :data:`alkahest.ops.OPS`.
        point: finite operands, taken exactly.
        parameter: the exponent of ``powi``.

    Returns:
        mpf or mpc with :data:`DIGITS` digits; a float nan where the operation has no real value;
        a bool for comparisons.
    """
    import mpmath
    from mpmath.libmp import NoConvergence

    with mpmath.workdps(DIGITS + (320 if op in _WIDE else 0)):
        numbers = [mpmath.mpmathify(x) for x in point]
        arguments = numbers if parameter is None else [*numbers, parameter]
        try:
            value = _FUNCTIONS[op](mpmath, *arguments)
        except (ValueError, ZeroDivisionError, NoConvergence):
            return math.nan
        is_real = not any(isinstance(x, complex) for x in point)
        if is_real and isinstance(value, mpmath.mpc):
            return math.nan if value.imag else value.real
        return value


def evaluate(program: Program, point: Sequence[float]) -> list[Any]:
    """Outputs of a real program at one point, each operation in :data:`DIGITS` digits."""
    import mpmath

    with mpmath.workdps(DIGITS):
        values: list[Any] = [mpmath.mpf(x) for x in point]
        values += [c if isinstance(c, bool) else mpmath.mpf(c) for c in program.constants]
        for op, args, parameter in program.code:
            operands = [values[a] for a in args]
            if op == "select":
                values.append(operands[1] if operands[0] else operands[2])
            else:
                values.append(exact(op, operands, parameter))
        return [values[o] for o in program.outputs]


def ulp(value: Any, dtype: str = "float64") -> float:
    """Spacing of the floating-point numbers of ``dtype`` at ``value``."""
    precision, least = {"float64": (53, -1074), "float32": (24, -149)}[dtype]
    magnitude = abs(value)
    if not magnitude:
        return math.ldexp(1.0, least)
    import mpmath

    exponent = int(mpmath.floor(mpmath.log(magnitude, 2)))
    return math.ldexp(1.0, max(exponent - precision + 1, least))


def is_subnormal(value: Any, dtype: str = "float64") -> bool:
    """Whether ``value`` is not zero and below the smallest normal number of ``dtype``."""
    return bool(0 < abs(value) < LEAST_NORMAL[dtype])


def error_in_ulps(got: float, want: Any, dtype: str = "float64", scale: Any = 0) -> float:
    """Distance of ``got`` from the exact ``want`` in ulps of ``max(|want|, scale)``.

    Infinite unless both are nan, or both overflow to the same infinity.
    """
    import mpmath

    if isinstance(want, float) and math.isnan(want):
        return 0.0 if math.isnan(got) else math.inf
    if math.isnan(got):
        return math.inf
    largest = {"float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38}[dtype]
    if math.isinf(got):
        beyond = abs(want) >= largest and (want > 0) == (got > 0)
        return 0.0 if beyond else math.inf
    with mpmath.workdps(DIGITS):
        return float(abs(mpmath.mpf(got) - want) / ulp(max(abs(want), scale), dtype))


def bound(op: Op) -> float:
    """How many ulps a float64 result may be away from the exact value."""
    if op.exactness is Exactness.EXACT:
        return 0.0
    return 0.5 if op.exactness is Exactness.ROUNDED else op.ulp


def scale(op: Op) -> float:
    """Smallest magnitude whose ulp counts: 1 for functions judged absolutely near their zeros."""
    return 1.0 if op.exactness is Exactness.SPECIAL else 0.0


def samples(op: str, count: int, seed: int = 0, dtype: str = "float64") -> list[Point]:
    """Random operands in the domain of ``op``: most of ordinary size, some extreme.

    Args:
        op: key of :data:`alkahest.ops.OPS`; operands are real.
        count: number of points.
        seed: of the generator; equal seeds give equal points everywhere.
        dtype: ``"float64"`` or ``"float32"``; every operand is a number of it.
    """
    generator = random.Random(f"{op} {seed}")
    ranges = _DOMAINS.get(op, (_ANY,) * OPS[op].arity)
    points = [tuple(_draw(generator, r) for r in ranges) for _ in range(count)]
    if dtype == "float32":
        points = [tuple(to_float32(x) for x in p) for p in points]
    return points


_ANY = (-1e3, 1e3)
_POSITIVE = (1e-3, 1e3)

# Intervals of the operands; where both ends are positive, half of the draws are logarithmic.
_DOMAINS: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-80.0, 80.0),),
    "exp2": ((-120.0, 120.0),),
    "expm1": ((-40.0, 80.0),),
    "log": ((1e-30, 1e30),),
    "log2": ((1e-30, 1e30),),
    "log10": ((1e-30, 1e30),),
    "log1p": ((-0.999, 1e3),),
    "sqrt": ((1e-30, 1e30),),
    "rsqrt": ((1e-30, 1e30),),
    "asin": ((-1.0, 1.0),),
    "acos": ((-1.0, 1.0),),
    "sinh": ((-80.0, 80.0),),
    "cosh": ((-80.0, 80.0),),
    "tanh": ((-20.0, 20.0),),
    "acosh": ((1.0, 1e6),),
    "atanh": ((-1.0, 1.0),),
    "erf": ((-6.0, 6.0),),
    "erfc": ((-6.0, 9.0),),
    "erfinv": ((-0.9999, 0.9999),),
    "gamma": ((0.01, 30.0),),
    "lgamma": ((0.01, 1e4),),
    "digamma": ((0.01, 1e4),),
    "j0": ((-50.0, 50.0),),
    "j1": ((-50.0, 50.0),),
    "y0": ((0.01, 50.0),),
    "y1": ((0.01, 50.0),),
    "pow": ((1e-3, 1e3), (-12.0, 12.0)),
    "powi": ((-30.0, 30.0),),
    "mod": ((-1e6, 1e6), (-1e3, 1e3)),
}


def _draw(generator: random.Random, interval: tuple[float, float]) -> float:
    low, high = interval
    if low > 0 and generator.random() < 0.5:
        return math.exp(generator.uniform(math.log(low), math.log(high)))
    if generator.random() < 0.2:  # a small magnitude, where cancellation hides
        small: float = generator.uniform(low, high) * 10.0 ** -generator.uniform(0, 12)
        if low <= small <= high:
            return small
    return generator.uniform(low, high)


def to_float32(value: float) -> float:
    """The float32 nearest to ``value``, as a Python float."""
    import struct

    narrowed: float = struct.unpack("f", struct.pack("f", value))[0]
    return narrowed


_WIDE = frozenset({"sin", "cos", "tan", "mod", "fma", "expm1", "erfc", "add", "sub", "hypot"})


def _round_half_even(mp: Any, a: Any) -> Any:
    below = mp.floor(a)
    rest = a - below
    up = rest > 0.5 or (rest == 0.5 and int(below) % 2 == 1)
    return below + 1 if up else below


def _power(mp: Any, a: Any, b: Any) -> Any:
    if a == 0 and b < 0:
        return math.inf
    return mp.power(a, b)


def _lgamma(mp: Any, a: Any) -> Any:
    return mp.log(abs(mp.gamma(a)))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda mp, a, b: a + b,
    "sub": lambda mp, a, b: a - b,
    "mul": lambda mp, a, b: a * b,
    "div": lambda mp, a, b: a / b,
    "neg": lambda mp, a: -a,
    "fma": lambda mp, a, b, c: a * b + c,
    "powi": lambda mp, a, n: a**n,
    "pow": _power,
    "lt": lambda mp, a, b: a < b,
    "le": lambda mp, a, b: a <= b,
    "gt": lambda mp, a, b: a > b,
    "ge": lambda mp, a, b: a >= b,
    "eq": lambda mp, a, b: a == b,
    "ne": lambda mp, a, b: a != b,
    "and": lambda mp, a, b: bool(a) and bool(b),
    "or": lambda mp, a, b: bool(a) or bool(b),
    "not": lambda mp, a: not a,
    "select": lambda mp, a, b, c: b if a else c,
    "abs": lambda mp, a: abs(a),
    "sign": lambda mp, a: mp.sign(a),
    "min": lambda mp, a, b: min(a, b),
    "max": lambda mp, a, b: max(a, b),
    "floor": lambda mp, a: mp.floor(a),
    "ceil": lambda mp, a: mp.ceil(a),
    "round": _round_half_even,
    "trunc": lambda mp, a: mp.floor(a) if a >= 0 else mp.ceil(a),
    "mod": lambda mp, a, b: a - b * mp.floor(a / b),
    "exp2": lambda mp, a: mp.power(2, a),
    "log2": lambda mp, a: mp.log(a) / mp.log(2),
    "log10": lambda mp, a: mp.log10(a),
    "rsqrt": lambda mp, a: 1 / mp.sqrt(a),
    "cbrt": lambda mp, a: mp.sign(a) * mp.cbrt(abs(a)),
    "erfinv": lambda mp, a: mp.erfinv(a),
    "lgamma": _lgamma,
    "j0": lambda mp, a: mp.besselj(0, a),
    "j1": lambda mp, a: mp.besselj(1, a),
    "y0": lambda mp, a: mp.bessely(0, a),
    "y1": lambda mp, a: mp.bessely(1, a),
    "complex": lambda mp, a, b: mp.mpc(a, b),
    "conjugate": lambda mp, a: mp.conj(a),
    **{
        name: lambda mp, *args, _name=name: getattr(mp, _name)(*args)
        for name in (
            "exp expm1 log log1p sqrt hypot sin cos tan asin acos atan atan2 sinh cosh tanh "
            "asinh acosh atanh erf erfc gamma digamma re im arg"
        ).split()
    },
}
