"""Special values of the reference's kernels, and the exactness of the few that are its own."""

from __future__ import annotations

import cmath
import math
import random
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import alkahest
from alkahest.program import Instruction, Program
from alkahest.testing.programs import single

INF, NAN = math.inf, math.nan
TINY, HUGE = 5e-324, 1.7976931348623157e308

# operation, operands, result; zeros and infinities with their signs
SPECIAL: tuple[tuple[str, tuple[float, ...], float], ...] = (
    ("add", (INF, -INF), NAN),
    ("div", (1.0, -0.0), -INF),
    ("div", (0.0, 0.0), NAN),
    ("mul", (0.0, INF), NAN),
    ("mul", (1e-160, 1e-160), 1e-320),
    ("neg", (0.0,), -0.0),
    ("abs", (-0.0,), 0.0),
    ("sign", (-0.0,), 0.0),
    ("sign", (-TINY,), -1.0),
    ("sign", (NAN,), NAN),
    ("min", (0.0, -0.0), -0.0),
    ("min", (-0.0, 0.0), -0.0),
    ("min", (0.0, 0.0), 0.0),
    ("min", (-0.0, -0.0), -0.0),
    ("max", (0.0, -0.0), 0.0),
    ("max", (-0.0, 0.0), 0.0),
    ("max", (-0.0, -0.0), -0.0),
    ("min", (NAN, 1.0), NAN),
    ("min", (1.0, NAN), NAN),
    ("max", (-INF, NAN), NAN),
    ("floor", (-0.0,), -0.0),
    ("ceil", (-0.5,), -0.0),
    ("trunc", (-0.5,), -0.0),
    ("round", (0.5,), 0.0),
    ("round", (1.5,), 2.0),
    ("round", (-2.5,), -2.0),
    ("round", (0.49999999999999994,), 0.0),
    ("mod", (5.0, -3.0), -1.0),
    ("mod", (-5.0, 3.0), 1.0),
    ("mod", (6.0, -3.0), -0.0),
    ("mod", (5.0, INF), 5.0),
    ("mod", (-5.0, INF), INF),
    ("mod", (INF, 3.0), NAN),
    ("mod", (1.0, 0.0), NAN),
    ("exp", (-INF,), 0.0),
    ("exp", (710.0,), INF),
    ("exp", (-745.0,), TINY),
    ("exp2", (-1074.0,), TINY),
    ("expm1", (-0.0,), -0.0),
    ("expm1", (-INF,), -1.0),
    ("log", (-0.0,), -INF),
    ("log", (-1.0,), NAN),
    ("log", (TINY,), -744.4400719213812),
    ("log1p", (-1.0,), -INF),
    ("log1p", (-0.0,), -0.0),
    ("log2", (TINY,), -1074.0),
    ("log10", (1e22,), 22.0),
    ("sqrt", (-0.0,), -0.0),
    ("sqrt", (TINY,), 2.2227587494850775e-162),
    ("sqrt", (-INF,), NAN),
    ("rsqrt", (0.0,), INF),
    ("rsqrt", (-0.0,), -INF),
    ("rsqrt", (INF,), 0.0),
    ("rsqrt", (-1.0,), NAN),
    ("cbrt", (-0.0,), -0.0),
    ("cbrt", (-INF,), -INF),
    ("cbrt", (-27.0,), -3.0),
    ("cbrt", (TINY * 8,), 2.0**-357),
    ("hypot", (INF, NAN), INF),
    ("hypot", (3e300, 4e300), 5e300),
    ("sin", (INF,), NAN),
    ("sin", (1e22,), -0.8522008497671888),
    ("tan", (math.pi / 2,), 1.633123935319537e16),
    ("asin", (1.0000000000000002,), NAN),
    ("acos", (1.0,), 0.0),
    ("atan2", (0.0, -0.0), math.pi),
    ("atan2", (-0.0, -0.0), -math.pi),
    ("atan2", (-0.0, 0.0), -0.0),
    ("atan2", (INF, -INF), 3 * math.pi / 4),
    ("sinh", (-0.0,), -0.0),
    ("sinh", (710.0,), 1.1169973830808555e308),
    ("acosh", (0.5,), NAN),
    ("atanh", (-1.0,), -INF),
    ("asinh", (-HUGE,), -710.4758600739439),
    ("erf", (-0.0,), -0.0),
    ("erf", (-INF,), -1.0),
    ("erfc", (-INF,), 2.0),
    ("erfc", (INF,), 0.0),
    ("erfc", (27.3,), 0.0),
    ("erfc", (27.2,), 2e-323),
    ("erfinv", (-0.0,), -0.0),
    ("erfinv", (-1.0,), -INF),
    ("erfinv", (1.0000000000000002,), NAN),
    ("gamma", (0.0,), INF),
    ("gamma", (-0.0,), -INF),
    ("gamma", (-3.0,), NAN),
    ("gamma", (-INF,), NAN),
    ("gamma", (INF,), INF),
    ("gamma", (171.7,), INF),
    ("lgamma", (-3.0,), INF),
    ("lgamma", (-0.0,), INF),
    ("lgamma", (-INF,), INF),
    ("lgamma", (1.0,), 0.0),
    ("digamma", (0.0,), -INF),
    ("digamma", (-0.0,), INF),
    ("digamma", (-4.0,), NAN),
    ("digamma", (-INF,), NAN),
    ("digamma", (INF,), INF),
    ("j0", (-INF,), 0.0),
    ("j1", (-0.0,), -0.0),
    ("j1", (-INF,), -0.0),
    ("y0", (0.0,), -INF),
    ("y0", (-1.0,), NAN),
    ("y0", (INF,), 0.0),
    ("y1", (-0.0,), -INF),
    ("y1", (-INF,), NAN),
    ("y1", (4e-309,), -1.5915494309189542e308),
    ("j0", (NAN,), NAN),
    ("im", (NAN,), 0.0),
    ("re", (-0.0,), -0.0),
    ("arg", (-0.0,), math.pi),
    ("arg", (3.0,), 0.0),
    ("arg", (-3.0,), math.pi),
    ("pow", (NAN, 0.0), 1.0),
    ("pow", (1.0, NAN), 1.0),
    ("pow", (0.0, 0.0), 1.0),
    ("pow", (-0.0, -3.0), -INF),
    ("pow", (-INF, 2.0), INF),
    ("pow", (-1.0, INF), 1.0),
    ("pow", (0.5, -INF), INF),
    ("pow", (-8.0, 1 / 3), NAN),
)

POWERS: tuple[tuple[float, int, float], ...] = (
    (NAN, 0, 1.0),
    (-0.0, 1, -0.0),
    (-0.0, -1, -INF),
    (-0.0, -2, INF),
    (-0.0, -3, -INF),
    (-0.0, 5, -0.0),
    (1e200, 2, INF),
    (1e-200, -2, INF),
    (1e160, -2, 1e-320),
    (2.0, -1074, TINY),
    (-2.0, 1025, -INF),
    (1.1, 100, 13780.61233982238),
    (0.9, 1000, 1.7478712517226947e-46),
    (-1.0, 10**30 + 1, -1.0),
    (-1.0, 10**30, 1.0),
    (-1.0, 2**53 + 1, -1.0),
    (-0.0, 10**30 + 1, -0.0),
    (-0.0, -(10**30) - 1, -INF),
    (-INF, 10**30 + 1, -INF),
    (-INF, -(10**30) - 1, -0.0),
    (-1.0, 10**400 + 1, -1.0),
    (-0.5, 10**400 + 1, -0.0),
    (-3.0, -(10**400) - 1, -0.0),
    (NAN, 2**60, NAN),
)


def same(got: float, want: float) -> bool:
    """Equal with the sign of zero; near where the value is no special one."""
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return math.isclose(got, want, rel_tol=4e-16) or abs(want) < 1e-300


@pytest.mark.parametrize(("op", "operands", "want"), SPECIAL, ids=str)
def test_special_values_are_right_alone_and_in_a_column(
    run: Any, op: str, operands: tuple[float, ...], want: float
) -> None:
    # A long column takes the processor's vector path, whose special values are another code.
    for count in (1, 19):
        (got,) = run(single(op), *[[x] * count for x in operands])
        assert all(same(value, want) for value in got.tolist()), f"{got[0]!r}, not {want!r}"


@pytest.mark.parametrize(("base", "exponent", "want"), POWERS, ids=str)
def test_integer_powers_keep_parity_range_and_signs(
    run: Any, base: float, exponent: int, want: float
) -> None:
    (got,) = run(single("powi", parameter=exponent), [base] * 9)
    assert same(got[0], want), f"{got[0]!r}, not {want!r}"


def test_conditions_are_false_for_nan_except_unequal(run: Any) -> None:
    for op in ("lt", "le", "gt", "ge", "eq"):
        assert run(single(op), [NAN, NAN], [NAN, 1.0])[0].tolist() == [False, False]
    assert run(single("ne"), [NAN, 1.0], [NAN, 1.0])[0].tolist() == [True, False]


def test_a_branch_that_is_not_taken_has_no_effect(run: Any) -> None:
    program = Program(
        dtype="float64",
        inputs=("x",),
        constants=(0.0,),
        code=(
            Instruction("gt", (0, 1)),
            Instruction("log", (0,)),
            Instruction("select", (2, 3, 1)),
            Instruction("div", (0, 1)),
            Instruction("select", (2, 1, 5)),
        ),
        outputs=(4, 6),
    ).verify()
    logs, quotients = run(program, [1.0, -1.0, NAN, 0.0])
    assert logs.tolist() == [0.0, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(quotients, [0.0, -INF, NAN, NAN])


def test_nothing_warns(run: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for op, operands, _ in SPECIAL:
            run(single(op), *[[x] for x in operands])
        run(single("exp", "float32"), [1e30])
        run(single("div", "complex128"), [1j], [0j])
        run(single("powi", "complex64", 1000), [20 + 3j])


# Fused multiply-add


def exactly_rounded(a: float, b: float, c: float) -> float:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(value)
    except OverflowError:
        return INF if value > 0 else -INF


def random_double(generator: random.Random, low: int, high: int) -> float:
    mantissa = generator.getrandbits(53) | 1 << 52
    return math.ldexp(generator.choice((-1, 1)) * mantissa, generator.randint(low, high) - 52)


@pytest.mark.parametrize(
    ("low", "high"), [(-2, 2), (-30, 30), (-540, 540), (-1074, -900), (-560, -480), (480, 1023)]
)
def test_fma_rounds_once_at_every_magnitude(run: Any, low: int, high: int) -> None:
    generator = random.Random(low)
    points = []
    for _ in range(200):
        a, b = (random_double(generator, low, high) for _ in range(2))
        c = random_double(generator, low, high)
        if generator.random() < 0.7 and 1e-300 < abs(a * b) < 1e300:
            # Near cancellation and near ties, where two roundings differ from one.
            c = -a * b * generator.choice((1.0, 1 + 2**-52, 2.0**53, 2.0**-53, 2.0**-54))
        points.append((a, b, c))
    (got,) = run(single("fma"), *np.array(points).T)
    for value, point in zip(got.tolist(), points, strict=True):
        if all(map(math.isfinite, point)):
            assert value == exactly_rounded(*point), point


@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        (INF, 0.0, 1.0, NAN),
        (INF, 1.0, -INF, NAN),
        (INF, 2.0, 1.0, INF),
        (1e200, 1e200, -INF, -INF),
        (1e200, 1e200, NAN, NAN),
        (1e200, 1e200, -1e308, INF),
        (HUGE, 2.0, -HUGE, HUGE),
        (0.0, -1.0, 0.0, 0.0),
        (0.0, -1.0, -0.0, -0.0),
        (1.0, 1.0, -1.0, 0.0),
        (TINY, -0.5, 0.0, -0.0),
        (TINY, 0.5, TINY, 1e-323),
        (TINY, TINY, 1.0, 1.0),
        (1 + 2**-52, 1 - 2**-53, -1.0, 2.0**-53 - 2.0**-105),
    ],
)
def test_fma_of_special_operands(run: Any, a: float, b: float, c: float, want: float) -> None:
    (got,) = run(single("fma"), [a], [b], [c])
    assert same(got[0], want), got[0]


def test_float32_fma_rounds_once(run: Any) -> None:
    generator = np.random.default_rng(1)
    a, b = generator.uniform(1, 2, (2, 300)).astype(np.float32)
    # Sums that lie a hair beside a float32 tie: rounding to float64 first would hit the tie.
    c = (generator.choice([-1, 1], 300) * 2.0**-60).astype(np.float32)
    c[::2] = -(a * b)[::2]
    (got,) = run(single("fma", "float32"), a, b, c)
    for p, q, r, value in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        exact = Fraction(p) * Fraction(q) + Fraction(r)
        above, below = np.nextafter(value, np.float32(INF)), np.nextafter(value, np.float32(-INF))
        error = abs(Fraction(float(value)) - exact)
        assert error <= abs(Fraction(float(above)) - exact)
        assert error <= abs(Fraction(float(below)) - exact)


def test_float32_fma_does_not_round_twice_at_a_tie(run: Any) -> None:
    a, b, c = np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(2.0**-80)
    (got,) = run(single("fma", "float32"), [a], [b], [c])
    # a*b = 1 + 2**-11 + 2**-24 is a tie of float32, which c breaks upwards
    assert got[0] == np.float32(1 + 2**-11 + 2**-23)


# Complex arithmetic


@pytest.mark.parametrize(
    ("z", "w", "want"),
    [
        (complex(INF, NAN), 1 + 0j, INF),
        (complex(INF, INF), complex(1, 1), INF),
        (complex(1e200, 1e200), complex(1e200, 1e200), INF),
        (complex(INF, 0), 0j, NAN),
        (complex(NAN, NAN), complex(INF, 1), NAN),
        (complex(NAN, 0), 1j, NAN),
    ],
)
def test_products_recover_the_infinity(run: Any, z: complex, w: complex, want: float) -> None:
    (got,) = run(single("mul", "complex128"), [z], [w])
    if math.isnan(want):
        assert not np.isinf(got[0])
        assert np.isnan(got[0])
    else:
        assert np.isinf(got[0].real) or np.isinf(got[0].imag)


@pytest.mark.parametrize(
    ("z", "w", "want"),
    [
        (1 + 1j, complex(INF, INF), 0),
        (complex(INF, 1), 1 + 1j, INF),
        (1 + 1j, 0j, INF),
        (0j, 0j, NAN),
        (complex(1e308, 1e308), 1 + 1j, 1e308),
        (complex(1e-320, 1e-320), complex(1e-320, 1e-320), 1),
        (complex(1e300, 1e-300), complex(1e300, 1e300), 0.5 - 0.5j),
        (complex(NAN, 1), 1 + 1j, NAN),
    ],
)
def test_quotients_neither_overflow_nor_lose_infinities(
    run: Any, z: complex, w: complex, want: complex
) -> None:
    (got,) = run(single("div", "complex128"), [z], [w])
    if cmath.isnan(want):
        assert np.isnan(got[0])
    elif cmath.isinf(want):
        assert np.isinf(got[0].real) or np.isinf(got[0].imag)
    else:
        assert got[0] == pytest.approx(want, rel=1e-15)


CUTS = {
    "sqrt": (-4.0, cmath.sqrt),
    "log": (-4.0, cmath.log),
    "asin": (2.0, cmath.asin),
    "acos": (2.0, cmath.acos),
    "atanh": (2.0, cmath.atanh),
    "acosh": (-2.0, cmath.acosh),
}


@pytest.mark.parametrize("op", CUTS)
@pytest.mark.parametrize("imaginary", [0.0, -0.0])
def test_the_sign_of_zero_chooses_the_side_of_a_branch_cut(
    run: Any, op: str, imaginary: float
) -> None:
    real, reference = CUTS[op]
    z = complex(real, imaginary)
    (got,) = run(single(op, "complex128"), np.array([z]))
    want = reference(z)
    assert got[0] == pytest.approx(want, rel=1e-15)
    assert math.copysign(1, got[0].imag) == math.copysign(1, want.imag)


def test_parts_keep_their_signs_and_bits(run: Any) -> None:
    z = np.array([complex(-0.0, 3.0), complex(INF, NAN), complex(2.0, -0.0)])
    for op, want in (("re", z.real), ("im", z.imag), ("conjugate", z.conj()), ("neg", -z)):
        (got,) = run(single(op, "complex128"), z)
        assert got.tobytes() == want.astype(got.dtype).tobytes() or op in ("re", "im")
        np.testing.assert_array_equal(got, want)
    (size,) = run(single("abs", "complex128"), z)
    assert size.tolist() == [3.0, INF, 2.0]
    (angle,) = run(single("arg", "complex128"), [complex(-1.0, -0.0), complex(-1.0, 0.0)])
    assert angle.tolist() == [-math.pi, math.pi]


@pytest.mark.parametrize(
    ("z", "w", "want"),
    [(0j, 0j, 1), (complex(NAN, 0), 0j, 1), (0j, 2 + 0j, 0), (0j, 0.5 + 1j, 0), (1j, 2 + 0j, -1)],
)
def test_complex_powers_of_and_to_zero(run: Any, z: complex, w: complex, want: complex) -> None:
    (got,) = run(single("pow", "complex128"), [z], [w])
    assert got[0] == pytest.approx(want, abs=1e-15)


@pytest.mark.parametrize(
    ("z", "n", "want"),
    [
        (1j, 10**30 + 1, 1j),
        (-1j, 10**30 + 3, 1j),
        (0j, 7, 0),
        (complex(NAN, NAN), 0, 1),
        (1 + 1j, 20, -1024),
        (1 + 1j, -20, -1 / 1024),
        (2j, -1074, -TINY),
        (complex(0.5, 0.5), 2000, 2.0**-1000),
    ],
)
def test_complex_integer_powers_are_exact_where_they_can_be(
    run: Any, z: complex, n: int, want: complex
) -> None:
    (got,) = run(single("powi", "complex128", n), [z])
    assert got[0] == want


@pytest.mark.parametrize("n", [5, 10**9, 2**70 + 1])
def test_complex_powers_of_infinity_and_by_overflow_are_infinite(run: Any, n: int) -> None:
    (got,) = run(single("powi", "complex128", n), [complex(INF, 0), complex(1e200, 1e200)])
    assert all(np.isinf(got.real) | np.isinf(got.imag))


def test_complex_values_are_equal_only_in_both_parts(run: Any) -> None:
    z = np.array([1 + 1j, 1 + 1j, complex(NAN, 1)])
    w = np.array([1 + 1j, 1 - 1j, complex(NAN, 1)])
    assert run(single("eq", "complex128"), z, w)[0].tolist() == [True, False, False]
    assert run(single("ne", "complex64"), z, w)[0].tolist() == [False, True, True]


def test_complex_numbers_are_selected_whole(run: Any) -> None:
    program = Program(
        dtype="complex64",
        inputs=("z",),
        constants=(0.0, 1j),
        code=(
            Instruction("re", (0,)),
            Instruction("gt", (3, 1)),
            Instruction("select", (4, 0, 2)),
        ),
        outputs=(5,),
    ).verify()
    assert run(program, [2 + 3j, -2 + 3j])[0].tolist() == [2 + 3j, 1j]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_power_is_the_same_for_one_exponent_as_for_a_column_of_it(dtype):
    x, y = alkahest.symbols("x y")
    fn = alkahest.compile_expr(
        x**y, [x, y], backend="cpu-reference", dtype={"f8": "float64", "f4": "float32"}[dtype]
    )
    base = np.array([-0.0, 0.0, -np.inf, np.inf, 4.0, -1.0, np.nan], dtype=dtype)
    for exponent in (0.5, -0.5, 2.0, -1.0, 0.0, 1.0, 1.5):
        column = np.full(len(base), exponent, dtype=dtype)
        np.testing.assert_array_equal(fn(base, column), fn(base, column[0]))
        assert (np.signbit(fn(base, column)) == np.signbit(fn(base, column[0])))[:-2].all()
    assert fn.call_batch([base[:3], 0.5]).tolist() == [0.0, 0.0, np.inf]
