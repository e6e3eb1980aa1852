"""Splitting a system with finitely many solutions into triangular ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from alkahest.groebner.basis import GroebnerBasis, read_system
from alkahest.groebner.flintpoly import Terms, from_flint, to_flint
from alkahest.groebner.solving import check_rational, make_settings

if TYPE_CHECKING:
    from alkahest.groebner.parametrisation import Parametrisation


def triangularize(
    eqs: Iterable[object],
    vars: Sequence[object] | str,
    *,
    exact_floats: bool = False,
    **settings: Any,
) -> list[GroebnerBasis]:
    """The irreducible parts of a system's solutions, each as a triangular system.

    Each part is a lexicographic basis of a maximal ideal: one polynomial per variable, of which
    the last has only the last variable, the last but one only the last two, and so on; its
    solutions are conjugates. Together the parts have the solutions of the system, each once.

    Args:
        eqs: equations, or expressions that are to vanish; see :meth:`GroebnerBasis.compute`.
        vars: the variables, the largest first.
        exact_floats: take floats as the decimals that they print as.
        settings: as of :func:`alkahest.groebner.solving.solve`.

    Raises:
        SolverError: E-SOLVE-004 when there are infinitely many solutions; others as
            :func:`alkahest.groebner.solving.solve`.
    """
    from alkahest.groebner.parametrisation import Parametrisation

    chosen = make_settings(settings)
    ring, terms = read_system(eqs, vars, "grevlex", None, exact_floats=exact_floats)
    check_rational(ring)
    basis = GroebnerBasis.of_ideal(ring, terms, chosen)
    if basis.is_unit():
        return []
    found = Parametrisation.of(basis, chosen.until)
    own: list[Terms] = [dict(element.terms()) for element in basis]
    parts = []
    for factor, multiplicity in found.multiplicities:
        generators: list[Terms] = own
        if len(found.multiplicities) > 1 or multiplicity > 1:
            generators = [*own, *_component(basis, found, factor)]
        parts.append(GroebnerBasis.of_ideal(ring.ordered("lex"), generators, chosen))
    return sorted(parts, key=lambda part: (part.degree(), str(list(part))))


def _component(basis: GroebnerBasis, found: Parametrisation, factor: Any) -> list[Terms]:
    """What the solutions at the roots of ``factor`` satisfy besides the system.

    They are the zeros of the factor at u, and there each x_i is a polynomial in u.
    """
    import flint

    ring = basis.ring
    gens = [
        to_flint({tuple(int(i == k) for i in range(ring.n)): 1}, ring.n, ring.field)
        for k in range(ring.n)
    ]
    u = sum((c * x for c, x in zip(found.form, gens, strict=True)), gens[0] * 0)
    modulus = flint.fmpq_poly(factor)
    _, inverse, _ = found.polynomial.derivative().xgcd(modulus)
    conditions = [_at(factor, u)]
    for x, numerator in zip(gens, found.numerators, strict=True):
        conditions.append(x - _at(numerator * inverse % modulus, u))
    return [from_flint(condition, ring.field) for condition in conditions]


def _at(polynomial: Any, u: Any) -> Any:
    """A polynomial in one variable at a polynomial in several."""
    import flint

    total = u * 0
    for c in reversed(flint.fmpq_poly(polynomial).coeffs()):
        total = total * u + c
    return total


__all__ = ["triangularize"]
