"""Which tier answers, what reports say, listings, pickles."""

from __future__ import annotations

import pickle
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from alkahest import ExprPool
from alkahest import functions as f
from alkahest.backends.cpu.jit.evaluator import JitEvaluator
from alkahest.backends.cpu.jit.options import Options
from alkahest.compiled import compile_expr
from alkahest.plugin import Batch
from alkahest.program import lower

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")


def calls_until_compiled(evaluator: JitEvaluator, n: int, most: int = 100_000) -> int:
    """How many calls of ``n`` points the reference answers."""
    column = np.linspace(0.5, 2, n)
    for count in range(most):
        if evaluator.evaluate(Batch(columns=(column,), n=n)).report["tier"] == "compiled":
            return count
    return most


def test_a_few_points_are_answered_by_the_reference(empty_cache: Any) -> None:
    fn = compile_expr(f.sin(x) * y, [x, y], backend="cpu-jit")
    assert fn([1.0, 2.0], 3.0).tolist() == [3 * np.sin(1.0), 3 * np.sin(2.0)]
    assert fn.report["tier"] == "reference"
    assert fn.report["backend"] == "cpu-jit"


def test_many_points_are_compiled_at_once(empty_cache: Any) -> None:
    fn = compile_expr(f.sin(x), [x], backend="cpu-jit")
    column = np.linspace(0, 9, 2_000_000)
    np.testing.assert_allclose(fn(column), np.sin(column), rtol=1e-15, atol=1e-16)
    assert fn.report["tier"] == "compiled"


def test_many_calls_are_compiled_in_the_end_and_sooner_if_they_are_longer(
    empty_cache: Any,
) -> None:
    program = lower([f.sin(x) + x * x], [x])
    short = calls_until_compiled(JitEvaluator(program, Options()), 1)
    program = lower([f.sin(x) + x * x + 1], [x])
    long = calls_until_compiled(JitEvaluator(program, Options()), 5000)
    assert 0 < long < short < 100_000


def test_what_is_compiled_already_is_used_from_the_first_call_on(empty_cache: Any) -> None:
    expression = f.sin(x) + 3
    fn = compile_expr(expression, [x], backend="cpu-jit", tier="compiled")
    fn([1.0])
    again = compile_expr(expression, [x], backend="cpu-jit")
    again([1.0])
    assert again.report["tier"] == "compiled"


def test_strict_functions_have_one_set_of_bits(empty_cache: Any) -> None:
    fn = compile_expr(f.sin(x) + 5, [x], backend="cpu-jit", accuracy="strict")
    fn([1.0])
    assert fn.report["tier"] == "compiled"


def test_nothing_waits_for_scipy(empty_cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scipy.special", raising=False)
    fn = compile_expr(f.erf(x) + 7, [x], backend="cpu-jit")
    fn([1.0])
    assert fn.report["tier"] == "compiled"


def test_the_report_says_what_ran(empty_cache: Any, accuracy: str) -> None:
    fn = compile_expr(x * y, [x, y], backend="cpu-jit", tier="compiled", accuracy=accuracy)
    fn(np.ones((3, 4)), 2.0)
    report = fn.report
    assert (report["backend"], report["tier"], report["n"]) == ("cpu-jit", "compiled", 12)
    assert (report["device"], report["threads"], report["dtype"]) == (0, 1, "float64")
    assert report["accuracy"] == accuracy
    assert report["code"] == "compiled"
    assert report["target"] == fn.target != ""
    assert report["width"] in (2, 4, 8)


def test_the_generated_code_can_be_read() -> None:
    fn = compile_expr(x * y + 1, [x, y], backend="cpu-jit")
    assert "define void @alkahest_kernel(ptr" in fn.llvm_ir
    assert "alkahest_kernel:" in fn.assembly
    assert fn.report == {}


def test_the_reference_has_no_generated_code() -> None:
    fn = compile_expr(x, [x], backend="cpu-reference")
    with pytest.raises(AttributeError, match=r"cpu-reference.*no llvm_ir"):
        _ = fn.llvm_ir
    assert not hasattr(fn, "assembly")


def test_pickles_keep_accuracy_and_tier() -> None:
    fn = compile_expr(x / y, [x, y], backend="cpu-jit", accuracy="fast", tier="compiled")
    copy = pickle.loads(pickle.dumps(fn))
    assert copy([1.0], [4.0]).tolist() == [0.25]
    assert (copy.report["accuracy"], copy.report["tier"]) == ("fast", "compiled")


@pytest.mark.parametrize(
    ("choices", "shown"),
    [
        ({"unroll": 4}, "no option 'unroll'"),
        ({"accuracy": "sloppy"}, "accuracy='sloppy'"),
        ({"tier": 1}, "tier=1"),
        ({"target": "z80"}, "target='z80'"),
    ],
)
def test_unknown_options_and_targets_are_refused(choices: Any, shown: str) -> None:
    with refused("E-INPUT-011", shown):
        compile_expr(x, [x], backend="cpu-jit", **choices)


def test_the_only_device_is_this_processor() -> None:
    assert compile_expr(x, [x], backend="cpu-jit", device=0)(1.0) == 1.0
    with refused("E-INPUT-011", "backend 'cpu-jit' has no device 1"):
        compile_expr(x, [x], backend="cpu-jit", device=1)
    fn = compile_expr(x, [x], backend="cpu-jit", device="all")
    assert fn.call_batch([[1.0, 2.0]]) == [1.0, 2.0]


def test_it_is_the_cpu_backend_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALKAHEST_BACKEND", raising=False)
    assert compile_expr(x, [x]).backend == "cpu-jit"
    assert compile_expr(x, [x], backend="cpu").backend == "cpu-jit"
    assert compile_expr(x, [x], backend="cpu-reference").backend == "cpu-reference"


def test_narrower_targets_compute_the_same(compiled: Any, accuracy: str) -> None:
    column = np.linspace(-3, 3, 1003)
    expression = f.exp(x) * f.sin(x) + f.atan(x)
    want = np.exp(column) * np.sin(column) + np.arctan(column)
    for target in ("native/128", "native/256", "native"):
        fn = compiled(expression, [x], target=target, accuracy=accuracy)
        np.testing.assert_allclose(fn(column), want, rtol=4e-15, atol=4e-15)


def test_derivatives_are_compiled_with_their_function(compiled: Any) -> None:
    fn = compiled(f.exp(-x) * f.sin(y), [x, y], derivatives=2)
    a, b = np.random.default_rng(1).uniform(-3, 3, (2, 100))
    value, gradient, hessian = fn(a, b)
    e, s, c = np.exp(-a), np.sin(b), np.cos(b)
    np.testing.assert_allclose(value, e * s, rtol=1e-14)
    np.testing.assert_allclose(gradient, [-e * s, e * c], rtol=1e-14)
    np.testing.assert_allclose(hessian, [[e * s, -e * c], [-e * c, -e * s]], rtol=1e-14)
    assert fn.report["tier"] == "compiled"


def test_wider_columns_are_taken_with_same_kind(compiled: Any) -> None:
    fn = compiled(x * 2, [x], dtype="float32", casting="same_kind")
    got = fn(np.array([1.5, 2.5]))
    assert got.dtype == np.float32
    assert got.tolist() == [3.0, 5.0]


def test_settling_compiles_what_calls_would_wait_with(empty_cache: Any) -> None:
    evaluator = JitEvaluator(lower([f.sin(x) + 11], [x]), Options())
    evaluator.settle()
    column = np.ones(1)
    assert evaluator.evaluate(Batch(columns=(column,), n=1)).report["tier"] == "compiled"


FAULTS_OF_CALLS = """
import resource

import numpy as np

from alkahest import ExprPool, compile_expr

pool = ExprPool()
x, y = pool.symbol("x"), pool.symbol("y")
fn = compile_expr([x + k * y for k in range(11)], [x, y], backend="cpu-jit", tier="compiled")
columns = np.ones(20_000), np.ones(20_000)
for call in (fn, fn.fast_call):
    for _ in range(5):
        call(*columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        call(*columns)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 50)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library's memory")
def test_several_results_are_not_in_new_pages_at_every_call(tmp_path: Path) -> None:
    script = tmp_path / "faults.py"
    script.write_text(FAULTS_OF_CALLS)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True
    )
    pages = 11 * 20_000 * 8 // 4096
    assert all(float(line) < pages / 10 for line in run.stdout.splitlines()), run.stdout
    assert len(run.stdout.splitlines()) == 2
