"""Polynomials from whatever the caller has.

Read are: expressions and equations of alkahest, expressions, equations and ``Poly`` of SymPy,
texts in the language of :func:`alkahest.parse`, numbers, other
:class:`~alkahest.groebner.polynomial.GbPoly`, mappings ``{exponents: coefficient}`` and lists of
pairs ``(exponents, coefficient)``. They need be neither expanded nor collected; coefficients of
equal monomials add up.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from alkahest.errors import AlkahestError, InputTypeError, PoolError, SolverError
from alkahest.expr import Expr, ExprPool, parse
from alkahest.expr.numbers import payload
from alkahest.expr.walk import postorder
from alkahest.groebner.fields import GF, QQ, Coefficient, Field, field_of
from alkahest.groebner.flintpoly import Exponents, context, from_flint, plain
from alkahest.groebner.ring import Ring, check_degree, exponent_tuple

if TYPE_CHECKING:
    from alkahest.groebner.polynomial import GbPoly

MAX_TERMS = 10_000_000
"""Powers that would expand to more terms than this are refused."""


MAX_BITS = 2**30
"""Powers whose coefficients would have more bits together than this are refused."""


def read(
    source: object, ring: Ring, *, exact_floats: bool = False, label: str = ""
) -> dict[Exponents, Coefficient]:
    """Terms of ``source``: every coefficient in the field's form, none of them zero.

    Args:
        source: see the module's docstring.
        ring: the variables and the field.
        exact_floats: take each float as the decimal that it prints as; otherwise refuse floats.
        label: what messages begin with, for instance ``"polynomial 2"``.

    Raises:
        SolverError: E-SOLVE-001 for what is no polynomial, naming the term; 005 for a denominator
            that is zero in the field; 006 for floats; 009 for a symbol that is no variable; 013
            for exponents or expansions that are too large; 015 for a GbPoly of another ring.
        PoolError: E-POOL-001 for an expression of another pool than the variables.
        ParseError: for a text that is no expression.
        InputTypeError: E-INPUT-008 for anything else.
    """
    with labelled(label):
        return _coerced(_read(source, ring, exact_floats), ring.field)


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Begin the messages of what is raised within by ``label``, if it is not empty."""
    try:
        yield
    except AlkahestError as error:
        if not label:
            raise
        raise type(error)(
            error.code,
            f"{label}: {error.message}",
            remediation=error.remediation,
            span=error.span,
        ) from None


def common_field(sources: Iterable[object], field: Field | None) -> Field:
    """The field to compute over: ``field``, else the one that polynomials carry, else ``QQ``.

    Raises:
        SolverError: E-SOLVE-007 where polynomials carry different fields, or not ``field``.
    """
    found = None if field is None else field_of(field)
    for source in sources:
        own = _own_field(source)
        if own is None or own == found:
            continue
        if found is not None:
            raise SolverError(
                "E-SOLVE-007",
                f"{_shown(source)} is over {own}, not over {found}",
                remediation="Pass polynomials over one field, and no other field=.",
            )
        found = own
    return QQ if found is None else found


def _own_field(source: object) -> Field | None:
    from alkahest.groebner.polynomial import GbPoly

    if isinstance(source, GbPoly):
        return source.field
    if getattr(source, "is_Poly", False):
        domain: Any = source.domain  # type: ignore[attr-defined]
        return GF(int(domain.characteristic())) if domain.is_FiniteField else QQ
    return None


def _read(source: object, ring: Ring, exact_floats: bool) -> Mapping[Exponents, Coefficient]:
    from alkahest.groebner.polynomial import GbPoly

    if isinstance(source, GbPoly):
        return _from_gbpoly(source, ring)
    if isinstance(source, str):
        pool = ring.symbols[0].pool if ring.symbols else ExprPool()
        source = parse(source, pool, [pool.symbol(name) for name in ring.variables])
    if isinstance(source, Expr):
        return from_flint(_Expansion(ring, exact_floats).of_expr(source), QQ)
    if getattr(source, "is_Poly", False):
        return _from_sympy_poly(source, ring, exact_floats)
    if type(source).__module__.partition(".")[0] == "sympy":
        return from_flint(_Expansion(ring, exact_floats).of_sympy(source), QQ)
    if isinstance(source, Mapping):
        return _from_pairs(source.items(), ring, exact_floats)
    if payload(source) is not None:
        return {(0,) * ring.n: _number(source, exact_floats)}
    if isinstance(source, Sequence):
        return _from_pairs(source, ring, exact_floats)
    raise InputTypeError(
        "E-INPUT-008",
        f"{type(source).__name__} {_shown(source)} is no polynomial",
        remediation="Pass an expression, a text, or a mapping from exponents to coefficients.",
    )


def _coerced(terms: Mapping[Exponents, Coefficient], field: Field) -> dict[Exponents, Coefficient]:
    return {e: number for e, c in terms.items() if (number := field.coerce(c))}


def _from_gbpoly(source: GbPoly, ring: Ring) -> Mapping[Exponents, Coefficient]:
    if source.field != ring.field:
        raise SolverError(
            "E-SOLVE-015", f"{_shown(source)} is over {source.field}, not {ring.field}"
        )
    terms = dict(source.terms())
    if source.variables() == ring.variables:
        return terms
    used = [i for i in range(source.n_vars) if any(e[i] for e in terms)]
    places = {i: ring.index(source.variables()[i]) for i in used}
    moved: dict[Exponents, Coefficient] = {}
    for exponents, coefficient in terms.items():
        new = [0] * ring.n
        for old, place in places.items():
            new[place] = exponents[old]
        moved[tuple(new)] = coefficient
    return moved


def _from_sympy_poly(
    source: Any, ring: Ring, exact_floats: bool
) -> Mapping[Exponents, Coefficient]:
    """Through generators and coefficients; symmetric residues are reduced by the caller."""
    places = [ring.index(gen) for gen in source.gens]
    total: dict[Exponents, Coefficient] = {}
    for exponents, coefficient in source.terms():
        new = [0] * ring.n
        for place, exponent in zip(places, exponents, strict=True):
            new[place] += int(exponent)
        constant = _Expansion(ring, exact_floats).of_sympy(coefficient)
        for shift, number in from_flint(constant, QQ).items():
            key = tuple(map(operator.add, new, shift))
            total[key] = total.get(key, 0) + number
    return total


def _from_pairs(
    pairs: Iterable[Any], ring: Ring, exact_floats: bool
) -> Mapping[Exponents, Coefficient]:
    total: dict[Exponents, Coefficient] = {}
    for pair in pairs:
        try:
            exponents, coefficient = pair
        except (TypeError, ValueError):
            raise InputTypeError(
                "E-INPUT-008", f"{pair!r} is no pair (exponents, coefficient)"
            ) from None
        key = exponent_tuple(exponents, ring.n)
        total[key] = total.get(key, 0) + _number(coefficient, exact_floats)
    return total


def _number(value: object, exact_floats: bool) -> Coefficient:
    """An exact number.

    Raises:
        InputTypeError: E-INPUT-008 for what is no number.
        SolverError: E-SOLVE-006 for floats that are refused, infinite or nan.
    """
    number = payload(value)
    match number:
        case int() | Fraction():
            return number
        case float() if not math.isfinite(number):
            raise SolverError("E-SOLVE-006", f"coefficient {number} is no number to compute with")
        case float() if exact_floats:
            # The decimal that the user wrote, where it has at most 15 digits.
            return Fraction(repr(number))
        case float():
            raise SolverError("E-SOLVE-006", f"coefficient {number!r} is a float")
        case None:
            return _of_flint(value)
    raise SolverError("E-SOLVE-006", f"coefficient {number} is complex")


def _of_flint(value: Any) -> Coefficient:
    """A number of FLINT, which registers with no abstract class; E-INPUT-008 for anything else."""
    if type(value).__module__.partition(".")[0] == "flint":
        if hasattr(value, "p") and hasattr(value, "q"):
            return plain(value)
        if hasattr(value, "__index__"):
            return operator.index(value)
    raise InputTypeError("E-INPUT-008", f"coefficient {_shown(value)} is no number")


class _Expansion:
    """Expanding expressions to polynomials of FLINT over the rationals.

    Reading goes over the rationals whatever the field, since only the expanded coefficient decides
    whether a denominator vanishes in it.
    """

    def __init__(self, ring: Ring, exact_floats: bool) -> None:
        self.ring = ring
        self.exact_floats = exact_floats
        self.ctx = context(ring.n, 0)
        self.gens = self.ctx.gens()

    def of_expr(self, expr: Expr) -> Any:
        """``expr``, or the difference of the sides of an equation."""
        self._check_pool(expr)
        if expr.head == "eq":
            left, right = expr.args
            return self.of_expr(left) - self.of_expr(right)
        results: dict[Expr, Any] = {}
        for node in postorder(expr):
            results[node] = self._node(node, [results[a] for a in node.args])
        return results[expr]

    def _check_pool(self, expr: Expr) -> None:
        if self.ring.symbols and self.ring.symbols[0].pool is not expr.pool:
            raise PoolError("E-POOL-001", f"{_shown(expr)} is of another pool than the variables")

    def _node(self, node: Expr, args: list[Any]) -> Any:
        match node.head:
            case "integer" | "rational" | "float":
                return self.constant(_number(node.value, self.exact_floats))
            case "symbol":
                return self.variable(str(node.value))
            case "add":
                return sum(args[1:], args[0])
            case "mul":
                return self.product(args, node)
            case "pow" if node.args[1].head == "integer":
                return self.power(args[0], node.args[1].value, node)
        raise self.refusal(node)

    def of_sympy(self, expr: Any) -> Any:
        """The same for a tree of SymPy."""
        if getattr(expr, "is_Equality", False):
            return self.of_sympy(expr.lhs) - self.of_sympy(expr.rhs)
        if getattr(expr, "is_Symbol", False):
            return self.variable(str(expr.name))
        if getattr(expr, "is_Rational", False):
            return self.constant(Fraction(int(expr.p), int(expr.q)))
        if getattr(expr, "is_Float", False):
            return self.constant(self._sympy_float(expr))
        if getattr(expr, "is_Add", False):
            args = [self.of_sympy(a) for a in expr.args]
            return sum(args[1:], args[0])
        if getattr(expr, "is_Mul", False):
            return self.product([self.of_sympy(a) for a in expr.args], expr)
        if getattr(expr, "is_Pow", False) and getattr(expr.exp, "is_Integer", False):
            return self.power(self.of_sympy(expr.base), int(expr.exp), expr)
        raise self.refusal(expr)

    def _sympy_float(self, expr: Any) -> Coefficient:
        if not expr.is_finite or not self.exact_floats:
            return _number(float(expr), False)
        return Fraction(str(expr))

    def constant(self, number: Coefficient) -> Any:
        """``number`` as a polynomial."""
        import flint

        return self.ctx.constant(flint.fmpq(number.numerator, number.denominator))

    def variable(self, name: str) -> Any:
        """The variable of that name; E-SOLVE-009 where there is none."""
        return self.gens[self.ring.index(name)]

    def product(self, factors: Sequence[Any], node: object) -> Any:
        """The product of polynomials."""
        product = factors[0]
        for factor in factors[1:]:
            _check_size(len(product) * len(factor), node)
            product *= factor
        self._check_degree(product)
        return product

    def power(self, base: Any, exponent: int, node: object) -> Any:
        """``base**exponent``; a negative exponent needs a constant."""
        if base.is_constant() and exponent:
            return self._constant_power(base, exponent, node)
        if exponent < 0:
            raise self.refusal(node)
        terms = 1
        if len(base) > 1:
            terms = math.comb(len(base) + min(exponent, MAX_TERMS) - 1, len(base) - 1)
            _check_size(terms, node)
        check_degree(int(base.total_degree()) * exponent if len(base) else 0)
        self._check_bits(base, exponent, terms, node)
        return base**exponent

    def _constant_power(self, base: Any, exponent: int, node: object) -> Any:
        if base.is_zero():
            if exponent < 0:
                raise SolverError("E-SOLVE-005", f"{_shown(node)} divides by zero")
            return base
        number = base.leading_coefficient()
        if isinstance(self.ring.field, GF):
            return self.ctx.constant(pow(int(number), exponent, self.ring.field.prime))
        self._check_bits(base, abs(exponent), 1, node)
        return self.ctx.constant(number**exponent)

    def _check_bits(self, base: Any, exponent: int, terms: int, node: object) -> None:
        """Refuse powers with more digits than memory holds, for which FLINT ends the process."""
        if not isinstance(self.ring.field, GF) and len(base):
            longest = max(int(c.height_bits()) for c in base.coeffs()) - 1
            bits = terms * exponent * (longest + (len(base) - 1).bit_length())
            if bits > MAX_BITS:
                raise SolverError(
                    "E-SOLVE-013",
                    f"{_shown(node)} would expand to as many as {bits} bits; {MAX_BITS} is the most",
                )

    def _check_degree(self, polynomial: Any) -> None:
        if len(polynomial):
            check_degree(int(polynomial.total_degree()))

    def refusal(self, node: object) -> SolverError:
        """The error for a part that is no polynomial."""
        return SolverError(
            "E-SOLVE-001",
            f"{_shown(node)} is no polynomial in {', '.join(self.ring.variables)}",
            remediation="Only sums, products, whole powers, variables and exact numbers are "
            "polynomials; put a variable in the place of anything else.",
        )


def _check_size(terms: int, node: object) -> None:
    if terms > MAX_TERMS:
        raise SolverError(
            "E-SOLVE-013",
            f"{_shown(node)} would expand to as many as {terms} terms; {MAX_TERMS} is the most",
        )


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
