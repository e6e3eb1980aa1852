"""Single polynomials in FLINT, which does their arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from alkahest.groebner.fields import GF, Coefficient, Field

Exponents = tuple[int, ...]
Terms = Mapping[Exponents, Coefficient]


@lru_cache(maxsize=64)
def context(n: int, characteristic: int) -> Any:
    """FLINT's ring in ``n`` variables, which does the arithmetic of single polynomials."""
    import flint

    if characteristic == 0:
        return flint.fmpq_mpoly_ctx.get(("x", n), flint.Ordering.lex)
    if characteristic.bit_length() < 64:
        return flint.nmod_mpoly_ctx.get(
            ("x", n), modulus=characteristic, ordering=flint.Ordering.lex
        )
    return flint.fmpz_mod_mpoly_ctx.get(
        ("x", n), modulus=characteristic, ordering=flint.Ordering.lex
    )


def to_flint(terms: Terms, n: int, field: Field) -> Any:
    """Terms as a polynomial of FLINT."""
    import flint

    ctx = context(n, field.characteristic)
    if isinstance(field, GF):
        return ctx.from_dict(dict(terms))
    return ctx.from_dict(
        {
            exponents: c if isinstance(c, int) else flint.fmpq(c.numerator, c.denominator)
            for exponents, c in terms.items()
        }
    )


def from_flint(polynomial: Any, field: Field) -> dict[Exponents, Coefficient]:
    """Terms of a polynomial of FLINT."""
    if isinstance(field, GF):
        return {tuple(map(int, e)): int(c) for e, c in polynomial.to_dict().items()}
    return {tuple(map(int, e)): plain(c) for e, c in polynomial.to_dict().items()}


def plain(number: Any) -> Coefficient:
    """A rational of FLINT as an int, or as a Fraction that is no integer."""
    p, q = int(number.p), int(number.q)
    return p if q == 1 else Fraction(p, q)
