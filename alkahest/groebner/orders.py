"""Monomial orders: what users write, and the weight matrices behind the words.

Every order here is a matrix order: of two monomials the larger is the one whose exponents,
multiplied by the matrix, come later in dictionary order (Robbiano 1985). With variables
x1 > x2 > ... > xn:

=====================  ==================================================================
``grevlex``            total degree, then the smaller power of the last variable
``lex``                dictionary order of the exponents
``grlex``              total degree, then dictionary order
``elimination(K)``     ``grevlex`` in the first K variables, ties by ``grevlex`` in the rest
``block(K1, K2, ...)`` ``grevlex`` in the first K1 variables, then in the next K2, ...
``weights(W1, ...)``   the sum of weights times exponents, then as ``grevlex`` goes on
=====================  ==================================================================
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner.engine.records import MonomialOrder

NAMES = ("grevlex", "lex", "grlex")
"""Orders without arguments; ``elimination``, ``block`` and ``weights`` take whole numbers."""

_FORM = re.compile(r"\s*([a-z]+)\s*(?:\(\s*([\d\s,]*?)\s*\))?\s*")


@attrs.frozen(repr=False)
class Order:
    """An order of the monomials in ``n`` variables.

    Attributes:
        kind: ``"grevlex"``, ``"lex"``, ``"grlex"``, ``"block"`` or ``"weights"``.
        numbers: sizes of the blocks, or one positive weight per variable; else empty.
        n: number of variables.
    """

    kind: str
    numbers: tuple[int, ...]
    n: int

    @property
    def engine(self) -> MonomialOrder:
        """The order as the engine takes it."""
        return _engine_order(self)

    @property
    def is_graded(self) -> bool:
        """Whether a monomial of larger total degree is always larger."""
        equal_weights = self.kind == "weights" and len(set(self.numbers)) == 1
        return self.kind in ("grevlex", "grlex") or equal_weights or self.n <= 1

    def eliminates(self, k: int) -> bool:
        """Whether any monomial with one of the first ``k`` variables exceeds all without them."""
        if self.kind == "lex" or k in (0, self.n):
            return True
        return self.kind == "block" and k in np.cumsum(self.numbers)

    def descending(self, exponents: NDArray[np.uint32]) -> NDArray[np.intp]:
        """The permutation that puts rows of ``exponents``, shape ``(terms, n)``, largest first."""
        if len(exponents) < 2:
            return np.arange(len(exponents))
        keys = exponents.astype(np.int64) @ self.engine.weights.T
        return np.lexsort(-keys.T[::-1])

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.numbers))})" if self.numbers else self.kind


def order_of(text: object, n: int) -> Order:
    """The order that ``text`` names, for ``n`` variables.

    Raises:
        SolverError: E-SOLVE-008 for an unknown name, or numbers that do not fit ``n``.
    """
    if isinstance(text, Order):
        if text.n == n:
            return text
        text = repr(text)
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise _unknown(text, (*NAMES, "elimination", "block", "weights"))
    name = kind = match[1]
    listed = match[2]
    numbers = tuple(int(part) for part in (listed or "").replace(",", " ").split())
    if kind in NAMES and listed is None:
        return Order(kind, (), n)
    if kind == "elimination" and len(numbers) == 1:
        (k,) = numbers
        kind, numbers = "block", (k, n - k) if 0 < k < n else (k,)
    if kind == "block" and numbers and min(numbers) > 0 and sum(numbers) == n:
        return Order(kind, numbers, n) if len(numbers) > 1 else Order("grevlex", (), n)
    if kind == "weights" and len(numbers) == n and min(numbers) > 0 and max(numbers) < 2**31:
        return Order(kind, numbers, n)
    wanted = {
        "elimination": f"how many variables to eliminate, from 1 to {n}",
        "block": f"block sizes from 1 that add up to {n}",
        "weights": "one number from 1 to 2147483647 per variable",
    }
    if name in wanted:
        raise SolverError(
            "E-SOLVE-008",
            f"order {text!r} does not fit {n} variables: {name} takes {wanted[name]}",
            remediation="For instance elimination(1), block(2, 3) or weights(1, 2, 3).",
        )
    raise _unknown(text, (*NAMES, "elimination", "block", "weights"))


def elimination(k: int, n: int) -> Order:
    """The order in which the first ``k`` of ``n`` variables are eliminated."""
    return Order("block", (k, n - k), n) if 0 < k < n else Order("grevlex", (), n)


def _unknown(text: object, names: tuple[str, ...]) -> SolverError:
    close = difflib.get_close_matches(str(text), names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return SolverError("E-SOLVE-008", f"there is no monomial order {text!r}{meant}")


@lru_cache(maxsize=256)
def _engine_order(order: Order) -> MonomialOrder:
    match order.kind:
        case "lex":
            return MonomialOrder.lex(order.n)
        case "grlex":
            return MonomialOrder.grlex(order.n)
        case "weights":
            return MonomialOrder.weighted(order.numbers)
        case "block":
            return MonomialOrder.blocks(order.numbers)
    return MonomialOrder.grevlex(order.n)


__all__ = ["NAMES", "Order", "elimination", "order_of"]
