"""SymPy's ``lambdify``, with compiled batch evaluation behind it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
from sympy.tensor.array.arrayop import Flatten

from alkahest.array_libraries import library_of
from alkahest.compiled import CompiledFn, compile_expr
from alkahest.errors import InputError, InputTypeError
from alkahest.expr.nodes import Expr
from alkahest.expr.pool import ExprPool
from alkahest.expr.walk import postorder
from alkahest.interop.sympy_reader import Reader

_REPLACED_MODULES = frozenset({"math", "numpy", "scipy", "numexpr", "jax", "cupy"})
"""Names for ``modules=`` that a script may hold on to; the backend takes their place."""


def lambdify(
    args: Any,
    expr: Any,
    modules: Any = None,
    printer: None = None,
    use_imps: bool = True,
    dummify: bool = False,
    cse: Any = False,
    docstring_limit: int | None = 1000,
    *,
    backend: str | None = None,
    dtype: str | None = None,
    **options: Any,
) -> LambdifiedFunction:
    """A function of numbers from an expression of SymPy, called as ``sympy.lambdify``'s is.

    Args:
        args: a symbol, or a list of arguments: symbols, nested lists of them, matrices of
            symbols, matrix symbols. Functions such as ``q(t)``, their derivatives and indexed
            elements stand for numbers as symbols do.
        expr: an expression or condition, a matrix or array, or a list or tuple of these.
        modules: names of libraries are accepted and ignored; functions of the caller's own are
            refused.
        printer, use_imps, dummify, cse, docstring_limit: for compatibility. Shared
            subexpressions are always computed once.
        backend: as for :func:`alkahest.compile_expr`.
        dtype: of the computation. None: float64, or complex128 for an expression with ``I`` and
            for calls with complex arguments.
        options: as for :func:`alkahest.compile_expr`, ``derivatives`` excepted.

    Returns:
        A function. Arguments broadcast; a result has their broadcast shape. A matrix gives an
        array of shape (rows, columns, \\*broadcast shape), lists and tuples give lists and tuples.

    Raises:
        InputTypeError: E-SYMPY-001 for what has no equivalent here, E-INPUT-008 for an argument
            that stands for no number.
        InputError: E-SYMPY-002, E-INPUT-007 for a symbol given twice, E-INPUT-011 for
            ``modules``, ``printer`` or ``derivatives`` that cannot be honoured.
        CodegenError: as for :func:`alkahest.compile_expr`, E-JIT-005 for a free symbol that is
            not among ``args``.
    """
    _check_modules(modules)
    if printer is not None:
        raise InputError("E-INPUT-011", "printer= has no meaning here: no source code is printed")
    if options.get("derivatives"):
        raise InputError(
            "E-INPUT-011",
            "derivatives= has no meaning here: results are nested as the expression is",
            remediation="List them, as in [f, f.diff(x)], or compile from_sympy(f) by compile_expr.",
        )
    return LambdifiedFunction(args, expr, backend=backend, dtype=dtype, options=options)


class LambdifiedFunction:
    """What :func:`lambdify` returns: compiled once for real, once for complex arguments.

    Attributes:
        expr: the SymPy expression, as given.
        compiled: the function compiled for real arguments.
    """

    def __init__(
        self,
        args: Any,
        expr: Any,
        *,
        backend: str | None,
        dtype: str | None,
        options: Mapping[str, Any],
    ) -> None:
        self.expr = expr
        self._made_from = (args, expr, backend, dtype, dict(options))
        reader = Reader(ExprPool())
        self._arguments = list(args) if _is_sequence(args) else [args]
        inputs = [reader.input(leaf) for a in self._arguments for leaf in _symbols(a)]
        self._shape, members = _structure(expr)
        exprs = [reader.read(member) for member in members]
        imaginary = any(n.head == "constant" and n.value == "I" for n in postorder(*exprs))
        self._chooses = dtype is None
        self.compiled = self._compile(
            exprs, inputs, dtype or ("complex128" if imaginary else "float64")
        )
        self._complex = self.compiled if self.compiled.dtype.startswith("complex") else None
        self._exprs, self._inputs = exprs, inputs
        self.__name__ = "lambdified"
        names = [str(s) for s in self._arguments]
        self.__doc__ = f"Evaluate {expr} for numbers or arrays {', '.join(names)}."
        self.__signature__ = _signature(names)

    def _compile(self, exprs: list[Expr], inputs: list[Expr], dtype: str) -> CompiledFn:
        _, _, backend, _, options = self._made_from
        return compile_expr(exprs, inputs, backend=backend, dtype=dtype, **options)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """The expression's value, one argument for each of ``args``, in their nesting.

        Raises:
            TypeError: for a wrong number of arguments or an unknown name.
            InputError, InputTypeError: as for calling a compiled function; E-INPUT-001 for a
                nested argument of another length.
        """
        if named or len(values) != len(self._arguments):
            bound = self.__signature__.bind(*values, **named)
            values = bound.args
        columns = [
            column
            for argument, value in zip(self._arguments, values, strict=True)
            for column in _columns(argument, value)
        ]
        results = iter(self._for(columns)(*columns))
        return _assembled(self._shape, results)

    def _for(self, columns: list[Any]) -> CompiledFn:
        if self._complex is None and self._chooses and any(map(_is_complex, columns)):
            self._complex = self._compile(self._exprs, self._inputs, "complex128")
        if self._complex is not None and any(map(_is_complex, columns)):
            return self._complex
        return self.compiled

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, self._made_from

    def __repr__(self) -> str:
        return f"<lambdified {self.__signature__}, backend {self.compiled.backend!r}>"


def _rebuilt(args: Any, expr: Any, backend: Any, dtype: Any, options: Any) -> LambdifiedFunction:
    return LambdifiedFunction(args, expr, backend=backend, dtype=dtype, options=options)


def _check_modules(modules: Any) -> None:
    for module in modules if isinstance(modules, (list, tuple)) else [modules]:
        own = isinstance(module, dict)
        name = None if own else getattr(module, "__name__", module)
        if own or (name is not None and name not in _REPLACED_MODULES):
            shown = "functions of the caller's own" if own else repr(name)
            raise InputError(
                "E-INPUT-011",
                f"modules= holds {shown}, which compiled code cannot call",
                remediation="Leave modules out, or write the function as an expression.",
            )


# Arguments

_LISTS = (list, tuple, sympy.Tuple)

_INPUTS = (
    sympy.Symbol,
    sympy.Indexed,
    sympy.matrices.expressions.matexpr.MatrixElement,
    sympy.Function,
    sympy.Derivative,
)
"""What stands for one number, as for SymPy's ``lambdify``."""


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (*_LISTS, sympy.MatrixBase))


def _symbols(argument: Any) -> Iterator[Any]:
    """The symbols of one argument, from left to right."""
    if isinstance(argument, sympy.MatrixSymbol):
        argument = argument.as_explicit()
    if _is_sequence(argument):
        for member in argument:
            yield from _symbols(member)
        return
    argument = sympy.Symbol(argument) if isinstance(argument, str) else argument
    if not isinstance(argument, _INPUTS):
        raise InputTypeError(
            "E-INPUT-008",
            f"an argument must be a symbol, not {type(argument).__name__} {argument}",
            remediation="Replace it by a symbol in the expression first: expr.subs(part, symbol).",
        )
    yield argument


def _columns(argument: Any, value: Any) -> Iterator[Any]:
    """The numbers or arrays in ``value`` for the symbols of ``argument``.

    A matrix takes what has its shape, or all of its elements one after another.
    """
    if isinstance(argument, (sympy.MatrixBase, sympy.MatrixSymbol)):
        shape: tuple[Any, Any] = argument.shape  # SymPy types sizes as expressions
        rows, columns = shape
        if len(value) != rows * columns or len(getattr(value, "shape", ())) > 1:
            _check_length(argument, value, rows)
            for row in value:
                _check_length(argument, row, columns)
            value = [part for row in value for part in row]
        yield from value
    elif _is_sequence(argument):
        _check_length(argument, value, len(argument))
        for member, part in zip(argument, value, strict=True):
            yield from _columns(member, part)
    else:
        yield value


def _check_length(argument: Any, value: Any, expected: int) -> None:
    if len(value) != expected:
        raise InputError(
            "E-INPUT-001", f"argument {argument} takes {expected} parts here, got {len(value)}"
        )


def _is_complex(column: Any) -> bool:
    dtype = getattr(column, "dtype", None)
    if dtype is not None:
        return "complex" in str(dtype)
    if isinstance(column, (list, tuple)):
        return any(map(_is_complex, column))
    return isinstance(column, complex)


def _signature(names: Sequence[str]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = all(name.isidentifier() for name in names) and len({*names}) == len(names)
    shown = names if named else [f"argument_{i}" for i in range(len(names))]
    return inspect.Signature([inspect.Parameter(name, kind) for name in shown])


# Results


def _structure(expr: Any) -> tuple[Any, list[Any]]:
    """How results are nested, and the expressions from left to right.

    A structure is None for one value, the shape of a matrix or array, or a pair (list or tuple,
    structures of the members).
    """
    if isinstance(expr, sympy.MatrixExpr):
        expr = expr.as_explicit()
    if isinstance(expr, (sympy.MatrixBase, sympy.NDimArray)):
        return tuple(map(int, expr.shape)), list(Flatten(expr))
    if isinstance(expr, _LISTS):
        shapes, members = [], []
        for member in expr:
            shape, leaves = _structure(member)
            shapes.append(shape)
            members += leaves
        return (list if isinstance(expr, list) else tuple, shapes), members
    return None, [expr]


def _assembled(structure: Any, results: Iterator[Any]) -> Any:
    if structure is None:
        return next(results)
    if structure and isinstance(structure[0], type):
        kind, members = structure
        return kind(_assembled(member, results) for member in members)
    flat = [next(results) for _ in range(math.prod(structure))]
    return _stacked(flat).reshape((*structure, *flat[0].shape))


def _stacked(arrays: list[Any]) -> Any:
    """One array of these, made by their own library: on its device, lazy if they are."""
    library = library_of(arrays[0]).module
    if hasattr(library, "stack"):
        return library.stack(arrays)
    if hasattr(arrays[0], "__array_namespace__"):
        return arrays[0].__array_namespace__().stack(arrays)
    import numpy as np

    return np.stack(arrays)  # which asks Dask
