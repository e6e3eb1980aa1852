"""Expressions as a module of StableHLO, the input language of XLA.

Follows the specification of StableHLO (openxla.org/stablehlo/spec), with functions of its companion
dialect CHLO. Precision of the functions is the consumer's.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from alkahest.arguments import Request, dtype_name
from alkahest.errors import CodegenError, InputError
from alkahest.expr.nodes import Expr
from alkahest.ops import Kind
from alkahest.program import lower
from alkahest.program.records import Instruction, Program
from alkahest.program.split_complex import SplitProgram, split

_STABLEHLO = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negate",
    "pow": "power",
    "min": "minimum",
    "max": "maximum",
    "abs": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round_nearest_even",
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "log": "log",
    "log1p": "log_plus_one",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "cbrt": "cbrt",
    "sin": "sine",
    "cos": "cosine",
    "tan": "tan",
    "atan2": "atan2",
    "tanh": "tanh",
    "and": "and",
    "or": "or",
    "not": "not",
}
_CHLO = {
    **{
        name: name for name in "asin acos atan sinh cosh asinh acosh atanh erf erfc digamma".split()
    },
    "erfinv": "erf_inv",
    "lgamma": "lgamma",
}
_COMPARISONS = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "ne": "NE"}

_LARGEST_PRODUCT = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.-]*\Z")


def to_stablehlo(
    expr: Any,
    inputs: Any,
    fn_name: str = "alkahest_fn",
    *,
    shape: Sequence[int] = (),
    dtype: str = "float64",
) -> str:
    """The text of a module whose public function ``main`` computes ``expr``.

    Args:
        expr: an expression, or a list of them for several results.
        inputs: symbols in the order of the arguments, or one symbol.
        fn_name: of the module.
        shape: of every argument and result; the default is a scalar.
        dtype: as for :func:`alkahest.compile_expr`. Conditions are ``i1``.

    Raises:
        InputError: E-INPUT-011 for what is no shape, E-INPUT-007.
        CodegenError: E-EMIT-001 for a name that the language does not allow, E-EMIT-002 naming an
            operation that StableHLO and CHLO lack: fma, hypot, gamma and Bessel functions;
            E-JIT-005, E-JIT-006, E-JIT-010.
    """
    if not isinstance(fn_name, str) or not _NAME.match(fn_name):
        raise CodegenError(
            "E-EMIT-001",
            f"{fn_name!r} is not a name of a module",
            remediation="Use letters, digits and underscores.",
        )
    sizes = _sizes(shape)
    request = Request.of(expr, [inputs] if isinstance(inputs, Expr) else inputs, 0, None)
    program = lower(request.exprs, request.symbols, dtype_name(dtype))
    return _Module(program, sizes).text(fn_name)


def _sizes(shape: Any) -> list[int]:
    try:
        sizes = [operator.index(size) for size in shape]
    except TypeError:
        sizes = [-1]
    if any(size < 0 for size in sizes):
        raise InputError(
            "E-INPUT-011",
            f"shape={shape!r} is not a list or tuple of sizes",
            remediation="Pass integers of 0 or more, as in shape=(1024,).",
        )
    return sizes


class _Module:
    """Writes one program; values are named by their number in its split form."""

    def __init__(self, program: Program, sizes: Sequence[int]) -> None:
        self._whole = program
        self._split: SplitProgram = split(program)
        self._program = self._split.program
        self._sizes = "".join(f"{size}x" for size in sizes)
        self._float = "f32" if self._program.dtype == "float32" else "f64"
        self._real = self._tensor(self._float)
        self._temporaries = 0

    def text(self, name: str) -> str:
        whole = self._whole
        number = self._tensor(f"complex<{self._float}>") if whole.is_complex else self._real
        arguments = ", ".join(f"%arg{k}: {number}" for k in range(len(whole.inputs)))
        types = {Kind.REAL: self._real, Kind.BOOL: self._tensor("i1"), Kind.COMPLEX: number}
        results = [types[whole.kinds[o]] for o in whole.outputs]
        body = [*self._read(number), *self._constants(), *self._code()]
        returned = []
        for parts, result in zip(self._split.outputs, results, strict=True):
            values = [self._value(self._program.outputs[p]) for p in parts]
            if len(values) == 2:
                packed = self._new()
                body.append(f"{packed} = stablehlo.complex {values[0]}, {values[1]} : {result}")
                values = [packed]
            returned += values
        lines = [
            f"module @{name} {{",
            f"  func.func public @main({arguments}) -> ({', '.join(results)}) {{",
            *(f"    {line}" for line in body),
            f"    return {', '.join(returned)} : {', '.join(results)}",
            "  }",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _tensor(self, element: str) -> str:
        return f"tensor<{self._sizes}{element}>"

    def _new(self) -> str:
        self._temporaries += 1
        return f"%t{self._temporaries}"

    def _value(self, number: int) -> str:
        if number < len(self._program.inputs) and not self._whole.is_complex:
            return f"%arg{number}"
        return f"%v{number}"

    def _read(self, number: str) -> Iterator[str]:
        for k, parts in enumerate(self._split.inputs):
            if len(parts) == 2:
                for part, op in zip(parts, ("real", "imag"), strict=True):
                    yield (
                        f"{self._value(part)} = stablehlo.{op} %arg{k} : ({number}) -> {self._real}"
                    )

    def _constants(self) -> Iterator[str]:
        for k, value in enumerate(self._program.constants, len(self._program.inputs)):
            yield self._constant(self._value(k), value)

    def _constant(self, target: str, value: float | complex | bool) -> str:
        if isinstance(value, bool):
            return f"{target} = stablehlo.constant dense<{str(value).lower()}> : " + (
                self._tensor("i1")
            )
        packed = struct.pack(">f" if self._float == "f32" else ">d", value)
        return f"{target} = stablehlo.constant dense<0x{packed.hex().upper()}> : {self._real}"

    def _code(self) -> Iterator[str]:
        for number, instruction in enumerate(self._program.code, self._program.first_instruction):
            yield from self._instruction(number, instruction)

    def _instruction(self, number: int, instruction: Instruction) -> Iterator[str]:
        op, args, parameter = instruction
        target = self._value(number)
        operands = [self._value(a) for a in args]
        kind = self._program.kinds[number]
        result = self._tensor("i1") if kind is Kind.BOOL else self._real
        if op in _COMPARISONS:
            yield (
                f"{target} = stablehlo.compare {_COMPARISONS[op]}, {operands[0]}, {operands[1]}, "
                f"FLOAT : ({self._real}, {self._real}) -> {result}"
            )
        elif op in _STABLEHLO:
            yield f"{target} = stablehlo.{_STABLEHLO[op]} {', '.join(operands)} : {result}"
        elif op in _CHLO:
            yield f"{target} = chlo.{_CHLO[op]} {operands[0]} : {result} -> {result}"
        elif op == "select":
            yield f"{target} = stablehlo.select {', '.join(operands)} : {self._tensor('i1')}, {result}"
        elif op == "powi" and parameter is not None:
            yield from self._power(target, operands[0], parameter)
        elif op in _EXPANSIONS:
            yield from self._expansion(op, target, operands)
        else:
            raise CodegenError("E-EMIT-002", f"StableHLO has no operation {op!r}")

    def _binary(self, target: str, op: str, a: str, b: str) -> str:
        return f"{target} = stablehlo.{op} {a}, {b} : {self._real}"

    def _power(self, target: str, base: str, exponent: int) -> Iterator[str]:
        """Products up to the fourth power, ``power`` with the exponent as a number beyond."""
        size = abs(exponent)
        if size > _LARGEST_PRODUCT:
            number = self._new()
            yield self._constant(number, float(exponent))
            yield self._binary(target, "power", base, number)
            return
        first = base
        if exponent < 0:
            first = self._new()
            yield self._constant(first, 1.0)
            size += 1
        op = "divide" if exponent < 0 else "multiply"
        for k in range(1, size):
            result = target if k == size - 1 else self._new()
            yield self._binary(result, op, first, base)
            first = result

    def _expansion(self, op: str, target: str, operands: list[str]) -> Iterator[str]:
        """Operations that are a few of StableHLO's: texts with ``{a}``, ``{b}`` and their steps."""
        names = dict(zip("ab", operands, strict=False))
        steps = _EXPANSIONS[op]
        for k, (step, *rest) in enumerate(steps):
            result = target if k == len(steps) - 1 else self._new()
            if step == "constant":
                yield self._constant(result, _number(rest[0]))
            elif step in _COMPARISONS:
                a, b = (names[r] for r in rest)
                yield (
                    f"{result} = stablehlo.compare {_COMPARISONS[step]}, {a}, {b}, FLOAT : "
                    f"({self._real}, {self._real}) -> {self._tensor('i1')}"
                )
            elif step == "select":
                shown = ", ".join(names[r] for r in rest)
                yield f"{result} = stablehlo.select {shown} : {self._tensor('i1')}, {self._real}"
            else:
                shown = ", ".join(names[r] for r in rest)
                yield f"{result} = stablehlo.{step} {shown} : {self._real}"
            names[f"s{k}"] = result


_LN2 = "0x1.62e42fefa39efp-1"
_LN10 = "0x1.26bb1bbb55516p+1"

_EXPANSIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    # stablehlo.sign keeps the sign of a zero
    "sign": (
        ("sign", "a"),
        ("constant", "0"),
        ("eq", "a", "s1"),
        ("select", "s2", "s1", "s0"),
    ),
    "trunc": (
        ("abs", "a"),
        ("floor", "s0"),
        ("negate", "s1"),
        ("constant", "0"),
        ("lt", "a", "s3"),
        ("select", "s4", "s2", "s1"),
    ),
    # the remainder has the sign of the dividend
    "mod": (
        ("remainder", "a", "b"),
        ("constant", "0"),
        ("multiply", "s0", "b"),
        ("lt", "s2", "s1"),
        ("add", "s0", "b"),
        ("select", "s3", "s4", "s0"),
    ),
    "exp2": (("constant", "2"), ("power", "s0", "a")),
    "log2": (("log", "a"), ("constant", _LN2), ("divide", "s0", "s1")),
    "log10": (("log", "a"), ("constant", _LN10), ("divide", "s0", "s1")),
    "conjugate": (("constant", "-0.0"), ("add", "a", "s0")),
    "re": (("constant", "-0.0"), ("add", "a", "s0")),
    "im": (("constant", "0"),),
    "arg": (("constant", "0"), ("atan2", "s0", "a")),
}
"""Operation -> steps: a StableHLO operation and its operands, ``s0`` for the first step's result."""


def _number(text: str) -> float:
    return float.fromhex(text) if "x" in text else float(text)
