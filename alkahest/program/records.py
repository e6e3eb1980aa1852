"""The flat program: what every backend gets.

A program is in static single assignment form. Its values are numbered: first the inputs, then the
constants, then one value per instruction, so a value's number tells what it is:

    0 .. len(inputs)-1 | .. +len(constants)-1 | .. +len(code)-1

Operands always refer to smaller numbers. Outputs are value numbers and may repeat.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import attrs

from alkahest.errors import CodegenError
from alkahest.ops import DTYPES, OPS, Kind, result_kind

VERSION = 1
"""Version of the serialised form; see :mod:`alkahest.program.serialise`."""

REAL_DTYPE = {
    "float64": "float64",
    "float32": "float32",
    "complex128": "float64",
    "complex64": "float32",
}


class Instruction(NamedTuple):
    """One operation.

    Attributes:
        op: key of :data:`alkahest.ops.OPS`.
        args: value numbers of the operands.
        parameter: the exact integer of operations that carry one (the exponent of ``powi``).
    """

    op: str
    args: tuple[int, ...]
    parameter: int | None = None


@attrs.frozen(kw_only=True, slots=False)
class Program:
    """Inputs, constants, instructions, outputs.

    Attributes:
        dtype: one of :data:`alkahest.ops.DTYPES`; precision of every number in the program.
        inputs: names of the columns, in order; any text, used in messages only.
        constants: already rounded to the dtype; ``complex`` objects only in complex programs,
            ``bool`` for truth values.
        code: the instructions.
        outputs: value numbers.
    """

    dtype: str
    inputs: tuple[str, ...]
    constants: tuple[float | complex | bool, ...]
    code: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    @property
    def is_complex(self) -> bool:
        """Whether the inputs are complex."""
        return self.dtype.startswith("complex")

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of every value. Inputs are complex in complex programs, real otherwise."""
        kinds = [Kind.COMPLEX if self.is_complex else Kind.REAL] * len(self.inputs)
        for value in self.constants:
            is_bool, is_complex = isinstance(value, bool), isinstance(value, complex)
            kinds.append(Kind.BOOL if is_bool else Kind.COMPLEX if is_complex else Kind.REAL)
        for op, args, _ in self.code:
            kind = result_kind(OPS[op], tuple([kinds[a] for a in args]))
            if kind is None:
                shown = ", ".join(kinds[a].value for a in args)
                raise CodegenError("E-JIT-010", f"{op} has no meaning for operands ({shown})")
            kinds.append(kind)
        return tuple(kinds)

    @property
    def output_dtypes(self) -> tuple[str, ...]:
        """NumPy dtype name of every output: the program's, its real counterpart, or ``bool``."""
        names = {
            Kind.REAL: REAL_DTYPE[self.dtype],
            Kind.COMPLEX: self.dtype,
            Kind.BOOL: "bool",
        }
        return tuple(names[self.kinds[o]] for o in self.outputs)

    @property
    def first_instruction(self) -> int:
        """Value number of the first instruction."""
        return len(self.inputs) + len(self.constants)

    @cached_property
    def ops_used(self) -> frozenset[str]:
        """Names of the operations in the program."""
        return frozenset(i.op for i in self.code)

    def verify(self) -> Program:
        """Check every rule of this module and return the program.

        Raises:
            CodegenError: E-JIT-007 naming the broken rule, E-JIT-010 for operands of wrong kinds.
        """
        if self.dtype not in DTYPES:
            raise CodegenError("E-JIT-007", f"dtype {self.dtype!r} is not one of {DTYPES}")
        if not all(isinstance(name, str) for name in self.inputs):
            raise CodegenError("E-JIT-007", "inputs must be texts")
        for value in self.constants:
            if not isinstance(value, (bool, float, complex)):
                raise CodegenError("E-JIT-007", f"constant {value!r} is not a float")
            if isinstance(value, complex) and not self.is_complex:
                raise CodegenError("E-JIT-010", f"complex constant in a {self.dtype} program")
        for position, (name, args, parameter) in enumerate(self.code, self.first_instruction):
            op = OPS.get(name)
            if op is None:
                raise CodegenError("E-JIT-007", f"value {position}: unknown operation {name!r}")
            if len(args) != op.arity:
                raise CodegenError(
                    "E-JIT-007", f"value {position}: {name} takes {op.arity} operands"
                )
            if not all(0 <= a < position for a in args):
                raise CodegenError(
                    "E-JIT-007", f"value {position}: operands {args} are not earlier"
                )
            if (type(parameter) is int) != op.has_parameter:
                raise CodegenError("E-JIT-007", f"value {position}: parameter of {name} is wrong")
            if not self.is_complex and name == "complex":
                raise CodegenError("E-JIT-010", f"complex value in a {self.dtype} program")
        size = self.first_instruction + len(self.code)
        if not self.outputs or not all(0 <= o < size for o in self.outputs):
            raise CodegenError("E-JIT-007", f"outputs {self.outputs} are not values")
        _ = self.kinds
        return self
