"""How every operation becomes LLVM instructions: one row per operation.

A row is an LLVM instruction, a comparison, an LLVM intrinsic, a libdevice function, or a function
of :mod:`alkahest.backends.nvptx.expansions`. No row carries fast-math flags, so nothing is reassociated, contracted or
assumed finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from alkahest.backends.nvptx import expansions
from alkahest.plugin import Support

DTYPES = frozenset({"float64", "float32"})


@attrs.frozen
class Opcode:
    """An LLVM instruction on operands of the result's type."""

    name: str


@attrs.frozen
class Compare:
    """``fcmp`` with this predicate; the ordered ones are false for nan."""

    predicate: str


@attrs.frozen
class Logic:
    """An LLVM instruction on truth values (``i1``)."""

    name: str


@attrs.frozen
class Intrinsic:
    """An LLVM intrinsic, without the type suffix."""

    name: str


@attrs.frozen
class Library:
    """A libdevice function.

    Attributes:
        name: the double precision symbol; the single precision one ends in ``f``.
        widen: compute single precision in double and round, where libdevice's single precision
            function is not accurate enough.
    """

    name: str
    widen: bool = False


@attrs.frozen
class Expansion:
    """Several instructions, written by ``build(block, *operands)``, which returns the result."""

    build: Callable[..., str]


@attrs.frozen
class Shared:
    """An expansion so long that it becomes one function of the module, in double precision."""

    name: str
    build: Callable[..., str]


Row: TypeAlias = Opcode | Compare | Logic | Intrinsic | Library | Expansion | Shared


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
    "lgamma": Library("__nv_lgamma"),
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
"""Operation name -> row; together with :data:`REFUSED` exactly the operations of the table."""

REFUSED: dict[str, str] = {
    "complex": "complex programs are not lowered for GPUs",
}
"""Operation name -> reason."""

SUPPORT = Support(lowers={name: DTYPES for name in LOWERINGS}, refuses=REFUSED)
"""What the backend declares to the registry."""
