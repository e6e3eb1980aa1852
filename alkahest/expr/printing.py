"""Expressions as text in Python's syntax, which :func:`alkahest.expr.parse` reads back.

``parse(str(e), e.pool)`` is ``e`` again, node for node, for every expression. The order of sums
and products is that of ``Expr.args``. Floats are written with the fewest digits that give the
same float64. A symbol whose name would not read back stands in backquotes.

Parts that occur several times are written out each time; beyond
:data:`alkahest.expr.layout.LARGE_TREE` nodes they are named where they occur first, as Python
does it: ``(s1 := x*y + 1)**2 + sin(s1)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from alkahest.expr.heads import EXACT
from alkahest.expr.layout import (
    Piece,
    coefficient,
    fresh_names,
    is_negative,
    repeated,
    starts_with_minus,
    write,
)
from alkahest.expr.nodes import Expr
from alkahest.expr.tokens import float_text, integer_text, name_text

# How strongly a text binds, on the scale of alkahest.expr.grammar; a number or product that
# starts with a minus sign stands between sums and products.
_DEFINITION, _ANY, _RELATION, _OR, _AND, _SUM, _NEGATIVE, _PRODUCT, _PREFIX, _POWER, _ATOM = range(
    -1, 10
)

_RELATIONS = {"lt": " < ", "le": " <= ", "gt": " > ", "ge": " >= "}
_CALLS = {"min": "Min", "max": "Max", "mod": "Mod", "abs": "Abs", "eq": "Eq", "ne": "Ne"}
_BINDS = {
    **dict.fromkeys(_RELATIONS, _RELATION),
    "or": _OR,
    "and": _AND,
    "not": _PREFIX,
    "add": _SUM,
}


def to_text(expr: Expr) -> str:
    """Write ``expr`` so that parsing the text in the same pool gives ``expr`` again."""
    return write([(expr, _ANY)], _Writer(expr).expand)


class _Writer:
    """Knows the repeated parts, and the names of those that the text so far has defined."""

    def __init__(self, expr: Expr) -> None:
        self.repeated = frozenset(repeated(expr))
        self.fresh = iter(fresh_names(expr, "s{}") if self.repeated else ())
        self.names: dict[Expr, str] = {}
        self.forms: dict[str, Callable[[Expr], Sequence[Piece]]] = {
            "symbol": lambda node: [name_text(node.value)],
            "integer": lambda node: [integer_text(node.value)],
            "rational": lambda node: [_ratio(*node.value.as_integer_ratio())],
            "float": lambda node: [float_text(node.value)],
            "constant": lambda node: [node.value],
            "boolean": lambda node: [str(node.value)],
            "add": self.sum,
            "mul": self.product,
            "pow": self.power,
            "and": lambda node: _joined(" & ", node.args, _PREFIX),
            "or": lambda node: _joined(" | ", node.args, _PREFIX),
            "not": lambda node: ["~", (node.args[0], _PREFIX)],
            "piecewise": _piecewise,
            **dict.fromkeys(_RELATIONS, _relation),
        }

    def expand(self, node: Expr, level: int) -> Sequence[Piece]:
        """The pieces of ``node`` where the surroundings bind as strongly as ``level``."""
        if level != _DEFINITION and node in self.repeated:
            if node in self.names:
                return [self.names[node]]
            name = self.names[node] = next(self.fresh)
            return ["(", name, " := ", (node, _DEFINITION), ")"]
        pieces = self.forms.get(node.head, _call)(node)
        return ["(", *pieces, ")"] if self.binds(node) < level else pieces

    def binds(self, node: Expr) -> int:
        """How strongly the text of ``node`` itself binds."""
        head = node.head
        if head == "pow":
            return _PRODUCT if self.is_reciprocal(node) else _POWER
        if head in ("integer", "rational", "float", "mul"):
            if starts_with_minus(node):
                return _NEGATIVE
            return _ATOM if head in ("integer", "float") else _PRODUCT
        return _BINDS.get(head, _ATOM)

    def is_reciprocal(self, node: Expr) -> bool:
        """Whether ``node`` is written as a division.

        Not for the exponent -2, nor for the inverse of an exact number too long to fold: dividing
        by a power, or by such a number, builds another node.
        """
        return (
            node.head == "pow"
            and node.args[1].head == "integer"
            and node.args[1].value == -1
            and node.args[0].head not in EXACT
        )

    def sum(self, node: Expr) -> Sequence[Piece]:
        """Terms with a minus sign are subtracted, except the first."""
        pieces: list[Piece] = [(node.args[0], _SUM)]
        for term in node.args[1:]:
            if term in self.repeated or not is_negative(term):
                pieces += [" + ", (term, _PRODUCT)]
            elif term.head == "mul":
                pieces += [" - ", *self.magnitude(term, _POWER)]
            else:
                pieces += [" - ", _ratio(*(-term.value).as_integer_ratio())]
        return pieces

    def product(self, node: Expr) -> Sequence[Piece]:
        """A coefficient below 0 becomes a minus sign."""
        if not is_negative(node):
            return self.magnitude(node, _NEGATIVE)
        factor, others = coefficient(node)
        # -2.0*x would read back as the float -2.0 times x, which is another node.
        if factor.numerator == -1 and others[0].head == "float":
            return ["-(", *self.magnitude(node, _NEGATIVE), ")"]
        return ["-", *self.magnitude(node, _POWER)]

    def magnitude(self, node: Expr, level: int) -> Sequence[Piece]:
        """A product without the sign of its coefficient; ``level`` binds its first factor."""
        factor, others = coefficient(node)
        over, under = abs(factor).as_integer_ratio()
        divisors = [f for f in others if f not in self.repeated and self.is_reciprocal(f)]
        factors: list[Piece] = [
            (f, _POWER) for f in others if f in self.repeated or not self.is_reciprocal(f)
        ]
        if under != 1 and divisors:
            factors.insert(0, f"({_ratio(over, under)})")
            under = 1
        elif over != 1 or not factors:
            factors.insert(0, integer_text(over))
        else:
            first = factors[0]
            assert not isinstance(first, str)
            factors[0] = (first[0], level)
        pieces = factors[:1]
        for piece in factors[1:]:
            pieces += ["*", piece]
        if under != 1:
            pieces.append("/" + integer_text(under))
        for divisor in divisors:
            pieces += ["/", (divisor.args[0], _POWER)]
        return pieces

    def power(self, node: Expr) -> Sequence[Piece]:
        """Python's ``**``, or a division for the exponent -1."""
        base, exponent = node.args
        if self.is_reciprocal(node):
            return ["1/", (base, _POWER)]
        return [(base, _ATOM), "**", (exponent, _ATOM)]


def _ratio(over: int, under: int) -> str:
    return integer_text(over) if under == 1 else f"{integer_text(over)}/{integer_text(under)}"


def _joined(separator: str, nodes: Sequence[Expr], level: int) -> list[Piece]:
    pieces: list[Piece] = [(nodes[0], level)]
    for node in nodes[1:]:
        pieces += [separator, (node, level)]
    return pieces


def _relation(node: Expr) -> Sequence[Piece]:
    left, right = node.args
    return [(left, _OR), _RELATIONS[node.head], (right, _OR)]


def _piecewise(node: Expr) -> Sequence[Piece]:
    pieces: list[Piece] = ["Piecewise("]
    for value, condition in zip(node.args[::2], node.args[1::2], strict=True):
        pieces += ["(", (value, _ANY), ", ", (condition, _ANY), ")", ", "]
    pieces[-1] = ")"
    return pieces


def _call(node: Expr) -> Sequence[Piece]:
    return [_CALLS.get(node.head, node.head), "(", *_joined(", ", node.args, _ANY), ")"]
