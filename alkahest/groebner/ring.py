"""The ring that polynomials live in: variables, field and order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import InputTypeError, PoolError, SolverError
from alkahest.expr import Expr
from alkahest.groebner.fields import QQ, Coefficient, Field
from alkahest.groebner.flintpoly import Exponents, Terms
from alkahest.groebner.orders import Order, order_of

MAX_EXPONENT = 2**31 - 1
"""The largest exponent, and the largest total degree, that a term may have."""


@attrs.frozen
class Ring:
    """Polynomials in ``variables`` over ``field``.

    Attributes:
        variables: names, the largest first.
        field: :data:`~alkahest.groebner.fields.QQ` or a :class:`~alkahest.groebner.fields.GF`.
        order: of the monomials; how terms are sorted. It takes no part in equality of polynomials.
        symbols: what polynomials are converted back to: symbols of one pool, or None.
    """

    variables: tuple[str, ...]
    field: Field
    order: Order
    symbols: tuple[Expr, ...] | None = attrs.field(default=None, eq=False)

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.variables)

    def over(self, field: Field) -> Ring:
        """This ring with another field."""
        return attrs.evolve(self, field=field)

    def ordered(self, order: object) -> Ring:
        """This ring with another order; E-SOLVE-008 for one that there is not."""
        return attrs.evolve(self, order=order_of(order, self.n))

    def only(self, kept: Sequence[int], order: str = "grevlex") -> Ring:
        """The ring in the variables with the indices ``kept``."""
        return Ring(
            tuple(self.variables[i] for i in kept),
            self.field,
            order_of(order, len(kept)),
            None if self.symbols is None else tuple(self.symbols[i] for i in kept),
        )

    def with_first(self, order: Order) -> Ring:
        """This ring with one more variable in front, of a name that is not taken."""
        name = "t"
        while name in self.variables:
            name += "_"
        symbols = None
        if self.symbols is not None:
            symbols = (self.symbols[0].pool.symbol(name), *self.symbols)
        return Ring((name, *self.variables), self.field, order, symbols)

    def index(self, variable: object) -> int:
        """Index of a variable, given by name, symbol or number.

        Raises:
            SolverError: E-SOLVE-009 for one that is not in the ring.
        """
        if isinstance(variable, int) and not isinstance(variable, bool):
            if 0 <= variable < self.n:
                return variable
        elif (name := name_of(variable)) in self.variables:
            return self.variables.index(name)
        raise SolverError(
            "E-SOLVE-009",
            f"{variable} is no variable of the system",
            remediation=f"The variables are {', '.join(self.variables)}.",
        )

    def arrays(self, terms: Terms) -> tuple[NDArray[np.uint32], tuple[Coefficient, ...]]:
        """Exponents, uint32 of shape ``(terms, n)``, and coefficients, in descending order."""
        listed = list(terms)
        exponents = np.array(listed, dtype=np.uint32).reshape(len(listed), self.n)
        places = self.order.descending(exponents)
        return exponents[places], tuple(terms[listed[i]] for i in places)


def ring_of(variables: object, field: Field = QQ, order: object = "grevlex") -> Ring:
    """The ring in ``variables``: symbols of alkahest or SymPy, names, or one text of names.

    Raises:
        InputTypeError: E-INPUT-008 for what is no list of these.
        PoolError: E-POOL-001 for symbols of different pools.
        SolverError: E-SOLVE-008 for an unknown order, E-SOLVE-009 for no variable or one that is
            listed twice.
    """
    if isinstance(variables, str):
        variables = variables.replace(",", " ").split()
    if not isinstance(variables, Sequence):
        raise InputTypeError(
            "E-INPUT-008",
            f"vars must be a list or tuple of symbols, not {type(variables).__name__}",
            remediation="The first variable is the largest, so their order matters.",
        )
    names = tuple(name_of(variable) for variable in variables)
    if not names:
        raise SolverError("E-SOLVE-009", "vars lists no variable")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SolverError(
                "E-SOLVE-009", f"variable {name!r} is listed twice", remediation="List it once."
            )
    symbols = tuple(v for v in variables if isinstance(v, Expr))
    if len({id(symbol.pool) for symbol in symbols}) > 1:
        raise PoolError("E-POOL-001", "vars lists symbols of different pools")
    complete = symbols if len(symbols) == len(names) else None
    return Ring(names, field, order_of(order, len(names)), complete)


def name_of(variable: object) -> str:
    """Name of a variable given as a symbol of alkahest or SymPy, or as a text."""
    if isinstance(variable, str) and variable:
        return variable
    if isinstance(variable, Expr) and variable.head == "symbol":
        return str(variable.value)
    if getattr(variable, "is_Symbol", False):  # SymPy's, without importing it
        return str(variable.name)  # type: ignore[attr-defined]
    raise InputTypeError(
        "E-INPUT-008", f"a variable must be a symbol or its name, not {variable!r}"
    )


def exponent_tuple(exponents: Any, n: int) -> Exponents:
    """Checked exponents of one term.

    Raises:
        InputTypeError: E-INPUT-008 for anything but ``n`` integers.
        SolverError: E-SOLVE-001 for a negative one, E-SOLVE-013 for one that is too large.
    """
    try:
        checked = tuple(map(operator.index, exponents))
    except TypeError:
        checked = ()
    if len(checked) != n:
        raise InputTypeError(
            "E-INPUT-008",
            f"{exponents!r} are not the exponents of {n} variables",
            remediation="Give one integer for each variable, in their order.",
        )
    if min(checked, default=0) < 0:
        raise SolverError(
            "E-SOLVE-001",
            f"exponents {checked}: a negative power",
            remediation="Multiply the polynomial by the variable, or make its reciprocal a variable.",
        )
    check_degree(sum(checked))
    return checked


def check_degree(degree: int) -> None:
    """Refuse a total degree beyond :data:`MAX_EXPONENT` with E-SOLVE-013."""
    if degree > MAX_EXPONENT:
        raise SolverError("E-SOLVE-013", f"a term of degree {degree}; {MAX_EXPONENT} is the most")
