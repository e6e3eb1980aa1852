"""How every operation becomes LLVM instructions: one row per operation.

A row is an LLVM instruction, a comparison, an LLVM intrinsic, a libdevice function, or a function
of :mod:`alkahest.backends.nvptx.expansions`. No row carries fast-math flags, so nothing is
reassociated, contracted or assumed finite. Each accuracy mode replaces some of the rows of the strict
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from alkahest.backends.nvptx import accuracy, expansions, powers
from alkahest.ops import DTYPES as ALL_DTYPES
from alkahest.plugin import Support
from alkahest.program.llvm_rows import Compare, Intrinsic, Logic, Opcode

DTYPES = frozenset({"float64", "float32"})
"""What rows are written for; complex programs are split into real ones first."""


@attrs.frozen
class Library:
    """A libdevice function, by its double precision symbol; the single precision one adds ``f``."""

    name: str


@attrs.frozen
class Own:
    """A function of :mod:`alkahest.backends.nvptx.fastmath`, in double precision.

    Attributes:
        name: of the function; the strict row of that name serves in single precision.
        part: ``".near"`` where far arguments are given up, else "".
    """

    name: str
    part: str = ""


@attrs.frozen
class Expansion:
    """Several instructions, written by ``build(block, *operands)``, which returns the result."""

    build: Callable[..., str]


@attrs.frozen
class Shared:
    """An expansion so long that it becomes one function of the module, in double precision."""

    name: str
    build: Callable[..., str]


Row: TypeAlias = Opcode | Compare | Logic | Intrinsic | Library | Own | Expansion | Shared


LOWERINGS: dict[str, Row] = {
    "add": Opcode("fadd"),
    "sub": Opcode("fsub"),
    "mul": Opcode("fmul"),
    "div": Opcode("fdiv"),
    "neg": Opcode("fneg"),
    "fma": Intrinsic("llvm.fma"),
    "powi": Expansion(expansions.powi),
    "pow": Library("__nv_pow"),
    "lt": Compare("olt"),
    "le": Compare("ole"),
    "gt": Compare("ogt"),
    "ge": Compare("oge"),
    "eq": Compare("oeq"),
    "ne": Compare("une"),
    "and": Logic("and"),
    "or": Logic("or"),
    "not": Expansion(expansions.negation),
    "select": Expansion(expansions.select),
    "abs": Intrinsic("llvm.fabs"),
    "sign": Expansion(expansions.sign),
    "min": Intrinsic("llvm.minimum"),
    "max": Intrinsic("llvm.maximum"),
    "floor": Intrinsic("llvm.floor"),
    "ceil": Intrinsic("llvm.ceil"),
    "round": Intrinsic("llvm.rint"),
    "trunc": Intrinsic("llvm.trunc"),
    "mod": Expansion(expansions.mod),
    "exp": Library("__nv_exp"),
    "exp2": Library("__nv_exp2"),
    "expm1": Library("__nv_expm1"),
    "log": Library("__nv_log"),
    "log2": Library("__nv_log2"),
    "log10": Library("__nv_log10"),
    "log1p": Library("__nv_log1p"),
    "sqrt": Intrinsic("llvm.sqrt"),
    "rsqrt": Library("__nv_rsqrt"),
    "cbrt": Library("__nv_cbrt"),
    "hypot": Library("__nv_hypot"),
    "sin": Library("__nv_sin"),
    "cos": Library("__nv_cos"),
    "tan": Library("__nv_tan"),
    "asin": Library("__nv_asin"),
    "acos": Library("__nv_acos"),
    "atan": Library("__nv_atan"),
    "atan2": Library("__nv_atan2"),
    "sinh": Library("__nv_sinh"),
    "cosh": Library("__nv_cosh"),
    "tanh": Library("__nv_tanh"),
    "asinh": Library("__nv_asinh"),
    "acosh": Library("__nv_acosh"),
    "atanh": Library("__nv_atanh"),
    "erf": Library("__nv_erf"),
    "erfc": Library("__nv_erfc"),
    "erfinv": Library("__nv_erfinv"),
    "gamma": Library("__nv_tgamma"),
    "lgamma": Expansion(expansions.lgamma),
    "digamma": Shared("digamma", expansions.digamma),
    "j0": Expansion(expansions.j0),
    "j1": Expansion(expansions.j1),
    "y0": Expansion(expansions.y0),
    "y1": Expansion(expansions.y1),
    "re": Expansion(expansions.real_part),
    "im": Expansion(expansions.imaginary_part),
    "conjugate": Expansion(expansions.real_part),
    "arg": Expansion(expansions.argument),
}
"""Operation name -> row; together with :data:`SPLIT` and :data:`REFUSED` exactly the operations
of the table."""

DEFAULT_ROWS: dict[str, Row] = {
    "powi": Expansion(powers.compensated),
    **{name: Own(name) for name in ("sin", "cos", "exp", "exp2", "log", "div", "sqrt")},
}
"""What replaces rows in the default mode."""

FAST_ROWS: dict[str, Row] = {
    **DEFAULT_ROWS,
    "powi": Expansion(powers.plain),
    "sin": Own("sin", ".near"),
    "cos": Own("cos", ".near"),
}
"""What replaces rows in the fast mode."""

ROWS: dict[str, dict[str, Row]] = {
    accuracy.STRICT: LOWERINGS,
    accuracy.DEFAULT: LOWERINGS | DEFAULT_ROWS,
    accuracy.FAST: LOWERINGS | FAST_ROWS,
}
"""Accuracy mode -> operation name -> row."""

SPLIT = frozenset({"complex"})
"""Operations without a row: none is left of them when a complex program is split."""

REFUSED: dict[str, str] = {}
"""Operation name -> reason."""

SUPPORT = Support(
    lowers=dict.fromkeys(LOWERINGS, frozenset(ALL_DTYPES))
    | dict.fromkeys(SPLIT, frozenset(ALL_DTYPES) - DTYPES),
    refuses=REFUSED,
)
"""What the backend declares to the registry."""
