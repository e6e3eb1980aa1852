"""What users pass to ``compile_expr``, checked before anything is compiled."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from numbers import Integral, Number
from operator import index
from typing import Any

import attrs

from alkahest.derivative_outputs import Layout, with_derivatives
from alkahest.errors import InputError, InputTypeError, PoolError
from alkahest.expr import Expr, ExprPool
from alkahest.ops import DTYPES
from alkahest.splitting import ALL

CASTINGS = ("safe", "same_kind")
"""Values of ``casting=``; see :mod:`alkahest.conversion`."""

DERIVATIVES = (0, 1, 2)
"""Values of ``derivatives=``."""


@attrs.frozen(kw_only=True)
class Request:
    """What is to be computed.

    Attributes:
        exprs: one per output of the program, derivatives included.
        symbols: the inputs.
        single: whether a single expression was given.
        layout: how the outputs form value, gradient and Hessian; None without derivatives.
    """

    exprs: tuple[Expr, ...]
    symbols: tuple[Expr, ...]
    single: bool
    layout: Layout | None = None

    @classmethod
    def of(cls, expr: Any, inputs: Any, derivatives: Any, wrt: Any) -> Request:
        """Check the arguments of ``compile_expr`` and differentiate.

        Raises:
            InputError, InputTypeError, PoolError, DiffError: as :func:`alkahest.compile_expr`.
        """
        symbols = input_symbols(inputs)
        order = derivative_order(derivatives)
        variables = derivative_variables(wrt, order, symbols)
        exprs, single = expressions(expr, symbols)
        if not order:
            return cls(exprs=exprs, symbols=symbols, single=single)
        return cls(
            exprs=with_derivatives(exprs, variables, order),
            symbols=symbols,
            single=single,
            layout=Layout(order, len(variables), None if single else len(exprs)),
        )


def check_casting(casting: Any) -> None:
    """Refuse anything that is not one of :data:`CASTINGS`, with E-INPUT-011."""
    if casting not in CASTINGS:
        raise _not_one_of("casting", casting, CASTINGS)


def check_columns(columns: Any) -> None:
    """Refuse anything that holds no columns, with E-INPUT-008: a list, a tuple, a 2-D array do."""
    if isinstance(columns, (list, tuple)):
        return
    has_rows = getattr(columns, "ndim", 0) == 2
    if not (has_rows and (hasattr(columns, "__dlpack__") or has_dask([columns]))):
        raise InputTypeError(
            "E-INPUT-008",
            f"call_batch needs a list of columns, got {type_name(columns)}",
            remediation="Pass one column per input: call_batch([xs, ys]).",
        )


def check_result_dtype(dtype: Any, outputs: Sequence[str]) -> None:
    """Refuse the ``dtype=`` of a call where an output has another one, with E-INPUT-011."""
    import numpy as np

    for name in outputs:
        if np.dtype(dtype) != np.dtype(name):
            raise InputError(
                "E-INPUT-011",
                f"the function's results are {name}, not {np.dtype(dtype)}",
                remediation="Compile for that dtype: compile_expr(..., dtype=...).",
            )


def has_dask(values: Iterable[Any]) -> bool:
    """Whether one of ``values`` is a Dask array; Dask is not imported for it."""
    array = getattr(sys.modules.get("dask.array"), "Array", None)
    return array is not None and any(isinstance(value, array) for value in values)


def dtype_name(dtype: Any) -> str:
    """The name of ``dtype``, given as text, a NumPy dtype or a NumPy scalar type."""
    if isinstance(dtype, str):
        name = dtype
    else:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or repr(dtype)
    if name not in DTYPES:
        raise _not_one_of("dtype", name, DTYPES)
    return name


def device_choice(device: Any) -> int | str | None:
    """``device`` as an int, ``"all"`` or None; whether the ordinal exists is the backend's to say.

    Raises:
        InputTypeError: E-INPUT-008 for anything else.
    """
    if device is None:
        return None
    if isinstance(device, str):
        if device == ALL:
            return ALL
    elif not isinstance(device, bool):
        try:
            return index(device)
        except TypeError:
            pass
    raise InputTypeError(
        "E-INPUT-008",
        f"device must be an ordinal, {ALL!r} or None, got {type_name(device)}",
        remediation="Pass an int, as `alkahest devices` lists them.",
    )


def derivative_order(derivatives: Any) -> int:
    """``derivatives`` as 0, 1 or 2.

    Raises:
        InputError: E-INPUT-011 for anything else.
    """
    if not isinstance(derivatives, Integral) or derivatives not in DERIVATIVES:
        raise _not_one_of("derivatives", derivatives, DERIVATIVES)
    return int(derivatives)


def derivative_variables(wrt: Any, order: int, symbols: Sequence[Expr]) -> tuple[Expr, ...]:
    """The symbols to differentiate with respect to: ``wrt``, or every input where it is None.

    Raises:
        InputError: E-INPUT-007 for variables that are unordered, repeated or no inputs,
            E-INPUT-011 for variables of no derivatives.
        PoolError: E-POOL-001.
    """
    if wrt is None:
        return tuple(symbols)
    if order == 0:
        raise InputError(
            "E-INPUT-011",
            "wrt= was given, and no derivatives were asked for",
            remediation="Pass derivatives=1 or 2 too, or leave wrt= out.",
        )
    variables = input_symbols(wrt, "wrt")
    for variable in variables:
        if symbols and variable.pool is not symbols[0].pool:
            raise PoolError("E-POOL-001", f"wrt {variable.value!r} belongs to another pool")
        if variable not in symbols:
            raise InputError(
                "E-INPUT-007",
                f"wrt holds {variable.value!r}, which is not one of inputs",
                remediation="Differentiate with respect to inputs.",
            )
    return variables


def input_symbols(inputs: Any, name: str = "inputs") -> tuple[Expr, ...]:
    """``inputs``, if it is an ordered collection of distinct symbols of one pool.

    Args:
        inputs: what the caller passed.
        name: of the argument, for messages.

    Raises:
        InputError: E-INPUT-007, also for sets and dictionaries, whose order is an accident.
        PoolError: E-POOL-001.
    """
    if not isinstance(inputs, (list, tuple)):
        raise InputError(
            "E-INPUT-007", f"{name} must be a list or tuple of symbols, got {type_name(inputs)}"
        )
    one = name.removesuffix("s")
    seen: set[Expr] = set()
    for position, symbol in enumerate(inputs):
        if not isinstance(symbol, Expr) or symbol.head != "symbol":
            shown = str(symbol) if isinstance(symbol, Expr) else type_name(symbol)
            raise InputError("E-INPUT-007", f"{one} {position} is not a symbol: {shown:.80}")
        if symbol in seen:
            raise InputError("E-INPUT-007", f"{one} {position} repeats symbol {symbol.value!r}")
        if symbol.pool is not inputs[0].pool:
            raise PoolError("E-POOL-001", f"{one} {symbol.value!r} belongs to another pool")
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


def _not_one_of(what: str, given: Any, allowed: Sequence[object]) -> InputError:
    shown = ", ".join(map(str, allowed))
    return InputError(
        "E-INPUT-011",
        f"{what} {given!r} is not one of {shown}",
        remediation=f"Pass one of {shown}.",
    )
