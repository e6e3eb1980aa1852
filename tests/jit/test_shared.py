"""Functions that kernels have in common are compiled once, wherever their kernels come from."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from alkahest import ExprPool, cache
from alkahest.backends.cpu.jit import compile as kernels
from alkahest.backends.cpu.jit import engine, shared
from alkahest.backends.cpu.jit.compile import Compiler
from alkahest.backends.cpu.jit.evaluator import JitEvaluator
from alkahest.backends.cpu.jit.options import COMPILED, Options
from alkahest.plugin import Batch
from alkahest.program import lower

MODULE = """
declare double @llvm.fabs.f64(double)
@table = internal constant [2 x double] [double 3.0, double 4.0], align 16
@unused = internal constant [1 x i64] [i64 1]
define internal double @inner(double %x) noinline cold nounwind {
entry:
  %p = getelementptr double, ptr @table, i64 1
  %k = load double, ptr %p
  %y = fmul double %x, %k
  ret double %y
}
define internal double @outer(double %x, i64 %unused) noinline cold nounwind {
entry:
  %a = call double @llvm.fabs.f64(double %x)
  %y = call double @inner(double %a)
  ret double %y
}
define void @kernel(ptr %x) nounwind {
  %v = load double, ptr %x
  %y = call double @outer(double %v, i64 0)
  store double %y, ptr %x
  ret void
}
"""


pytestmark = pytest.mark.usefixtures("empty_cache")


def test_cold_functions_are_taken_out_with_what_they_need() -> None:
    parts = shared.Parts(MODULE, kernels.target())
    assert parts.keys.keys() == {"inner", "outer"}
    assert "define internal" not in parts.text
    assert "declare internal" not in parts.text
    assert "declare double @outer(double, i64) nounwind" in parts.text
    assert "@table" not in parts.text
    assert "@unused" not in parts.text


def test_the_kernel_calls_them_where_they_are() -> None:
    parts = shared.Parts(MODULE, kernels.target())
    linked = parts.code(set())
    code = engine.Code(engine.compile_ir(parts.text, kernels.target()), ["kernel"], (), linked)
    value = ctypes.c_double(-2.5)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("kernel"))(ctypes.addressof(value))
    assert value.value == 10.0


def test_a_function_is_found_in_memory_and_on_disk_with_those_it_calls() -> None:
    parts = shared.Parts(MODULE, kernels.target())
    assert shared.find("outer", parts.keys["outer"]) is None
    made = parts.code(set())
    assert shared.find("outer", parts.keys["outer"]) is made["outer"]
    shared._loaded.clear()
    assert shared.find("outer", parts.keys["outer"]) is not None
    assert shared._loaded.keys() == set(parts.keys.values())
    labels = {entry.label for entry in cache.entries()}
    assert labels == {"cpu-jit function inner", "cpu-jit function outer"}


def test_a_function_whose_parts_were_pushed_out_is_made_again() -> None:
    parts = shared.Parts(MODULE, kernels.target())
    parts.code(set())
    shared._loaded.clear()
    directory = cache.directory()
    assert directory is not None
    (directory / f"{parts.keys['inner']}.code").unlink()
    assert shared.find("outer", parts.keys["outer"]) is None
    assert parts.code(set()).keys() == {"inner", "outer"}


def test_kernels_from_the_disk_have_their_functions_and_huge_arguments_work() -> None:
    pool = ExprPool()
    x = pool.symbol("x")
    program = lower([pool.func("sin", [x])], [x])
    column = np.array([1e22, 0.5, -1e300])
    for _ in range(2):
        evaluator = JitEvaluator(program, Options(tier=COMPILED))
        (got,) = evaluator.evaluate(Batch(columns=(column,), n=3)).outputs
        np.testing.assert_allclose(got, np.sin(column), rtol=1e-15)
        kernels.forget()
        shared._loaded.clear()
    directory = cache.directory()
    assert directory is not None
    maker = Compiler(program, Options())
    for entry in cache.entries():
        if entry.label.startswith("cpu-jit function"):
            (directory / f"{entry.key}.code").unlink()
    assert maker.found() is None
    assert maker.kernel().facts["code"] == "compiled"
