"""The pool: where every expression is made, once."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any

from alkahest.errors import ExactDivisionError, InputTypeError, PoolError
from alkahest.expr.bags import combine, digest_of, joined_names, mixed_pools, new_tag, wrong_kind
from alkahest.expr.heads import CONDITIONS, EXACT, FUNCTIONS, NAMED_CONSTANTS, RELATIONS
from alkahest.expr.nodes import Expr, Node, Operand
from alkahest.expr.numbers import payload, truth

MAX_POWER_BITS = 1 << 20
"""Exact powers are folded while the result has fewer bits than this."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {h: getattr(operator, h) for h in RELATIONS}
"""The relations of exact numbers; the operator module calls them the same."""


class ExprPool:
    """Makes expressions and holds each distinct one once.

    Every method that takes operands takes expressions of this pool and any Python or NumPy
    number. Nodes live as long as the pool; the pool is freed as a whole when neither it nor any
    of its expressions is referred to. Pools may be used from several threads at once. As a
    context manager a pool gives itself and does nothing on exit.

    What construction does: sums, products, ``min``, ``max``, ``and``, ``or`` are flattened and
    their arguments sorted by structure; exact constants (integers, rationals) of a sum or product
    become one, an exact 0 in a sum and an exact 1 in a product are dropped; an exact number to an
    integer power is computed; ``x**1`` is ``x`` and ``x**0`` is 1. It never cancels, collects or
    distributes, and leaves floats and functions of constants alone.

    Making a node takes constant time, sums included: ``total = total + term`` in a loop is linear.

    Errors common to all methods: InputTypeError E-INPUT-008 for what is no number, PoolError
    E-POOL-001 for an expression of another pool, E-POOL-002 for a wrong number of arguments,
    E-POOL-005 for a condition in the place of a number or the reverse.
    """

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Expr] = {}
        self._token: bytes | None = None  # set by the first pickle, see pickling.py

    def __enter__(self) -> ExprPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def __repr__(self) -> str:
        return f"<ExprPool of {len(self._nodes)} nodes>"

    def __copy__(self) -> ExprPool:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ExprPool:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from alkahest.expr.pickling import pool_of, token_of

        return pool_of, (token_of(self),)

    # Leaves
    def symbol(self, name: str) -> Expr:
        """The symbol called ``name``, any text but the empty one (E-POOL-003)."""
        found = self._nodes.get(("symbol", name)) if type(name) is str else None
        if found is not None:
            return found
        if not isinstance(name, str):
            raise _type_error("the name of a symbol", "a text", name)
        if not name:
            raise PoolError("E-POOL-003", "a symbol needs a name; the text is empty")
        name = str(name)
        return self._leaf("symbol", name, name, name.encode(errors="surrogatepass"))

    def symbols(self, names: str) -> tuple[Expr, ...]:
        """The symbols whose names ``names`` lists, separated by blanks or commas."""
        return tuple(self.symbol(name) for name in names.replace(",", " ").split())

    def integer(self, value: object) -> Expr:
        """The exact integer ``value``: an int or anything that equals one exactly by type."""
        number = payload(value)
        if type(number) is not int:
            raise _type_error("the value of an integer", "an integer", value)
        return self._leaf("integer", number, number, b"%x" % number)

    def rational(self, p: object, q: object = 1) -> Expr:
        """The exact ratio p/q of exact numbers, in lowest terms; E-EVAL-004 when q is 0."""
        above, below = _ratio_part(p), _ratio_part(q)
        if not below:
            raise ExactDivisionError("E-EVAL-004", "a rational with denominator 0")
        return self.constant(Fraction(above) / below)

    def float(self, value: object) -> Expr:
        """The float64 ``value``; -0.0 is kept apart from 0.0, every nan is the same node."""
        number = payload(value)
        if number is None or isinstance(number, complex):
            raise _type_error("the value of a float", "a real number", value)
        number = float(number)
        packed = struct.pack("<d", number if number == number else float("nan"))
        return self._leaf("float", packed, number, packed)

    def constant(self, value: Operand) -> Expr:
        """``value`` as an expression: numbers exactly, complex ones as ``re + im*I``."""
        if isinstance(value, Expr):
            if value.pool is not self:
                raise mixed_pools("an operand")
            return value
        if type(value) is int:
            found = self._nodes.get(("integer", value))
            if found is not None:
                return found
        number = payload(value)
        match number:
            case int():
                return self._leaf("integer", number, number, b"%x" % number)
            case Fraction(numerator=p, denominator=q):
                if q == 1:
                    return self.integer(p)
                return self._leaf("rational", (p, q), number, b"%x/%x" % (p, q))
            case float():
                return self.float(number)
            case complex():
                imaginary = self.mul((self.float(number.imag), self.imaginary_unit()))
                real = self.float(number.real)
                return imaginary if real is self.float(0.0) else self.add((real, imaginary))
        raise _type_error("an operand", "an expression or a number", value)

    def boolean(self, value: bool) -> Expr:
        """The condition that always or never holds."""
        return self._leaf("boolean", bool(value), bool(value), b"%d" % bool(value))

    def named(self, name: str) -> Expr:
        """One of the constants ``"pi"``, ``"E"``, ``"I"``."""
        if name not in NAMED_CONSTANTS:
            raise PoolError("E-POOL-004", f"there is no constant {name!r}")
        return self._leaf("constant", name, name, name.encode())

    def pi(self) -> Expr:
        """The circle's constant, exact until a backend rounds it."""
        return self.named("pi")

    def e(self) -> Expr:
        """Euler's number, exact until a backend rounds it."""
        return self.named("E")

    def imaginary_unit(self) -> Expr:
        """The imaginary unit; evaluation needs a complex dtype."""
        return self.named("I")

    def pos_infinity(self) -> Expr:
        """The float infinity."""
        return self.float(float("inf"))

    def pred_true(self) -> Expr:
        """The condition that always holds."""
        return self.boolean(True)

    def pred_false(self) -> Expr:
        """The condition that never holds."""
        return self.boolean(False)

    # Arithmetic
    def add(self, terms: Iterable[Operand]) -> Expr:
        """The sum of any number of terms; 0 when there are none."""
        return combine(self, "add", self._operands(terms))

    def mul(self, factors: Iterable[Operand]) -> Expr:
        """The product of any number of factors; 1 when there are none."""
        return combine(self, "mul", self._operands(factors))

    def pow(self, base: Operand, exponent: Operand) -> Expr:
        """``base**exponent``; E-EVAL-004 for an exact zero to a negative integer."""
        base, exponent = self._number("pow", base), self._number("pow", exponent)
        key = ("pow", base, exponent)
        found = self._nodes.get(key)
        if found is not None:
            return found
        if exponent.head != "integer":
            return self._node("pow", (base, exponent))
        power: int = exponent.value
        if power == 1:
            return base
        if power == 0:
            return self.integer(1)
        folded = _exact_power(base.value, power) if base.head in EXACT else None
        if folded is None:
            return self._node("pow", (base, exponent))
        return self._nodes.setdefault(key, self.constant(folded))

    def func(self, name: str, args: Sequence[Operand]) -> Expr:
        """The node with head ``name``: a function, or any other head that takes arguments.

        Raises:
            PoolError: E-POOL-004 for an unknown name, E-POOL-002 for a wrong number of arguments.
        """
        arity = FUNCTIONS.get(name)
        if arity is None:
            return self._special(name, args)
        if name in ("min", "max"):
            if len(args) < 2:
                raise _arity(name, "two arguments or more", len(args))
            return combine(self, name, self._operands(args))
        if len(args) != arity:
            raise _arity(name, f"{arity} argument{'s' if arity > 1 else ''}", len(args))
        return self._node(name, tuple(self._number(name, a) for a in self._operands(args)))

    def _special(self, name: str, args: Sequence[Operand]) -> Expr:
        if name in RELATIONS or name == "pow":
            if len(args) != 2:
                raise _arity(name, "2 arguments", len(args))
            return self.pow(*args) if name == "pow" else self._relation(name, *args)
        match name:
            case "add" | "mul":
                return combine(self, name, self._operands(args))
            case "and":
                return self.pred_and(*args)
            case "or":
                return self.pred_or(*args)
            case "not":
                if len(args) != 1:
                    raise _arity(name, "1 argument", len(args))
                return self.pred_not(args[0])
            case "piecewise":
                if len(args) % 2:
                    raise _arity(name, "pairs of a value and a condition", len(args))
                return self.piecewise(list(zip(args[::2], args[1::2], strict=True)))
        raise PoolError("E-POOL-004", f"there is no function {name!r}")

    # Conditions
    def lt(self, a: Operand, b: Operand) -> Expr:
        """The condition ``a < b``."""
        return self._relation("lt", a, b)

    def le(self, a: Operand, b: Operand) -> Expr:
        """The condition ``a <= b``."""
        return self._relation("le", a, b)

    def gt(self, a: Operand, b: Operand) -> Expr:
        """The condition ``a > b``."""
        return self._relation("gt", a, b)

    def ge(self, a: Operand, b: Operand) -> Expr:
        """The condition ``a >= b``."""
        return self._relation("ge", a, b)

    def pred_eq(self, a: Operand, b: Operand) -> Expr:
        """The condition that ``a`` equals ``b``; never holds for nan."""
        return self._relation("eq", a, b)

    def pred_ne(self, a: Operand, b: Operand) -> Expr:
        """The condition that ``a`` differs from ``b``; ``x != x`` holds for nan alone."""
        return self._relation("ne", a, b)

    def pred_and(self, *conditions: Operand) -> Expr:
        """The condition that all hold; ``True`` is dropped, one ``False`` decides."""
        return self._connect("and", conditions, neutral=True)

    def pred_or(self, *conditions: Operand) -> Expr:
        """The condition that at least one holds; ``False`` is dropped, one ``True`` decides."""
        return self._connect("or", conditions, neutral=False)

    def pred_not(self, condition: Operand) -> Expr:
        """The condition that ``condition`` does not hold."""
        inner = self.condition(condition)
        if inner.head == "boolean":
            return self.boolean(not inner.value)
        return self._node("not", (inner,))

    def piecewise(
        self, pairs: Iterable[tuple[Operand, Operand]], default: Operand | None = None
    ) -> Expr:
        """The value of the first pair ``(value, condition)`` whose condition holds.

        Where none holds the value is ``default``, or nan without one. Nothing is evaluated with
        an effect on the result but the chosen value.
        """
        flat: list[Expr] = []
        for value, condition in pairs:
            flat += (self._number("piecewise", value), self.condition(condition))
        if default is not None:
            flat += (self._number("piecewise", default), self.boolean(True))
        if not flat:
            raise _arity("piecewise", "one pair of value and condition or more", 0)
        return self._node("piecewise", tuple(flat))

    def condition(self, value: Operand) -> Expr:
        """``value`` as a condition: an expression that is one, or a bool."""
        constant = truth(value)
        if constant is not None:
            return self.boolean(constant)
        node = self.constant(value)
        if not node.is_condition:
            raise wrong_kind("a condition", node)
        return node

    def _relation(self, head: str, a: Operand, b: Operand) -> Expr:
        left, right = self._number(head, a), self._number(head, b)
        if left.head in EXACT and right.head in EXACT:
            return self.boolean(_COMPARE[head](left.value, right.value))
        return self._node(head, (left, right))

    def _connect(self, head: str, conditions: Sequence[Operand], *, neutral: bool) -> Expr:
        parts = [self.condition(c) for c in conditions]
        decided, dropped = self.boolean(not neutral), self.boolean(neutral)
        if decided in parts:
            return decided
        parts = [c for c in parts if c is not dropped]
        return combine(self, head, parts) if parts else dropped

    # Making nodes
    def _number(self, where: str, value: Operand) -> Expr:
        node = self.constant(value)
        if node.is_condition:
            raise wrong_kind(where, node)
        return node

    def _operands(self, values: Iterable[Operand]) -> Iterable[Expr]:
        return [v if isinstance(v, Expr) else self.constant(v) for v in values]

    def _leaf(self, head: str, key: object, value: object, piece: bytes) -> Expr:
        full = (head, key)
        found = self._nodes.get(full)
        if found is not None:
            return found
        node = Node()
        node.head, node.value, node.args = head, value, ()
        node.is_condition = head == "boolean"
        node.digest = digest_of(head, piece)
        node._names = (value, value) if isinstance(value, str) and head == "symbol" else None
        node._power = 1
        node._bag = None
        return self.keep(full, node)

    def _node(self, head: str, args: tuple[Expr, ...]) -> Expr:
        key = (head, *args)
        found = self._nodes.get(key)
        if found is not None:
            return found
        node = Node()
        node.head, node.value, node.args = head, None, args
        node.is_condition = head in CONDITIONS
        node.digest = digest_of(head, *[a.digest for a in args])
        node._names = joined_names(args)
        node._power = args[1].value if head == "pow" and args[1].head in EXACT else 1
        node._bag = None
        return self.keep(key, node)

    def find(self, key: tuple[Any, ...]) -> Expr | None:
        """The node kept under ``key``; for the modules of this package."""
        return self._nodes.get(key)

    def keep(self, key: tuple[Any, ...], node: Node) -> Expr:
        """Seal a filled-in node and keep it; for the modules of this package.

        When another thread kept an equal node first, that one is returned.
        """
        node.pool = self
        node._tag = new_tag()
        if node._bag is None:
            node._parts = None
        node.__class__ = Expr
        assert isinstance(node, Expr)
        return self._nodes.setdefault(key, node)


_DEFAULT = ExprPool()


def default_pool() -> ExprPool:
    """The pool behind :func:`symbols` and functions of numbers alone; lives with the process."""
    return _DEFAULT


def symbols(names: str, pool: ExprPool | None = None) -> tuple[Expr, ...]:
    """The symbols that ``names`` lists, separated by blanks or commas; always a tuple.

    They belong to ``pool``, or to the default pool.
    """
    return (pool or default_pool()).symbols(names)


def symbol(name: str, pool: ExprPool | None = None) -> Expr:
    """One symbol of ``pool``, or of the default pool; ``name`` is taken as it is."""
    return (pool or default_pool()).symbol(name)


def _exact_power(base: int | Fraction, power: int) -> int | Fraction | None:
    """``base**power``, or None when the result has too many bits."""
    if not base:
        if power < 0:
            raise ExactDivisionError(
                "E-EVAL-004",
                "exact zero raised to a negative power",
                remediation="Write 0.0 where the IEEE infinity is meant.",
            )
        return 0
    if base in (1, -1):
        return base if power % 2 else 1
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(power) >= MAX_POWER_BITS:
        return None
    return Fraction(base) ** power if power < 0 else base**power


def _ratio_part(value: object) -> int | Fraction:
    number = payload(value)
    if not isinstance(number, int | Fraction):
        raise _type_error("a part of a rational", "an exact number", value)
    return number


def _arity(name: str, wanted: str, got: int) -> PoolError:
    return PoolError("E-POOL-002", f"{name} takes {wanted}; {got} given")


def _type_error(what: str, wanted: str, value: object) -> InputTypeError:
    return InputTypeError(
        "E-INPUT-008", f"{what} must be {wanted}, not {type(value).__name__} {_shown(value)}"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
