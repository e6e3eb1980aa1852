r"""Expressions as LaTeX mathematics, for people.

Products with negative exponents become fractions, names of Greek letters the letters, ``x_1`` and
``x1`` get a subscript, ``Piecewise`` is the ``cases`` environment. Only amsmath is needed. Parts
that would repeat beyond :data:`alkahest.expr.layout.LARGE_TREE` nodes are named ``s_{1}``, ...
and explained at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from alkahest.errors import InputTypeError
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
from alkahest.expr.tokens import float_text, integer_text

# How strongly notation binds. What layout sets apart (an exponent, half of a fraction, the inside
# of a root or of delimiters) needs no brackets at all.
_DEFINITION, _APART, _LOOSE, _SUM, _NEGATIVE, _PRODUCT, _POWER, _ATOM = range(-1, 7)

_GREEK = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi "
    "pi varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta "
    "Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
_NAME = re.compile(r"([^\W\d_]+)(?:_?(\d+)|_([^\W_]+))?")
_ESCAPES = str.maketrans(
    {c: "\\" + c for c in "{}_$%&#"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)

_RELATIONS = {"lt": "<", "le": r"\leq", "gt": ">", "ge": r"\geq", "eq": "=", "ne": r"\neq"}
_CONNECTIVES = {"and": r" \wedge ", "or": r" \vee "}
_LETTERS = {"pi": r"\pi", "E": "e", "I": "i"}

_CALLS = {
    **{name: "\\" + name for name in "sin cos tan sinh cosh tanh log min max arg".split()},
    **{"a" + name: r"\arc" + name for name in ("sin", "cos", "tan")},
    **{"a" + name: rf"\operatorname{{ar{name}}}" for name in ("sinh", "cosh", "tanh")},
    **{
        name: rf"\operatorname{{{name}}}" for name in "atan2 hypot fma erf erfc round trunc".split()
    },
    "erfinv": r"\operatorname{erf}^{-1}",
    "sign": r"\operatorname{sgn}",
    "re": r"\operatorname{Re}",
    "im": r"\operatorname{Im}",
    "log2": r"\log_{2}",
    "log10": r"\log_{10}",
    "gamma": r"\Gamma",
    "digamma": r"\psi",
    "j0": "J_{0}",
    "j1": "J_{1}",
    "y0": "Y_{0}",
    "y1": "Y_{1}",
}
"""Heads written as a sign and their arguments in brackets."""


class _Around(NamedTuple):
    """Signs before and after the only argument; how the whole binds and what it binds with."""

    before: str
    after: str
    binds: int = _ATOM
    argument: int = _APART


_AROUND = {
    "abs": _Around(r"\left|", r"\right|"),
    "floor": _Around(r"\left\lfloor ", r"\right\rfloor"),
    "ceil": _Around(r"\left\lceil ", r"\right\rceil"),
    "conjugate": _Around(r"\overline{", "}"),
    "sqrt": _Around(r"\sqrt{", "}"),
    "cbrt": _Around(r"\sqrt[3]{", "}"),
    "rsqrt": _Around(r"\frac{1}{\sqrt{", "}}", _PRODUCT),
    "exp": _Around("e^{", "}", _POWER),
    "exp2": _Around("2^{", "}", _POWER),
    "expm1": _Around("e^{", "} - 1", _SUM),
    "log1p": _Around(r"\log\left(1 + ", r"\right)", _POWER, _PRODUCT),
    "lgamma": _Around(r"\log\left|\Gamma\left(", r"\right)\right|", _POWER),
    "not": _Around(r"\neg ", "", _POWER, _ATOM),
}
"""Heads written as signs on both sides of their only argument."""

_BINDS = {
    **dict.fromkeys((*_RELATIONS, *_CONNECTIVES, "mod", "piecewise"), _LOOSE),
    **dict.fromkeys(_CALLS, _POWER),
    **{head: row.binds for head, row in _AROUND.items()},
    "add": _SUM,
}


def latex(expr: Expr) -> str:
    r"""Write ``expr`` as LaTeX, without dollars around it: ``x**2/y`` is ``\frac{x^{2}}{y}``.

    Raises:
        InputTypeError: E-INPUT-008 when ``expr`` is no expression.
    """
    if not isinstance(expr, Expr):
        message = f"latex takes an expression, not {type(expr).__name__}"
        raise InputTypeError("E-INPUT-008", message)
    parts = [part for part in repeated(expr) if part is not expr]
    names = dict(zip(parts, fresh_names(expr, "s_{}"), strict=False)) if parts else {}
    pieces: list[Piece] = [(expr, _APART)]
    for part, name in names.items():
        pieces.append(r",\; " if len(pieces) > 1 else r" \quad\text{where}\quad ")
        pieces += [_symbol_text(name), " = ", (part, _DEFINITION)]
    return write(pieces, _Writer(names).expand)


class _Writer:
    """Knows the names of repeated parts."""

    def __init__(self, names: dict[Expr, str]) -> None:
        self.names = names
        self.forms: dict[str, Callable[[Expr], Sequence[Piece]]] = {
            "symbol": lambda node: [_symbol_text(node.value)],
            "integer": lambda node: [integer_text(node.value)],
            "rational": lambda node: [_fraction_text(node.value)],
            "float": lambda node: [_float_text(node.value)],
            "constant": lambda node: [_LETTERS[node.value]],
            "boolean": lambda node: [rf"\text{{{node.value}}}"],
            "add": self.sum,
            "mul": self.product,
            "pow": self.power,
            "mod": lambda node: [(node.args[0], _PRODUCT), r" \bmod ", (node.args[1], _PRODUCT)],
            "piecewise": _cases,
            **dict.fromkeys(_RELATIONS, _relation),
            **dict.fromkeys(_CONNECTIVES, _connective),
            **dict.fromkeys(_AROUND, _around),
        }

    def expand(self, node: Expr, level: int) -> Sequence[Piece]:
        """The pieces of ``node`` where the surroundings bind as strongly as ``level``."""
        if level != _DEFINITION and node in self.names:
            return [_symbol_text(self.names[node])]
        pieces = self.forms.get(node.head, _call)(node)
        return [r"\left(", *pieces, r"\right)"] if self.binds(node) < level else pieces

    def binds(self, node: Expr) -> int:
        """How strongly the notation of ``node`` itself binds."""
        match node.head:
            case "integer" | "rational" | "float" | "mul" if starts_with_minus(node):
                return _NEGATIVE
            case "rational" | "mul":
                return _PRODUCT
            case "pow":
                return _PRODUCT if self.divides(node) else _POWER
            case "float" if "e" in float_text(node.value):
                return _PRODUCT
        return _BINDS.get(node.head, _ATOM)

    def divides(self, node: Expr) -> bool:
        """Whether ``node`` goes below a fraction's line: an exact negative exponent."""
        return (
            node.head == "pow"
            and node not in self.names
            and node.args[1].head in EXACT
            and node.args[1].value < 0
        )

    def sum(self, node: Expr) -> Sequence[Piece]:
        """Terms with a minus sign are subtracted."""
        pieces: list[Piece] = [(node.args[0], _SUM)]
        for term in node.args[1:]:
            if term in self.names or not is_negative(term):
                pieces += [" + ", (term, _PRODUCT)]
            elif term.head == "mul":
                pieces += [" - ", *self.magnitude(*coefficient(term), _PRODUCT)]
            else:
                pieces += [" - ", _fraction_text(-term.value)]
        return pieces

    def product(self, node: Expr) -> Sequence[Piece]:
        """One fraction at most, with the sign before it."""
        if is_negative(node):
            return ["-", *self.magnitude(*coefficient(node), _PRODUCT)]
        return self.magnitude(*coefficient(node), _NEGATIVE)

    def magnitude(self, factor: Fraction, others: Sequence[Expr], first: int) -> Sequence[Piece]:
        """``abs(factor)`` times the product of ``others``; ``first`` binds what comes first."""
        over, under = abs(factor.numerator), factor.denominator
        above = [f for f in others if not self.divides(f)]
        below = [f for f in others if self.divides(f)]
        if not below and under == 1:
            return self.juxtaposed(over, above, first)
        halves = [
            self.juxtaposed(number, half, _APART if len(half) == 1 else _NEGATIVE)
            for number, half in ((over, above), (under, below))
        ]
        return [r"\frac{", *halves[0], "}{", *halves[1], "}"]

    def juxtaposed(self, number: int, factors: Sequence[Expr], first: int) -> Sequence[Piece]:
        """A number, if it is not 1, and factors side by side; those that divide without minus."""
        pieces: list[Piece] = []
        if number != 1 or not factors:
            pieces.append(integer_text(number))
        for place, factor in enumerate(factors):
            level = _PRODUCT if pieces else first
            if pieces:
                again = place > 0 and factor is factors[place - 1]
                pieces.append(r" \cdot " if again or _starts_with_digit(factor) else " ")
            if not self.divides(factor):
                pieces.append((factor, level))
            elif factor.args[1].value == -1:
                pieces.append((factor.args[0], level))
            else:
                pieces += _raised(factor.args[0], [_ratio_text(-factor.args[1].value)])
        return pieces

    def power(self, node: Expr) -> Sequence[Piece]:
        """A fraction for a negative exponent, else a superscript."""
        base, exponent = node.args
        if self.divides(node):
            return self.magnitude(Fraction(1), [node], _APART)
        if exponent.head in EXACT:
            if exponent.head == "integer" and base.head in _CALLS and base not in self.names:
                sign = _CALLS[base.head]
                if "^" not in sign:
                    return [f"{sign}^{{{integer_text(exponent.value)}}}", *_arguments(base)]
            return _raised(base, [_ratio_text(exponent.value)])
        return _raised(base, [(exponent, _APART)])


def _raised(base: Expr, exponent: Sequence[Piece]) -> list[Piece]:
    return [(base, _ATOM), "^{", *exponent, "}"]


def _arguments(node: Expr) -> list[Piece]:
    pieces: list[Piece] = [r"\left("]
    for arg in node.args:
        pieces += [(arg, _APART), ", "]
    pieces[-1] = r"\right)"
    return pieces


def _call(node: Expr) -> Sequence[Piece]:
    return [_CALLS[node.head], *_arguments(node)]


def _around(node: Expr) -> Sequence[Piece]:
    row = _AROUND[node.head]
    return [row.before, (node.args[0], row.argument), row.after]


def _relation(node: Expr) -> Sequence[Piece]:
    left, right = node.args
    return [(left, _SUM), f" {_RELATIONS[node.head]} ", (right, _SUM)]


def _connective(node: Expr) -> Sequence[Piece]:
    pieces: list[Piece] = []
    for arg in node.args:
        pieces += [(arg, _SUM), _CONNECTIVES[node.head]]
    return pieces[:-1]


def _cases(node: Expr) -> Sequence[Piece]:
    pieces: list[Piece] = [r"\begin{cases} "]
    for value, condition in zip(node.args[::2], node.args[1::2], strict=True):
        otherwise = condition.head == "boolean" and condition.value
        reason: list[Piece] = [r"\text{otherwise}"]
        if not otherwise:
            reason = [r"\text{for}\: ", (condition, _APART)]
        pieces += [(value, _APART), " & ", *reason, r" \\ "]
    pieces[-1] = r" \end{cases}"
    return pieces


def _starts_with_digit(node: Expr) -> bool:
    """Whether ``node``, written behind another factor, would run into it as a number."""
    if node.head == "pow":
        node = node.args[0]
    return node.head in ("integer", "rational", "float", "exp2")


def _symbol_text(name: str) -> str:
    match = _NAME.fullmatch(name)
    if match is None:
        return rf"\text{{{name.translate(_ESCAPES)}}}"
    letter, digits, word = match.groups()
    script = digits or (_word_text(word) if word else "")
    return f"{_word_text(letter)}_{{{script}}}" if script else _word_text(letter)


def _word_text(word: str) -> str:
    if word in _GREEK:
        return "\\" + word
    return word if len(word) == 1 or word.isdecimal() else rf"\mathrm{{{word}}}"


def _fraction_text(value: int | Fraction) -> str:
    sign = "-" if value < 0 else ""
    over, under = integer_text(abs(value.numerator)), integer_text(value.denominator)
    return sign + (over if under == "1" else rf"\frac{{{over}}}{{{under}}}")


def _ratio_text(value: int | Fraction) -> str:
    over, under = value.as_integer_ratio()
    return integer_text(over) if under == 1 else f"{integer_text(over)}/{integer_text(under)}"


def _float_text(value: float) -> str:
    text = float_text(value)
    if text == "nan":
        return r"\text{nan}"
    if text.endswith("oo"):
        return text.replace("oo", r"\infty")
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
