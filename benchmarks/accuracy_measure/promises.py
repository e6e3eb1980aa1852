"""What a backend promises of an operation, by accuracy mode and part of the domain."""

from __future__ import annotations

from typing import Protocol

from alkahest.backends.cpu.jit import bounds as compiled
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


class _Compiled(_Table):
    """Compiled code on a CPU: a bound for each mode where operations are not rounded correctly."""

    modes: tuple[str, ...] = accuracy.MODES

    def promised(
        self, op: str, dtype: str, mode: str, part: str, parameter: int | None
    ) -> Bound | None:
        of_table = super().promised(op, dtype, mode, part, parameter)
        known = compiled.BOUNDS.get(op)
        if known is None or of_table is None or part in bounds.CANCELLING:
            return of_table
        ulp, per_power = known[mode].ulp, known[mode].per_power
        if parameter is not None and per_power:
            # What the mode gives up beyond that exponent is not promised.
            return Bound(ulp, per_power=True) if abs(parameter) <= _LARGEST_POWER else None
        if parameter is not None and abs(parameter) > _LARGEST_PRODUCT:
            ulp = _BEYOND_PRODUCTS[mode]
        return Bound(ulp, scale=of_table.scale)


_LARGEST_PRODUCT, _LARGEST_POWER = 4, 1024
_BEYOND_PRODUCTS = {"strict": 1.0, "default": 2.0}
"""The remarks of the CPU's table about integer powers."""


def of(backend: str) -> Promises:
    """The promises of a backend."""
    if backend in ("nvptx", EMULATED):
        return _Nvptx()
    return _Compiled() if backend == "cpu-jit" else _Table()
