"""How much code a program becomes when its functions are made a part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from alkahest.backends.nvptx.fastmath import FUNCTIONS
from alkahest.backends.nvptx.lowerings import LOWERINGS, Expansion, Library, Own, Row, Shared
from alkahest.program import Program

LARGEST_INLINED = 20_000
"""Instructions of LLVM's, about. Beyond, functions are called: both LLVM and the driver's compiler
take more time than there are instructions, and a kernel of that size computes for so long that
calls do not matter."""

_LIBRARY = {
    "__nv_pow": 470,
    "__nv_sin": 390,
    "__nv_cos": 390,
    "__nv_tan": 280,
    "__nv_tgamma": 1020,
    "__nv_lgamma": 700,
}
"""Instructions of libdevice's larger functions, in either precision. libdevice itself is not asked:
the size of a program must be known without it."""

_LIBRARY_FUNCTION = 120
_PER_FP64 = 2
_EXPANSION = 20


def is_large(program: Program, rows: Mapping[str, Row]) -> bool:
    """Whether the functions that a program calls are too much code to be inlined."""
    return code(program, rows) > LARGEST_INLINED


def code(program: Program, rows: Mapping[str, Row]) -> int:
    """Instructions of LLVM's, about, for one point, with every function inlined."""
    counts = Counter(op for op, _, _ in program.code)
    return sum(count * _size(rows.get(op), op, program.dtype) for op, count in counts.items())


def _size(row: Row | None, op: str, dtype: str) -> int:
    """Instructions of one operation."""
    if isinstance(row, Own) and dtype != "float64":
        row = LOWERINGS[op]
    match row:
        case Own(name):
            return _PER_FP64 * FUNCTIONS[name].fp64
        case Library(name):
            return _LIBRARY.get(name, _LIBRARY_FUNCTION)
        case Expansion() | Shared():
            return _LIBRARY.get(f"__nv_{op}", 0) + _EXPANSION
    return 1
