"""Which operations compiled code has, in which dtypes."""

from __future__ import annotations

from alkahest.backends.cpu.jit.rows import LOWERINGS
from alkahest.backends.cpu.kernels import support as of_reference
from alkahest.plugin import Support

_SPLIT = frozenset({"complex"})
"""Operations that are gone before code is written: complex numbers become pairs."""


def support() -> Support:
    """The tables as the registry wants them.

    An operation has the dtypes that it has in the reference.
    """
    known = of_reference()
    lowered = LOWERINGS.keys() | _SPLIT
    return Support(
        lowers={op: dtypes for op, dtypes in known.lowers.items() if op in lowered},
        refuses={
            op: "not compiled; the reference computes it"
            for op in known.lowers
            if op not in lowered
        },
    )


__all__ = ["support"]
