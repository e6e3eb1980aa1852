"""The standard polynomial systems, with integer coefficients.

A system is a list of polynomials ``{exponents: coefficient}`` and the names of its variables, the
largest first. Projects number the families differently; here

=============  ===========================================================================
katsura-n      n + 1 variables, n quadrics and a linear form
cyclic-n       n variables
noon-n         n variables, 10 x_i (sum of the other squares) - 11 x_i + 10
eco-n          n variables, n - 1 equations with x_n and a linear form
reimer-n       n variables, degrees 2 to n + 1
henrion-n      n = 5, 6, 7; the first with an extra variable and equation
chandra-n      n variables, c = 0.51234
random-n       n dense quadrics in n variables, coefficients from a fixed generator
=============  ===========================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import gcd, lcm

Polynomial = dict[tuple[int, ...], int]
System = tuple[list[Polynomial], list[str]]

PRIME = 2**31 - 1
"""The field that systems are timed over, the largest prime of 31 bits."""

UNWRITTEN = "GROEBNER_BENCHMARK_UNWRITTEN"
"""Environment variable by which a worker leaves its basis unwritten."""


def monomial(n: int, *variables: int) -> tuple[int, ...]:
    """Exponents of a product of variables, given by their indices."""
    exponents = [0] * n
    for variable in variables:
        exponents[variable] += 1
    return tuple(exponents)


def _collected(terms: Iterable[tuple[tuple[int, ...], int | Fraction]]) -> Polynomial:
    """The sum of terms, as the primitive multiple with integer coefficients, sign kept."""
    total: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for exponents, coefficient in terms:
        total[exponents] += coefficient
    scale = lcm(*(c.denominator for c in total.values()))
    whole = {e: int(c * scale) for e, c in total.items() if c}
    content = gcd(*whole.values())
    return {e: c // content for e, c in whole.items()}


def _numbered(n: int, letter: str = "x", start: int = 1) -> list[str]:
    return [f"{letter}{i}" for i in range(start, start + n)]


def katsura(n: int) -> System:
    """The magnetism of n + 1 spins: sums of u_|l| u_|m-l| over l are u_m, and all add up to 1."""
    count = n + 1
    equations = []
    for m in range(n):
        pairs = ((abs(l), abs(m - l)) for l in range(-n, n + 1) if abs(m - l) <= n)  # noqa: E741
        terms = [(monomial(count, *pair), 1) for pair in pairs]
        equations.append(_collected([*terms, (monomial(count, m), -1)]))
    linear = [(monomial(count, i), 1 if i == 0 else 2) for i in range(count)]
    equations.append(_collected([*linear, (monomial(count), -1)]))
    return equations, _numbered(count, start=0)


def cyclic(n: int) -> System:
    """The sums of k cyclically successive variables' products, and the product of all minus 1."""
    equations = [
        _collected((monomial(n, *((i + j) % n for j in range(k))), 1) for i in range(n))
        for k in range(1, n)
    ]
    equations.append({monomial(n, *range(n)): 1, monomial(n): -1})
    return equations, _numbered(n)


def noon(n: int) -> System:
    """Lotka and Volterra's neural network."""
    equations = []
    for i in range(n):
        terms = [(monomial(n, i, j, j), 10) for j in range(n) if j != i]
        equations.append(_collected([*terms, (monomial(n, i), -11), (monomial(n), 10)]))
    return equations, _numbered(n)


def eco(n: int) -> System:
    """An economic model."""
    equations = []
    for k in range(1, n):
        terms = [(monomial(n, n - 1, k - 1), 1)]
        terms += [(monomial(n, n - 1, i - 1, i + k - 1), 1) for i in range(1, n - k)]
        equations.append(_collected([*terms, (monomial(n), -k)]))
    equations.append(_collected([(monomial(n), 1), *((monomial(n, i), 1) for i in range(n - 1))]))
    return equations, _numbered(n)


def reimer(n: int) -> System:
    """Alternating sums of powers."""
    equations = []
    for power in range(2, n + 2):
        terms = [(monomial(n, *([i] * power)), 2 if i % 2 == 0 else -2) for i in range(n)]
        equations.append(_collected([*terms, (monomial(n), -1)]))
    return equations, _numbered(n)


_HENRION = {
    5: (9823275, 4465125, 441486, 15498, 215),
    6: (1404728325, 648336150, 67597623, 2657700, 46243, 358),
    7: (273922023375, 127830277575, 13829872635, 585849123, 11675085, 116053, 553),
}
"""Right-hand sides, by descending degree."""


def henrion(n: int) -> System:
    """Pole placement: the part of degree k is a weighted sum over the subsets of k variables.

    A run of r neighbours in a subset counts r + 1, and the run with the last variable (n + r) / n.
    """
    count = n + 1 if n == 5 else n
    equations = []
    for constant, k in zip(_HENRION[n], range(n, 0, -1), strict=True):
        terms: list[tuple[tuple[int, ...], int | Fraction]] = []
        for subset in combinations(range(n), k):
            weight = Fraction(1)
            for last, length in _runs(subset):
                weight *= Fraction(n + length, n) if last == n - 1 else length + 1
            terms.append((monomial(count, *subset), weight))
        equations.append(_collected([*terms, (monomial(count), -constant)]))
    names = _numbered(n, "f")
    if n == 5:
        equations.append({monomial(count, i): i + 1 for i in range(count)})
        names.append("t")
    return equations, names


def _runs(subset: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Last element and length of every run of neighbours."""
    length = 1
    for here, following in zip(subset, (*subset[1:], -1), strict=True):
        if following == here + 1:
            length += 1
        else:
            yield here, length
            length = 1


def chandra(n: int) -> System:
    """Chandrasekhar's equation of radiative transfer, made discrete."""
    c = Fraction(51234, 100000)
    equations = []
    for i in range(1, n + 1):
        terms = [(monomial(n, i - 1, j - 1), -c * Fraction(i, i + j)) for j in range(1, n)]
        equations.append(
            _collected([*terms, (monomial(n, i - 1), 2 * n - c), (monomial(n), Fraction(-2 * n))])
        )
    return equations, _numbered(n, "H")


def random(n: int) -> System:
    """Dense quadrics with coefficients from 1 to PRIME - 1 by Knuth's linear generator."""
    state = 12345 + n
    pairs = list(combinations_with_replacement(range(n), 2))
    monomials = [monomial(n, *pair) for pair in pairs]
    monomials += [monomial(n, i) for i in range(n)] + [monomial(n)]
    equations = []
    for _ in range(n):
        equation = {}
        for exponents in monomials:
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            equation[exponents] = (state >> 33) % (PRIME - 1) + 1
        equations.append(equation)
    return equations, _numbered(n)


FAMILIES: dict[str, Callable[[int], System]] = {
    family.__name__: family
    for family in (katsura, cyclic, noon, eco, reimer, henrion, chandra, random)
}


def system(name: str) -> System:
    """The system called, for instance, ``"katsura-8"``."""
    family, _, size = name.partition("-")
    return FAMILIES[family](int(size))


def text_of(polynomial: Polynomial, names: list[str], prime: int = 0) -> str:
    """A polynomial as ``3*x1^2*x2-x1``; modulo ``prime`` where that is not 0."""
    pieces = []
    for exponents, coefficient in polynomial.items():
        value = coefficient % prime if prime else coefficient
        powers = [f"{v}^{e}" if e > 1 else v for v, e in zip(names, exponents, strict=True) if e]
        if value:
            pieces.append("*".join([f"{value:+d}", *powers]))
    return "".join(pieces).removeprefix("+") or "0"


def msolve_text(polynomials: list[Polynomial], names: list[str], prime: int = 0) -> str:
    """A system in msolve's format."""
    bodies = ",\n".join(text_of(p, names, prime) for p in polynomials)
    return f"{','.join(names)}\n{prime}\n{bodies}\n"
