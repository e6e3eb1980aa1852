"""The operation table: what each operation is in JAX, or the reason why it is refused.

XLA's own functions are used where they are within the bounds of ``alkahest.ops``, as measured by
the conformance kit; the others are put together here from those that are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from alkahest.ops import DTYPES
from alkahest.plugin import Support

_LN2 = math.log(2)


def _differentiated(function: Any, derivative: Callable[[jax.Array], jax.Array]) -> Any:
    """``function`` of one array, which JAX differentiates by a formula and not by its steps."""
    whole = jax.custom_jvp(function)
    whole.defjvp(lambda values, tangents: (whole(*values), derivative(*values) * tangents[0]))
    return whole


def _power(a: jax.Array, n: int) -> jax.Array:
    """Products for the smallest exponents; else sign by parity and magnitude by ``pow``."""
    if 0 < n <= 4:
        product = a
        for _ in range(n - 1):
            product = product * a
        return product
    magnitude = lax.pow(lax.abs(a), lax.full_like(a, float(n)))
    return jnp.copysign(magnitude, a) if n % 2 else magnitude


def _fma(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    """``a*b + c`` with the rounding error of the product added (Dekker's product, Knuth's sum).

    Used in the formulae of complex operations only, since the last rounding may be off by one.
    """
    splitter = lax.full_like(a, 2**27 + 1 if a.dtype == jnp.float64 else 2**12 + 1)

    def halves(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        high = splitter * x - (splitter * x - x)
        return high, x - high

    product = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    product_error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    rest = total - product
    error = (product - (total - rest)) + (c - rest) + product_error
    return jnp.where(jnp.isfinite(error), total + error, total)


@jax.custom_jvp
def _mod(a: jax.Array, b: jax.Array) -> jax.Array:
    """``lax.rem`` has the sign of the dividend."""
    rest = lax.rem(a, b)
    moved = jnp.where((rest < 0) != (b < 0), rest + b, rest)
    return jnp.where(rest == 0, jnp.copysign(rest, b), moved)


@_mod.defjvp
def _mod_derivative(values: Any, tangents: Any) -> Any:
    (a, b), (da, db) = values, tangents
    return _mod(a, b), da - jnp.floor(a / b) * db


def _exp2(a: jax.Array) -> jax.Array:
    bounded = lax.clamp(jnp.array(-1100, a.dtype), a, jnp.array(1100, a.dtype))
    whole = jnp.round(bounded)
    scaled = jnp.ldexp(lax.exp((bounded - whole) * _LN2), whole.astype(jnp.int32))
    return jnp.where(jnp.isnan(a), a, scaled)


def _cbrt(a: jax.Array) -> jax.Array:
    """A step of Newton's method after XLA's function."""
    root = lax.cbrt(a)
    better = root - (root - a / (root * root)) / 3
    return jnp.where(jnp.isfinite(a) & (a != 0), better, root)


def _half_exp(a: jax.Array) -> jax.Array:
    """``exp(a)/2``, which is finite a little beyond where ``exp`` is."""
    limit = math.log(float(jnp.finfo(a.dtype).max)) - 1
    root = lax.exp(a / 2)
    return jnp.where(a < limit, lax.exp(a) / 2, (root / 2) * root)


def _sinh(a: jax.Array) -> jax.Array:
    """Its power series below 1, which ends where terms no longer count."""
    square = a * a
    series = lax.full_like(a, 0)
    for k in range(19, 1, -2):
        series = (series + 1 / math.factorial(k)) * square
    half = _half_exp(lax.abs(a))
    return jnp.where(lax.abs(a) < 1, a + a * series, jnp.copysign(half - 0.25 / half, a))


def _cosh(a: jax.Array) -> jax.Array:
    half = _half_exp(lax.abs(a))
    return half + 0.25 / half


def _tanh(a: jax.Array) -> jax.Array:
    less = lax.expm1(2 * lax.min(lax.abs(a), lax.full_like(a, 40)))
    return jnp.copysign(less / (less + 2), a)


def _atanh(a: jax.Array) -> jax.Array:
    size = lax.abs(a)
    return jnp.copysign(lax.log1p(2 * size / (1 - size)) / 2, a)


def _lgamma(a: jax.Array) -> jax.Array:
    """XLA's function misses its zeros by a few units in the last place of 1."""
    return jnp.where((a == 1) | (a == 2), 0, lax.lgamma(a))


def _zero(a: jax.Array) -> jax.Array:
    return lax.full_like(a, 0)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "neg": lax.neg,
    "powi": _power,
    "pow": lax.pow,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
    "eq": lax.eq,
    "ne": lax.ne,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "not": lax.bitwise_not,
    "select": lax.select,
    "abs": lax.abs,
    "sign": lambda a: jnp.where(a == 0, 0, lax.sign(a)),
    "min": lax.min,
    "max": lax.max,
    "floor": lax.floor,
    "ceil": lax.ceil,
    "round": jnp.round,
    "trunc": jnp.trunc,
    "mod": _mod,
    "exp": lax.exp,
    "exp2": _differentiated(_exp2, lambda a: _exp2(a) * _LN2),
    "expm1": lax.expm1,
    "log": lax.log,
    "log2": jnp.log2,
    "log10": jnp.log10,
    "log1p": lax.log1p,
    "sqrt": lax.sqrt,
    "rsqrt": lax.rsqrt,
    "cbrt": _differentiated(_cbrt, lambda a: 1 / (3 * _cbrt(a) ** 2)),
    "hypot": jnp.hypot,
    "sin": lax.sin,
    "cos": lax.cos,
    "tan": lax.tan,
    "asin": lax.asin,
    "acos": lax.acos,
    "atan": lax.atan,
    "atan2": lax.atan2,
    "sinh": _differentiated(_sinh, _cosh),
    "cosh": _differentiated(_cosh, _sinh),
    "tanh": _differentiated(_tanh, lambda a: 1 - _tanh(a) ** 2),
    "asinh": lax.asinh,
    "acosh": lax.acosh,
    "atanh": _differentiated(_atanh, lambda a: 1 / ((1 - a) * (1 + a))),
    "erf": lax.erf,
    "erfinv": lax.erf_inv,
    "lgamma": _differentiated(_lgamma, lax.digamma),
    "digamma": lax.digamma,
    "re": lambda a: a,
    "im": _zero,
    "conjugate": lambda a: a,
    "arg": lambda a: lax.atan2(_zero(a), a),
    "fma": _fma,
}
"""Operation -> function of arrays of one shape and dtype, float64 or float32."""

REFUSED = {
    "fma": "XLA has no product and sum with one rounding",
    "erfc": "XLA's is up to 50 units in the last place off in its tail",
    "gamma": "JAX takes the exponential of lgamma, which loses digits",
    "j0": "JAX has no such Bessel function",
    "j1": "JAX has no such Bessel function",
    "y0": "JAX has no such Bessel function",
    "y1": "JAX has no such Bessel function",
}

_NARROW = {"erfinv": frozenset({"float32", "complex64"})}  # float64 digits are missing near 1
_SPLIT = {"complex": frozenset({"complex128", "complex64"})}  # gone before anything is traced


def support() -> Support:
    """What this backend lowers; XLA's CPU code takes subnormal numbers for zeros."""
    lowered = OPERATIONS.keys() - REFUSED.keys()
    return Support(
        lowers=dict.fromkeys(lowered, frozenset(DTYPES)) | _NARROW | _SPLIT,
        refuses=REFUSED,
        keeps_subnormals=False,
    )
