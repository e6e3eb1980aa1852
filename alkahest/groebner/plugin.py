"""Entry point of ``alkahest-groebner``: one backend, behind the capability bit ``groebner``."""

from __future__ import annotations

from alkahest.plugin import BackendInfo, Command, Feature, Probe, hookimpl

ALKAHEST_PLUGIN_API = 1

BACKEND = "groebner-cpu"

_EXPORTS = {
    "GF": "fields",
    "GbPoly": "polynomial",
    "GroebnerBasis": "basis",
    "QQ": "fields",
    "real_roots": "univariate",
    "solve": "solving",
    "triangularize": "triangular",
}


def _probe() -> Probe:
    from alkahest.groebner.probe import probe

    return probe()


def _witness() -> Probe:
    from alkahest.groebner.probe import witness

    return witness()


@hookimpl
def alkahest_register_backends() -> tuple[BackendInfo, ...]:
    """One backend, which evaluates no programs: it computes Gröbner bases on the processor."""
    return (
        BackendInfo(
            name=BACKEND,
            features=(Feature(name="groebner", probe=_probe, witness=_witness),),
            exports={
                name: f"alkahest.groebner.{module}:{name}" for name, module in _EXPORTS.items()
            },
            summary="Gröbner bases and polynomial systems, on the processor",
        ),
    )


@hookimpl
def alkahest_make_reducer(backend: str, device: int | None) -> object | None:
    """The processor's linear algebra, whatever ``device`` says: there is one host."""
    from alkahest.groebner.engine.reducers import host_reducer

    return host_reducer()


@hookimpl
def alkahest_commands() -> tuple[Command, ...]:
    """``alkahest groebner`` and ``alkahest solve``."""
    return (
        Command(
            name="groebner",
            summary="compute the Gröbner basis of a polynomial system",
            target="alkahest.groebner.command:run",
        ),
        Command(
            name="solve",
            summary="solve a polynomial system, with certified enclosures",
            target="alkahest.groebner.solve_command:run",
        ),
    )
