"""What the capability bit ``groebner`` promises, tried out."""

from __future__ import annotations

from alkahest.plugin import Probe


def probe() -> Probe:
    """Whether the engine and what it needs can be imported."""
    try:
        import flint
        import numba

        import alkahest.groebner.engine.f4
        import alkahest.groebner.engine.modular
        import alkahest.groebner.engine.normal_form  # noqa: F401  that it can be imported counts
    except ImportError as error:
        return Probe(ok=False, detail=f"{error.name or error} cannot be imported", code="E-JIT-004")
    return Probe(
        ok=True,
        detail="Gröbner bases over QQ and GF(p)",
        facts={"numba": numba.__version__, "python-flint": flint.__version__},
    )


def witness() -> Probe:
    """Compute a basis over each kind of field."""
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.fields import GF, QQ

    system = ["x**2 + y**2 - 1", "x - y"]
    rational = GroebnerBasis.compute(system, "x y", "lex", QQ)
    modular = GroebnerBasis.compute(system, "x y", "lex", GF(65521))
    ok = [str(p) for p in rational] == ["x - y", "y**2 - 1/2"] and len(modular) == 2
    return Probe(
        ok=ok, detail=f"{list(rational)}, {list(modular)}", code="" if ok else "E-SOLVE-014"
    )


__all__ = ["probe", "witness"]
