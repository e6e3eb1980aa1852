"""Programs under construction: value numbering, kinds, and the widening of real operands."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite, isinf, nan
from typing import NamedTuple

from alkahest.errors import CodegenError
from alkahest.ops import OPS, Kind, Signature, result_kind
from alkahest.program.constants import FORMATS, Exact, nearest
from alkahest.program.records import REAL_DTYPE, Instruction, Program

Constant = float | complex | bool

_KIND_OF = {bool: Kind.BOOL, float: Kind.REAL, complex: Kind.COMPLEX}
_WIDENING = frozenset({Signature.NUMERIC, Signature.EQUALITY, Signature.SELECT})


class Value(NamedTuple):
    """A value of the program being built: an input, a constant or an instruction's result."""

    origin: str  # "input", "constant" or "code"
    number: int  # position among those of its origin
    kind: Kind


class Builder:
    """Appends instructions, each distinct one once.

    Two equal instructions are one value, so common subexpressions cost nothing, whether they were
    one node of the expression or arose while it was being lowered.
    """

    def __init__(self, dtype: str, inputs: tuple[str, ...]) -> None:
        self.dtype = dtype
        self.real_dtype = REAL_DTYPE[dtype]
        self.is_complex = dtype.startswith("complex")
        self._inputs = inputs
        self._constants: list[Constant] = []
        self._constant_values: dict[tuple[type, str], Value] = {}
        self._exact_values: dict[Exact, Value] = {}
        self._code: dict[tuple[str, tuple[Value, ...], int | None], Value] = {}

    def input(self, position: int) -> Value:
        """The input at ``position``."""
        return Value("input", position, Kind.COMPLEX if self.is_complex else Kind.REAL)

    def constant(self, value: Constant) -> Value:
        """A constant that is already a number of the dtype."""
        key = (type(value), repr(value))  # repr tells -0.0 from 0.0, and makes all nans one
        found = self._constant_values.get(key)
        if found is None:
            found = Value("constant", len(self._constants), _KIND_OF[type(value)])
            self._constant_values[key] = found
            self._constants.append(value)
        return found

    def exact(self, value: Exact, shown: str) -> Value:
        """An exact constant, rounded once to the dtype.

        Raises:
            CodegenError: E-JIT-006 naming ``shown`` when it overflows, or rounds to zero without
                being zero, which would turn a product into a silent 0.
        """
        found = self._exact_values.get(value)
        if found is None:
            rounded = value.nearest(self.real_dtype)
            if isinf(rounded) or (rounded == 0 and not value.is_zero):
                raise self.out_of_range(shown)
            found = self._exact_values[value] = self.constant(rounded)
        return found

    def floating(self, value: float) -> Value:
        """A float constant, rounded to the dtype; infinities and nan stay what they are.

        Raises:
            CodegenError: E-JIT-006 for a finite value beyond the dtype's range, at either end.
        """
        if self.real_dtype == "float64" or not isfinite(value) or value == 0:
            return self.constant(value)
        rounded = nearest(Fraction(value), FORMATS[self.real_dtype])
        if isinf(rounded) or rounded == 0:
            raise self.out_of_range(repr(value))
        return self.constant(rounded)

    def out_of_range(self, shown: str) -> CodegenError:
        """The error for a constant whose magnitude no number of the dtype can hold."""
        shown = shown if len(shown) <= 60 else f"{shown[:40]}... ({len(shown)} characters)"
        return CodegenError("E-JIT-006", f"constant {shown} is outside the range of {self.dtype}")

    def nan(self, kind: Kind) -> Value:
        """Not a number, of a numeric kind."""
        return self.constant(complex(nan, nan) if kind is Kind.COMPLEX else nan)

    def number(self, value: Value) -> Constant | None:
        """The constant behind ``value``, or None for anything else."""
        return self._constants[value.number] if value.origin == "constant" else None

    def apply(self, op: str, *args: Value, parameter: int | None = None) -> Value:
        """``op`` applied to ``args``; real operands beside complex ones are widened first.

        Raises:
            CodegenError: E-JIT-010 naming the operation and its operands' kinds.
        """
        args = self._homogeneous(op, args)
        key = (op, args, parameter)
        found = self._code.get(key)
        if found is not None:
            return found
        kind = result_kind(OPS[op], tuple(a.kind for a in args))
        if kind is None:
            shown = ", ".join(a.kind.value for a in args)
            raise CodegenError("E-JIT-010", f"{op} has no meaning for operands ({shown})")
        value = Value("code", len(self._code), kind)
        self._code[key] = value
        return value

    def _homogeneous(self, op: str, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if not self.is_complex or OPS[op].signature not in _WIDENING:
            return args
        if len({a.kind for a in args} & {Kind.REAL, Kind.COMPLEX}) < 2:
            return args
        return tuple(self._widened(a) if a.kind is Kind.REAL else a for a in args)

    def _widened(self, value: Value) -> Value:
        number = self.number(value)
        if isinstance(number, float):
            return self.constant(complex(number, 0.0))
        return self.apply("complex", value, self.constant(0.0))

    def finish(self, outputs: tuple[Value, ...]) -> Program:
        """The program that computes ``outputs``; what they do not need is dropped."""
        needed = set(outputs)
        for (_, args, _), value in reversed(self._code.items()):
            if value in needed:
                needed.update(args)
        constants = [v for v in self._constant_values.values() if v in needed]
        kept = [(key, value) for key, value in self._code.items() if value in needed]
        inputs = [self.input(i) for i in range(len(self._inputs))]
        order = [*inputs, *constants, *(value for _, value in kept)]
        position = {value: i for i, value in enumerate(order)}
        return Program(
            dtype=self.dtype,
            inputs=self._inputs,
            constants=tuple(self._constants[v.number] for v in constants),
            code=tuple(
                Instruction(op, tuple(position[a] for a in args), parameter)
                for (op, args, parameter), _ in kept
            ),
            outputs=tuple(position[v] for v in outputs),
        ).verify()
