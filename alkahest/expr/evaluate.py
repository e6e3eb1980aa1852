"""The value of an expression at one point, in plain Python.

An expression is lowered like for any backend and the program is interpreted, so the value is the
one that a backend gives, up to the accuracy of the functions. For many points compile instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from alkahest.errors import EvalError, InputError, InputTypeError
from alkahest.expr.bags import mixed_pools
from alkahest.expr.nodes import Expr
from alkahest.expr.numbers import Number, payload
from alkahest.expr.walk import postorder

if TYPE_CHECKING:
    from alkahest.program import Program

Scalar = float | complex | bool


def eval_expr(expr: Expr, bindings: Mapping[Expr | str, Number] | None = None) -> Scalar:
    """The value of ``expr`` where its symbols have the values of ``bindings``.

    Arithmetic is that of float64 with the rules of IEEE 754: ``1/0`` is an infinity, ``log(-1)``
    is nan, nothing raises. When a binding that is used is complex, or the imaginary unit occurs,
    all of it is complex (C99 Annex G) and ordering comparisons are refused.

    Args:
        expr: a number or a condition.
        bindings: symbols of the pool of ``expr``, or their names, to numbers; exact ones are
            rounded once to float64. Symbols that do not occur are ignored.

    Returns:
        A float; a complex for complex values; a bool for conditions.

    Raises:
        EvalError: E-EVAL-001 naming the symbols without a value.
        InputTypeError: E-INPUT-008 for a value that is no number, E-INPUT-004 for one beyond the
            range of float64; both name the symbol.
        InputError: E-INPUT-007 for a key that is not a symbol, or bound twice.
        PoolError: E-POOL-001 for a key of another pool.
        CodegenError: E-JIT-006 for a constant beyond the range of float64, E-JIT-010 for an
            operation without meaning for complex operands.
    """
    from alkahest.program import lower

    if not isinstance(expr, Expr):
        raise InputTypeError(
            "E-INPUT-008", f"the expression must be an Expr, not {type(expr).__name__}"
        )
    values = _by_symbol(expr, {} if bindings is None else bindings)
    nodes = list(postorder(expr))
    inputs = sorted((n for n in nodes if n.head == "symbol"), key=lambda n: str(n.value))
    unbound = [repr(s.value) for s in inputs if s not in values]
    if unbound:
        more = f" and {len(unbound) - 8} more" if len(unbound) > 8 else ""
        raise EvalError("E-EVAL-001", f"no value for {', '.join(unbound[:8])}{more}")
    point = [_number(s.value, values[s]) for s in inputs]
    has_unit = any(n.head == "constant" and n.value == "I" for n in nodes)
    is_complex = has_unit or any(isinstance(v, complex) for v in point)
    program = lower([expr], inputs, "complex128" if is_complex else "float64")
    return interpret(program, [complex(v) for v in point] if is_complex else point)[0]


def interpret(program: Program, point: Sequence[float | complex]) -> list[Scalar]:
    """The outputs of a float64 or complex128 program at one point.

    Args:
        point: one number per input, of the program's kind.
    """
    from alkahest.expr.complex_math import COMPLEX
    from alkahest.expr.real_math import REAL

    values: list[Any] = [*point, *program.constants]
    for op, args, parameter in program.code:
        operands = [values[a] for a in args]
        # The last operand decides: the first one of a select is a condition.
        table = COMPLEX if isinstance(operands[-1], complex) else REAL
        if parameter is not None:
            operands.append(parameter)
        values.append(table[op](*operands))
    return [values[o] for o in program.outputs]


def _by_symbol(expr: Expr, bindings: Mapping[Expr | str, Number]) -> dict[Expr, object]:
    if not isinstance(bindings, Mapping):
        raise InputTypeError(
            "E-INPUT-008",
            f"bindings must be a mapping from symbols to numbers, not {type(bindings).__name__}",
        )
    values: dict[Expr, object] = {}
    for key, value in bindings.items():
        symbol = expr.pool.symbol(key) if isinstance(key, str) else key
        if not isinstance(symbol, Expr) or symbol.head != "symbol":
            shown = symbol.head if isinstance(symbol, Expr) else type(key).__name__
            raise InputError("E-INPUT-007", f"a key of bindings is not a symbol but {shown}")
        if symbol.pool is not expr.pool:
            raise mixed_pools("bindings")
        if symbol in values:
            raise InputError("E-INPUT-007", f"bindings give {symbol.value!r} two values")
        values[symbol] = value
    return values


def _number(name: str, value: object) -> float | complex:
    """The value bound to ``name``, rounded once."""
    number = payload(value)
    if isinstance(number, int | Fraction):
        try:
            return float(number)
        except OverflowError:
            raise InputTypeError(
                "E-INPUT-004",
                f"the value of {name!r} is outside the range of float64",
                remediation="Scale the problem so that its values fit.",
            ) from None
    if number is None:
        shown = repr(value) if not isinstance(value, Expr) else "an expression"
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise InputTypeError(
            "E-INPUT-008",
            f"the value of {name!r} is no number: {shown} ({type(value).__name__})",
            remediation="Bind each symbol to one number; for columns of numbers use compile_expr.",
        )
    return number
