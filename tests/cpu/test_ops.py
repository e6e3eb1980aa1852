"""Every operation of the op table against arbitrary precision, in every dtype that has it."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from alkahest.backends.cpu.kernels import LOWERINGS, REFUSED, kernel_for, support
from alkahest.errors import CodegenError
from alkahest.ops import DTYPES, OPS, Exactness, Kind, Op, Signature
from alkahest.program import Instruction, Program
from alkahest.testing import oracle
from alkahest.testing.programs import POWERS, single

REAL = ("float64", "float32")
COMPLEX = ("complex128", "complex64")
POINTS = 60

DOUBLE_ROUNDING = 0.5 + 1e-4
"""Float32 results come from float64 ones, which are at most a few 2**-52 off before rounding."""

COMPLEX_BOUND = {"pow": 600.0}
"""Ulps of ``|result|``; pow is exp(w*log(z)), whose error grows with ``|w*log(z)|``."""

# Ranges that ordinary samples do not reach: (op, low, high); drawn logarithmically if low > 0.
EXTREME = (
    ("exp", -745.0, 709.7),
    ("exp2", -1074.0, 1023.9),
    ("expm1", 1e-300, 700.0),
    ("log", 1e-320, 1e308),
    ("log", 0.999, 1.001),
    ("log1p", 1e-320, 1e308),
    ("log2", 0.999, 1.001),
    ("log10", 0.999, 1.001),
    ("sin", 1e-300, 1e308),
    ("cos", 1e-300, 1e308),
    ("tan", 1e-300, 1e308),
    ("atan", 1e-300, 1e308),
    ("sinh", -710.4, 710.4),
    ("cosh", -710.4, 710.4),
    ("asinh", 1e-300, 1e308),
    ("acosh", 1.0, 1e308),
    ("atanh", 1e-300, 0.9999999),
    ("cbrt", 1e-320, 1e308),
    ("erf", 1e-300, 6.0),
    ("erfc", 1.0, 26.5),
    ("erfc", 0.4, 1.1),
    ("erfinv", 1e-300, 0.999999999),
    ("gamma", -169.9, -0.1),
    ("gamma", -183.0, -169.0),
    ("gamma", -176.0 + 3e-14, -176.0 + 1e-12),
    ("gamma", 20.0, 171.6),
    ("lgamma", -200.3, -0.1),
    ("lgamma", 1e-300, 1e300),
    ("lgamma", -1e-310, -1e-320),
    ("digamma", -64.001, -63.999),
    ("digamma", -300.3, -0.1),
    ("digamma", 1e-300, 1e300),
    ("j0", 20.0, 1e15),
    ("j1", 20.0, 1e15),
    ("y0", 20.0, 1e15),
    ("y1", 20.0, 1e15),
    ("j1", 1e-300, 1.0),
    ("y0", 1e-300, 1.0),
    ("y1", 1e-300, 1.0),
)


def exponents(op: Op) -> tuple[int | None, ...]:
    return (*POWERS, 0, 1, -1) if op.has_parameter else (None,)


def bound(op: Op, dtype: str) -> float:
    if dtype == "float64" or op.exactness is Exactness.EXACT:
        return oracle.bound(op)
    return DOUBLE_ROUNDING


def test_every_operation_is_lowered_or_refused_and_never_both() -> None:
    assert LOWERINGS.keys() | REFUSED.keys() == OPS.keys()
    assert not LOWERINGS.keys() & REFUSED.keys()
    assert support().lowers.keys() == LOWERINGS.keys()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_the_kernel_exists_wherever_the_operation_has_a_meaning(op: Op, dtype: str) -> None:
    parameter = 3 if op.has_parameter else None
    try:
        program = single(op.name, dtype, parameter)
    except CodegenError:
        # The operation takes real operands, which single() does not feed in complex programs.
        assert dtype in COMPLEX or op.name == "complex"
        return
    assert dtype in LOWERINGS[op.name].dtypes
    assert callable(kernel_for(program.code[-1], program))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_real_results_lie_within_the_bound_of_the_table(run: Any, op: Op, dtype: str) -> None:
    if op.name == "complex":
        with pytest.raises(CodegenError):
            single("complex", dtype)
        return
    for parameter in exponents(op):
        points = oracle.samples(op.name, POINTS, seed=parameter or 0, dtype=dtype)
        program = single(op.name, dtype, parameter)
        (got,) = run(program, *np.array(points).T)
        for value, point in zip(got.tolist(), points, strict=True):
            check_real(op, dtype, parameter, point, value)


def check_real(op: Op, dtype: str, parameter: int | None, point: Any, got: float) -> None:
    truths = [x > 0 for x in point]
    operands = {"logic": truths, "select": [truths[0], *point[1:]]}
    want = oracle.exact(op.name, operands.get(op.signature.value, point), parameter)
    shown = f"{op.name}({', '.join(map(repr, point))}) {parameter or ''} gave {got!r}, not {want}"
    if isinstance(got, bool):
        assert got == want, shown
    else:
        error = oracle.error_in_ulps(got, want, dtype, oracle.scale(op))
        assert error <= bound(op, dtype), f"{shown} ({error:.3f} ulp)"


@pytest.mark.parametrize(("name", "low", "high"), EXTREME, ids=str)
def test_extreme_arguments_keep_the_bound(run: Any, name: str, low: float, high: float) -> None:
    generator = np.random.default_rng(3)
    if low > 0:
        points = np.exp(generator.uniform(math.log(low), math.log(high), POINTS))
    else:
        points = generator.uniform(low, high, POINTS)
    (got,) = run(single(name), points)
    for point, value in zip(points.tolist(), got.tolist(), strict=True):
        check_real(OPS[name], "float64", None, (point,), value)


@pytest.mark.parametrize("base", [1.0000000000000002, 0.9999999999999999, 1.0000001, 1.5, -0.75])
@pytest.mark.parametrize("exponent", [2**53 + 1, 10**17 + 3, -(10**16) - 1, 10**9 + 7, 1023, -511])
def test_integer_powers_are_good_to_an_ulp_or_two(run: Any, base: float, exponent: int) -> None:
    (got,) = run(single("powi", parameter=exponent), [base])
    with mpmath.workdps(60):
        want = mpmath.mpf(base) ** exponent
    if mpmath.mpf(2) ** -1074 < abs(want) < mpmath.mpf(2) ** 1024:
        assert oracle.error_in_ulps(float(got[0]), want) <= 2
    else:
        assert abs(got[0]) in (0.0, math.inf)
        assert math.copysign(1, got[0]) == (math.copysign(1, base) if exponent % 2 else 1)


def complex_operations() -> list[Op]:
    rows = [op for op in OPS.values() if LOWERINGS[op.name].complex is not None]
    return [op for op in rows if op.signature is not Signature.SELECT]  # its condition is real


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("op", complex_operations(), ids=lambda op: op.name)
def test_complex_results_lie_within_a_few_ulps_of_their_modulus(
    run: Any, op: Op, dtype: str
) -> None:
    generator = np.random.default_rng(5)
    for parameter in exponents(op):
        size = min(3.0, 80.0 / max(1, abs(parameter or 0)))  # nothing overflows complex64
        angle = generator.uniform(-math.pi, math.pi, (op.arity, POINTS))
        radius = np.exp(generator.uniform(-size, size, (op.arity, POINTS)))
        columns = (radius * np.exp(1j * angle)).astype(dtype)
        if size < 1e-6:  # powers of 1, i, -1 and -i stay on the circle
            columns = (1j ** np.round(4 * angle / math.pi)).astype(dtype).round()
        (got,) = run(single(op.name, dtype, parameter), *columns)
        for row in range(POINTS):
            check_complex(op, dtype, parameter, columns[:, row].tolist(), got[row].item())


def check_complex(op: Op, dtype: str, parameter: int | None, point: Any, got: Any) -> None:
    shown = f"{op.name}{point} {parameter or ''} gave {got!r}"
    want = oracle.exact(op.name, point, parameter)
    if isinstance(got, bool):
        assert got == want, shown
        return
    if parameter is not None and parameter < 0 and point[0] == 0:
        assert not np.isfinite(got), shown
        return
    precision = "float64" if dtype == "complex128" else "float32"
    with mpmath.workdps(50):
        error = abs(mpmath.mpmathify(got) - want) / oracle.ulp(abs(want), precision)
    allowed = COMPLEX_BOUND.get(op.name, 4.0) if dtype == "complex128" else 1.0
    assert error <= allowed, f"{shown}, not {want} ({float(error):.2f} ulp)"


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_real_operations_serve_the_real_values_of_complex_programs(run: Any, dtype: str) -> None:
    real = "float64" if dtype == "complex128" else "float32"
    program = Program(
        dtype=dtype,
        inputs=("z",),
        constants=(2.0,),
        code=(
            Instruction("abs", (0,)),
            Instruction("floor", (2,)),
            Instruction("atan2", (3, 1)),
            Instruction("complex", (3, 4)),
        ),
        outputs=(4, 5),
    ).verify()
    assert program.kinds[2] is Kind.REAL
    angle, both = run(program, [3 + 4j, 0.5j])
    assert angle.dtype == real
    assert both.dtype == dtype
    np.testing.assert_array_equal(both.real, [5, 0])
    np.testing.assert_allclose(angle, [math.atan2(5, 2), 0], rtol=1e-7)
