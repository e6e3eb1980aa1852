"""Real kernels whose meaning NumPy's ufuncs do not give as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def select(condition: Array, chosen: Array, other: Array, out: Array) -> None:
    """``chosen`` where ``condition`` holds, else ``other``; no arithmetic touches either."""
    out[...] = np.where(condition, chosen, other)


def minimum(a: Array, b: Array, out: Array) -> None:
    """IEEE 754-2019 minimum. NumPy's propagates nan but leaves the sign of a zero to chance."""
    zeros = (a == 0) & (b == 0)
    signed = -((-a[zeros]) + (-b[zeros]))  # -0 if either is -0
    np.minimum(a, b, out=out)
    out[zeros] = signed


def maximum(a: Array, b: Array, out: Array) -> None:
    """IEEE 754-2019 maximum; see :func:`minimum`."""
    zeros = (a == 0) & (b == 0)
    signed = a[zeros] + b[zeros]  # +0 if either is +0
    np.maximum(a, b, out=out)
    out[zeros] = signed


def rsqrt(a: Array, out: Array) -> None:
    """``1/sqrt(a)``; -inf at -0."""
    np.sqrt(a, out)
    np.divide(1.0, out, out)


def zero(a: Array, out: Array) -> None:
    """Imaginary part of a real number."""
    out[...] = 0.0


def angle(a: Array, out: Array) -> None:
    """Angle of a real number: 0, pi, or nan; pi for -0, as atan2(0, -0)."""
    np.arctan2(0.0, a, out)
