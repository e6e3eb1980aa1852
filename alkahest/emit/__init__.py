"""Expressions as source code for other compilers, and as what our own backends generate."""

from __future__ import annotations

from alkahest.emit.c import emit_c, emit_c_expr, emit_c_header, emit_c_program, emit_c_vec
from alkahest.emit.native import to_llvm_ir, to_ptx
from alkahest.emit.stablehlo import to_stablehlo

__all__ = [
    "emit_c",
    "emit_c_expr",
    "emit_c_header",
    "emit_c_program",
    "emit_c_vec",
    "to_llvm_ir",
    "to_ptx",
    "to_stablehlo",
]
