"""What our own backends generate, as text: LLVM assembly for processors, PTX for NVIDIA GPUs.

The texts are those that run: the backend has to be there, the processor or the GPU that they are for
does not.
"""

from __future__ import annotations

from typing import Any

from alkahest.compiled import CompiledFn, compile_expr
from alkahest.expr.nodes import Expr


def to_llvm_ir(
    expr: Any,
    inputs: Any,
    *,
    dtype: Any = "float64",
    target: str | None = None,
    accuracy: str = "default",
) -> str:
    """The module of LLVM assembly that backend ``cpu-jit`` compiles ``expr`` to.

    Its function ``alkahest_kernel`` evaluates one block of points; conventions between it and what
    calls it may change with every version.

    Args:
        expr: an expression, or a list of them for several results.
        inputs: symbols in the order of the columns, or one symbol.
        dtype: as for :func:`alkahest.compile_expr`.
        target: processor to write code for, as ``ALKAHEST_CPU_TARGET`` is written; None is this
            one.
        accuracy: ``"strict"``, ``"default"`` or ``"fast"``.

    Raises:
        CodegenError: E-JIT-009 without the backend, E-JIT-001 naming an operation that it does not
            lower, E-JIT-005, E-JIT-006, E-JIT-010.
        InputError, InputTypeError: as for :func:`alkahest.compile_expr`.
    """
    fn = _compiled(expr, inputs, "cpu-jit", dtype, target, accuracy)
    return fn.llvm_ir


def to_ptx(
    expr: Any,
    inputs: Any,
    *,
    dtype: Any = "float64",
    target: str | None = None,
    accuracy: str = "default",
) -> str:
    """The PTX of the kernel that backend ``nvptx`` compiles ``expr`` to; needs no GPU.

    Args:
        expr: an expression, or a list of them for several results.
        inputs: symbols in the order of the columns, or one symbol.
        dtype: as for :func:`alkahest.compile_expr`.
        target: for instance ``"sm_90"``; None is the first device's, without one the oldest.
        accuracy: ``"strict"``, ``"default"`` or ``"fast"``.

    Raises:
        CodegenError: E-JIT-009 without the backend.
        CudaError: E-CUDA-001 without LLVM's NVPTX target; E-CUDA-002 naming the operation, symbol
            or dtype that is refused; E-CUDA-005 where libdevice is needed and missing.
        InputError, InputTypeError: as for :func:`alkahest.compile_expr`.
    """
    code = _compiled(expr, inputs, "nvptx", dtype, target, accuracy).artifact.code
    return code if isinstance(code, str) else code.decode()


def _compiled(
    expr: Any, inputs: Any, backend: str, dtype: Any, target: str | None, accuracy: str
) -> CompiledFn:
    symbols = [inputs] if isinstance(inputs, Expr) else inputs
    return compile_expr(
        expr, symbols, backend=backend, dtype=dtype, target=target, accuracy=accuracy
    )
