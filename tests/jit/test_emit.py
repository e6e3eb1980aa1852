"""Kernels: what they read and write, and that a point's value depends on the point alone."""

from __future__ import annotations

import random
import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from kernels import build

from alkahest.backends.cpu.jit.emit import LARGE, emit_kernel
from alkahest.backends.cpu.jit.host import HostTarget
from alkahest.backends.cpu.jit.rows import LOWERINGS
from alkahest.backends.cpu.jit.writer import MANY
from alkahest.backends.cpu.reference import ReferenceEvaluator
from alkahest.ops import OPS, Signature
from alkahest.plugin import Batch
from alkahest.program import Instruction, Program
from alkahest.testing import oracle
from alkahest.testing.programs import single

WIDTHS = ("native/512", "native/256", "native/128")


def program(
    code: list[Instruction],
    outputs: tuple[int, ...],
    inputs: tuple[str, ...] = ("x", "y"),
    constants: tuple[float, ...] = (),
    dtype: str = "float64",
) -> Program:
    return Program(
        dtype=dtype, inputs=inputs, constants=constants, code=tuple(code), outputs=outputs
    ).verify()


MIXED = program(
    [
        Instruction("sin", (0,)),
        Instruction("cos", (0,)),
        Instruction("exp", (1,)),
        Instruction("div", (2, 4)),
        Instruction("mul", (3, 1)),
        Instruction("sub", (5, 6)),
    ],
    (7, 4),
)
"""Of two inputs and two outputs, with a pair of functions."""


def random_program(length: int, seed: int) -> Program:
    choose = random.Random(seed)
    code = []
    for number in range(4, 4 + length):
        a, b = (choose.randrange(max(0, number - 20), number) for _ in range(2))
        op = choose.choice(("add", "sub", "mul", "sin"))
        code.append(Instruction(op, (a,) if op == "sin" else (a, b)))
    last = 4 + length
    return program(code, (last - 1, last - 2, 1), inputs=("a", "b", "c", "d"))


@pytest.mark.parametrize("wanted", WIDTHS)
@pytest.mark.parametrize("copies", [1, 2, 4])
def test_a_points_value_does_not_depend_on_where_it_stands(
    wanted: str, copies: int, accuracy: str
) -> None:
    kernel = build(MIXED, wanted, accuracy=accuracy, interleave=copies)
    generator = np.random.default_rng(0)
    columns = [generator.uniform(-5, 5, 150) for _ in range(2)]
    columns[0][17] = 1e200  # a lane of its vector takes the rare way
    together = kernel(*columns)
    for start, length in ((0, 1), (17, 1), (16, 3), (3, 33), (1, 64), (90, 60)):
        alone = kernel(*[c[start : start + length] for c in columns])
        for part, all_ in zip(alone, together, strict=True):
            np.testing.assert_array_equal(part, all_[start : start + length])


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (5, 6), (3, 40), (7, 90), (32, 64)])
def test_only_the_points_asked_for_are_written(begin: int, end: int) -> None:
    kernel = build(MIXED, interleave=2)
    columns = [np.linspace(0.1, 2.0, 100), np.linspace(-1.0, 1.0, 100)]
    outputs = [np.full(100, 7.25), np.full(100, 7.25)]
    kernel.into(columns, outputs, begin, end)
    everything = kernel(*columns)
    for output, whole in zip(outputs, everything, strict=True):
        np.testing.assert_array_equal(output[begin:end], whole[begin:end])
        assert (output[:begin] == 7.25).all()
        assert (output[end:] == 7.25).all()


@pytest.mark.parametrize("length", [6, LARGE + 200])
def test_outputs_may_be_inputs(length: int) -> None:
    kernel = build(random_program(length, 3), accuracy="strict")
    columns = [np.random.default_rng(k).uniform(-1, 1, 77) for k in range(4)]
    want = kernel(*columns)
    kernel.into(columns, columns[:3], 0, 77)
    for found, expected in zip(columns, want, strict=False):
        np.testing.assert_array_equal(found, expected)


def test_more_outputs_than_are_kept_in_registers_may_be_inputs() -> None:
    inputs = tuple(f"x{k}" for k in range(12))
    code = [Instruction("add", (k, (k + 5) % 12)) for k in range(12)]
    kernel = build(program(code, tuple(range(12, 24)), inputs=inputs))
    columns = [np.arange(50.0) + 100 * k for k in range(12)]
    want = kernel(*columns)
    kernel.into(columns, columns, 0, 50)
    for found, expected in zip(columns, want, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_inputs_of_one_element_count_for_every_point() -> None:
    kernel = build(MIXED, scalars=frozenset({1}))
    x = np.linspace(-3.0, 3.0, 41)
    outputs = [np.empty(41), np.empty(41)]
    kernel.into([x, np.array([0.75])], outputs, 0, 41)
    want = build(MIXED)(x, np.full(41, 0.75))
    for found, expected in zip(outputs, want, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_outputs_can_be_inputs_constants_and_truth_values() -> None:
    code = [Instruction("lt", (0, 1)), Instruction("add", (0, 2))]
    kernel = build(program(code, (3, 0, 2, 4, 3), constants=(2.5,)))
    x, y = np.array([1.0, 2.0, np.nan]), np.array([2.0, 1.0, 1.0])
    less, first, constant, total, again = kernel(x, y)
    assert less.dtype == bool
    assert less.tolist() == again.tolist() == [True, False, False]
    np.testing.assert_array_equal(first, x)
    assert constant.tolist() == [2.5, 2.5, 2.5]
    np.testing.assert_array_equal(total, x + 2.5)


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_programs_are_cut_and_compute_the_same(dtype: str, copies: int) -> None:
    large = random_program(3 * LARGE, 5)
    large = Program(
        dtype=dtype, inputs=large.inputs, constants=(), code=large.code, outputs=large.outputs
    )
    kernel = build(large, accuracy="strict", interleave=copies)
    assert "@piece.3(" in kernel.code.ir
    columns = [np.random.default_rng(k).uniform(-1, 1, 70).astype(dtype) for k in range(4)]
    reference = ReferenceEvaluator(large).evaluate(Batch(columns=tuple(columns), n=70)).outputs
    for found, want in zip(kernel(*columns), reference, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("inputs", [MANY - 1, MANY, 200])
def test_many_columns_are_fetched_ahead_and_only_once(inputs: int, dtype: str) -> None:
    names = tuple(f"x{k}" for k in range(inputs))
    code = [Instruction("add", (0, 1))]
    # Every column twice, in pieces where there are many.
    code += [Instruction("add", (inputs + k, k % inputs)) for k in range(2 * inputs)]
    total = Program(
        dtype=dtype, inputs=names, constants=(), code=tuple(code), outputs=(inputs + 2 * inputs,)
    )
    kernel = build(total, accuracy="strict", interleave=1, scalars=frozenset({1}))
    fetches = kernel.code.ir.count("  call void @llvm.prefetch")
    assert fetches == (inputs - 1 if inputs >= MANY else 0)
    assert ("@piece.1(" in kernel.code.ir) == (inputs == 200)
    columns = [np.arange(37, dtype=dtype) + k for k in range(inputs)]
    columns[1] = columns[1][:1]
    (found,) = kernel(*columns)
    np.testing.assert_allclose(found, columns[0] + columns[1] + 2 * sum(columns), rtol=1e-5)


def test_vectors_of_a_long_chain_overlap_even_where_it_is_cut() -> None:
    code = [Instruction("sin" if k % 2 else "sqrt", (k + 1,)) for k in range(LARGE + 100)]
    chain = program([Instruction("abs", (0,)), *code], (1 + len(code),), inputs=("x",))
    kernel = build(chain, accuracy="strict")
    assert "@piece.1(" in kernel.code.ir
    assert kernel.code.interleave == 4
    x = np.random.default_rng(1).uniform(-3, 3, 101)
    (want,) = ReferenceEvaluator(chain).evaluate(Batch(columns=(x,), n=101)).outputs
    np.testing.assert_allclose(kernel(x)[0], want, rtol=1e-12)


def test_a_hundred_thousand_operations_are_compiled() -> None:
    # u = u/2 + y, over and over.
    code = [
        Instruction("add" if k % 2 else "mul", (1 + k if k else 0, k % 2)) for k in range(100_000)
    ]
    large = program(code, (1 + len(code),), inputs=("x", "y"))
    kernel = build(large, accuracy="strict")
    assert kernel.code.interleave == 1
    assert largest_piece(kernel.code.ir) < 3000
    x, y = np.full(9, 0.5), np.linspace(-2.0, 2.0, 9)
    (want,) = ReferenceEvaluator(large).evaluate(Batch(columns=(x, y), n=9)).outputs
    np.testing.assert_array_equal(kernel(x, y)[0], want)


def largest_piece(ir: str) -> int:
    """Lines of the longest function of one block's code."""
    bodies = re.findall(r"^define internal void @piece\..*?^}", ir, re.MULTILINE | re.DOTALL)
    return max(body.count("\n") for body in bodies)


@pytest.mark.parametrize("count", [400, 5000])
def test_pieces_do_not_grow_with_the_number_of_outputs(count: int) -> None:
    wide = program([Instruction("add", (0, 1))], (2, 0, 1) * (count // 3))
    assert largest_piece(emit_kernel(wide, HostTarget.detect()).ir) <= 1200


@pytest.mark.parametrize("count", [700, 5000])
def test_pieces_do_not_grow_with_the_number_of_inputs(count: int) -> None:
    inputs = tuple(f"x{k}" for k in range(count))
    code = [Instruction("add", (k, (7 * k + 1) % count)) for k in range(count)]
    wide = program(code, tuple(range(count, 2 * count)), inputs=inputs)
    assert largest_piece(emit_kernel(wide, HostTarget.detect()).ir) <= 2500


def test_few_steps_with_many_outputs_are_cut_and_compute_the_same() -> None:
    code = [Instruction("add", (0, 1)), Instruction("mul", (0, 2))]
    kernel = build(program(code, (4, 3, 0, 2, 1) * 130, constants=(2.5,)))
    assert "@piece.3(" in kernel.code.ir
    x, y = np.linspace(-3.0, 3.0, 41), np.linspace(0.5, 2.0, 41)
    outputs = [x, *np.empty((649, 41))]  # the first is an input, too
    want = [2.5 * x, x + y, x.copy(), np.full(41, 2.5), y]
    kernel.into([x, y], outputs, 0, 41)
    for place, found in enumerate(outputs):
        np.testing.assert_array_equal(found, want[place % 5])


def test_inputs_that_are_exchanged_pass_through_cut_kernels() -> None:
    inputs = tuple(f"x{k}" for k in range(400))
    kernel = build(
        program([Instruction("neg", (0,))], (*range(1, 400), 400), inputs=inputs), "native/256"
    )
    columns = [np.arange(30.0) + 100 * k for k in range(400)]
    want = [c.copy() for c in columns[1:]] + [-columns[0]]
    kernel.into(columns, columns, 0, 30)
    for found, expected in zip(columns, want, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_long_chain_has_no_depth() -> None:
    code = [Instruction("add", (1 + k if k else 0, 1)) for k in range(20_000)]
    kernel = build(program(code, (20_001,)), accuracy="strict")
    (found,) = kernel(np.zeros(3), np.array([1.0, 0.5, -2.0]))
    assert found.tolist() == [20_000.0, 10_000.0, -40_000.0]


@pytest.mark.parametrize("wanted", WIDTHS)
def test_quotients_that_share_a_reciprocal_are_quotients(wanted: str) -> None:
    count = 8
    code = [Instruction("div", (k, count)) for k in range(count)]
    names = tuple(f"x{k}" for k in range(count + 1))
    kernel = build(program(code, tuple(range(count + 1, 2 * count + 1)), inputs=names), wanted)
    unusual = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, -1e-308, 1.0, 3.0])
    generator = np.random.default_rng(7)
    random = generator.uniform(-2, 2, (count + 1, 400)) * 2.0 ** generator.integers(-400, 400, 400)
    pairs = np.array(np.meshgrid(unusual, unusual)).reshape(2, -1)
    above = np.concatenate([random[:count], np.tile(pairs[0], (count, 1))], axis=1)
    below = np.concatenate([random[count], pairs[1]])
    with np.errstate(all="ignore"):
        want = above / below
    for found, exact in zip(kernel(*above, below), want, strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("op", ["mul", "div", "sqrt", "exp", "log", "asin", "atanh", "tanh"])
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_operations_agree_with_the_reference_also_where_they_are_unusual(
    op: str, dtype: str
) -> None:
    both = single(op, dtype)
    kernel = build(both, accuracy="strict", interleave=2)
    parts = (0.0, -0.0, 1.0, -2.5, 1e-30, 3e15, np.inf, np.nan)
    numbers = np.array([complex(a, b) for a in parts for b in parts], dtype=dtype)
    columns = [numbers, np.roll(numbers, 5)][: len(both.inputs)]
    (found,) = kernel(*columns)
    (want,) = ReferenceEvaluator(both).evaluate(Batch(columns=tuple(columns), n=64)).outputs
    size = np.abs(want)
    ordinary = np.isfinite(size) & (size > 0)
    limit = 16 * np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        assert (np.abs(found - want)[ordinary] <= limit * size[ordinary]).all()
    np.testing.assert_array_equal(np.isnan(found.real), np.isnan(want.real))
    np.testing.assert_array_equal(np.isnan(found.imag), np.isnan(want.imag))
    np.testing.assert_array_equal(found[size == 0], want[size == 0])


REAL_FUNCTIONS = [
    op
    for op in LOWERINGS
    if OPS[op].signature in (Signature.REAL, Signature.NUMERIC, Signature.PART)
]


@pytest.mark.parametrize("op", REAL_FUNCTIONS)
def test_strict_results_have_the_same_bits_at_every_width(op: str) -> None:
    points = oracle.samples(op, 60)
    columns = [np.array(c) for c in zip(*points, strict=True)]
    kernels = [build(single(op), wanted, accuracy="strict") for wanted in WIDTHS]
    (first,), *others = (kernel(*columns) for kernel in kernels)
    for (other,) in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("op", REAL_FUNCTIONS)
def test_processors_without_fused_multiply_adds_stay_within_the_bounds(op: str) -> None:
    points = oracle.samples(op, 30)
    columns = [np.array(c) for c in zip(*points, strict=True)]
    (found,) = build(single(op), "x86-64-v2", accuracy="strict")(*columns)
    limit = oracle.bound(OPS[op])
    exponent = 3 if OPS[op].has_parameter else None
    for point, value in zip(points, found, strict=True):
        want = oracle.exact(op, point, exponent)
        assert oracle.error_in_ulps(float(value), want, scale=oracle.scale(OPS[op])) <= limit


def test_without_fused_multiply_adds_functions_are_the_c_librarys(accuracy: str) -> None:
    target = HostTarget("x86_64-unknown-linux-gnu", "x86-64-v2", "+sse4.2", 128)
    assert emit_kernel(single("sin"), target, accuracy=accuracy).symbols == ("sin",)


def test_with_fused_multiply_adds_only_rare_parts_are_the_c_librarys(accuracy: str) -> None:
    target = HostTarget("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256)
    called = {
        op: emit_kernel(single(op, parameter=_exponent(op)), target, accuracy=accuracy).symbols
        for op in LOWERINGS
    }
    rare = {"mod": ("fmod",), "pow": ("pow",)}
    if accuracy != "fast":
        rare["powi"] = ("pow",)
    assert {op: names for op, names in called.items() if names} == rare


OTHERS = (
    HostTarget("aarch64-unknown-linux-gnu", "generic", "+neon", 128),
    HostTarget("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 128),
    HostTarget("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128),
)


@pytest.mark.parametrize("target", OTHERS, ids=lambda t: t.triple.partition("-")[0])
def test_every_operation_compiles_for_other_architectures(target: HostTarget) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic"
    )
    for op in LOWERINGS:
        kernel = emit_kernel(single(op), target)
        module = llvm.parse_assembly(kernel.ir)
        module.verify()
        assert len(machine.emit_object(module)) > 0, op


def test_only_the_rare_parts_of_powers_and_remainders_leave_the_kernel() -> None:
    fused = HostTarget("aarch64-unknown-linux-gnu", "generic", "+neon", 128)
    outside = {op: emit_kernel(single(op, parameter=_exponent(op)), fused) for op in LOWERINGS}
    used = {op: kernel.symbols for op, kernel in outside.items() if kernel.symbols}
    assert used == {"pow": ("pow",), "powi": ("pow",), "mod": ("fmod",)}


def _exponent(op: str) -> int | None:
    return 100 if OPS[op].has_parameter else None


@pytest.mark.parametrize(("op", "sign"), [("mul", 1.0), ("div", -1.0)])
def test_exponentials_are_merged_without_a_larger_error(op: str, sign: float) -> None:
    code = [Instruction("exp", (0,)), Instruction("exp", (1,)), Instruction(op, (2, 3))]
    x = np.array([300.25, 0.1, 1e-17, -600.0, 800.0, np.inf, np.nan, np.inf])
    y = sign * np.array([-290.0, 0.2, 1.0, 620.0, -799.5, 1.0, 0.0, -np.inf])
    (found,) = build(program(code, (4,)), accuracy="default")(x, y)
    assert np.isnan(found[6:]).all()
    assert found[5] == np.inf
    for value, a, b in zip(found[:5], x, sign * y, strict=False):
        want = oracle.exact("exp", [float(a)]) * oracle.exact("exp", [float(b)])
        assert oracle.error_in_ulps(float(value), want) < 1
    strict = emit_kernel(program(code, (4,)), HostTarget.detect(), accuracy="strict").ir
    assert "exp.of.two" not in strict


@pytest.mark.parametrize("op", LOWERINGS)
def test_rare_functions_stand_alone_so_that_kernels_can_share_them(op: str, accuracy: str) -> None:
    for exponent in (3, 7, 100) if OPS[op].has_parameter else (None,):
        kernel = emit_kernel(single(op, parameter=exponent), HostTarget.detect(), accuracy=accuracy)
        definitions = re.findall(r"^define .*?^}", kernel.ir, re.MULTILINE | re.DOTALL)
        rare = [d for d in definitions if "noinline cold" in d.partition("\n")[0]]
        names = {re.search(r"@([\w.]+)", d)[1] for d in rare}  # type: ignore[index]
        for definition in rare:
            called = set(re.findall(r"call [^\n]*?@([\w.]+)\(", definition))
            own = {name for name in called if name.startswith("ak.")}
            assert own <= names
            assert "!prof" not in definition


def test_text_of_the_user_is_not_in_the_code() -> None:
    odd = program([Instruction("add", (0, 1))], (2,), inputs=('"; } evil', "\n}"))
    assert "evil" not in emit_kernel(odd, HostTarget.detect()).ir


def test_strict_code_has_no_fused_operations_of_its_own() -> None:
    code = [Instruction("sqrt", (0,)), Instruction("mul", (0, 1)), Instruction("add", (3, 2))]
    fused, plain = (
        emit_kernel(
            program(code, (4,)), HostTarget("aarch64-linux", "generic", "", 128), accuracy=a
        )
        for a in ("default", "strict")
    )
    assert "llvm.fma" in fused.ir
    assert "llvm.fma" not in plain.ir
    assert not re.search(r"f(add|mul) (fast|contract|reassoc)", fused.ir + plain.ir)
