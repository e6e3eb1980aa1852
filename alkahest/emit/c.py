"""Portable C11 for expressions.

The code computes what the CPU reference does, operation by operation, with the functions of the C
library: compile it in a standard mode (``-std=c11``), without fast-math options, and link ``-lm``.
Bessel functions are POSIX's. Complex programs compute with pairs of real numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from alkahest.arguments import Request, dtype_name
from alkahest.emit.c_operations import EXPRESSIONS, HELPERS, power
from alkahest.errors import CodegenError, InputError, InputTypeError
from alkahest.expr.nodes import Expr
from alkahest.ops import Kind
from alkahest.program import lower
from alkahest.program.records import Instruction, Program
from alkahest.program.split_complex import SplitProgram, split

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CALL = re.compile(r"\b(\w+)\(")

_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while complex I bool true false n i out INFINITY NAN "
    "isnan signbit main".split()
)
"""Words that cannot name a function or a variable: C's own and those that the code uses."""


def emit_c(
    expr: Any,
    inputs: Any,
    name: str = "alkahest_fn",
    *,
    var_names: Sequence[str] | None = None,
    dtype: str = "float64",
) -> str:
    """A complete C source: a function for one point, and one for a batch with OpenMP.

    ``double NAME(double x, ...)``, or ``void NAME(double x, ..., double *out)`` for a list;
    ``void NAME_batch(size_t n, const double *x, ..., double *out0, ...)`` loops over ``n`` points,
    in parallel where the compiler is told to (``-fopenmp``). Conditions are ``bool``, complex
    numbers ``double _Complex``.

    Args:
        expr: an expression or a list of them.
        inputs: symbols in the order of the parameters, or one symbol.
        name: of the function.
        var_names: of the parameters; the symbols' names unless given.
        dtype: as for :func:`alkahest.compile_expr`.

    Raises:
        InputError: E-INPUT-001 for another number of names, E-INPUT-007 for inputs that are no
            distinct symbols.
        CodegenError: E-EMIT-001 for a name that C does not allow, or used twice; E-JIT-005 for a
            free symbol missing from ``inputs``, E-JIT-006, E-JIT-010.
    """
    return _Function.of(expr, inputs, name, var_names, dtype).source()


def emit_c_program(program: Program, name: str = "alkahest_fn") -> str:
    """As :func:`emit_c`, for a verified program; the parameters are called ``x0``, ``x1``, ...

    The function ``name``, for one point, always writes to ``out``.
    """
    parameters = tuple(f"x{k}" for k in range(len(program.inputs)))
    _check_names([name, *parameters])
    function = _Function(
        name=name, parameters=parameters, single=False, program=program, split=split(program)
    )
    return function.source()


def emit_c_header(
    expr: Any,
    inputs: Any,
    name: str = "alkahest_fn",
    *,
    var_names: Sequence[str] | None = None,
    dtype: str = "float64",
) -> str:
    """The header with the prototypes of what :func:`emit_c` defines.

    Args:
        expr, inputs, name, var_names, dtype: as for :func:`emit_c`.

    Raises:
        InputError, CodegenError: as :func:`emit_c`.
    """
    function = _Function.of(expr, inputs, name, var_names, dtype)
    guard = f"{name.upper()}_H"
    return "\n".join(
        [
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdbool.h>",
            "#include <stddef.h>",
            "",
            f"{function.prototype()};",
            f"{function.batch_prototype()};",
            "",
            "#endif",
            "",
        ]
    )


def emit_c_expr(
    expr: Expr,
    vars: Any,
    var_names: Sequence[str] | None = None,
    fn_name: str = "f",
    *,
    dtype: str = "float64",
) -> str:
    """C for one expression at one point: ``double fn_name(double x, ...)``, with its includes.

    Args:
        expr: the expression.
        vars: its symbols, in the order of the parameters.
        var_names: names of the parameters; the symbols' by default.
        fn_name: name of the function.
        dtype: as for :func:`emit_c`.

    Raises:
        InputTypeError: E-INPUT-008 for anything but an expression.
        InputError, CodegenError: as :func:`emit_c`.
    """
    if not isinstance(expr, Expr):
        raise InputTypeError(
            "E-INPUT-008",
            f"emit_c_expr takes one expression, got {type(expr).__name__}",
            remediation="emit_c_vec takes a list.",
        )
    function = _Function.of(expr, vars, fn_name, var_names, dtype)
    return "\n".join([*function.preamble(), *function.definition(), ""])


def emit_c_vec(
    exprs: Sequence[Expr],
    vars: Any,
    var_names: Sequence[str] | None = None,
    fn_name: str = "eval_vec",
    *,
    dtype: str = "float64",
) -> str:
    """C for several expressions: ``void fn_name(double x, ..., double *out)``, with its includes.

    Args:
        exprs: the expressions; the function writes their values to ``out`` in this order.
        vars, var_names, fn_name, dtype: as for :func:`emit_c_expr`.

    Raises:
        InputError, CodegenError: as :func:`emit_c`.
    """
    function = _Function.of(list(exprs), vars, fn_name, var_names, dtype)
    return "\n".join([*function.preamble(), *function.definition(), ""])


@attrs.frozen(kw_only=True)
class _Function:
    """One function of C.

    Attributes:
        name: of the function.
        parameters: names of the inputs.
        single: whether the one output is returned.
        program: what is computed; its split form has real numbers only.
    """

    name: str
    parameters: tuple[str, ...]
    single: bool
    program: Program
    split: SplitProgram

    @classmethod
    def of(
        cls, expr: Any, inputs: Any, name: str, names: Sequence[str] | None, dtype: str
    ) -> _Function:
        request = Request.of(expr, [inputs] if isinstance(inputs, Expr) else inputs, 0, None)
        parameters = [str(s.value) for s in request.symbols] if names is None else names
        if isinstance(parameters, str) or len(parameters) != len(request.symbols):
            raise InputError(
                "E-INPUT-001", f"var_names must be a list of {len(request.symbols)} names"
            )
        _check_names([name, *parameters])
        program = lower(request.exprs, request.symbols, dtype_name(dtype))
        function = cls(
            name=name,
            parameters=tuple(parameters),
            single=request.single,
            program=program,
            split=split(program),
        )
        function.check_calls()
        return function

    @property
    def _real(self) -> str:
        return "float" if self.split.program.dtype == "float32" else "double"

    @property
    def _suffix(self) -> str:
        return "f" if self._real == "float" else ""

    @property
    def _input(self) -> str:
        return f"{self._real} _Complex" if self.program.is_complex else self._real

    def _output(self, position: int) -> str:
        kind = self.program.kinds[self.program.outputs[position]]
        return {
            Kind.BOOL: "bool",
            Kind.REAL: self._real,
            Kind.COMPLEX: f"{self._real} _Complex",
        }[kind]

    @property
    def _common_output(self) -> str:
        """The type that holds every output of a function of several."""
        types = {self._output(k) for k in range(len(self.program.outputs))}
        return f"{self._real} _Complex" if f"{self._real} _Complex" in types else self._real

    def check_calls(self) -> None:
        """A parameter hides a function of its name, which is an error where the code calls it."""
        called = {name for line in self._body() for name in _CALL.findall(line)}
        for name in (self.name, *self.parameters):
            if name in called:
                raise _unusable(name, "is a function of the C library that the code calls")

    def source(self) -> str:
        """Everything, for one point and for a batch."""
        return "\n".join([*self.preamble(), *self.definition(), "", *self.batch_definition(), ""])

    def preamble(self) -> Iterator[str]:
        """Includes and helpers."""
        if self.program.is_complex:
            yield "#include <complex.h>"
        yield from ("#include <math.h>", "#include <stdbool.h>", "#include <stddef.h>", "")
        for op, text in HELPERS.items():
            if op in self.split.program.ops_used:
                yield text.format(T=self._real, f=self._suffix)

    def prototype(self) -> str:
        """The declaration of the function for one point, without its semicolon."""
        parameters = [f"{self._input} {p}" for p in self.parameters]
        if self.single:
            return f"{self._output(0)} {self.name}({', '.join(parameters) or 'void'})"
        return f"void {self.name}({', '.join([*parameters, f'{self._common_output} *out'])})"

    def batch_prototype(self) -> str:
        """The declaration of the function for a batch."""
        columns = [f"const {self._input} *{p}" for p in self.parameters]
        results = [f"{self._output(k)} *out{k}" for k in range(len(self.program.outputs))]
        return f"void {self.name}_batch({', '.join(['size_t n', *columns, *results])})"

    def definition(self) -> Iterator[str]:
        """The function for one point."""
        yield f"{self.prototype()} {{"
        yield from self._body()
        for k, parts in enumerate(self.split.outputs):
            value = self._packed([self._value(self.split.program.outputs[p]) for p in parts])
            yield f"    return {value};" if self.single else f"    out[{k}] = {value};"
        yield "}"

    def batch_definition(self) -> Iterator[str]:
        """The loop over points."""
        arguments = [f"{p}[i]" for p in self.parameters]
        count = len(self.program.outputs)
        yield f"{self.batch_prototype()} {{"
        yield "#if defined(_OPENMP)"
        yield "#pragma omp parallel for"
        yield "#endif"
        yield "    for (size_t i = 0; i < n; i++) {"
        if self.single:
            yield f"        out0[i] = {self.name}({', '.join(arguments)});"
        else:
            yield f"        {self._common_output} out[{count}];"
            yield f"        {self.name}({', '.join([*arguments, 'out'])});"
            for k in range(count):
                yield f"        out{k}[i] = {self._narrowed(k)};"
        yield "    }"
        yield "}"

    def _narrowed(self, k: int) -> str:
        """Output ``k`` of the common type in its own: reading a real part loses nothing."""
        own, common = self._output(k), self._common_output
        if own == common:
            return f"out[{k}]"
        return f"({own})creal(out[{k}])" if "Complex" in common else f"({own})out[{k}]"

    def _body(self) -> Iterator[str]:
        for k, parts in enumerate(self.split.inputs):
            if len(parts) == 2:
                for part, reader in zip(parts, ("creal", "cimag"), strict=True):
                    yield (
                        f"    const {self._real} {self._value(part)} = "
                        f"{reader}{self._suffix}({self.parameters[k]});"
                    )
        program = self.split.program
        for number, instruction in enumerate(program.code, program.first_instruction):
            c_type = "bool" if program.kinds[number] is Kind.BOOL else self._real
            yield f"    const {c_type} {self._value(number)} = {self._expression(instruction)};"

    def _expression(self, instruction: Instruction) -> str:
        op, args, parameter = instruction
        operands = [self._value(a) for a in args]
        if parameter is not None:
            return power(operands[0], parameter, self._suffix)
        names = dict(zip("abc", operands, strict=False))
        return EXPRESSIONS[op].format(T=self._real, f=self._suffix, **names)

    def _value(self, number: int) -> str:
        """How the code refers to a value of the split program."""
        program = self.split.program
        inputs = len(program.inputs)
        if number < inputs and not self.program.is_complex:
            return self.parameters[number]
        if inputs <= number < program.first_instruction:
            return self._constant(program.constants[number - inputs])
        return f"{self._prefix}{number}"

    @property
    def _prefix(self) -> str:
        """What variables are called before their number, unlike any parameter."""
        prefix = "v"
        while any(re.fullmatch(rf"{prefix}\d+", p) for p in self.parameters):
            prefix += "_"
        return prefix

    def _constant(self, value: float | complex | bool) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        assert isinstance(value, float)  # a split program has no complex ones
        if value != value:
            return "NAN"
        if value in (float("inf"), float("-inf")):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        shown = repr(value) if value == int(value) and abs(value) < 1e6 else value.hex()
        shown += self._suffix
        return f"({shown})" if shown.startswith("-") else shown

    def _packed(self, parts: list[str]) -> str:
        """A value of C from the real ones of its parts."""
        if len(parts) == 1:
            return parts[0]
        return f"CMPLX{self._suffix.upper()}({parts[0]}, {parts[1]})"


def _check_names(names: list[str]) -> None:
    for k, name in enumerate(names):
        if not isinstance(name, str) or not _IDENTIFIER.match(name) or name in _RESERVED:
            raise _unusable(name, "is not a name that the C code can use")
        if name in names[:k]:
            raise _unusable(name, "is used twice")


def _unusable(name: object, reason: str) -> CodegenError:
    return CodegenError(
        "E-EMIT-001",
        f"{name!r} {reason}",
        remediation="Pass var_names=, one C identifier for each input, and a name of its own.",
    )
