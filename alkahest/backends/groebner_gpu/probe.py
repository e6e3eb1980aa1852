"""What the capability bit ``groebner_cuda`` promises, tried out."""

from __future__ import annotations

from alkahest.backends.groebner_gpu import compiling
from alkahest.errors import AlkahestError
from alkahest.plugin import Diagnostic, Probe

_TARGET = "sm_75"
"""What the probe compiles for, tensor cores apart, whatever the devices are: it asks no driver."""

_SYSTEM = ("x**2 + 3*y*z - 2", "x*z + y**2 - 3", "x*y + 5*z**2 - 7")
_VARIABLES = "x y z"
_PRIME = 2147483647


def probe() -> Probe:
    """Whether the engine is here and every kernel compiles; touches no driver.

    The machine code is kept in the cache, so that only the first probe compiles.
    """
    from alkahest.groebner.probe import probe as engine
    from alkahest.groebner.settings import GPU_BACKEND

    host = engine()
    if not host.ok:
        return host
    try:
        for file in compiling.SOURCES:
            target = compiling.TENSOR_TARGET if file == "tensor.cu" else _TARGET
            compiling.machine_code(file, 1, target)
    except AlkahestError as error:
        return Probe(ok=False, detail=error.message, code=error.code)
    count = sum(map(len, compiling.SOURCES.values()))
    targets = f"{_TARGET} and {compiling.TENSOR_TARGET}"
    return Probe(
        ok=True,
        detail=f'{count} kernels for {targets} compiled; device="cuda" asks {GPU_BACKEND}',
        facts={"nvrtc": compiling.nvrtc_version(), "target": _TARGET, "kernels": count},
    )


def witness() -> Probe:
    """Compute bases on device 0 and compare them with the processor's; without one that fails."""
    from alkahest.groebner.basis import GroebnerBasis
    from alkahest.groebner.fields import GF, QQ

    names = []
    for field, order in ((QQ, "lex"), (GF(_PRIME), "grevlex")):
        expected = GroebnerBasis.compute(_SYSTEM, _VARIABLES, order, field)
        try:
            found = GroebnerBasis.compute(_SYSTEM, _VARIABLES, order, field, device=0)
        except AlkahestError as error:
            return Probe(ok=False, detail=error.message, code=error.code)
        if not found.report.ran_on_gpu() or found != expected:
            detail = f"over {field}: {found.report.device_name} found {list(found)}"
            return Probe(ok=False, detail=detail, code="E-SOLVE-014")
        names.append(found.report.device_name)
    return Probe(
        ok=True,
        detail=f"bases over QQ and GF({_PRIME}) computed on {names[0]}",
        facts={"device_name": names[0]},
    )


def diagnose() -> Diagnostic:
    """The row of ``alkahest doctor``."""
    name = "Gröbner kernels"
    try:
        found = probe()
        detail = f"NVRTC {compiling.nvrtc_version()}; {found.detail}" if found.ok else found.detail
        remedy = "" if found.ok else compiling.REMEDY
    except Exception as exc:  # noqa: BLE001 - a broken machine is what the rows are for
        return Diagnostic(name=name, ok=False, detail=f"{type(exc).__name__}: {exc}")
    return Diagnostic(name=name, ok=found.ok, detail=detail, remedy=remedy)


__all__ = ["diagnose", "probe", "witness"]
