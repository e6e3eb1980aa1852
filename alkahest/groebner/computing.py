"""Between polynomials and the engine: arrays in, arrays out."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alkahest.errors import CudaError, SolverError
from alkahest.groebner.engine.records import EngineBasis, PolynomialSystem, RunReport
from alkahest.groebner.fields import GF, MAX_PRIME_BITS, Coefficient, Field
from alkahest.groebner.flintpoly import Exponents, Terms
from alkahest.groebner.large_primes import LargeField
from alkahest.groebner.polynomial import GbPoly
from alkahest.groebner.report import Report
from alkahest.groebner.ring import Ring
from alkahest.groebner.settings import Settings, device_ordinal


def reduced_basis(
    polynomials: Sequence[Terms],
    ring: Ring,
    settings: Settings,
    graded: EngineBasis | None = None,
) -> tuple[EngineBasis, Report]:
    """The reduced Gröbner basis of ``polynomials``, computed by the engine as ``settings`` say.

    Args:
        polynomials: what generates the ideal.
        ring: variables, field and order.
        settings: how to compute.
        graded: the basis of the same ideal under grevlex, where it is known.

    Raises:
        SolverError: E-SOLVE-010 to 014 from the run itself; 010 for ``GF(2)`` on a GPU, too.
        CudaError: E-CUDA-003 for a GPU that is not here, E-CUDA-004 there for a prime of more than
            31 bits.
    """
    reducer = settings.reducer()
    if device_ordinal(settings.device) is not None and is_large(ring.field):
        raise CudaError(
            "E-CUDA-004",
            f"device={settings.device!r}: matrices over {ring.field} are not reduced on a GPU",
            remediation="Primes of at most 31 bits are; compute with device=None.",
        )
    started = time.perf_counter()
    terms = [p for p in polynomials if p]
    if not terms:
        basis, run = engine_basis([], ring), RunReport(certainty="exact")
    elif any(not any(exponents) for p in terms if len(p) == 1 for exponents in p):
        basis, run = engine_basis([{(0,) * ring.n: 1}], ring), RunReport(certainty="exact")
    else:
        with device_errors(settings):
            basis, run = _run(terms, ring, settings, reducer, graded)
    seconds = time.perf_counter() - started
    return basis, Report(run=run, requested_device=settings.device, total_seconds=seconds)


@contextlib.contextmanager
def device_errors(settings: Settings) -> Iterator[None]:
    """A device that fails inside raises E-SOLVE-010."""
    try:
        yield
    except CudaError as error:
        raise SolverError(
            "E-SOLVE-010", f"device={settings.device!r} failed: {error.message}"
        ) from error


def _run(
    terms: Sequence[Terms],
    ring: Ring,
    settings: Settings,
    reducer: object,
    graded: EngineBasis | None,
) -> tuple[EngineBasis, RunReport]:
    options: dict[str, Any] = {
        "seed": settings.seed,
        "progress": settings.progress,
        "deadline": settings.until,
        "memory": settings.memory,
        "reducer": reducer,
        "graded": graded,
    }
    if is_large(ring.field):
        return _run_large(terms, ring, settings)
    if isinstance(ring.field, GF):
        from alkahest.groebner.engine.f4 import groebner_modp

        basis, run, *_ = groebner_modp(
            system_of(terms, ring), ring.field.prime, ring.order.engine, **options
        )
        return basis, run
    from alkahest.groebner.engine.modular import groebner_rational

    return groebner_rational(
        system_of(terms, ring),
        ring.order.engine,
        certify=settings.certify,
        executor=settings.executor,
        **options,
    )


def _run_large(
    terms: Sequence[Terms], ring: Ring, settings: Settings
) -> tuple[EngineBasis, RunReport]:
    """The same by :mod:`alkahest.groebner.large_primes`."""
    from alkahest.groebner.engine.limits import Limits

    limits = Limits(deadline=settings.until, memory=settings.memory)
    field = LargeField(ring.field.characteristic, ring.order, limits.checkpoint)
    elements = field.reduced_basis([_residues(p) for p in terms])
    return engine_basis(elements, ring), RunReport(certainty="exact", reducer="plain")


def _residues(terms: Terms) -> dict[Exponents, int]:
    return {e: int(c) for e, c in terms.items()}


def normal_forms(
    polynomials: Iterable[Terms], basis: EngineBasis, ring: Ring, *, deadline: float | None = None
) -> list[GbPoly]:
    """What is left of each of ``polynomials`` after division by ``basis``, exactly.

    The result is the one polynomial of which no term is divisible by a leading monomial.
    """
    wanted = list(polynomials)
    if not len(basis) or not any(wanted):
        return [GbPoly.from_terms(ring, terms) for terms in wanted]
    if is_large(ring.field):
        field = LargeField(ring.field.characteristic, ring.order)
        elements = (GbPoly.from_engine(ring, basis, i) for i in range(len(basis)))
        divisors = [_residues(dict(element.terms())) for element in elements]
        return [GbPoly.from_terms(ring, field.remainder(_residues(p), divisors)) for p in wanted]
    from alkahest.groebner.engine.normal_form import reduce_modp, reduce_rational

    scaled = [_cleared(terms) for terms in wanted]
    system = _pack([terms for terms, _ in scaled], ring.n)
    if isinstance(ring.field, GF):
        rests = reduce_modp(system, basis, ring.field.prime, ring.order.engine, deadline=deadline)
    else:
        rests = reduce_rational(system, basis, ring.order.engine, deadline=deadline)
    found = []
    for place, (_, factor) in enumerate(scaled):
        part = slice(int(rests.offsets[place]), int(rests.offsets[place + 1]))
        exponents = map(tuple, rests.exponents[part].tolist())
        below = rests.denominators[place] * factor
        numbers = (ring.field.coerce(Fraction(n, below)) for n in rests.numerators[part])
        terms = {e: c for e, c in zip(exponents, numbers, strict=True) if c}
        found.append(GbPoly.from_terms(ring, terms))
    return found


def is_large(field: Field) -> bool:
    """Whether the field is beyond the engine, so that plain algorithms compute over it."""
    return isinstance(field, GF) and field.prime.bit_length() > MAX_PRIME_BITS


def system_of(polynomials: Sequence[Terms], ring: Ring) -> PolynomialSystem:
    """Polynomials as the engine takes them; over the rationals denominators are cleared."""
    return _pack([_cleared(terms)[0] for terms in polynomials], ring.n)


def is_basis_already(polynomials: Sequence[Terms], ring: Ring) -> bool:
    """Whether the leading monomials share no variables, which proves a Gröbner basis."""
    leads = [ring.arrays(terms)[0][0] for terms in polynomials if terms]
    return bool(((np.array(leads).reshape(-1, ring.n) > 0).sum(axis=0) <= 1).all())


def _cleared(terms: Terms) -> tuple[Terms, int]:
    """The multiple with integer coefficients, and the factor."""
    factor = math.lcm(*(c.denominator for c in terms.values()))
    if factor == 1:
        return terms, 1
    return {e: int(c * factor) for e, c in terms.items()}, factor


def _pack(polynomials: Sequence[Terms], n: int) -> PolynomialSystem:
    offsets = np.cumsum([0, *map(len, polynomials)], dtype=np.int64)
    listed = [exponents for terms in polynomials for exponents in terms]
    coefficients: list[Coefficient] = [c for terms in polynomials for c in terms.values()]
    return PolynomialSystem(
        exponents=np.array(listed, dtype=np.uint32).reshape(len(listed), n),
        coefficients=[int(c) for c in coefficients],
        offsets=offsets,
    )


def engine_basis(elements: Sequence[Terms], ring: Ring) -> EngineBasis:
    """Elements of a reduced basis, in any order, as the engine holds them."""
    polynomials = [GbPoly.from_terms(ring, _in_field(terms, ring.field)) for terms in elements]
    leads = np.array([p.leading_monomial for p in polynomials], np.uint32).reshape(-1, ring.n)
    polynomials = [polynomials[i] for i in ring.order.descending(leads)]
    exponents = [p.exponents for p in polynomials] or [np.zeros((0, ring.n), np.uint32)]
    offsets = np.cumsum([0, *(p.n_terms for p in polynomials)], dtype=np.int64)
    numbers = [c for p in polynomials for c in _primitive(p.coefficients)]
    characteristic = ring.field.characteristic
    return EngineBasis(
        exponents=np.concatenate(exponents),
        offsets=offsets,
        characteristic=characteristic,
        **_held(numbers, characteristic),
    )


def _held(numbers: Sequence[int], characteristic: int) -> dict[str, Any]:
    """The arrays that hold coefficients over a field of that characteristic."""
    if characteristic:
        words = characteristic.bit_length() <= MAX_PRIME_BITS
        return {"residues": np.array(numbers, np.uint32 if words else object)}
    return {"limbs": _limbs(numbers), "negative": np.array([c < 0 for c in numbers], np.bool_)}


def _in_field(terms: Terms, field: Field) -> Terms:
    coerced = {e: field.coerce(c) for e, c in terms.items()}
    return {e: c for e, c in coerced.items() if c}


def _primitive(coefficients: Sequence[Coefficient]) -> list[int]:
    """Integers without a common factor; of a monic polynomial the first one is positive."""
    factor = math.lcm(*(c.denominator for c in coefficients))
    return [int(c * factor) for c in coefficients]


def _limbs(numbers: Sequence[int]) -> NDArray[np.uint32]:
    width = max((abs(c).bit_length() + 31) // 32 for c in numbers) if numbers else 0
    data = b"".join(abs(c).to_bytes(4 * width, "little") for c in numbers)
    return np.frombuffer(data, "<u4").reshape(len(numbers), width).astype(np.uint32)
