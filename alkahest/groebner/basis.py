"""Gröbner bases: computing them, asking them, and making others from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from alkahest.errors import InputTypeError, SolverError
from alkahest.expr import Expr, ExprPool
from alkahest.groebner import computing, hilbert
from alkahest.groebner.fields import Field
from alkahest.groebner.flintpoly import Terms
from alkahest.groebner.orders import order_of
from alkahest.groebner.polynomial import GbPoly
from alkahest.groebner.reading import common_field, read
from alkahest.groebner.report import Report
from alkahest.groebner.ring import Ring, ring_of
from alkahest.groebner.settings import Settings

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from alkahest.groebner.engine.records import EngineBasis, ProgressCallback


class GroebnerBasis(Sequence[GbPoly]):
    """The reduced Gröbner basis of an ideal: a sequence of monic :class:`GbPoly`.

    The element with the largest leading monomial comes first. The basis of the zero ideal is
    empty, that of the whole ring is ``[1]``. Bases are equal when ring, order and elements are.
    Made by :meth:`compute`; :attr:`report` says how.
    """

    def __init__(
        self,
        ring: Ring,
        basis: EngineBasis,
        generators: tuple[Terms, ...],
        settings: Settings,
        report: Report,
    ) -> None:
        self._ring = ring
        self._basis = basis
        self._generators = generators
        self._settings = settings
        self._report = report
        self._elements: list[GbPoly | None] = [None] * len(basis)

    @classmethod
    def compute(
        cls,
        polys: Iterable[object],
        vars: Sequence[object] | str,
        order: object = "grevlex",
        field: Field | None = None,
        *,
        device: str | int | None = None,
        executor: Executor | None = None,
        certify: bool = False,
        seed: int | None = None,
        progress: ProgressCallback | None = None,
        fallback: str = "error",
        deadline: float | None = None,
        memory: int | None = None,
        exact_floats: bool = False,
    ) -> GroebnerBasis:
        """The reduced Gröbner basis of the ideal that ``polys`` generate.

        Args:
            polys: expressions, equations, SymPy expressions or ``Poly``, texts, ``GbPoly``,
                mappings ``{exponents: coefficient}`` or lists of pairs.
            vars: the variables, the largest first: symbols, or their names.
            order: ``"grevlex"``, ``"lex"``, ``"grlex"``, ``"elimination(K)"``, ``"block(K, ...)"``
                or ``"weights(W, ...)"``; see :mod:`alkahest.groebner.orders`. Bases under ``lex``
                are converted from ``grevlex`` where there are finitely many solutions.
            field: ``QQ`` or ``GF(p)``; None is the field that the polynomials carry, else ``QQ``.
            device: None for the processor; ``"cuda"`` for the GPUs here, ``"cuda:1"`` or an ordinal
                for one of them, which are then used or refused, never silently replaced;
                ``"auto"`` for whichever is expected to be quicker.
            executor: any ``concurrent.futures.Executor``; computations over the rationals spread
                their primes over it.
            certify: prove a rational result, which costs about as much as computing it. Otherwise
                a fresh prime checks it and ``report.certainty`` is ``"probabilistic"``.
            seed: of the random choices; equal seeds give equal runs, all seeds equal results.
            progress: called with a ``Progress`` between rounds; an exception from it cancels.
            fallback: ``"error"``, or ``"cpu"`` to let the processor do what a GPU failed at.
            deadline: seconds after which to stop with E-SOLVE-012.
            memory: bytes that the computation may use before it stops with E-SOLVE-012.
            exact_floats: take floats as the decimals that they print as, instead of refusing them.

        Raises:
            SolverError: E-SOLVE-001, 005, 006, 007, 009, 013, 015 for polynomials that cannot be
                read, naming polynomial and term; 003 for none; 008 for an unknown order; 010 where
                a GPU failed, or was given matrices over ``GF(2)``; 011 to 014 from the run.
            CudaError: E-CUDA-003 where ``device`` asks for a GPU that is not here, E-CUDA-004 there
                for a prime of more than 31 bits.
            InputError, InputTypeError, PoolError, ParseError: arguments that cannot be meant.
        """
        settings = Settings(
            device=device,
            executor=executor,
            certify=certify,
            seed=seed,
            progress=progress,
            fallback=fallback,
            deadline=deadline,
            memory=memory,
        )
        ring, generators = read_system(polys, vars, order, field, exact_floats=exact_floats)
        return cls.of_ideal(ring, generators, settings)

    @classmethod
    def of_ideal(cls, ring: Ring, generators: Sequence[Terms], settings: Settings) -> GroebnerBasis:
        """The basis of the ideal that ``generators`` span in ``ring``, under its order."""
        if repr(ring.order) == "lex" and not computing.is_basis_already(generators, ring):
            from alkahest.groebner.fglm import lexicographic

            return lexicographic(ring, tuple(generators), settings)
        basis, report = computing.reduced_basis(generators, ring, settings)
        return cls(ring, basis, tuple(generators), settings, report)

    # A sequence of polynomials
    def __len__(self) -> int:
        return len(self._elements)

    @overload
    def __getitem__(self, index: int) -> GbPoly: ...
    @overload
    def __getitem__(self, index: slice) -> list[GbPoly]: ...
    def __getitem__(self, index: int | slice) -> GbPoly | list[GbPoly]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        element = self._elements[place]
        if element is None:
            element = GbPoly.from_engine(self._ring, self._basis, place)
            self._elements[place] = element
        return element

    def __iter__(self) -> Iterator[GbPoly]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroebnerBasis):
            return NotImplemented
        return self._ring == other._ring and self._basis.equals(other._basis)

    def __hash__(self) -> int:
        return hash((self._ring, tuple(self)))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self)) if len(self) <= 12 else f"{len(self)} polynomials"
        return f"GroebnerBasis([{shown}], order={self.order!r}, field={self.field})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Executors and callbacks belong to the process that has them.
        settings = Settings(certify=self._settings.certify, seed=self._settings.seed)
        parts = (self._ring, self._basis, self._generators, settings, self._report)
        return GroebnerBasis, parts

    # What it is
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
        """The order of the monomials."""
        return repr(self._ring.order)

    @property
    def report(self) -> Report:
        """How the basis came about: certainty, rounds, matrix sizes, primes, seconds, devices."""
        return self._report

    @property
    def settings(self) -> Settings:
        """How it was computed, and how bases made from it are, with a deadline from now on."""
        return self._settings.renewed()

    @property
    def engine_basis(self) -> EngineBasis:
        """The basis in arrays."""
        return self._basis

    @property
    def generators(self) -> tuple[GbPoly, ...]:
        """The polynomials that it was computed from."""
        return tuple(GbPoly.from_terms(self._ring, terms) for terms in self._generators)

    @property
    def generator_terms(self) -> tuple[Terms, ...]:
        """The same as mappings from exponents to coefficients."""
        return self._generators

    def variables(self) -> tuple[str, ...]:
        """Names of the variables, the largest first."""
        return self._ring.variables

    def polynomials(self) -> list[GbPoly]:
        """The elements."""
        return list(self)

    def to_exprs(self, pool: ExprPool | None = None) -> list[Expr]:
        """The elements as expressions; see :meth:`GbPoly.to_expr`."""
        return [element.to_expr(pool) for element in self]

    @property
    def leading_monomials(self) -> list[tuple[int, ...]]:
        """Exponents of the leading monomials, the largest first."""
        return [tuple(row) for row in self._basis.leading_exponents().tolist()]

    # The ideal
    def reduce(self, poly: object) -> GbPoly:
        """The normal form: what is left of ``poly`` modulo the ideal, the same for equal residues.

        Raises:
            SolverError and others: as :meth:`compute`, for a ``poly`` that cannot be read.
        """
        (rest,) = computing.normal_forms([read(poly, self._ring)], self._basis, self._ring)
        return rest

    def contains(self, poly: object) -> bool:
        """Whether ``poly`` is in the ideal."""
        return self.reduce(poly).is_zero

    def is_unit(self) -> bool:
        """Whether the ideal is the whole ring, so that the system has no solution at all."""
        return len(self) == 1 and not self._basis.exponents.any()

    def dimension(self) -> int:
        """Dimension of the set of solutions over the algebraic closure; -1 when it is empty."""
        return hilbert.dimension(self._basis.leading_exponents().tolist(), self._ring.n)

    @property
    def is_zero_dimensional(self) -> bool:
        """Whether there are finitely many solutions over the algebraic closure, maybe none."""
        return self.dimension() <= 0

    def hilbert_series(self) -> hilbert.HilbertSeries:
        """The Hilbert series of the residues, by total degree; under any order of the basis."""
        graded = self if self._ring.order.is_graded else self.reordered("grevlex")
        if self.is_zero_dimensional:
            from alkahest.groebner.quotient import standard_monomials

            degrees = standard_monomials(graded).sum(axis=1, dtype=np.int64)
            return hilbert.HilbertSeries(tuple(np.bincount(degrees).tolist()), 0)
        leading = graded._basis.leading_exponents().tolist()
        return hilbert.hilbert_series(leading, self._ring.n)

    def degree(self) -> int:
        """Number of solutions with multiplicity; in positive dimension, the degree of their set."""
        if self.is_zero_dimensional:
            from alkahest.groebner.quotient import standard_monomials

            return len(standard_monomials(self))
        return self.hilbert_series().degree

    def quotient_basis(self) -> list[GbPoly]:
        """The monomials that no leading monomial divides, the smallest first.

        Raises:
            SolverError: E-SOLVE-004 when there are infinitely many.
        """
        from alkahest.groebner.quotient import standard_monomials

        return [
            GbPoly.from_terms(self._ring, {tuple(row): 1})
            for row in standard_monomials(self).tolist()
        ]

    # Other ideals and orders
    def reordered(self, order: object) -> GroebnerBasis:
        """The basis of the same ideal under another order, by :meth:`fglm` where possible."""
        from alkahest.groebner.fglm import convert, is_convertible

        ring = self._ring.ordered(order)
        if ring.order == self._ring.order:
            return self
        if is_convertible(self):
            return convert(self, ring.order)
        if self.order == "grevlex":
            return self.converted_by_degrees(ring, self.generator_terms)
        return GroebnerBasis.of_ideal(ring, self._own_terms(), self.settings)

    def converted_by_degrees(self, ring: Ring, generators: tuple[Terms, ...]) -> GroebnerBasis:
        """The basis of the same ideal in ``ring``, under another order; this one is under grevlex.

        Works in any dimension.
        """
        basis, report = computing.reduced_basis(self._own_terms(), ring, self.settings, self._basis)
        return GroebnerBasis(ring, basis, generators, self.settings, report.after(self._report))

    def fglm(self, order: object = "lex") -> GroebnerBasis:
        """The basis of the same ideal under another order, by linear algebra on the residues.

        Raises:
            SolverError: E-SOLVE-004 when there are infinitely many solutions, E-SOLVE-008.
        """
        from alkahest.groebner.fglm import convert

        return convert(self, order_of(order, self._ring.n))

    def eliminate(self, vars: Sequence[object] | str) -> GroebnerBasis:
        """The basis, under grevlex, of what the ideal says about the other variables alone.

        Always right: a basis whose order does not eliminate ``vars`` is computed anew under one
        that does.

        Args:
            vars: variables to eliminate; at least one is left.

        Raises:
            InputTypeError: E-INPUT-008 for what is no list of variables.
            SolverError: E-SOLVE-009 for a variable that is not in the ring, or for none left.
        """
        names = vars.replace(",", " ").split() if isinstance(vars, str) else vars
        if not isinstance(names, Sequence):
            raise InputTypeError(
                "E-INPUT-008",
                f"vars must be a list or tuple of symbols, not {type(vars).__name__}",
                remediation="Put a single variable into a list.",
            )
        gone = sorted({self._ring.index(variable) for variable in names})
        kept = [i for i in range(self._ring.n) if i not in gone]
        if not kept:
            raise SolverError(
                "E-SOLVE-009", "all variables are to be eliminated", remediation="Leave one."
            )
        from alkahest.groebner.ideals import eliminate

        return eliminate(self, gone, kept)

    def intersect(self, other: GroebnerBasis) -> GroebnerBasis:
        """The basis of the ideal of what lies in both; its zero set is the union.

        Raises:
            InputTypeError: E-INPUT-008 for what is no basis.
            SolverError: E-SOLVE-015 for a basis of another ring.
        """
        from alkahest.groebner.ideals import intersect

        return intersect(self, _same_ring(self, other))

    def saturate(self, poly: object) -> GroebnerBasis:
        """The basis of the polynomials that some power of ``poly`` brings into the ideal.

        Its zero set is the closure of the solutions where ``poly`` is not zero.
        """
        from alkahest.groebner.ideals import saturate

        return saturate(self, read(poly, self._ring))

    # Checks
    def verify(self) -> None:
        """Check, exactly, that this is the reduced Gröbner basis of an ideal with the generators.

        Every generator has to reduce to zero, and so has every S-polynomial that Buchberger's
        criteria do not settle; no term may be divisible by another element's leading monomial. That
        the elements lie in the ideal is not checked; ``certify=True`` proves that as well.

        Raises:
            SolverError: E-SOLVE-014 naming what fails.
        """
        from alkahest.groebner.verification import verify

        verify(self, self._generators)

    def _own_terms(self) -> tuple[Terms, ...]:
        return tuple(dict(element.terms()) for element in self)


def read_system(
    polys: Iterable[object],
    vars: Sequence[object] | str,
    order: object,
    field: Field | None,
    *,
    exact_floats: bool,
) -> tuple[Ring, list[dict[tuple[int, ...], Any]]]:
    """Ring and terms of the polynomials that a caller passed.

    Raises:
        SolverError, InputTypeError, PoolError, ParseError: see :meth:`GroebnerBasis.compute`.
    """
    if isinstance(polys, str | Expr | GbPoly) or not isinstance(polys, Iterable):
        raise InputTypeError(
            "E-INPUT-008",
            f"polys must be a list of polynomials, not {type(polys).__name__}",
            remediation="Put a single polynomial into a list.",
        )
    listed = list(polys)
    if not listed:
        raise SolverError("E-SOLVE-003", "polys lists no polynomial")
    ring = ring_of(vars, common_field(listed, field), order)
    terms = [
        read(poly, ring, exact_floats=exact_floats, label=f"polynomial {place}")
        for place, poly in enumerate(listed, 1)
    ]
    return ring, terms


def _same_ring(basis: GroebnerBasis, other: object) -> GroebnerBasis:
    if not isinstance(other, GroebnerBasis):
        raise InputTypeError(
            "E-INPUT-008", f"a GroebnerBasis is needed, not {type(other).__name__}"
        )
    if (other.variables(), other.field) != (basis.variables(), basis.field):
        raise SolverError(
            "E-SOLVE-015",
            f"a basis in {', '.join(other.variables())} over {other.field} meets one in "
            f"{', '.join(basis.variables())} over {basis.field}",
        )
    return other


__all__ = ["GroebnerBasis", "read_system"]
