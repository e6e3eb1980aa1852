"""One computation by an engine that is a Python package, in a process of its own.

    python worker.py ENGINE SYSTEM CHARACTERISTIC OUT [DEVICE]

DEVICE is for this project's engine, which then also prints its seconds by phase. A small system is
computed first, so that imports, compilation and caches do not count. Prints the processor seconds and
the wall seconds of the call, and writes the basis to OUT, in msolve's syntax, unless
the environment says not to.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

# Also where Python does not put a script's folder on the path (PYTHONSAFEPATH).
sys.path.insert(0, str(Path(__file__).resolve().parent))

from systems import UNWRITTEN, Polynomial, msolve_text, system, text_of

Engine = Callable[..., Callable[[], str]]
"""Polynomials, names, characteristic -> basis as text; the computation is done when called."""


def alkahest(
    polynomials: list[Polynomial], names: list[str], p: int, device: str | None = None
) -> Callable[[], str]:
    """This project's."""
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.fields import GF, QQ
    from alkahest.groebner.formats import write_msolve

    basis = GroebnerBasis.compute(polynomials, names, field=GF(p) if p else QQ, device=device)
    if device is not None:
        print("PHASES", json.dumps(basis.report.seconds))
    return lambda: write_msolve(basis).split("\n", 2)[2]


def sympy(polynomials: list[Polynomial], names: list[str], p: int) -> Callable[[], str]:
    """SymPy's Buchberger, with the domain given."""
    import sympy as sp

    gens = sp.symbols(names)
    domain = sp.GF(p, symmetric=False) if p else sp.QQ
    polys = [sp.Poly.from_dict(dict(q), *gens, domain=domain) for q in polynomials]
    basis = sp.groebner(polys, *gens, order="grevlex", domain=domain)
    return lambda: ",".join(str(q.as_expr()).replace("**", "^") for q in basis.polys)


def grobx(polynomials: list[Polynomial], names: list[str], p: int) -> Callable[[], str]:
    """grobx, which takes and gives text."""
    import grobx as engine

    answer = engine.groebner(msolve_text(polynomials, names, p), seed=1)
    return lambda: str(answer.basis)


def flint(polynomials: list[Polynomial], names: list[str], p: int) -> Callable[[], str]:
    """python-flint's plain Buchberger over the integers."""
    import flint as library

    ctx = library.fmpz_mpoly_ctx.get(tuple(names), library.Ordering.degrevlex)
    vector = library.fmpz_mpoly_vec([ctx.from_dict(q) for q in polynomials], ctx)
    basis = vector.buchberger_naive().autoreduction()
    return lambda: ",".join(str(q) for q in basis)


def published(polynomials: list[Polynomial], names: list[str], p: int) -> Callable[[], str]:
    """The published package of our name, which computes over the rationals only."""
    library: Any = importlib.import_module("alkahest")
    pool = library.ExprPool()
    symbols = [pool.symbol(name) for name in names]

    def term(exponents: tuple[int, ...], coefficient: int) -> Any:
        factors = [x**e for x, e in zip(symbols, exponents, strict=True) if e]
        return math.prod(factors, start=pool.integer(coefficient))

    given = [sum((term(*t) for t in q.items()), start=pool.integer(0)) for q in polynomials]
    basis = library.GroebnerBasis.compute(given, symbols, order="grevlex")

    def text(q: Any) -> str:
        terms = {e: Fraction(c) for e, c in q.terms()}
        scale = math.lcm(*(c.denominator for c in terms.values()))
        return text_of({e: int(c * scale) for e, c in terms.items()}, names)

    return lambda: ",".join(map(text, basis))


ENGINES: dict[str, Engine] = {e.__name__: e for e in (alkahest, sympy, grobx, flint, published)}


def main(engine: str, name: str, characteristic: str, out: str, *device: str) -> None:
    """Warm up, compute, report, write."""
    run, p = ENGINES[engine], int(characteristic)
    run(*system("cyclic-4"), p, *device)
    polynomials, names = system(name)
    wall, processor = time.perf_counter(), time.process_time()
    text = run(polynomials, names, p, *device)
    print("CPU", time.process_time() - processor)
    print("WALL", time.perf_counter() - wall)
    if not os.environ.get(UNWRITTEN):
        Path(out).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
