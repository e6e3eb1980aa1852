"""The emulated device: how it runs kernels, and what it takes a GPU's instructions for."""

import ctypes
import gc
import math
import random
import re
import threading
import weakref
from fractions import Fraction

import numpy as np
import pytest

from alkahest import ExprPool, parse
from alkahest.backends.nvptx.accuracy import STRICT
from alkahest.backends.nvptx.emulate import EmulatedEvaluator, _compile, host_text
from alkahest.backends.nvptx.nvvm import HOST
from alkahest.errors import CudaError
from alkahest.plugin import Batch, Evaluator
from alkahest.program import lower


def program(*texts, names="x y", dtype="float64"):
    pool = ExprPool()
    inputs = [pool.symbol(n) for n in names.split()]
    return lower([parse(t, pool) for t in texts], inputs, dtype)


def run(evaluator, *columns, out=None):
    arrays = tuple(np.asarray(c, evaluator.program.dtype) for c in columns)
    return evaluator.evaluate(Batch(columns=arrays, n=len(arrays[0]), out=out)).outputs


X = np.linspace(-3.0, 3.0, 257)
Y = np.linspace(0.5, 9.0, 257)


def test_it_is_an_evaluator_and_says_that_it_is_emulated():
    evaluator = EmulatedEvaluator(program("x*y"), target="sm_90")
    assert isinstance(evaluator, Evaluator)
    outcome = evaluator.evaluate(Batch(columns=(X, Y), n=len(X)))
    assert outcome.report["device"] == "emulated"
    assert outcome.report["target"] == "sm_90"
    np.testing.assert_array_equal(outcome.outputs[0], X * Y)


@pytest.mark.parametrize("threads", [1, 7, 32, 1024])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_length_and_block_size_computes_each_point_once(threads, dtype):
    evaluator = EmulatedEvaluator(program("x + 1", names="x", dtype=dtype), threads=threads)
    for n in (0, 1, 2, 3, 4, 5, 31, 32, 33, 100):
        column, guarded = np.arange(n, dtype=dtype), np.full(n + 8, -1, dtype)
        (got,) = run(evaluator, column, out=(guarded[:n],))
        np.testing.assert_array_equal(got, column + 1)
        assert (guarded[n:] == -1).all()


def test_outputs_may_be_columns_constants_repeated_or_truth_values():
    evaluator = EmulatedEvaluator(program("x", "2", "x*y", "x*y", "x < y", "Not(x < y)"))
    got = run(evaluator, X, Y)
    for value, want in zip(got, (X, np.full_like(X, 2), X * Y, X * Y, X < Y, X >= Y), strict=True):
        np.testing.assert_array_equal(value, want)
        assert value.dtype == want.dtype


def test_an_output_may_be_a_column():
    evaluator = EmulatedEvaluator(program("x + y", "x - y"))
    x, y = X.copy(), Y.copy()
    got = run(evaluator, x, y, out=(y, x))
    assert got[0] is y
    np.testing.assert_array_equal(y, X + Y)
    np.testing.assert_array_equal(x, X - Y)


def test_columns_and_outputs_may_be_strided():
    evaluator = EmulatedEvaluator(program("x*y"))
    wide = np.zeros((257, 3))
    (got,) = run(evaluator, X[::-1], np.broadcast_to(2.0, X.shape), out=(wide[:, 1],))
    np.testing.assert_array_equal(wide[:, 1], 2 * X[::-1])
    assert np.shares_memory(got, wide)
    assert not wide[:, ::2].any()


def test_six_hundred_columns_take_the_table():
    names = " ".join(f"c{k}" for k in range(600))
    evaluator = EmulatedEvaluator(program("+".join(names.split()), "c599 - c0", names=names))
    columns = [np.arange(5.0) * k for k in range(600)]
    total, difference = run(evaluator, *columns)
    np.testing.assert_array_equal(total, sum(columns))
    np.testing.assert_array_equal(difference, columns[599])


def test_threads_may_share_an_evaluator():
    evaluator = EmulatedEvaluator(program("sin(x)*exp(y)"))
    want = run(evaluator, X, Y)[0]
    results = [None] * 8

    def work(k):
        results[k] = run(evaluator, X + 0.0, Y)[0]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        np.testing.assert_array_equal(result, want)


def test_large_arguments_are_reduced_with_the_table_in_memory():
    evaluator = EmulatedEvaluator(program("sin(x)", "cos(x)", "tan(x)", names="x"), mode=STRICT)
    xs = [1e22, -1e22, 1e300, 2.0**1000, 710.0, 1e9]
    got = run(evaluator, xs)
    for values, function in zip(got, (math.sin, math.cos, math.tan), strict=True):
        np.testing.assert_allclose(values, [function(x) for x in xs], rtol=1e-15)


def test_products_are_not_fused_with_sums_on_the_host():
    evaluator = EmulatedEvaluator(program("x*y - 1"), mode=STRICT)
    x = np.array([1 + 2.0**-30])
    np.testing.assert_array_equal(run(evaluator, x, x)[0], x * x - 1)


def test_an_instruction_without_a_host_definition_is_refused_by_name():
    text = """define ptx_kernel void @alkahest_eval(i64 %n) {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.warpsize()
  %y = call float @llvm.nvvm.tanh.approx.f(float 1.0)
  ret void
}"""
    with pytest.raises(CudaError, match=r"no instruction nvvm\.read.*, nvvm\.tanh") as caught:
        host_text(text, [])
    assert caught.value.code == "E-CUDA-004"


# What the instructions of a GPU compute. Types of a definition -> those of ctypes.
TYPES = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}


@pytest.fixture(scope="module")
def instruction():
    """``instruction(name)`` is the host's version of ``llvm.nvvm.<name>`` as a function."""
    wrappers, signatures = [], {}
    for result, name, parameters in re.findall(
        r"define internal (\w+) @nvvm\.([\w.]+)\((.*?)\)", HOST
    ):
        operands = parameters.replace("%", "").split(", ")
        kinds = [o.split()[0] for o in operands]
        arguments = ", ".join(f"{kind} %{k}" for k, kind in enumerate(kinds))
        wrappers.append(
            f"define {result} @test.{name}({arguments}) {{\n"
            f"  %r = call {result} @nvvm.{name}({arguments})\n  ret {result} %r\n}}"
        )
        signatures[name] = [TYPES[k] for k in (result, *kinds)]
    engine = _compile("\n".join([HOST, *wrappers]))

    def find(name):
        address = engine.get_function_address(f"test.{name}")
        function = ctypes.CFUNCTYPE(*signatures[name])(address)
        function.engine = engine  # which owns the code
        return function

    return find


def test_doubles_are_taken_apart_and_put_together(instruction):
    high, low, join = (instruction(n) for n in ("d2i.hi", "d2i.lo", "lohi.i2d"))
    for x in (math.pi, -0.0, 5e-324, -math.inf):
        assert join(low(x), high(x)) == x
    assert (high(1.0), low(1.0)) == (0x3FF00000, 0)


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        (
            "d2i.rn",
            [(2.5, 2), (3.5, 4), (-1e300, -(2**31)), (1e300, 2**31 - 1), (math.nan, -(2**31))],
        ),
        ("d2ll.rz", [(-2.9, -2), (1e300, 2**63 - 1), (-1e300, -(2**63)), (math.nan, -(2**63))]),
        ("f2i.rn", [(2.5, 2), (-3.5, -4), (1e30, 2**31 - 1), (math.nan, 0)]),
        ("f2i.rz", [(2.9, 2), (-2.9, -2), (-1e30, -(2**31)), (math.nan, 0)]),
    ],
)
def test_conversions_to_integers_saturate(instruction, name, cases):
    function = instruction(name)
    assert [function(x) for x, _ in cases] == [want for _, want in cases]


def test_approximate_reciprocals_have_an_upper_word_only_and_flush(instruction):
    reciprocal, root = instruction("rcp.approx.ftz.d"), instruction("asm.rsqrt.approx.ftz.f64.d")
    for x in (3.0, -7e10, 1e-300):
        assert abs(reciprocal(x) * x - 1) < 2**-19
        assert instruction("d2i.lo")(reciprocal(x)) == 0
    assert reciprocal(5e-324) == math.inf
    assert math.copysign(1, reciprocal(-math.inf)) == -1
    assert reciprocal(1.7e308) == 0  # whose exact reciprocal is subnormal
    assert abs(root(2.0) * math.sqrt(2) - 1) < 2**-19


def test_single_precision_flushes_where_it_says_so(instruction):
    tiny = 1e-40
    assert instruction("ex2.approx.ftz.f32")(-140.0) == 0
    assert instruction("ex2.approx.f32")(-140.0) == 2.0**-140
    assert instruction("lg2.approx.ftz.f")(tiny) == -math.inf
    assert instruction("asm.rcp.approx.ftz.f32.f")(tiny) == math.inf
    assert instruction("rsqrt.approx.ftz.f")(tiny) == math.inf
    assert instruction("rsqrt.approx.f")(4.0) == 0.5
    assert instruction("div.approx.ftz.f")(tiny, 1.0) == 0
    assert instruction("div.approx.f")(1.0, 2.0**127) == 0
    assert instruction("div.approx.f")(1.0, 3.0) == np.float32(1) / np.float32(3)


def truncated(value, down):
    """The float32 next to an exact value, downward or toward zero."""
    near = np.float32(float(value))
    toward = np.float32(-np.inf if down else 0)
    while Fraction(float(near)) > value if down or value > 0 else Fraction(float(near)) < value:
        near = np.nextafter(near, toward)
    return float(near)


@pytest.mark.parametrize(
    ("name", "exact", "down"),
    [
        ("add.rz.f", lambda a, b, c: a + b, False),
        ("mul.rz.f", lambda a, b, c: a * b, False),
        ("fma.rz.f", lambda a, b, c: a * b + c, False),
        ("fma.rm.f", lambda a, b, c: a * b + c, True),
    ],
)
def test_directed_rounding_is_exact(instruction, name, exact, down):
    function = instruction(name)
    count = len(function.argtypes)
    generator = random.Random(1)
    for _ in range(300):
        drawn = [generator.uniform(-1, 1) * 10.0 ** generator.randint(-12, 12) for _ in range(3)]
        operands = [float(np.float32(x)) for x in drawn]
        want = truncated(exact(*map(Fraction, operands)), down)
        assert function(*operands[:count]) == want, operands


def test_long_integers_carry():
    width = 2**64
    calls = {
        "mad.lo.cc.u32.l": lambda a, b, c, d: a * b + c,
        "mul.lo.u32.l": lambda a, b, c, d: a * b,
        "add.cc.u32.l": lambda a, b, c, d: (a + b * width) + (c + d * width),
        "sub.cc.u32.l": lambda a, b, c, d: (a + b * width) - (c + d * width),
    }
    wrappers = []
    for name in calls:
        (parameters,) = re.findall(rf"@nvvm\.asm\.{re.escape(name)}\((i64.*?)\) alwaysinline", HOST)
        wrappers.append(
            f"define void @{name}(ptr %out, i64 %a, i64 %b, i64 %c, i64 %d) {{\n"
            f"  %r = call {{ i64, i64 }} @nvvm.asm.{name}({parameters})\n"
            "  store { i64, i64 } %r, ptr %out\n  ret void\n}"
        )
    engine = _compile("\n".join([HOST, *wrappers]))
    generator = random.Random(2)
    for name, exact in calls.items():
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_uint64] * 4)(
            engine.get_function_address(name)
        )
        for _ in range(20):
            operands = [
                generator.getrandbits(64) | 2**63 * generator.getrandbits(1) for _ in "abcd"
            ]
            halves = (ctypes.c_uint64 * 2)()
            function(halves, *operands)
            assert halves[0] + halves[1] * width == exact(*operands) % width**2, name


def test_an_evaluator_in_a_cycle_of_garbage_is_collected():
    # LLVM's objects crash when they are given back in another order than they depend on.
    for _ in range(3):
        cycle = [EmulatedEvaluator(program("x*y"))]
        gone = weakref.ref(cycle[0])
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert gone() is None
