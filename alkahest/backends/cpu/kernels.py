"""How the reference computes each operation.

A kernel takes its operands and then the array for the result, all 1-D and of one length. Operands
may be read-only or have stride 0, and the result may be one of the operands: a kernel that is not
a single ufunc writes the result last.

Operations that round correctly run in the precision of the program. Everything else is computed
in double precision and rounded once, so float32 results are almost always correctly rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.backends.cpu import complex_kernels, powers, real_kernels, special
from alkahest.backends.cpu.fused import fma
from alkahest.ops import DTYPES, OPS, Kind
from alkahest.plugin import Support
from alkahest.program import Instruction, Program

Kernel = Callable[..., Any]

_COMPLEX_DTYPES = frozenset(d for d in DTYPES if d.startswith("complex"))


@attrs.frozen
class Lowering:
    """Kernels of one operation.

    Attributes:
        real: for operands that are real or truth values, or None where there are no such.
        complex: for complex operands, or None.
        doubled: kinds whose single precision goes through double precision.
        dtypes: dtypes of the programs that may hold the operation.
    """

    real: Kernel | None
    complex: Kernel | None = None
    doubled: frozenset[Kind] = frozenset({Kind.REAL, Kind.COMPLEX})
    dtypes: frozenset[str] = frozenset(DTYPES)


def _exact(real: Kernel | None, complex_: Kernel | None = None) -> Lowering:
    """Rounds at most once, in any precision."""
    return Lowering(real, complex_, doubled=frozenset())


def _exact_if_real(real: Kernel, complex_: Kernel) -> Lowering:
    return Lowering(real, complex_, doubled=frozenset({Kind.COMPLEX}))


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        # Arithmetic
        "add": _exact(np.add, np.add),
        "sub": _exact(np.subtract, np.subtract),
        "mul": _exact_if_real(np.multiply, complex_kernels.multiply),
        "div": _exact_if_real(np.divide, complex_kernels.divide),
        "neg": _exact(np.negative, np.negative),
        "fma": _exact(fma),
        "powi": Lowering(powers.real_powi, powers.complex_powi),
        "pow": Lowering(powers.real_pow, np.power),
        # Comparisons and selection
        "lt": _exact(np.less),
        "le": _exact(np.less_equal),
        "gt": _exact(np.greater),
        "ge": _exact(np.greater_equal),
        "eq": _exact(np.equal, np.equal),
        "ne": _exact(np.not_equal, np.not_equal),
        "and": _exact(np.logical_and),
        "or": _exact(np.logical_or),
        "not": _exact(np.logical_not),
        "select": _exact(real_kernels.select, real_kernels.select),
        # Rounding, signs, extremes
        "abs": _exact_if_real(np.absolute, complex_kernels.absolute),
        "sign": _exact(np.sign),
        "min": _exact(real_kernels.minimum),
        "max": _exact(real_kernels.maximum),
        "floor": _exact(np.floor),
        "ceil": _exact(np.ceil),
        "round": _exact(np.rint),
        "trunc": _exact(np.trunc),
        "mod": Lowering(np.mod),
        # Exponentials, logarithms, roots
        "exp": Lowering(np.exp, np.exp),
        "exp2": Lowering(np.exp2),
        "expm1": Lowering(np.expm1),
        "log": Lowering(np.log, np.log),
        "log2": Lowering(np.log2),
        "log10": Lowering(np.log10),
        "log1p": Lowering(np.log1p),
        "sqrt": _exact_if_real(np.sqrt, np.sqrt),
        "rsqrt": Lowering(real_kernels.rsqrt),
        "cbrt": Lowering(powers.cbrt),
        "hypot": Lowering(np.hypot),
        # Trigonometric and hyperbolic
        "sin": Lowering(np.sin, np.sin),
        "cos": Lowering(np.cos, np.cos),
        "tan": Lowering(np.tan, np.tan),
        "asin": Lowering(np.arcsin, np.arcsin),
        "acos": Lowering(np.arccos, np.arccos),
        "atan": Lowering(np.arctan, np.arctan),
        "atan2": Lowering(np.arctan2),
        "sinh": Lowering(np.sinh, np.sinh),
        "cosh": Lowering(np.cosh, np.cosh),
        "tanh": Lowering(np.tanh, np.tanh),
        "asinh": Lowering(np.arcsinh, np.arcsinh),
        "acosh": Lowering(np.arccosh, np.arccosh),
        "atanh": Lowering(np.arctanh, np.arctanh),
        # Special functions
        "erf": Lowering(special.erf),
        "erfc": Lowering(special.erfc),
        "erfinv": Lowering(special.erfinv),
        "gamma": Lowering(special.gamma),
        "lgamma": Lowering(special.lgamma),
        "digamma": Lowering(special.digamma),
        "j0": Lowering(special.j0),
        "j1": Lowering(special.j1),
        "y0": Lowering(special.y0),
        "y1": Lowering(special.y1),
        # Complex numbers
        "complex": Lowering(complex_kernels.build, doubled=frozenset(), dtypes=_COMPLEX_DTYPES),
        "re": _exact(np.positive, complex_kernels.real_part),
        "im": _exact(real_kernels.zero, complex_kernels.imaginary_part),
        "conjugate": _exact(np.conjugate, np.conjugate),
        "arg": Lowering(real_kernels.angle, complex_kernels.angle),
    }
)

REFUSED: Mapping[str, str] = MappingProxyType({})
"""The reference refuses nothing: it is the oracle for every operation."""


def support() -> Support:
    """The tables as the registry wants them."""
    return Support(lowers={op: row.dtypes for op, row in LOWERINGS.items()}, refuses=REFUSED)


def kernel_for(instruction: Instruction, program: Program) -> Kernel:
    """The kernel that computes ``instruction`` in ``program``'s precision."""
    row = LOWERINGS[instruction.op]
    kinds = [program.kinds[value] for value in instruction.args]
    kind = Kind.COMPLEX if Kind.COMPLEX in kinds else Kind.REAL
    kernel = row.complex if kind is Kind.COMPLEX else row.real
    if kernel is None:
        raise AssertionError(f"verified programs hold no {instruction.op} of {kinds}")
    if OPS[instruction.op].has_parameter:
        kernel = partial(kernel, instruction.parameter)
    if kind in row.doubled and program.dtype in ("float32", "complex64"):
        return partial(_through_double, kernel)
    return kernel


def _through_double(kernel: Kernel, *operands: NDArray[Any]) -> None:
    *arguments, out = operands
    result = np.empty(out.shape, _double(out))
    kernel(*[a.astype(_double(a)) for a in arguments], result)
    out[...] = result


def _double(array: NDArray[Any]) -> str:
    return "complex128" if array.dtype.kind == "c" else "float64"


__all__ = ["LOWERINGS", "REFUSED", "Kernel", "Lowering", "kernel_for", "support"]
