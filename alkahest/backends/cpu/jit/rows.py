"""How every operation becomes vector code: one row per operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import attrs

from alkahest.backends.cpu.jit import (
    bessel,
    errorfunctions,
    expansions,
    exponentials,
    gammas,
    inverses,
    logarithms,
    powers,
    roots,
    trigonometry,
)
from alkahest.backends.cpu.jit.functions import Function, only
from alkahest.backends.cpu.jit.host import HostTarget
from alkahest.backends.cpu.jit.lanes import Lanes, Value
from alkahest.program.llvm_rows import Compare, Intrinsic, Logic, Opcode


@attrs.frozen
class Library:
    """A function of the C library, called lane by lane."""

    name: str


@attrs.frozen
class Expansion:
    """Several instructions, written by ``build(lanes, *operands)``, which returns the result."""

    build: Callable[..., Value]


@attrs.frozen
class Own:
    """A function of doubles that this package writes, one definition in a module."""

    function: Function


Row: TypeAlias = Opcode | Compare | Logic | Intrinsic | Library | Expansion | Own


def _own(name: str, build: Callable[..., Value], arity: int = 1) -> Own:
    return Own(Function(name, build, arity))


LOWERINGS: Mapping[str, Row] = MappingProxyType(
    {
        "add": Opcode("fadd"),
        "sub": Opcode("fsub"),
        "mul": Opcode("fmul"),
        "div": Opcode("fdiv"),
        "neg": Expansion(Lanes.neg),
        "fma": Expansion(Lanes.fma),
        "powi": Expansion(powers.precise),
        "pow": Own(powers.POW),
        "lt": Compare("olt"),
        "le": Compare("ole"),
        "gt": Compare("ogt"),
        "ge": Compare("oge"),
        "eq": Compare("oeq"),
        "ne": Compare("une"),
        "and": Logic("and"),
        "or": Logic("or"),
        "not": Expansion(Lanes.inverted),
        "select": Expansion(Lanes.select),
        "abs": Expansion(Lanes.abs),
        "sign": Expansion(expansions.sign),
        "min": Intrinsic("llvm.minimum"),
        "max": Intrinsic("llvm.maximum"),
        "floor": Intrinsic("llvm.floor"),
        "ceil": Intrinsic("llvm.ceil"),
        "round": Intrinsic("llvm.rint"),
        "trunc": Intrinsic("llvm.trunc"),
        "mod": Own(expansions.MOD),
        "exp": _own("exp.precise", exponentials.exp_precise),
        "exp2": _own("exp2.precise", exponentials.exp2_precise),
        "expm1": _own("expm1", exponentials.expm1),
        "log": _own("log", logarithms.log),
        "log2": _own("log2", logarithms.log2),
        "log10": _own("log10", logarithms.log10),
        "log1p": _own("log1p", logarithms.log1p),
        "sqrt": Expansion(Lanes.sqrt),
        "rsqrt": _own("rsqrt.precise", roots.rsqrt_precise),
        "cbrt": _own("cbrt", roots.cbrt),
        "hypot": _own("hypot", roots.hypot, 2),
        "sin": _own("sin.precise", trigonometry.sin_precise),
        "cos": _own("cos.precise", trigonometry.cos_precise),
        "tan": _own("tan", trigonometry.tan),
        "asin": _own("asin", inverses.asin),
        "acos": _own("acos", inverses.acos),
        "atan": _own("atan.precise", inverses.atan_precise),
        "atan2": _own("atan2.precise", inverses.atan2_precise, 2),
        "sinh": _own("sinh", exponentials.sinh),
        "cosh": _own("cosh", exponentials.cosh),
        "tanh": _own("tanh", exponentials.tanh),
        "asinh": _own("asinh", logarithms.asinh),
        "acosh": _own("acosh", logarithms.acosh),
        "atanh": _own("atanh", logarithms.atanh),
        "erf": _own("erf.precise", errorfunctions.erf_precise),
        "erfc": _own("erfc.precise", errorfunctions.erfc_precise),
        "erfinv": _own("erfinv", errorfunctions.erfinv),
        "gamma": _own("gamma", gammas.gamma),
        "lgamma": _own("lgamma", gammas.lgamma),
        "digamma": _own("digamma", gammas.digamma),
        "j0": _own("j0", bessel.j0),
        "j1": _own("j1", bessel.j1),
        "y0": _own("y0", bessel.y0),
        "y1": _own("y1", bessel.y1),
        "re": Expansion(expansions.same),
        "im": Expansion(expansions.zero),
        "conjugate": Expansion(expansions.same),
        "arg": Expansion(expansions.angle),
    }
)
"""Operation -> row, for real operands, in the strict mode."""

DEFAULT_ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "powi": Expansion(powers.compensated),
        "rsqrt": Expansion(roots.rsqrt),
        "atan": _own("atan", inverses.atan),
        "atan2": _own("atan2", inverses.atan2, 2),
        "exp": _own("exp", exponentials.exp),
        "exp2": _own("exp2", exponentials.exp2),
        "erf": _own("erf", errorfunctions.erf),
        "erfc": _own("erfc", errorfunctions.erfc),
        "sin": _own("sin", trigonometry.sin),
        "cos": _own("cos", trigonometry.cos),
    }
)
"""What replaces rows in the default mode."""

FAST_ROWS: Mapping[str, Row] = MappingProxyType({**DEFAULT_ROWS, "powi": Expansion(powers.plain)})
"""What replaces rows in the fast mode."""

ROWS: Mapping[str, Mapping[str, Row]] = MappingProxyType(
    {
        "strict": LOWERINGS,
        "default": {**LOWERINGS, **DEFAULT_ROWS},
        "fast": {**LOWERINGS, **FAST_ROWS},
    }
)
"""Accuracy mode -> operation -> row."""


_LIBRARY: Mapping[str, Row] = {
    "powi": Expansion(powers.powi_by_library),
    "rsqrt": Expansion(roots.rsqrt),
    **{
        op: Library(op)
        for op in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "hypot", "pow"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"),
        )
    },
}
"""What replaces rows where a multiply-add with one rounding is no instruction."""


def rows(target: HostTarget, accuracy: str) -> Mapping[str, Row]:
    """Operation -> row, for a processor and a mode."""
    found = ROWS[accuracy]
    return found if target.fuses else {**found, **_LIBRARY}


EXP_OF_TWO = Function("exp.of.two", exponentials.exp_of_two, arity=2)
"""``exp(a + b)``, the sum being exact."""

SINCOS = Function("sincos", trigonometry.sincos, results=2)
"""Sine and cosine of one argument."""


def lowered(b: Lanes, row: Row, operands: tuple[Value, ...], parameter: int | None) -> Value:
    """The result of an operation, written into ``b``."""
    match row:
        case Opcode(name):
            return b.op(name, *operands)
        case Compare(predicate):
            return b.compare(predicate, *operands)
        case Logic(name):
            return b.logic(name, *operands)
        case Intrinsic(name):
            return b.intrinsic(name, *operands)
        case Library(name):
            return b.library(name, *operands)
        case Own(function):
            return only(b, function, *operands)
        case Expansion(build):
            extra = () if parameter is None else (parameter,)
            return build(b, *operands, *extra)
