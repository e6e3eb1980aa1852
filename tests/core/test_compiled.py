"""Compiling expressions, and what a compiled function is besides a function."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arithmetic import Arithmetic, ArithmeticEvaluator
from refusals import refused

from alkahest import compiled, executable
from alkahest.compiled import CompiledFn, compile_expr, numpy_eval
from alkahest.errors import CodegenError, CudaError, InputTypeError, PluginError
from alkahest.expr import ExprPool
from alkahest.plugin import Batch, Outcome
from alkahest.testing.plugins import NullPlugin, isolated_plugins

pool = ExprPool()
x, y, z = pool.symbol("x"), pool.symbol("y"), pool.symbol("z")


@pytest.fixture
def plugin() -> Iterator[Arithmetic]:
    plugin = Arithmetic()
    with isolated_plugins(plugin):
        yield plugin


# What is compiled


def test_a_single_expression_gives_one_array(plugin: Arithmetic) -> None:
    assert compile_expr(x - 2 * y, [x, y])([10.0, 20.0], [1.0, 2.0]).tolist() == [8.0, 16.0]


def test_the_order_of_inputs_is_the_order_of_columns(plugin: Arithmetic) -> None:
    assert compile_expr(x - 2 * y, (y, x))(1.0, 10.0) == 8.0


def test_a_list_gives_a_tuple_in_its_order(plugin: Arithmetic) -> None:
    fn = compile_expr([x * y, 3, x, x * y], [x, y])
    results = fn([2.0, 3.0], [5.0, 7.0])
    assert [r.tolist() for r in results] == [[10, 21], [3, 3], [2, 3], [10, 21]]
    assert isinstance(compile_expr([x], [x])(1.0), tuple)


@pytest.mark.parametrize("number", [2, 2.0, Fraction(2), Decimal(2), np.float32(2), np.int64(2)])
def test_numbers_are_expressions_too(plugin: Arithmetic, number: Any) -> None:
    assert compile_expr(number, [x])([1.0, 1.0]).tolist() == [2.0, 2.0]
    assert compile_expr(number, [])(n=1).tolist() == [2.0]


def test_a_condition_gives_truth_values(plugin: Arithmetic) -> None:
    result = compile_expr(x < y, [x, y], dtype="float32")([1.0, 2.0], 1.5)
    assert result.dtype == np.bool_
    assert result.tolist() == [True, False]


class Vector:
    """An object of another library, with an attribute that leads back to itself."""

    @property
    def args(self) -> Vector:
        return self


@pytest.mark.parametrize(
    ("thing", "shown"),
    [
        (None, "NoneType"),
        ("x+1", "str"),
        ({x}, "set"),
        (np.ones(2), "numpy.ndarray"),
        (Vector(), "Vector"),
        ([x, None], "expression 1 is not an expression but NoneType"),
        ([x, [y]], "expression 1 is not an expression but list"),
        ([], "the list of expressions is empty"),
    ],
)
def test_things_that_are_no_expressions_are_refused_by_type(thing: Any, shown: str) -> None:
    with refused("E-INPUT-008", shown):
        compile_expr(thing, [x, y])


def test_text_and_sympy_objects_get_the_hint_to_parse() -> None:
    import sympy

    for thing in ("x+1", sympy.Symbol("x") + 1, sympy.Integer(2), sympy.Matrix([1])):
        with pytest.raises(InputTypeError) as caught:
            compile_expr(thing, [x])
        assert "alkahest.parse" in caught.value.remediation


@pytest.mark.parametrize(
    ("inputs", "shown"),
    [
        ({x, y}, "a list or tuple of symbols, got set"),
        ({x: 1, y: 2}, "got dict"),
        (iter([x, y]), "got list_iterator"),
        (x, "got alkahest.expr.nodes.Expr"),
        ("xy", "got str"),
        ([x, y, x], "input 2 repeats symbol 'x'"),
        ([x, x + y], "input 1 is not a symbol: x + y"),
        ([x, 3], "input 1 is not a symbol: int"),
        (["x", "y"], "input 0 is not a symbol: str"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_inputs_that_are_no_list_of_distinct_symbols_are_refused(inputs: Any, shown: str) -> None:
    with refused("E-INPUT-007", shown):
        compile_expr(x + y, inputs)


def test_other_pools_are_refused() -> None:
    stranger = ExprPool().symbol("x")
    with refused("E-POOL-001", "different pools"):
        compile_expr(x + 1, [stranger])
    with refused("E-POOL-001", "different pools"):
        compile_expr([x, stranger], [])
    with refused("E-POOL-001", "'x'"):
        compile_expr(y, [y, stranger])


def test_a_symbol_that_is_no_input_is_named(plugin: Arithmetic) -> None:
    with refused("E-JIT-005", "unbound symbol 'y'"):
        compile_expr(x + y, [x])


def test_a_named_backend_raises_lowering_errors_under_its_own_code() -> None:
    with isolated_plugins(NullPlugin(backend="gpu", refusal_code="E-CUDA-002")):
        with pytest.raises(CudaError) as caught:
            compile_expr(x + y, [x], backend="gpu")
        assert caught.value.code == "E-CUDA-002"
        assert "unbound symbol 'y'" in caught.value.message
        assert isinstance(caught.value.__cause__, CodegenError)
        with refused("E-CUDA-002"):
            compile_expr(x * 10**400, [x], backend="gpu")
        with refused("E-JIT-005"):
            compile_expr(x + y, [x])


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"dtype": "float16"}, "dtype 'float16' is not one of float64, float32, complex128"),
        ({"dtype": int}, "dtype 'int' is not one of"),
        ({"casting": "unsafe"}, "casting 'unsafe' is not one of safe, same_kind"),
        ({"flavor": 1}, "flavor"),
        ({"device": 7}, "no device 7"),
    ],
)
def test_unknown_choices_are_refused_with_the_known_ones(
    plugin: Arithmetic, options: Any, shown: str
) -> None:
    with refused("E-INPUT-011", shown):
        compile_expr(x, [x], **options)


@pytest.mark.parametrize("device", [1.0, "0", True])
def test_a_device_that_is_no_ordinal_is_refused(plugin: Arithmetic, device: Any) -> None:
    with refused("E-INPUT-008", "device must be an ordinal"):
        compile_expr(x, [x], device=device)
    with refused("E-INPUT-008", "device must be an ordinal"):
        compile_expr(x, [x]).call_batch([[1.0]], device=device)


def test_a_device_may_be_any_integer(plugin: Arithmetic) -> None:
    fn = compile_expr(x, [x], device=np.int64(1))
    assert type(fn.device) is int
    assert fn.call_batch([[1.0]], device=np.uint8(0)) == [1.0]


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_a_dtype_may_be_a_name_or_numpys(plugin: Arithmetic, dtype: Any) -> None:
    assert compile_expr(x, [x], dtype=dtype).dtype == "float32"


# Calls


def test_the_report_tells_of_the_threads_own_last_call(plugin: Arithmetic) -> None:
    fn = compile_expr(x + 1, [x])
    assert fn.report == {}
    fn([1.0, 2.0])
    report = fn.report
    assert report.pop("seconds") >= 0
    assert report == {
        "backend": "arithmetic",
        "reason": "host columns, no other backend",
        "device": None,
        "dtype": "float64",
        "n": 2,
        "kind": "arithmetic",
    }
    with ThreadPoolExecutor(1) as pool_of_one:
        assert pool_of_one.submit(lambda: fn.report).result() == {}


def test_a_batch_may_run_on_another_device(plugin: Arithmetic) -> None:
    fn = compile_expr(x + 1, [x], device=0)
    assert fn.call_batch([[1.0]], device=1) == [2.0]
    assert fn.report["device"] == 1
    fn.call_batch([[1.0]], device=1)
    assert plugin.evaluators == 2
    for columns in ([[1.0]], [[]]):
        with refused("E-INPUT-011", "no device 2"):
            fn.call_batch(columns, device=2)


def test_a_stream_means_nothing_to_a_host_backend(plugin: Arithmetic) -> None:
    with refused("E-INPUT-011", "takes no stream"):
        compile_expr(x, [x])(1.0, stream=0)


def test_threads_and_stream_reach_the_backend() -> None:
    plugin = Arithmetic(placement="cuda")
    with isolated_plugins(plugin):
        compile_expr(x, [x])(1.0, stream=7, threads=2)
    assert (plugin.batches[0].stream, plugin.batches[0].threads) == (7, 2)


@pytest.mark.parametrize("outputs", [(), (np.zeros(3),), (np.zeros((2, 1)),)])
def test_a_backend_that_returns_other_shapes_is_found_out(
    plugin: Arithmetic, monkeypatch: pytest.MonkeyPatch, outputs: Any
) -> None:
    fn = compile_expr(x, [x])
    monkeypatch.setattr(ArithmeticEvaluator, "evaluate", lambda *_: Outcome(outputs=outputs))
    with pytest.raises(PluginError) as caught:
        fn([1.0, 2.0])
    assert caught.value.code == "E-PLUGIN-003"
    assert "'arithmetic' returned outputs of shapes" in caught.value.message


def test_plain_columns_reach_the_backend_as_they_are(plugin: Arithmetic) -> None:
    column = np.arange(3.0)
    compile_expr(x + 1, [x])(column)
    assert plugin.batches[0].columns[0] is column


def test_numpy_eval_gives_numpy_arrays(plugin: Arithmetic) -> None:
    fn = compile_expr(x + 2 * y, [x, y])
    assert numpy_eval(fn, [1, 2], (3, 4)).tolist() == [7.0, 10.0]
    assert type(numpy_eval(fn, 1, 2)) is np.ndarray
    assert [r.tolist() for r in numpy_eval(compile_expr([x, y], [x, y]), [1], [2])] == [[1], [2]]
    with refused("E-INPUT-001"):
        numpy_eval(fn, [[1, 2], [3, 4]])


@pytest.mark.parametrize("thing", [x, len, 3, None])
def test_numpy_eval_needs_a_compiled_function(thing: Any) -> None:
    with refused("E-INPUT-008", "numpy_eval needs a compiled function"):
        numpy_eval(thing, [1.0])


# The object


def test_attributes_say_what_was_compiled(plugin: Arithmetic) -> None:
    fn = compile_expr([x + y, x], [x, y], dtype="float32", device=1, flavour="plain")
    assert (fn.n_inputs, fn.n_outputs, fn.dtype) == (2, 2, "float32")
    assert (fn.backend, fn.device, fn.target) == ("arithmetic", 1, "native")
    assert fn.program.inputs == ("x", "y")
    assert fn.artifact.program is fn.program
    assert repr(fn) == "<CompiledFn n_inputs=2 n_outputs=2 dtype=float32 backend=arithmetic>"


def test_functions_are_equal_only_to_themselves(plugin: Arithmetic) -> None:
    one, other = compile_expr(x, [x]), compile_expr(x, [x])
    assert one == one
    assert one != other
    assert len({one, other, one}) == 2


def test_a_function_pickles_with_its_choices(plugin: Arithmetic) -> None:
    fn = compile_expr(
        x * 2, [x], dtype="float32", device=1, casting="same_kind", target="old", flavour="plain"
    )
    for again in (pickle.loads(pickle.dumps(fn)), copy.deepcopy(fn)):
        assert again.program == fn.program
        assert (again.backend, again.device, again.target) == ("arithmetic", 1, "old")
        assert again(np.array([1.5])).tolist() == [3.0]
        assert repr(again) == repr(fn)
    several = compile_expr([x], [x])
    assert isinstance(pickle.loads(pickle.dumps(several))(1.0), tuple)


def test_a_subclass_compiles_and_pickles_as_itself(
    plugin: Arithmetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Special(CompiledFn):
        pass

    monkeypatch.setattr(compiled, "Special", Special, raising=False)
    Special.__module__, Special.__qualname__ = compiled.__name__, "Special"
    fn = Special.compile(x + 1, [x], backend="arithmetic")
    assert type(fn) is Special
    assert type(pickle.loads(pickle.dumps(fn))) is Special
    assert repr(fn).startswith("<Special ")


def test_many_threads_share_one_evaluator(plugin: Arithmetic) -> None:
    fn = compile_expr(x * x + y, [x, y])
    barrier = threading.Barrier(8)

    def work(seed: int) -> bool:
        barrier.wait()
        a = np.random.default_rng(seed).random(100)
        return all(np.array_equal(fn(a, seed), a * a + seed) for _ in range(20))

    with ThreadPoolExecutor(8) as workers:
        assert all(workers.map(work, range(8)))
    assert plugin.evaluators == 1


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_builds_does_not_lock_the_child(plugin: Arithmetic) -> None:
    fn = compile_expr(x + 1, [x])
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with executable._building:
            held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    try:
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        child = context.Process(target=lambda: results.put(fn.call_batch([[1.0]], device=1)))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert results.get() == [2.0]
    finally:
        release.set()
        holder.join()


def test_the_batch_is_what_the_backend_was_promised(plugin: Arithmetic) -> None:
    compile_expr(x + y, [x, y]).call_batch([[1, 2], np.array(3, dtype=np.int8)])
    (batch,) = plugin.batches
    assert isinstance(batch, Batch)
    assert batch.n == 2
    assert [c.dtype for c in batch.columns] == [np.float64, np.float64]
    assert [c.shape for c in batch.columns] == [(2,), (2,)]
    assert batch.out is batch.stream is batch.threads is None
