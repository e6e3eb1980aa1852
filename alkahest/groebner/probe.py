"""What the capability bit ``groebner`` promises, tried out."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from alkahest import cache
from alkahest.plugin import Probe

_NEEDED = ("flint", "llvmlite", "numba", "numpy")


def probe() -> Probe:
    """Whether the engine and what it needs can be imported.

    Importing takes a second, and every command and call that asks for capabilities would wait for
    it. So that it worked is remembered, in alkahest's cache, for these very installations.
    """
    key = _key()
    if key is not None and (known := cache.load(key)) is not None:
        return _yes(json.loads(known))
    try:
        import flint
        import numba

        import alkahest.groebner.engine.f4
        import alkahest.groebner.engine.modular
        import alkahest.groebner.engine.normal_form  # noqa: F401  that it can be imported counts
    except ImportError as error:
        return Probe(ok=False, detail=f"{error.name or error} cannot be imported", code="E-JIT-004")
    facts = {"numba": numba.__version__, "python-flint": flint.__version__}
    if key is not None:
        cache.store(key, json.dumps(facts).encode(), label="groebner: what it imports")
    return _yes(facts)


def _yes(facts: dict[str, str]) -> Probe:
    return Probe(ok=True, detail="Gröbner bases over QQ and GF(p)", facts=facts)


def _key() -> str | None:
    """What an answer holds for: this Python and our files, and the packages that are found now.

    None where one of them is missing or cannot be examined.
    """
    parts = {"answer": "alkahest.groebner.probe", "python": sys.version}
    try:
        parts["sources"] = cache.sources(Path(__file__).parent)
        for name in _NEEDED:
            spec = find_spec(name)
            if spec is None or spec.origin is None:
                return None
            place = Path(spec.origin)
            times = (place.stat().st_mtime_ns, place.parent.stat().st_mtime_ns)
            parts[name] = f"{place} {place.stat().st_size} {times}"
    except (OSError, ImportError, ValueError):
        return None
    return cache.key(parts)


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
