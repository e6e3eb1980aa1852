"""Solving polynomial systems with finitely many solutions, with certified enclosures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.errors import InputError, InputTypeError, SolverError
from alkahest.groebner.basis import GroebnerBasis, read_system
from alkahest.groebner.enclosures import (
    MOST_BITS,
    Coordinate,
    ImpreciseError,
    nearest_float,
    precision,
    roots,
    square_free_root,
)
from alkahest.groebner.fields import QQ
from alkahest.groebner.flintpoly import plain
from alkahest.groebner.ring import Ring
from alkahest.groebner.settings import Settings

if TYPE_CHECKING:
    from alkahest.groebner.parametrisation import Parametrisation
    from alkahest.groebner.report import Report

DOMAINS = ("real", "complex")


class Solution(Mapping[str, Coordinate]):
    """One solution: a :class:`Coordinate` for each variable, by name or by symbol.

    Attributes:
        multiplicity: how often it counts among the ``degree()`` solutions of the basis.
        is_real: whether every coordinate is real.
    """

    def __init__(
        self, ring: Ring, coordinates: Sequence[Coordinate], multiplicity: int, is_real: bool
    ) -> None:
        self._ring = ring
        self._coordinates = tuple(coordinates)
        self.multiplicity = multiplicity
        self.is_real = is_real

    def __getitem__(self, variable: object) -> Coordinate:
        try:
            return self._coordinates[self._ring.index(variable)]
        except SolverError as error:
            raise KeyError(variable) from error
        except InputTypeError as error:
            raise KeyError(variable) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._ring.variables)

    def __len__(self) -> int:
        return len(self._coordinates)

    def coordinates(self) -> tuple[Coordinate, ...]:
        """The coordinates, in the order of the variables."""
        return self._coordinates

    def to_floats(self) -> tuple[float, ...] | tuple[complex, ...]:
        """The coordinates rounded: floats for a real solution, else complex numbers.

        Numbers beyond the largest float become infinities.
        """
        if self.is_real:
            return tuple(float(value) for value in self._coordinates)
        return tuple(complex(value) for value in self._coordinates)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solution):
            return NotImplemented
        mine = (self._ring, self._coordinates, self.multiplicity)
        return mine == (other._ring, other._coordinates, other.multiplicity)

    def __hash__(self) -> int:
        return hash((self._ring, self._coordinates, self.multiplicity))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {value}" for name, value in self.items())
        times = f" with multiplicity {self.multiplicity}" if self.multiplicity > 1 else ""
        return f"<{shown}{times}>"


class Solutions(Sequence[Solution]):
    """The solutions of a system, in a fixed order: by coordinates, real ones first.

    Attributes:
        basis: the Gröbner basis that they were read off; its ``report`` says where that ran.
        certainty: ``"certified"`` when the basis is and every solution was put into every equation
            exactly; else ``"probabilistic"``. The boxes are certified in either case, as
            those of the roots of the polynomials found.
    """

    def __init__(self, found: Iterable[Solution], basis: GroebnerBasis, certainty: str) -> None:
        self._found = list(found)
        self.basis = basis
        self.certainty = certainty

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    @property
    def report(self) -> Report:
        """How the basis came about."""
        return self.basis.report

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self._found))}]"


def solve(
    eqs: Iterable[object],
    vars: Sequence[object] | str,
    domain: str = "real",
    *,
    digits: int = 15,
    exact_floats: bool = False,
    **settings: Any,
) -> Solutions:
    """All solutions of a polynomial system over the rationals that has finitely many.

    Args:
        eqs: equations, or expressions that are to vanish; all that
            :meth:`GroebnerBasis.compute` reads.
        vars: the variables.
        domain: ``"real"`` for the real solutions, ``"complex"`` for all.
        digits: decimal digits, after the point and relative to 1 or the number's size, that every
            box is narrower than.
        exact_floats: take floats as the decimals that they print as.
        settings: ``device``, ``executor``, ``certify``, ``seed``, ``progress``, ``fallback``,
            ``deadline`` and ``memory`` of :meth:`GroebnerBasis.compute`.

    Returns:
        The distinct solutions with multiplicities, each coordinate enclosed in a box that no two
        solutions share all of; exact where it is rational or has one square root. An empty sequence
        for a system without solutions in the domain.

    Raises:
        SolverError: E-SOLVE-004 when there are infinitely many solutions over the complex numbers,
            E-SOLVE-007 for polynomials over a finite field; others as
            :meth:`GroebnerBasis.compute`.
        InputError: E-INPUT-011 for another domain or no positive number of digits.
    """
    if domain not in DOMAINS:
        raise InputError(
            "E-INPUT-011",
            f"domain must be 'real' or 'complex', not {domain!r}",
            remediation="Pass domain='real' or domain='complex'.",
        )
    if isinstance(digits, bool) or not isinstance(digits, int) or digits < 1:
        raise InputError(
            "E-INPUT-011",
            f"digits must be a positive integer, not {digits!r}",
            remediation="Pass the number of decimal digits.",
        )
    from alkahest.groebner.parametrisation import Parametrisation

    chosen = make_settings(settings)
    ring, terms = read_system(eqs, vars, "grevlex", None, exact_floats=exact_floats)
    check_rational(ring)
    basis = GroebnerBasis.of_ideal(ring, terms, chosen)
    if basis.is_unit():
        return Solutions([], basis, basis.report.certainty)
    found = Parametrisation.of(basis, chosen.until)
    certainty = "probabilistic"
    if chosen.certify:
        for place, equation in enumerate(terms, 1):
            if not found.satisfies(equation):
                raise SolverError("E-SOLVE-014", f"a solution does not satisfy equation {place}")
        certainty = basis.report.certainty
    return Solutions(_points(ring, found, domain == "real", digits), basis, certainty)


def make_settings(options: Mapping[str, Any]) -> Settings:
    """Settings from keyword arguments; E-INPUT-011 for one that there is not."""
    names = {field.name for field in attrs.fields(Settings) if field.init}
    for name in options:
        if name not in names:
            raise InputError(
                "E-INPUT-011",
                f"there is no option {name!r}",
                remediation=f"The options are {', '.join(sorted(names))}.",
            )
    return Settings(**options)


def check_rational(ring: Ring) -> None:
    """Refuse a system over a finite field: E-SOLVE-007."""
    if ring.field != QQ:
        raise SolverError(
            "E-SOLVE-007",
            f"systems are solved over the rationals, not over {ring.field}",
            remediation="Compute a GroebnerBasis; its lex basis holds the solutions in the field.",
        )


def _points(ring: Ring, found: Parametrisation, real: bool, digits: int) -> list[Solution]:
    """The solutions, computed with more and more bits until their boxes are narrow and apart."""
    height = max(int(factor.height_bits()) for factor, _ in found.multiplicities)
    bits = 64 + int(digits * 3.33) + height
    while bits <= MOST_BITS:
        with suppress(ImpreciseError):
            points = [
                point
                for factor, multiplicity in found.multiplicities
                for point in _of_factor(ring, found, factor, multiplicity, real, bits)
            ]
            if all(_is_narrow(p, digits) for p in points) and _are_apart(points):
                return sorted(points, key=_place)
        bits *= 2
    raise SolverError("E-SOLVE-014", f"the solutions were not told apart with {MOST_BITS} bits")


def _of_factor(
    ring: Ring, found: Parametrisation, factor: Any, multiplicity: int, real: bool, bits: int
) -> list[Solution]:
    """The solutions at the roots of one irreducible factor."""
    import flint

    modulus = flint.fmpq_poly(factor)
    derivative = found.polynomial.derivative() % modulus
    numerators = [g % modulus for g in found.numerators]
    constants = [_constant_ratio(g, derivative) for g in numerators]
    if factor.degree() <= 2:
        return _small(ring, factor, numerators, derivative, multiplicity, real, bits)
    solutions = []
    for t in roots(factor, bits, real=real):
        is_real = bool(t.imag.is_zero())
        with precision(bits):
            below = _value(derivative, t)
            coordinates = [
                Coordinate.of_ball(_value(g, t) / below, real=is_real)
                if constant is None
                else Coordinate.of_rational(constant)
                for g, constant in zip(numerators, constants, strict=True)
            ]
        solutions.append(Solution(ring, coordinates, multiplicity, is_real))
    return solutions


def _small(
    ring: Ring,
    factor: Any,
    numerators: Sequence[Any],
    derivative: Any,
    multiplicity: int,
    real: bool,
    bits: int,
) -> list[Solution]:
    """Exact solutions at the roots of a linear or quadratic factor."""
    import flint

    modulus = flint.fmpq_poly(factor)
    _, inverse, _ = derivative.xgcd(modulus)
    lines = [g * inverse % modulus for g in numerators]
    if factor.degree() == 1:
        root = -modulus[0] / modulus[1]
        values = [Coordinate.of_rational(Fraction(plain(line(root)))) for line in lines]
        return [Solution(ring, values, multiplicity, True)]
    c, b, a = (Fraction(plain(modulus[k])) for k in range(3))
    square, n = square_free_root(int(b * b - 4 * a * c))
    if real and n < 0:
        return []
    solutions = []
    for sign in (-1, 1):
        # t = (-b + sign * square * sqrt(n)) / (2 a)
        base, slope = -b / (2 * a), sign * square / (2 * a)
        values = []
        for line in lines:
            p, q = Fraction(plain(line[0])), Fraction(plain(line[1]))
            values.append(_surd(p + q * base, q * slope, n, bits))
        solutions.append(Solution(ring, values, multiplicity, n > 0))
    return solutions


def _surd(a: Fraction, b: Fraction, n: int, bits: int) -> Coordinate:
    """a + b sqrt(n), enclosed."""
    import flint

    if not b:
        return Coordinate.of_rational(a)
    with precision(bits):
        ball = flint.acb(_fmpq(a)) + flint.acb(_fmpq(b)) * flint.acb(n).sqrt()
    if n < 0:
        ball = flint.acb(flint.arb(_fmpq(a)), ball.imag)
    return Coordinate.of_ball(ball, real=n > 0, surd=(a, b, n))


def _fmpq(number: Fraction) -> Any:
    import flint

    return flint.fmpq(number.numerator, number.denominator)


def _value(polynomial: Any, at: Any) -> Any:
    """Horner's rule in balls."""
    import flint

    total = flint.acb(0)
    for k in range(polynomial.degree(), -1, -1):
        total = total * at + flint.acb(polynomial[k])
    return total


def _constant_ratio(numerator: Any, denominator: Any) -> Fraction | None:
    """The number that ``numerator`` is of ``denominator``, or None."""
    if numerator.is_zero():
        return Fraction(0)
    if numerator.degree() != denominator.degree():
        return None
    k = denominator.degree()
    ratio = numerator[k] / denominator[k]
    return Fraction(plain(ratio)) if numerator == denominator * ratio else None


def _is_narrow(point: Solution, digits: int) -> bool:
    return all(
        part.is_narrow(digits)
        for coordinate in point.coordinates()
        for part in (coordinate.real, coordinate.imaginary)
    )


def _are_apart(points: Sequence[Solution]) -> bool:
    """Whether the boxes of any two solutions are disjoint, judged after rounding outwards."""
    if len(points) < 2:
        return True
    parts = [
        [part for c in point.coordinates() for part in (c.real, c.imaginary)] for point in points
    ]
    lower = np.array([[nearest_float(part.lower) for part in row] for row in parts])
    upper = np.array([[nearest_float(part.upper) for part in row] for row in parts])
    lower, upper = np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf)
    touching = np.ones((len(points), len(points)), np.bool_)
    for low, high in zip(lower.T, upper.T, strict=True):
        touching &= (low[:, None] <= high[None, :]) & (low[None, :] <= high[:, None])
    for i, j in np.argwhere(np.triu(touching, 1)):
        pairs = zip(parts[i], parts[j], strict=True)
        if all(a.lower <= b.upper and b.lower <= a.upper for a, b in pairs):
            return False
    return True


def _place(point: Solution) -> tuple[Any, ...]:
    middles = [(c.real.middle, c.imaginary.middle) for c in point.coordinates()]
    return (not point.is_real, *middles)


__all__ = ["Solution", "Solutions", "check_rational", "make_settings", "solve"]
