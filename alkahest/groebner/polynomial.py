"""Polynomials as values: equal when their terms are, hashable, immutable, picklable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from alkahest.errors import InputTypeError, SolverError
from alkahest.expr import Expr, ExprPool
from alkahest.expr.numbers import payload
from alkahest.groebner.fields import QQ, Coefficient, Field
from alkahest.groebner.flintpoly import Exponents, Terms, from_flint, to_flint
from alkahest.groebner.reading import common_field, read
from alkahest.groebner.ring import Ring, check_degree, ring_of
from alkahest.groebner.text import text_of

if TYPE_CHECKING:
    from alkahest.groebner.engine.records import EngineBasis


class GbPoly:
    """A polynomial with exact coefficients.

    Args:
        source: an expression or equation of alkahest or SymPy, a text, a number, a mapping
            ``{exponents: coefficient}`` or a list of pairs ``(exponents, coefficient)``.
        vars: the variables, the largest first: symbols, or their names.
        field: ``QQ`` or ``GF(p)``; None is the field that ``source`` carries, else ``QQ``.
        order: of the monomials: ``"grevlex"``, ``"lex"``, ``"grlex"``, ``"elimination(K)"``,
            ``"block(K, ...)"`` or ``"weights(W, ...)"``.
        exact_floats: take floats as the decimals that they print as, instead of refusing them.

    Polynomials are equal when variables, field and terms are, whatever their orders. ``+``, ``-``,
    ``*`` and ``**`` take polynomials of one ring, and numbers; the left operand's order stays.
    Terms are held in arrays, sorted; Python numbers and expressions are made when asked for.

    Raises:
        SolverError: E-SOLVE-001, 005, 006, 007, 008, 009, 013 for what cannot be read.
        InputTypeError, PoolError, ParseError: see :mod:`alkahest.groebner.reading`.
    """

    __slots__ = ("_coefficients", "_exponents", "_hash", "_load", "_ring")

    _ring: Ring
    _exponents: NDArray[np.uint32]
    _coefficients: tuple[Coefficient, ...] | None
    _load: Callable[[], tuple[Coefficient, ...]] | None
    _hash: int | None

    def __init__(
        self,
        source: object,
        vars: Sequence[object] | str,
        field: Field | None = None,
        order: object = "grevlex",
        *,
        exact_floats: bool = False,
    ) -> None:
        ring = ring_of(vars, common_field([source], field), order)
        self._fill(ring, *ring.arrays(read(source, ring, exact_floats=exact_floats)))

    @classmethod
    def from_terms(cls, ring: Ring, terms: Terms) -> GbPoly:
        """From checked terms: coefficients of the field, none zero."""
        return cls._new(ring, *ring.arrays(terms))

    @classmethod
    def from_engine(cls, ring: Ring, basis: EngineBasis, index: int) -> GbPoly:
        """Element ``index`` of a basis in ``ring``, made monic when its coefficients are read."""
        exponents = basis.exponents[basis.offsets[index] : basis.offsets[index + 1]]
        return cls._new(ring, exponents, None, lambda: _monic(basis.integers(index), ring.field))

    @classmethod
    def _new(
        cls,
        ring: Ring,
        exponents: NDArray[np.uint32],
        coefficients: tuple[Coefficient, ...] | None,
        load: Callable[[], tuple[Coefficient, ...]] | None = None,
    ) -> GbPoly:
        self = object.__new__(cls)
        self._fill(ring, exponents, coefficients, load)
        return self

    def _fill(
        self,
        ring: Ring,
        exponents: NDArray[np.uint32],
        coefficients: tuple[Coefficient, ...] | None,
        load: Callable[[], tuple[Coefficient, ...]] | None = None,
    ) -> None:
        exponents = exponents.view()
        exponents.setflags(write=False)
        for name, value in (
            ("_ring", ring),
            ("_exponents", exponents),
            ("_coefficients", coefficients),
            ("_load", load),
            ("_hash", None),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"polynomials are immutable; {name!r} cannot be set")

    # Parts
    @property
    def ring(self) -> Ring:
        """Variables, field and order."""
        return self._ring

    @property
    def field(self) -> Field:
        """The field of the coefficients."""
        return self._ring.field

    @property
    def order(self) -> str:
        """The order that terms are sorted by."""
        return repr(self._ring.order)

    def variables(self) -> tuple[str, ...]:
        """Names of the variables, the largest first."""
        return self._ring.variables

    @property
    def n_vars(self) -> int:
        """Number of variables of the ring."""
        return self._ring.n

    @property
    def n_terms(self) -> int:
        """Number of terms; 0 for the zero polynomial."""
        return len(self._exponents)

    @property
    def is_zero(self) -> bool:
        """Whether this is the zero polynomial."""
        return not len(self._exponents)

    @property
    def is_constant(self) -> bool:
        """Whether no variable occurs."""
        return not self._exponents.any()

    @property
    def exponents(self) -> NDArray[np.uint32]:
        """Exponents of the terms, the largest first: read-only, uint32, ``(n_terms, n_vars)``."""
        return self._exponents

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Coefficients of the terms, in the same order: int, or Fraction that is no integer."""
        if self._coefficients is None:
            assert self._load is not None
            object.__setattr__(self, "_coefficients", self._load())
            object.__setattr__(self, "_load", None)
        assert self._coefficients is not None
        return self._coefficients

    def terms(self) -> list[tuple[Exponents, Coefficient]]:
        """Pairs ``(exponents, coefficient)``, the largest first."""
        return list(zip(map(tuple, self._exponents.tolist()), self.coefficients, strict=True))

    def __iter__(self) -> Iterator[tuple[Exponents, Coefficient]]:
        return iter(self.terms())

    def __len__(self) -> int:
        return self.n_terms

    def __bool__(self) -> bool:
        return not self.is_zero

    def coefficient(self, exponents: Sequence[int]) -> Coefficient:
        """Coefficient of a monomial, 0 where it does not occur."""
        (places,) = np.nonzero((self._exponents == np.asarray(exponents)).all(axis=1))
        return self.coefficients[places[0]] if len(places) else 0

    @property
    def leading_monomial(self) -> Exponents:
        """Exponents of the largest term; E-SOLVE-003 for the zero polynomial."""
        self._need_terms()
        return tuple(self._exponents[0].tolist())

    @property
    def leading_coefficient(self) -> Coefficient:
        """Coefficient of the largest term; E-SOLVE-003 for the zero polynomial."""
        self._need_terms()
        return self.coefficients[0]

    @property
    def leading_term(self) -> GbPoly:
        """The largest term; E-SOLVE-003 for the zero polynomial."""
        self._need_terms()
        return GbPoly._new(self._ring, self._exponents[:1], self.coefficients[:1])

    def _need_terms(self) -> None:
        if self.is_zero:
            raise SolverError(
                "E-SOLVE-003", "the zero polynomial has no leading term", remediation="Ask is_zero."
            )

    def degree(self, variable: object = None) -> int:
        """Total degree, or the degree in one variable; -1 for the zero polynomial.

        Raises:
            SolverError: E-SOLVE-009 for a variable that is not in the ring.
        """
        if variable is None:
            totals = self._exponents.astype(np.int64).sum(axis=1)
        else:
            totals = self._exponents[:, self._ring.index(variable)]
        return int(totals.max()) if len(totals) else -1

    def monic(self) -> GbPoly:
        """The multiple whose leading coefficient is 1; zero stays zero."""
        if self.is_zero or self.leading_coefficient == 1:
            return self
        scaled = _monic(self.coefficients, self.field)
        return GbPoly._new(self._ring, self._exponents, scaled)

    def ordered(self, order: object) -> GbPoly:
        """The same polynomial with its terms sorted by another order."""
        return self.within(self._ring.ordered(order))

    def within(self, ring: Ring) -> GbPoly:
        """The same polynomial in a ring with the same variables and field."""
        if ring == self._ring:
            return self
        return GbPoly.from_terms(ring, dict(self.terms()))

    # Arithmetic
    def _operand(self, other: object) -> GbPoly | None:
        if isinstance(other, GbPoly):
            if (other.variables(), other.field) != (self.variables(), self.field):
                raise SolverError(
                    "E-SOLVE-015",
                    f"a polynomial in {', '.join(other.variables())} over {other.field} meets "
                    f"one in {', '.join(self.variables())} over {self.field}",
                )
            return other
        if payload(other) is None:
            return None
        return GbPoly.from_terms(self._ring, read(other, self._ring))

    def _combined(self, other: object, operation: Callable[[Any, Any], Any]) -> Any:
        right = self._operand(other)
        if right is None:
            return NotImplemented
        result = operation(self._flint(), right._flint())
        return GbPoly.from_terms(self._ring, from_flint(result, self.field))

    def _flint(self) -> Any:
        return to_flint(dict(self.terms()), self.n_vars, self.field)

    def __add__(self, other: object) -> GbPoly:
        return self._combined(other, lambda a, b: a + b)  # type: ignore[no-any-return]

    __radd__ = __add__

    def __sub__(self, other: object) -> GbPoly:
        return self._combined(other, lambda a, b: a - b)  # type: ignore[no-any-return]

    def __rsub__(self, other: object) -> GbPoly:
        return self._combined(other, lambda a, b: b - a)  # type: ignore[no-any-return]

    def __mul__(self, other: object) -> GbPoly:
        right = self._operand(other)
        if right is None:
            return NotImplemented
        check_degree(max(self.degree(), 0) + max(right.degree(), 0))
        return self._combined(right, lambda a, b: a * b)  # type: ignore[no-any-return]

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> GbPoly:
        if isinstance(exponent, bool) or not isinstance(exponent, int) or exponent < 0:
            raise InputTypeError(
                "E-INPUT-008", f"the exponent must be an integer from 0 on, not {exponent!r}"
            )
        check_degree(max(self.degree(), 0) * exponent)
        return GbPoly.from_terms(self._ring, from_flint(self._flint() ** exponent, self.field))

    def __neg__(self) -> GbPoly:
        negated = tuple(self.field.coerce(-c) for c in self.coefficients)
        return GbPoly._new(self._ring, self._exponents, negated)

    def __pos__(self) -> GbPoly:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GbPoly):
            return NotImplemented
        if (self.variables(), self.field, self.n_terms) != (
            other.variables(),
            other.field,
            other.n_terms,
        ):
            return False
        other = other.ordered(self._ring.order)
        same = np.array_equal(self._exponents, other._exponents)
        return bool(same) and self.coefficients == other.coefficients

    def __hash__(self) -> int:
        if self._hash is None:
            value = hash((self.variables(), self.field, frozenset(self.terms())))
            object.__setattr__(self, "_hash", value)
        assert self._hash is not None
        return self._hash

    def __call__(self, *values: Any, **named: Any) -> Any:
        """The value at a point: one number per variable, by place or by name."""
        point = dict(zip(self.variables(), values, strict=False)) | named
        if len(values) + len(named) != self.n_vars or set(point) != set(self.variables()):
            raise InputTypeError(
                "E-INPUT-008", f"a value is needed for each of {', '.join(self.variables())}"
            )
        at = [point[name] for name in self.variables()]
        total: Any = 0
        for exponents, coefficient in self.terms():
            total = total + reduce(
                mul, (v**e for v, e in zip(at, exponents, strict=True) if e), coefficient
            )
        return self.field.coerce(total) if isinstance(total, int | Fraction) else total

    # Other forms
    def __str__(self) -> str:
        return text_of(self.terms(), self.variables())

    def __repr__(self) -> str:
        return str(self)

    def to_expr(self, pool: ExprPool | None = None) -> Expr:
        """The polynomial as an expression.

        Args:
            pool: where to build it; None is the pool of the symbols that the variables were given
                as, or the default pool.
        """
        from alkahest.expr import default_pool

        symbols = self._ring.symbols
        if symbols is None or (pool is not None and symbols[0].pool is not pool):
            target = pool or default_pool()
            symbols = tuple(target.symbol(name) for name in self.variables())
        target = symbols[0].pool
        return target.add(
            target.mul(
                [c, *(target.pow(s, e) for s, e in zip(symbols, exponents, strict=True) if e)]
            )
            for exponents, c in self.terms()
        )

    def to_sympy(self) -> Any:
        """The polynomial as ``sympy.Poly``."""
        import sympy

        gens = sympy.symbols(self.variables())
        domain = (
            sympy.QQ if self.field == QQ else sympy.GF(self.field.characteristic, symmetric=False)
        )
        terms = {e: domain(c.numerator, c.denominator) if self.field == QQ else c for e, c in self}
        return sympy.Poly.from_dict(terms or {(0,) * self.n_vars: 0}, *gens, domain=domain)

    def __reduce__(self) -> tuple[Any, ...]:
        return GbPoly._new, (self._ring, np.array(self._exponents), self.coefficients)

    def __copy__(self) -> GbPoly:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> GbPoly:
        return self


def _monic(numbers: Sequence[Coefficient], field: Field) -> tuple[Coefficient, ...]:
    if field == QQ:
        lead = numbers[0]
        return tuple(field.coerce(Fraction(number) / lead) for number in numbers)
    inverse = pow(int(numbers[0]), -1, field.characteristic)
    return tuple(int(number) * inverse % field.characteristic for number in numbers)


__all__ = ["GbPoly"]
