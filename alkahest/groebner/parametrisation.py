"""All solutions of a zero-dimensional system as rational functions of the roots of one polynomial.

With a linear form u that takes different values at different solutions, and f the polynomial with
these values as its roots, every coordinate of a solution is g_i(t) / f'(t) at a root t of f: the
rational univariate representation (Rouillier 1999). It is found where the ideal is radical and u
generates its residues; both are proved by f being square-free of full degree modulo one prime. An
ideal that is not radical is made so by adding the square-free parts of the minimal polynomials of
the variables (Seidenberg 1974, lemma 92).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.errors import SolverError
from alkahest.groebner.basis import GroebnerBasis
from alkahest.groebner.engine.limits import Limits
from alkahest.groebner.engine.primes import primes_below
from alkahest.groebner.flintpoly import Exponents, Terms, plain
from alkahest.groebner.lifting import Image, lift
from alkahest.groebner.quotient import Border
from alkahest.groebner.residues import Echelon, form_matrix, times_matrix, times_variable

FORMS_TRIED = 400
"""Linear forms tried before giving up; of few thousand, all but a few separate any solutions."""


@attrs.frozen(kw_only=True, eq=False)
class Parametrisation:
    """The distinct solutions.

    Attributes:
        form: coefficients of the separating linear form, one per variable.
        polynomial: f, a monic square-free ``flint.fmpq_poly``; its degree is the number of
            solutions.
        numerators: g_i, one ``flint.fmpq_poly`` per variable.
        multiplicities: irreducible factors of f, primitive ``flint.fmpz_poly``, each with the
            multiplicity of its solutions.
    """

    form: tuple[int, ...]
    polynomial: Any
    numerators: tuple[Any, ...]
    multiplicities: tuple[tuple[Any, int], ...]

    @classmethod
    def of(cls, basis: GroebnerBasis, until: float | None = None) -> Parametrisation:
        """The solutions of a zero-dimensional basis over the rationals, under any order.

        Args:
            basis: of the system.
            until: reading of :func:`time.monotonic` at which to give up, or None.

        Raises:
            SolverError: E-SOLVE-004 when there are infinitely many, E-SOLVE-012 at the deadline.
        """
        algebra = Residues(basis, until)
        form = algebra.separating_form(basis.ring.n + 4)
        source = algebra
        if form is None:
            source = Residues(radical(algebra), until)
            form = source.separating_form(FORMS_TRIED)
        if form is None:
            raise SolverError("E-SOLVE-014", "no linear form tells the solutions apart")
        polynomial, numerators = source.parametrised(form)
        factors = [factor for factor, _ in polynomial.numer().factor()[1]]
        single = source is algebra
        counted = [(f, 1 if single else algebra.multiplicity(form, f)) for f in factors]
        return cls(
            form=form,
            polynomial=polynomial,
            numerators=numerators,
            multiplicities=tuple(counted),
        )

    def satisfies(self, terms: Terms) -> bool:
        """Whether a polynomial vanishes at every solution, exactly.

        With d the total degree, sum of c * g**e * f'**(d - |e|) has to be divisible by f.
        """
        f, derivative = self.polynomial, self.polynomial.derivative()
        degree = max((sum(e) for e in terms), default=0)
        total = f * 0
        for exponents, c in terms.items():
            product = f * 0 + _fmpq(c)
            powers = zip(
                (*self.numerators, derivative), (*exponents, degree - sum(exponents)), strict=True
            )
            for base, exponent in powers:
                for _ in range(exponent):
                    product = product * base % f
            total += product
        return bool((total % f).is_zero())


class Residues:
    """The residues of a zero-dimensional ideal over the rationals, looked at modulo primes."""

    def __init__(self, basis: GroebnerBasis, until: float | None = None) -> None:
        self.until = until
        self.basis = basis
        self.border = Border.of(basis)
        self.degree = self.border.degree
        self.n = basis.ring.n

    def separating_form(self, tries: int) -> tuple[int, ...] | None:
        """The first form, of ``tries``, that is proved to separate; None where none is.

        Variables by themselves come first, then x_1 + i x_2 + i**2 x_3 + ... for i = 1, 2, ...
        """
        prime, border = self._first_prime()
        forms = [tuple(int(i == k) for i in range(self.n)) for k in reversed(range(self.n))]
        forms += [tuple(i**k for k in range(self.n)) for i in range(1, max(tries - self.n, 0) + 1)]
        for form in forms:
            if self._powers(form, border, prime) is not None:
                return form
        return None

    def parametrised(self, form: Sequence[int]) -> tuple[Any, tuple[Any, ...]]:
        """f and the numerators for a separating form, lifted to the rationals."""
        import flint

        def image(prime: int) -> Image | None:
            border = self.border.residues(self.basis.engine_basis, prime)
            found = None if border is None else self._powers(form, border, prime)
            return None if found is None else np.concatenate(found)

        numbers, _ = lift(image, [self.degree] * (self.n + 1), limits=Limits(deadline=self.until))
        rows = [numbers[k * self.degree : (k + 1) * self.degree] for k in range(self.n + 1)]
        tail, *numerators = [flint.fmpq_poly([_fmpq(c) for c in row]) for row in rows]
        leading = flint.fmpq_poly([0] * self.degree + [1])
        return leading - tail, tuple(numerators)

    def minimal_polynomial(self, variable: int) -> Any:
        """The minimal polynomial of a variable, a monic ``flint.fmpq_poly``.

        Its degree is that modulo the first prime that gives one, and the lift fails for another:
        primes of smaller degree are passed over.
        """
        import flint

        form = tuple(int(i == variable) for i in range(self.n))
        prime, border = self._first_prime()
        degree = len(self._relation(form, border, prime))

        def image(prime: int) -> Image | None:
            border = self.border.residues(self.basis.engine_basis, prime)
            if border is None:
                return None
            relation = self._relation(form, border, prime)
            return relation if len(relation) == degree else None

        numbers, _ = lift(image, [degree], limits=Limits(deadline=self.until))
        return flint.fmpq_poly([*(-_fmpq(c) for c in numbers), 1])

    def multiplicity(self, form: Sequence[int], factor: Any) -> int:
        """How often an irreducible factor divides the characteristic polynomial of ``form``."""
        import flint

        prime, border = self._first_prime()
        rows = self._matrix(form, border, prime)
        matrix = flint.nmod_mat(self.degree, self.degree, rows.reshape(-1).tolist(), prime)
        rest = flint.nmod_poly(matrix.charpoly().coeffs(), prime)
        divisor = flint.nmod_poly([int(c) for c in factor.coeffs()], prime)
        count = 0
        while True:
            quotient, remainder = divmod(rest, divisor)
            if remainder.degree() >= 0:
                return count
            rest, count = quotient, count + 1

    def _first_prime(self) -> tuple[int, NDArray[np.uint64]]:
        for prime in primes_below():
            border = self.border.residues(self.basis.engine_basis, prime)
            if border is not None:
                return prime, border
        raise SolverError("E-SOLVE-011", "every prime divides a leading coefficient")

    def _matrix(
        self, form: Sequence[int], border: NDArray[np.uint64], prime: int
    ) -> NDArray[np.uint64]:
        """Multiplication by a linear form: row j is the residue of its product with b_j."""
        matrix = np.empty((self.degree, self.degree), np.uint64)
        weights = np.array([c % prime for c in form], np.uint64)
        form_matrix(weights, self.border.products, border, matrix, prime)
        return matrix

    def _relation(
        self, form: Sequence[int], border: NDArray[np.uint64], prime: int
    ) -> NDArray[np.uint64]:
        """c with u**d = c[0] + c[1] u + ... for the smallest d there is."""
        echelon = Echelon(self.degree, self.degree, prime)
        return self._krylov(form, border, prime, echelon)

    def _krylov(
        self, form: Sequence[int], border: NDArray[np.uint64], prime: int, echelon: Echelon
    ) -> NDArray[np.uint64]:
        residue, matrix = self._one(), self._matrix(form, border, prime)
        while (relation := echelon.insert(residue)) is None:
            product = np.empty_like(residue)
            times_matrix(residue, matrix, product, prime)
            residue = product
        return relation

    def _one(self) -> NDArray[np.uint64]:
        one = np.zeros(self.degree, np.uint64)
        one[0] = 1
        return one

    def _powers(
        self, form: Sequence[int], border: NDArray[np.uint64], prime: int
    ) -> list[NDArray[np.uint64]] | None:
        """u**D and each g_i in powers of u; None where u does not separate modulo ``prime``."""
        import flint

        echelon = Echelon(self.degree, self.degree, prime)
        relation = self._krylov(form, border, prime, echelon)
        if len(relation) < self.degree:
            return None
        f = flint.nmod_poly([*(-int(c) % prime for c in relation), 1], prime)
        derivative = f.derivative()
        if f.gcd(derivative).degree() > 0:
            return None
        rows = [relation]
        for variable in range(self.n):
            residue = np.empty(self.degree, np.uint64)
            lines = self.border.products[variable]
            times_variable(self._one(), lines, border, residue, prime)
            powers = echelon.insert(residue)
            assert powers is not None  # the powers of u span everything
            g = flint.nmod_poly(powers.tolist(), prime) * derivative % f
            row = np.zeros(self.degree, np.uint64)
            row[: g.degree() + 1] = [int(c) for c in g.coeffs()]
            rows.append(row)
        return rows


def radical(algebra: Residues) -> GroebnerBasis:
    """The basis of the radical, under the same order.

    Raises:
        SolverError: E-SOLVE-014 if a lifted minimal polynomial is not in the ideal.
    """
    basis = algebra.basis
    more: list[Terms] = []
    for i in range(basis.ring.n):
        minimal = algebra.minimal_polynomial(i)
        terms = {_power(i, k, basis.ring.n): plain(c) for k, c in enumerate(minimal.coeffs()) if c}
        if basis.settings.certify and not basis.contains(terms):
            raise SolverError(
                "E-SOLVE-014",
                f"a minimal polynomial of {basis.ring.variables[i]} was not confirmed",
            )
        free = minimal // minimal.gcd(minimal.derivative())
        more.append(
            {_power(i, k, basis.ring.n): plain(c) for k, c in enumerate(free.coeffs()) if c}
        )
    own = [dict(element.terms()) for element in basis]
    return GroebnerBasis.of_ideal(basis.ring, [*own, *more], basis.settings)


def _power(variable: int, exponent: int, n: int) -> Exponents:
    return tuple(exponent if i == variable else 0 for i in range(n))


def _fmpq(number: int | Fraction) -> Any:
    import flint

    return flint.fmpq(number.numerator, number.denominator)


__all__ = ["Parametrisation", "Residues", "radical"]
