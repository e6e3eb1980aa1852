"""What users pass to ``compile_expr``, checked before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from operator import index
from typing import Any

from alkahest.errors import InputError, InputTypeError, PoolError
from alkahest.expr import Expr, ExprPool
from alkahest.ops import DTYPES

CASTINGS = ("safe", "same_kind")
"""Values of ``casting=``; see :mod:`alkahest.conversion`."""


def check_casting(casting: Any) -> None:
    """Refuse anything that is not one of :data:`CASTINGS`, with E-INPUT-011."""
    if casting not in CASTINGS:
        raise _not_one_of("casting", casting, CASTINGS)


def dtype_name(dtype: Any) -> str:
    """The name of ``dtype``, given as text, a NumPy dtype or a NumPy scalar type."""
    if isinstance(dtype, str):
        name = dtype
    else:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or repr(dtype)
    if name not in DTYPES:
        raise _not_one_of("dtype", name, DTYPES)
    return name


def device_ordinal(device: Any) -> int | None:
    """``device`` as an int, or None; whether the ordinal exists is the backend's to say.

    Raises:
        InputTypeError: E-INPUT-008 for anything that is no integer.
    """
    if device is None:
        return None
    if not isinstance(device, bool):
        try:
            return index(device)
        except TypeError:
            pass
    raise InputTypeError(
        "E-INPUT-008",
        f"device must be an ordinal or None, got {type_name(device)}",
        remediation="Pass an int, as `alkahest devices` lists them.",
    )


def input_symbols(inputs: Any) -> tuple[Expr, ...]:
    """``inputs``, if it is an ordered collection of distinct symbols of one pool.

    Raises:
        InputError: E-INPUT-007, also for sets and dictionaries, whose order is an accident.
        PoolError: E-POOL-001.
    """
    if not isinstance(inputs, (list, tuple)):
        raise InputError(
            "E-INPUT-007", f"inputs must be a list or tuple of symbols, got {type_name(inputs)}"
        )
    seen: set[Expr] = set()
    for position, symbol in enumerate(inputs):
        if not isinstance(symbol, Expr) or symbol.head != "symbol":
            shown = str(symbol) if isinstance(symbol, Expr) else type_name(symbol)
            raise InputError("E-INPUT-007", f"input {position} is not a symbol: {shown:.80}")
        if symbol in seen:
            raise InputError("E-INPUT-007", f"input {position} repeats symbol {symbol.value!r}")
        if symbol.pool is not inputs[0].pool:
            raise PoolError("E-POOL-001", f"input {symbol.value!r} belongs to another pool")
        seen.add(symbol)
    return tuple(inputs)


def expressions(expr: Any, symbols: Sequence[Expr]) -> tuple[tuple[Expr, ...], bool]:
    """The expressions to compile, all of one pool, and whether ``expr`` was a single one.

    Numbers become constants of the pool.

    Raises:
        InputTypeError: E-INPUT-008 for anything else, and for an empty or nested list.
        PoolError: E-POOL-001.
    """
    single = not isinstance(expr, (list, tuple))
    given: Sequence[Any] = [expr] if single else expr
    if not given:
        raise InputTypeError(
            "E-INPUT-008", "the list of expressions is empty", remediation="Pass one or more."
        )
    pools = [e.pool for e in (*symbols, *given) if isinstance(e, Expr)]
    pool: ExprPool = pools[0] if pools else ExprPool()
    if any(other is not pool for other in pools):
        raise PoolError("E-POOL-001", "expressions and inputs belong to different pools")
    return tuple(_expression(e, pool, i, single) for i, e in enumerate(given)), single


def _expression(value: Any, pool: ExprPool, position: int, single: bool) -> Expr:
    if isinstance(value, Expr):
        return value
    from_sympy = type(value).__module__.partition(".")[0] == "sympy"
    if isinstance(value, Number) and not from_sympy:
        number: Any = value
        return pool.constant(number)
    place = "expr" if single else f"expression {position}"
    remedy = "Build it with alkahest's functions and operators."
    if isinstance(value, (list, tuple)):
        remedy = "Pass a flat list of expressions."
    elif isinstance(value, str) or from_sympy:
        remedy = "Convert it first: alkahest.parse(str(expr), pool)."
    raise InputTypeError(
        "E-INPUT-008",
        f"{place} is not an expression but {type_name(value)}",
        remediation=remedy,
    )


def type_name(value: Any) -> str:
    """How messages name the type of ``value``: with its module, unless it is built in."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _not_one_of(what: str, given: Any, allowed: Sequence[str]) -> InputError:
    shown = ", ".join(allowed)
    return InputError(
        "E-INPUT-011",
        f"{what} {given!r} is not one of {shown}",
        remediation=f"Pass one of {shown}.",
    )
