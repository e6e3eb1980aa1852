"""Expressions to programs.

The numerical meaning of an expression is fixed here, for every backend at once:

* exact constants of a sum or product are combined exactly and rounded once;
* a sum is added from left to right in canonical order, a negative term is subtracted;
* a product is one quotient: the factors with positive powers, from left to right, over those with
  negative powers; a coefficient ``1/q`` divides instead of multiplying by a rounded ``1/q``;
* integer exponents stay exact integers (``powi``), 1/2 is a square root, ``E**x`` is ``exp(x)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from alkahest.errors import CodegenError, InputError
from alkahest.expr.walk import postorder
from alkahest.ops import DTYPES, Kind
from alkahest.program.builder import Builder, Value
from alkahest.program.constants import Exact, named

if TYPE_CHECKING:
    from alkahest.expr import Expr
    from alkahest.program.records import Program

_HALF = Fraction(1, 2)
_LARGEST_DENOMINATOR_POWER = 4
"""Higher negative powers stay factors, so that no huge denominator overflows on the way."""


def lower(exprs: Sequence[Expr], inputs: Sequence[Expr], dtype: str = "float64") -> Program:
    """Lower ``exprs`` to one program over ``inputs``, sharing every common subexpression.

    Args:
        exprs: the outputs, numbers or conditions, at least one.
        inputs: distinct symbols; their order is the order of the columns.
        dtype: one of :data:`alkahest.ops.DTYPES`.

    Raises:
        CodegenError: E-JIT-005 naming unbound symbols, E-JIT-006 for a constant out of range,
            E-JIT-010 for an operation without meaning for its operands.
        InputError: E-INPUT-011 for an unknown dtype.
    """
    if dtype not in DTYPES:
        raise InputError("E-INPUT-011", f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    lowering = _Lowering(Builder(dtype, tuple(str(s.value) for s in inputs)), inputs)
    nodes = list(postorder(*exprs))
    bound = set(inputs)
    unbound = [n for n in nodes if n.head == "symbol" and n not in bound]
    if unbound:
        names = ", ".join(repr(n.value) for n in unbound[:8])
        many = "s" if len(unbound) > 1 else ""
        raise CodegenError("E-JIT-005", f"unbound symbol{many} {names}")
    for node in nodes:
        lowering.visit(node)
    return lowering.builder.finish(tuple(lowering.value(e) for e in exprs))


class _Lowering:
    """One pass over the nodes, children first; every node is either exact or a value."""

    def __init__(self, builder: Builder, inputs: Sequence[Expr]) -> None:
        self.builder = builder
        self._values: dict[Expr, Value] = {s: builder.input(i) for i, s in enumerate(inputs)}
        self._exact: dict[Expr, Exact] = {}

    def visit(self, node: Expr) -> None:
        """Lower one node whose children are lowered."""
        if node in self._values:
            return
        exact = self._exact_value(node)
        if exact is not None:
            self._exact[node] = exact
            return
        rule = _RULES.get(node.head)
        if rule is not None:
            self._values[node] = rule(self, node)
        else:
            self._values[node] = self._function(node)

    def value(self, node: Expr) -> Value:
        """The value of a visited node; an exact one becomes a constant here."""
        found = self._values.get(node)
        if found is None:
            found = self._values[node] = self.builder.exact(self._exact[node], _shown(node))
        return found

    def _exact_value(self, node: Expr) -> Exact | None:
        match node.head:
            case "integer" | "rational":
                return Exact.rational(node.value)
            case "constant" if node.value != "I":
                return named(node.value)
            case "add" | "mul" if all(a in self._exact for a in node.args):
                return self._combined(node.head, node.args)
            case "pow" if all(a in self._exact for a in node.args):
                base, exponent = (self._exact[a] for a in node.args)
                n = exponent.fraction
                if n is None or n.denominator != 1 or base.is_zero:
                    return None
                try:
                    return base.power(n.numerator)
                except OverflowError:
                    raise self.builder.out_of_range(_shown(node)) from None
        return None

    def _combined(self, head: str, nodes: Sequence[Expr]) -> Exact:
        total = self._exact[nodes[0]]
        for node in nodes[1:]:
            total = total + self._exact[node] if head == "add" else total * self._exact[node]
        return total

    # Sums

    def _add(self, node: Expr) -> Value:
        exact = [a for a in node.args if a in self._exact]
        terms = [self._signed(a) for a in node.args if a not in self._exact]
        if exact:
            total = self._combined("add", exact)
            negative = total.is_negative
            constant = self.builder.exact(-total if negative else total, _shown(exact[0]))
            if not total.is_zero:
                terms.append((negative, constant))
        if len(terms) > 1 and terms[0][0] and not terms[1][0]:
            terms[0], terms[1] = terms[1], terms[0]  # -a + b is b - a, the same number
        negative, total_value = terms[0]
        if negative:
            total_value = self.builder.apply("neg", total_value)
        for negative, term in terms[1:]:
            total_value = self.builder.apply("sub" if negative else "add", total_value, term)
        return total_value

    def _signed(self, node: Expr) -> tuple[bool, Value]:
        """A term as ``(is subtracted, magnitude)``."""
        if node.head != "mul":
            return False, self.value(node)
        coefficient = self._coefficient(node)
        if not coefficient.is_negative:
            return False, self.value(node)
        return True, self._product(node, -coefficient)

    # Products and powers

    def _mul(self, node: Expr) -> Value:
        coefficient = self._coefficient(node)
        if coefficient.fraction == -1:
            return self.builder.apply("neg", self._product(node, Exact.rational(1)))
        return self._product(node, coefficient)

    def _coefficient(self, node: Expr) -> Exact:
        exact = [a for a in node.args if a in self._exact]
        return self._combined("mul", exact) if exact else Exact.rational(1)

    def _product(self, node: Expr, coefficient: Exact) -> Value:
        """``coefficient`` times the inexact factors of a product, as one quotient."""
        over: list[Value] = []
        under: list[Value] = []
        ratio = coefficient.fraction
        if ratio is not None and abs(ratio.numerator) == 1 and _divides_better(ratio.denominator):
            under.append(self.builder.constant(float(ratio.denominator)))
            coefficient = Exact.rational(ratio.numerator)
        if coefficient.fraction != 1:
            over.append(self.builder.exact(coefficient, _shown(node.args[0])))
        for factor in node.args:
            if factor in self._exact:
                continue
            denominator = self._denominator(factor)
            if denominator is None:
                over.append(self.value(factor))
            else:
                under.append(denominator)
        numerator = self._chain("mul", over) if over else self.builder.constant(1.0)
        if not under:
            return numerator
        return self.builder.apply("div", numerator, self._chain("mul", under))

    def _denominator(self, factor: Expr) -> Value | None:
        """What a factor with a small negative power divides by, or None."""
        if factor.head != "pow":
            return None
        base, exponent = factor.args
        power = self._rational(exponent)
        if power is None or not -_LARGEST_DENOMINATOR_POWER <= power < 0:
            return None
        if power.denominator == 1 or power == -_HALF:
            return self._power(self.value(base), -power)
        return None

    def _pow(self, node: Expr) -> Value:
        base, exponent = node.args
        power = self._rational(exponent)
        if power is not None and (power.denominator == 1 or abs(power) == _HALF):
            return self._power(self.value(base), power)
        if base.head == "constant" and base.value == "E":
            return self.builder.apply("exp", self.value(exponent))
        return self.builder.apply("pow", self.value(base), self.value(exponent))

    def _power(self, base: Value, power: Fraction) -> Value:
        """``base`` to a whole power or to plus or minus one half."""
        apply = self.builder.apply
        if power == 0:
            return self.builder.constant(1.0)
        if power == 1:
            return base
        if power == _HALF:
            return apply("sqrt", base)
        if power == -1:
            return apply("div", self.builder.constant(1.0), base)
        if power == -_HALF:
            return apply("div", self.builder.constant(1.0), apply("sqrt", base))
        return apply("powi", base, parameter=power.numerator)

    def _rational(self, exponent: Expr) -> Fraction | None:
        """An exponent as a rational, whether it was typed exactly or as a float."""
        if exponent in self._exact:
            return self._exact[exponent].fraction
        if exponent.head == "float" and abs(exponent.value) < float("inf"):
            return Fraction(exponent.value)
        return None

    # Everything else

    def _chain(self, op: str, values: Sequence[Value]) -> Value:
        total = values[0]
        for value in values[1:]:
            total = self.builder.apply(op, total, value)
        return total

    def _float(self, node: Expr) -> Value:
        return self.builder.floating(node.value)

    def _boolean(self, node: Expr) -> Value:
        return self.builder.constant(bool(node.value))

    def _imaginary(self, node: Expr) -> Value:
        if not self.builder.is_complex:
            raise CodegenError(
                "E-JIT-010", f"the imaginary unit I needs a complex dtype, not {self.builder.dtype}"
            )
        return self.builder.constant(1j)

    def _piecewise(self, node: Expr) -> Value:
        values = [self.value(v) for v in node.args[::2]]
        conditions = [self.value(c) for c in node.args[1::2]]
        is_complex = any(v.kind is Kind.COMPLEX for v in values)
        chosen = self.builder.nan(Kind.COMPLEX if is_complex else Kind.REAL)
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            known = self.builder.number(condition)
            if known is None:
                chosen = self.builder.apply("select", condition, value, chosen)
            elif known:
                chosen = value
        return chosen

    def _part(self, node: Expr) -> Value:
        """``re``, ``im``, ``conjugate`` and ``arg``, which are simple for real operands."""
        operand = self.value(node.args[0])
        if operand.kind is Kind.COMPLEX:
            return self.builder.apply(node.head, operand)
        match node.head:
            case "im":
                return self.builder.constant(0.0)
            case "arg":
                return self.builder.apply("atan2", self.builder.constant(0.0), operand)
        return operand

    def _function(self, node: Expr) -> Value:
        values = [self.value(a) for a in node.args]
        if node.head in _CHAINED:
            return self._chain(node.head, values)
        return self.builder.apply(node.head, *values)


_CHAINED = frozenset({"min", "max", "and", "or"})

_RULES: Mapping[str, Callable[[_Lowering, Expr], Value]] = {
    "add": _Lowering._add,
    "mul": _Lowering._mul,
    "pow": _Lowering._pow,
    "float": _Lowering._float,
    "boolean": _Lowering._boolean,
    "constant": _Lowering._imaginary,
    "piecewise": _Lowering._piecewise,
    **dict.fromkeys(("re", "im", "conjugate", "arg"), _Lowering._part),
}


def _divides_better(denominator: int) -> bool:
    """Whether dividing by ``denominator`` rounds once where multiplying by 1/it rounds twice."""
    return 1 < denominator <= 2**24 and denominator & (denominator - 1) != 0


def _shown(node: Expr) -> str:
    """A constant in a message; short, since it may have a million digits."""
    if node.head == "integer" and node.value.bit_length() > 1000:
        return f"of {node.value.bit_length()} bits"
    if node.head in ("integer", "rational", "constant"):
        return str(node.value)
    return "expression"
