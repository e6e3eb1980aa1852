"""Rows of ``alkahest doctor`` about compiled code for the processor; they come whatever is broken."""

from __future__ import annotations

from collections.abc import Iterator

from alkahest.errors import AlkahestError
from alkahest.plugin import Diagnostic


def diagnose() -> Iterator[Diagnostic]:
    """What code is generated with, what for, and on how many threads it runs."""
    try:
        from alkahest.backends.cpu.jit import compile, engine

        versions = engine.versions()
        target = compile.target()
    except AlkahestError as error:
        yield Diagnostic(
            name="CPU compiler", ok=False, detail=error.message, remedy=error.remediation or ""
        )
    else:
        yield Diagnostic(
            name="CPU compiler",
            ok=True,
            detail=f"llvmlite {versions['llvmlite']}, LLVM {versions['llvm']}; code for "
            f"{target.cpu} ({target.triple}), vectors of {target.vector_bits} bits",
        )
    yield _threads("CPU threads")


def _threads(name: str) -> Diagnostic:
    from alkahest.backends.cpu.jit.threads import VARIABLE, default_threads

    try:
        count = default_threads()
    except AlkahestError as error:
        return Diagnostic(name=name, ok=False, detail=error.message, remedy=error.remediation or "")
    return Diagnostic(
        name=name, ok=None, detail=f"{count}, unless {VARIABLE} or threads= says else"
    )


__all__ = ["diagnose"]
