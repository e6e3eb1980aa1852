"""The text that alkahest.to_llvm_ir gives."""

import llvmlite.binding as llvm
import pytest
from refusals import refused

import alkahest as ak

X, Y = ak.symbols("x y")


def test_the_text_is_a_module_of_llvm_with_the_kernel() -> None:
    text = ak.to_llvm_ir([ak.sin(X) * Y, X < Y], [X, Y])
    module = llvm.parse_assembly(text)
    module.verify()
    assert "alkahest_kernel" in {function.name for function in module.functions}


def test_it_is_what_the_compiled_function_runs() -> None:
    fn = ak.compile_expr(X * Y, [X, Y], backend="cpu-jit", dtype="float32", accuracy="fast")
    assert ak.to_llvm_ir(X * Y, [X, Y], dtype="float32", accuracy="fast") == fn.llvm_ir


def test_one_symbol_may_stand_alone_and_mistakes_are_named() -> None:
    assert "float" in ak.to_llvm_ir(X + 1, X, dtype="float32")
    with refused("E-JIT-005", "'y'"):
        ak.to_llvm_ir(X + Y, X)
    with refused("E-JIT-010"):
        ak.to_llvm_ir(ak.floor(X), X, dtype="complex128")


@pytest.mark.parametrize("accuracy", ["sloppy", None])
def test_options_are_checked(accuracy: str) -> None:
    with refused("E-INPUT-011", "accuracy"):
        ak.to_llvm_ir(X, X, accuracy=accuracy)
