"""Expression nodes: immutable, hash-consed, compared by identity.

Nodes are made by an :class:`~alkahest.expr.pool.ExprPool` only; two nodes of one pool that mean
the same construction are one object, so ``==`` and ``hash`` cost nothing and never walk.

Everything that ordering and hash-consing need of a node is fixed when it is made, in constant
time from its arguments. The argument tuple of a sum (or another commutative head) is not needed
for that, and is only put together when somebody asks for it: ``total = total + term`` in a loop
costs the same at the first step and at the hundred thousandth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Union

from alkahest.errors import InputTypeError
from alkahest.expr.numbers import Number, payload, truth

if TYPE_CHECKING:
    from fractions import Fraction

    from alkahest.expr.pool import ExprPool

Operand: TypeAlias = Union["Expr", Number]
"""What the operators and functions take: an expression or any number."""

Names: TypeAlias = tuple[str, str]
Bag: TypeAlias = "tuple[int | Fraction, int, int, int]"


class Node:
    """The fields of an expression while its pool fills them in; see :class:`Expr`."""

    __slots__ = (
        "__weakref__",
        "_bag",
        "_names",
        "_parts",
        "_power",
        "_tag",
        "args",
        "digest",
        "head",
        "is_condition",
        "pool",
        "value",
    )

    pool: ExprPool
    head: str
    args: tuple[Expr, ...]
    value: Any
    digest: bytes
    is_condition: bool
    _tag: int  # random: sums are told apart by the sum of their terms' tags, see bags.py
    _names: Names | None  # alphabetically first and last symbol inside
    _power: int | Fraction  # exact exponent of a power; how sums order x**2 before x
    _bag: Bag | None  # commutative heads: (exact constant, count, sum of tags, sum of digests)
    _parts: tuple[Expr, ...] | None  # commutative heads: what `args` will be put together from


class Expr(Node):
    """A node of an expression.

    Attributes:
        pool: the :class:`~alkahest.expr.pool.ExprPool` that owns the node.
        head: what the node does, one of :mod:`alkahest.expr.heads`: a leaf, ``add``, ``mul``,
            ``pow``, a relation, ``and``, ``or``, ``not``, ``piecewise`` or a function.
        args: the arguments, in canonical order; empty for leaves.
        value: payload of a leaf (``str``, ``int``, ``Fraction``, ``float``, ``bool``), else None.
        digest: 16 bytes that depend on the structure alone: equal in every pool and process.
        is_condition: whether the value is true or false instead of a number.

    The operators build expressions and take any Python or NumPy number on the other side; ``<``
    and its kin build conditions, joined by ``&``, ``|`` and ``~``. ``==`` asks whether two nodes
    are the same node (never true across pools); the equation is :func:`alkahest.expr.Eq`.
    Python itself rounds a ``Fraction`` to a float before the power ``Fraction(1, 3)**x`` gets
    here (some versions do); ``pool.pow(Fraction(1, 3), x)`` is exact.
    Expressions pickle, in time and space linear in their number of distinct nodes.
    """

    __slots__ = ()

    __array_ufunc__ = None  # makes NumPy scalars and arrays leave operators to this class

    def __init__(self, *_: object, **__: object) -> None:
        raise InputTypeError("E-INPUT-008", "Expr cannot be called; an ExprPool builds expressions")

    def __init_subclass__(cls) -> NoReturn:
        raise InputTypeError("E-INPUT-008", "Expr cannot be subclassed")

    def __getattr__(self, name: str) -> Any:
        # Reached for a slot that is empty: `args` of a commutative head nobody looked at yet.
        if name == "args":
            from alkahest.expr.bags import put_together

            return put_together(self)
        raise AttributeError(f"Expr has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"expressions are immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"expressions are immutable; {name!r} cannot be deleted")

    def __bool__(self) -> bool:
        if self.head == "boolean":
            return bool(self.value)
        raise InputTypeError(
            "E-INPUT-008",
            "an expression has no truth value",
            remediation="Compare with Eq(a, b) and choose with piecewise((value, condition), ...); "
            "write a < b < c as And(a < b, b < c).",
        )

    @property
    def free_symbols(self) -> frozenset[Expr]:
        """The symbols inside; walks the expression on every call."""
        from alkahest.expr.walk import free_symbols

        return free_symbols(self)

    # Text
    def __str__(self) -> str:
        from alkahest.expr.printing import to_text

        return to_text(self)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        from alkahest.expr.latex import latex

        return f"$\\displaystyle {latex(self)}$"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/latex": self._repr_latex_()}

    # Copies and pickles
    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Expr:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from alkahest.expr.pickling import flatten, rebuild

        return rebuild, (self.pool, flatten(self))

    # Arithmetic
    def _operand(self, other: object) -> Expr | None:
        if isinstance(other, Expr):
            return other
        number = payload(other)
        if number is not None:
            return self.pool.constant(number)
        if hasattr(other, "__dlpack__"):
            raise InputTypeError(
                "E-INPUT-008",
                f"{type(other).__name__} is an array, not an operand of an expression",
                remediation="Put a symbol in its place, compile, and pass the array as a column.",
            )
        return None

    def _condition(self, other: object) -> Expr | None:
        if isinstance(other, Expr):
            return other
        value = truth(other)
        return None if value is None else self.pool.boolean(value)

    def __add__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.add((self, right))

    def __radd__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.add((left, self))

    def __sub__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.add((self, -right))

    def __rsub__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.add((left, -self))

    def __mul__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.mul((self, right))

    def __rmul__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.mul((left, self))

    def __truediv__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.mul((self, self.pool.pow(right, -1)))

    def __rtruediv__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.mul((left, self.pool.pow(self, -1)))

    def __pow__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.pow(self, right)

    def __rpow__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.pow(left, self)

    def __mod__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.func("mod", (self, right))

    def __rmod__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.func("mod", (left, self))

    def __floordiv__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.func("floor", (self / right,))

    def __rfloordiv__(self, other: Operand) -> Expr:
        left = self._operand(other)
        return NotImplemented if left is None else self.pool.func("floor", (left / self,))

    def __neg__(self) -> Expr:
        return self.pool.mul((self.pool.integer(-1), self))

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return self.pool.func("abs", (self,))

    def __round__(self) -> Expr:
        return self.pool.func("round", (self,))

    def __floor__(self) -> Expr:
        return self.pool.func("floor", (self,))

    def __ceil__(self) -> Expr:
        return self.pool.func("ceil", (self,))

    def __trunc__(self) -> Expr:
        return self.pool.func("trunc", (self,))

    # Conditions
    def __lt__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.lt(self, right)

    def __le__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.le(self, right)

    def __gt__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.gt(self, right)

    def __ge__(self, other: Operand) -> Expr:
        right = self._operand(other)
        return NotImplemented if right is None else self.pool.ge(self, right)

    def __and__(self, other: Expr | bool) -> Expr:
        right = self._condition(other)
        return NotImplemented if right is None else self.pool.pred_and(self, right)

    __rand__ = __and__

    def __or__(self, other: Expr | bool) -> Expr:
        right = self._condition(other)
        return NotImplemented if right is None else self.pool.pred_or(self, right)

    __ror__ = __or__

    def __invert__(self) -> Expr:
        return self.pool.pred_not(self)
