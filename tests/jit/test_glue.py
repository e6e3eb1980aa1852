"""Fast calls: what they take themselves, and that everything else goes the usual way."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from refusals import refused

from alkahest import ExprPool, result_memory
from alkahest.backends.cpu.jit import glue
from alkahest.backends.cpu.jit.evaluator import JitEvaluator
from alkahest.backends.cpu.jit.glue_code import ON_STACK
from alkahest.backends.cpu.jit.options import Options
from alkahest.compiled import CompiledFn, compile_expr
from alkahest.program import Instruction, Program

pool = ExprPool()
x, y, z = (pool.symbol(name) for name in "xyz")


@pytest.fixture(scope="module")
def quotient() -> Any:
    """``x*y/z``, one output."""
    return compile_expr(x * y / z, [x, y, z], backend="cpu-jit", tier="compiled")


def columns(n: int, count: int = 3) -> Any:
    return np.random.default_rng(n).uniform(1, 2, (count, n))


def test_this_interpreter_and_numpy_are_laid_out_as_the_code_expects() -> None:
    assert glue.fits()


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000, 100_003])
def test_the_result_is_that_of_an_ordinary_call(quotient: Any, n: int) -> None:
    a, b, c = columns(n)
    got = quotient.fast_call(a, b, c)
    assert type(got) is np.ndarray
    assert got.flags.owndata
    assert np.array_equal(got, quotient(a, b, c))
    assert np.array_equal(got, a * b / c)


def test_the_function_is_made_once_and_is_built_in(quotient: Any) -> None:
    assert quotient.fast_call is quotient.fast_call
    assert type(quotient.fast_call) is type(len)


def test_out_is_filled_and_returned(quotient: Any) -> None:
    a, b, c = columns(50)
    out = np.empty(50)
    assert quotient.fast_call(a, b, c, out=out) is out
    assert np.array_equal(out, a * b / c)


def test_an_output_may_take_the_place_of_an_input(quotient: Any) -> None:
    a, b, c = columns(1001)
    want = a * b / c
    assert quotient.fast_call(a, b, c, out=b) is b
    assert np.array_equal(b, want)


@pytest.mark.parametrize("shift", [1, 5, 999])
def test_an_output_may_overlap_an_input_elsewhere(quotient: Any, shift: int) -> None:
    memory_of_both = np.random.default_rng(0).uniform(1, 2, 2000)
    a, b, c = columns(1000)
    a = memory_of_both[:1000]
    out = memory_of_both[shift : shift + 1000]
    want = a * b / c
    quotient.fast_call(a, b, c, out=out)
    assert np.array_equal(out, want)


def test_several_outputs_are_a_tuple_of_arrays_of_their_dtypes() -> None:
    fn = compile_expr([x + y, pool.lt(x, y)], [x, y], backend="cpu-jit", tier="compiled")
    a, b = columns(33, 2)
    total, smaller = fn.fast_call(a, b)
    assert np.array_equal(total, a + b)
    assert smaller.dtype == np.bool_
    assert np.array_equal(smaller, a < b)
    out = (np.empty(33), np.empty(33, bool))
    assert fn.fast_call(a, b, out=out) is out
    assert np.array_equal(out[0], a + b)
    assert np.array_equal(out[1], a < b)


def test_outputs_that_overlap_are_refused_as_in_an_ordinary_call() -> None:
    fn = compile_expr([x + y, x - y], [x, y], backend="cpu-jit", tier="compiled")
    a, b = columns(10, 2)
    both = np.empty(15)
    with refused("E-INPUT-009", "shares memory"):
        fn.fast_call(a, b, out=(both[:10], both[5:]))


@pytest.mark.parametrize(
    "arguments",
    [
        (1.0, 2.0, 4.0),
        ([1.0, 2.0], [2.0, 3.0], 4.0),
        (np.float32([1, 2]), np.arange(2), np.array([3.0, 4.0])),
        (np.arange(6.0).reshape(2, 3), np.ones(3), np.full((2, 1), 2.0)),
        (np.arange(8.0)[::2], np.arange(8.0)[::-2], np.ones(4)),
        (np.empty(0), np.empty(0), np.empty(0)),
    ],
    ids=["numbers", "lists", "dtypes", "shapes", "strides", "empty"],
)
def test_whatever_is_not_plain_goes_the_usual_way(quotient: Any, arguments: Any) -> None:
    got, want = quotient.fast_call(*arguments), quotient(*arguments)
    assert type(got) is type(want)
    assert np.array_equal(got, want)


def test_refusals_are_those_of_an_ordinary_call(quotient: Any) -> None:
    a, b, c = columns(4)
    with refused("E-INPUT-001", "expected 3 columns"):
        quotient.fast_call(a, b)
    with refused("E-INPUT-009", "read-only"):
        frozen = np.empty(4)
        frozen.flags.writeable = False
        quotient.fast_call(a, b, c, out=frozen)
    with refused("E-INPUT-009", "has dtype"):
        quotient.fast_call(a, b, c, out=np.empty(4, np.float32))
    with refused("E-INPUT-004", "is real"):
        quotient.fast_call(a, b, np.ones(4, complex))
    with pytest.raises(TypeError):
        quotient.fast_call(a, b, c, output=a)


def test_other_keywords_of_a_call_are_understood(quotient: Any) -> None:
    a, b, c = columns(4)
    assert np.array_equal(quotient.fast_call(a, b, c, threads=1), a * b / c)


def test_large_results_are_made_where_memory_is_kept(quotient: Any) -> None:
    n = result_memory.SMALLEST // 8
    a, b, c = columns(n)
    got = quotient.fast_call(a, b, c)
    assert np.array_equal(got, a * b / c)
    assert not got.flags.owndata


def test_functions_with_derivatives_or_without_inputs_have_the_ordinary_call() -> None:
    fn = compile_expr(x * y, [x, y], backend="cpu-jit", derivatives=1)
    value, gradient = fn.fast_call(np.array([2.0]), np.array([3.0]))
    assert value.tolist() == [6.0]
    assert gradient.tolist() == [[3.0], [2.0]]
    assert compile_expr(pool.integer(2), [], backend="cpu-jit").fast_call(n=2).tolist() == [2, 2]


def test_the_reference_has_the_ordinary_call_too() -> None:
    fn = compile_expr(x * y, [x, y], backend="cpu-reference")
    assert fn.fast_call(np.array([2.0]), np.array([3.0])).tolist() == [6.0]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "complex64"])
def test_other_dtypes_are_plain_in_their_own_functions(dtype: str) -> None:
    fn = compile_expr(x * y, [x, y], backend="cpu-jit", dtype=dtype, tier="compiled")
    a, b = columns(21, 2).astype(dtype)
    got = fn.fast_call(a, b)
    assert got.dtype == dtype
    assert np.array_equal(got, fn(a, b))


def test_nothing_leaks_and_nothing_is_freed_too_early(quotient: Any) -> None:
    a, b, c = columns(5)
    out = np.empty(5)
    gc.collect()
    counts = [sys.getrefcount(v) for v in (a, out, quotient, a.dtype)]
    for _ in range(1000):
        quotient.fast_call(a, b, c)
        quotient.fast_call(a, b, c, out=out)
        quotient.fast_call(a, b, 1.0)
    assert [sys.getrefcount(v) for v in (a, out, quotient, a.dtype)] == counts


def test_the_built_in_keeps_its_code_and_is_collected_with_its_function() -> None:
    fn = compile_expr(x - y, [x, y], backend="cpu-jit", tier="compiled")
    call, watch = fn.fast_call, weakref.ref(fn)
    del fn
    gc.collect()
    assert call(np.array([3.0]), np.array([1.0])).tolist() == [2.0]
    del call
    gc.collect()
    assert watch() is None


def test_many_threads_may_call_at_once(quotient: Any) -> None:
    a, b, c = columns(200_000)
    want = a * b / c
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(quotient.fast_call(a, b, c), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.fixture(scope="module")
def long_sum() -> CompiledFn:
    """The sum of ``y*(1 + x + ... + x**k)``, k = 1 ... 1500, whose terms are all kept until the end."""
    count = 1500
    terms = [Instruction("fma", (k, 0, 1)) for k in range(1, count + 1)]
    sums = [Instruction("add", (1 + count + k, count - k)) for k in range(count - 1)]
    program = Program(
        dtype="float64", inputs=("x", "y"), constants=(), code=(*terms, *sums), outputs=(2 * count,)
    ).verify()
    assert JitEvaluator(program, Options()).kernel().scratch > 8 * ON_STACK
    return CompiledFn.from_program(
        program, backend="cpu-jit", options={"tier": "compiled"}, single=True
    )


@pytest.mark.parametrize("n", [3, 300, 30_000])
def test_scratch_memory_that_is_not_little_comes_from_the_heap(
    long_sum: CompiledFn, n: int
) -> None:
    assert type(long_sum.fast_call) is type(len)
    call: Any = long_sum.fast_call
    a, b = np.resize([1.0, -1.0, 0.0], n), np.resize([1.0, 2.0, 3.0, 4.0], n)
    want = np.resize([1500 * 1501 // 2 + 1500, 750.0, 1500.0], n) * b
    assert np.array_equal(call(a, b), want)
    assert call(a, b, out=b) is b
    assert np.array_equal(b, want)


def test_threads_with_small_stacks_may_call(long_sum: CompiledFn) -> None:
    one, results = np.ones(50), []
    before = threading.stack_size(1 << 16)
    try:
        thread = threading.Thread(target=lambda: results.append(long_sum.fast_call(one, one)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert results[0].tolist() == [1500 * 1501 // 2 + 1500] * 50


@pytest.mark.parametrize(("outputs", "is_built_in"), [(511, True), (512, False)])
def test_functions_with_very_many_columns_have_the_ordinary_call(
    outputs: int, is_built_in: bool
) -> None:
    program = Program(
        dtype="float64",
        inputs=("x",),
        constants=(),
        code=(Instruction("neg", (0,)),),
        outputs=(1,) * outputs,
    ).verify()
    fn = CompiledFn.from_program(program, backend="cpu-jit", options={"tier": "compiled"})
    assert (type(fn.fast_call) is type(len)) is is_built_in
    got = fn.fast_call(np.array([1.0, 2.0]))
    assert len(got) == outputs
    assert all(column.tolist() == [-1.0, -2.0] for column in got)
