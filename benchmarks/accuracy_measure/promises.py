"""What a backend promises of an operation, by accuracy mode and part of the domain."""

from __future__ import annotations

from typing import Protocol

from alkahest.backends.nvptx import accuracy, bounds
from alkahest.backends.nvptx.bounds import WHOLE, Bound, Documented, Part
from alkahest.ops import OPS, Exactness
from alkahest.testing import oracle

EMULATED = "emulated"
"""Stands for the kernels of nvptx on a machine without a GPU."""


class Promises(Protocol):
    """A backend's promises; see :mod:`alkahest.backends.nvptx.bounds` for the meaning."""

    modes: tuple[str, ...]

    def parts(self, op: str, dtype: str) -> tuple[Part, ...]: ...

    def promised(
        self, op: str, dtype: str, mode: str, part: str, parameter: int | None
    ) -> Bound | None: ...

    def documented(self, op: str, dtype: str, part: str) -> Documented | None: ...


class _Nvptx:
    modes: tuple[str, ...] = accuracy.MODES
    parts = staticmethod(bounds.parts)
    promised = staticmethod(bounds.promised)
    documented = staticmethod(bounds.documented)


class _Table:
    """The table of operations, for backends that have no modes; float32 is only measured."""

    modes: tuple[str, ...] = ("",)

    def parts(self, op: str, dtype: str) -> tuple[Part, ...]:
        return bounds.parts(op, dtype) if op in ("lgamma", "digamma") else (WHOLE,)

    def promised(
        self, op: str, dtype: str, mode: str, part: str, parameter: int | None
    ) -> Bound | None:
        row = OPS[op]
        inexact = row.exactness not in (Exactness.EXACT, Exactness.ROUNDED)
        if dtype == "float32" and inexact:
            return None
        if part in bounds.CANCELLING:
            return Bound(bounds.CANCELLING[part], scale=1.0)
        return Bound(oracle.bound(row), scale=oracle.scale(row))

    def documented(self, op: str, dtype: str, part: str) -> Documented | None:
        return None


def of(backend: str) -> Promises:
    """The promises of a backend."""
    return _Nvptx() if backend in ("nvptx", EMULATED) else _Table()
