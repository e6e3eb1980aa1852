"""Complex programs as real ones: values against mpmath, special values against the definition."""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alkahest
from alkahest.errors import AlkahestError
from alkahest.expr.evaluate import interpret
from alkahest.ops import OPS, Kind
from alkahest.program import Instruction, Program, lower
from alkahest.program.split_complex import FORMULAE, split
from alkahest.testing import oracle
from alkahest.testing.programs import single

FUNCTIONS = "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
LANDMARKS = (0, 1, -1, 1j, -1j, math.pi / 2, 1j * math.pi / 2, -math.pi)
DIRECTIONS = [cmath.exp(1j * (k + 0.37)) for k in range(-3, 4)]

inf, nan = math.inf, math.nan


split_once = cache(split)


def evaluated(program: Program, *point: complex) -> complex:
    """The first output of ``program`` by way of its real program."""
    found = split_once(program)
    parts = [x for z in point for x in (complex(z).real, complex(z).imag)]
    values = interpret(found.program, parts)
    return complex(*(values[k] for k in found.outputs[0]))


def error(got: complex, want: mpmath.mpc) -> float:
    """Distance in units in the last place of the exact result's magnitude."""
    return float(abs(mpmath.mpmathify(got) - want) / oracle.ulp(abs(want)))


def ordinary_points() -> Iterator[complex]:
    """Points of every size and direction, and points close to where functions are critical."""
    for direction in DIRECTIONS:
        yield from (direction * 10.0**k for k in range(-12, 2))
    for landmark in LANDMARKS:
        yield from (landmark + d * 10.0**-k for k in (1, 4, 8, 15) for d in DIRECTIONS[::2])
    yield from (d * (1 + 2.0**-k) for d in DIRECTIONS for k in (3, 20, 50))


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_are_within_8_ulp_of_the_magnitude_everywhere(op: str) -> None:
    program = single(op, "complex128")
    for z in ordinary_points():
        got, want = evaluated(program, z), oracle.exact(op, [z])
        assert error(got, want) <= 8, f"{op}({z}) is {got}, not {want}"


PARTS = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-150)
NUMBERS = st.builds(complex, PARTS, PARTS)


@given(NUMBERS, NUMBERS)
@settings(max_examples=200, deadline=None)
def test_products_and_quotients_are_within_3_ulp(z: complex, w: complex) -> None:
    got = evaluated(single("mul", "complex128"), z, w)
    assert error(got, oracle.exact("mul", [z, w])) <= 1.5
    if w:
        got = evaluated(single("div", "complex128"), z, w)
        assert error(got, oracle.exact("div", [z, w])) <= 3


@given(NUMBERS, st.integers(-1020, 1020), st.integers(-1020, 1020))
@settings(max_examples=100, deadline=None)
def test_quotients_neither_overflow_nor_vanish_on_the_way(z: complex, k: int, m: int) -> None:
    z = z or 1j
    size = math.frexp(abs(z))[1]
    z = complex(math.ldexp(z.real, -size), math.ldexp(z.imag, -size))
    above = complex(math.ldexp(z.real, k), math.ldexp(z.imag, k))
    below = complex(math.ldexp(3.0, m), math.ldexp(2.0, m))
    want = oracle.exact("div", [above, below])
    if 1e-290 < abs(want) < 1e307 and min(abs(above), abs(below)) > 1e-290:
        assert error(evaluated(single("div", "complex128"), above, below), want) <= 3


@pytest.mark.parametrize("n", [2, 3, 4, 5, 16, 100, 1001, -1, -2, -4, -5, -100, 2**40 + 1])
def test_integer_powers_lose_no_more_for_large_exponents(n: int) -> None:
    program = single("powi", "complex128", n)
    reach = min(2.0, 40 / abs(n))
    for k, direction in itertools.product((-1, -0.3, 0.2, 1), DIRECTIONS):
        z = direction * math.exp(k * reach)
        allowed = 1.5 * (abs(n) - 1) + 3 if abs(n) <= 4 else 2
        assert error(evaluated(program, z), oracle.exact("powi", [z], n)) <= allowed


@pytest.mark.parametrize("n", [1001, -1001])
def test_powers_that_leave_the_range_keep_their_direction(n: int) -> None:
    program = single("powi", "complex128", n)
    large, small = (2 + 1j, 0.2 - 0.1j) if n > 0 else (0.2 - 0.1j, 2 + 1j)
    want = (large / abs(large)) ** n
    got = evaluated(program, large)
    assert got == complex(math.copysign(inf, want.real), math.copysign(inf, want.imag))
    assert evaluated(program, small) == 0


def test_complex_powers_err_in_proportion_to_the_logarithm_of_the_result() -> None:
    program = single("pow", "complex128")
    for z, w in itertools.product(DIRECTIONS, (0.5 + 0.5j, -3 + 4j, 20 - 5j)):
        z = 1.7 * z
        got = evaluated(program, z, w)
        assert error(got, oracle.exact("pow", [z, w])) <= 4 + 2 * abs(w * cmath.log(z))


@pytest.mark.parametrize("op", FUNCTIONS)
def test_single_precision_is_within_8_of_its_own_ulps(op: str) -> None:
    import numpy

    found = split(single(op, "complex64"))
    assert found.program.dtype == "float32"
    for z in (numpy.complex64(p) for p in list(ordinary_points())[::5]):
        # Constants are numbers of the dtype; the arithmetic here is that of float64.
        got = complex(*interpret(found.program, [float(z.real), float(z.imag)]))
        want = oracle.exact(op, [complex(z)])
        assert abs(mpmath.mpmathify(got) - want) <= 8 * oracle.ulp(abs(want), "float32")


# Special values: the same as those of the operations on Python's complex numbers

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, inf, -inf, nan, 800.0, 1e300, -1e300)
PLANE = [complex(x, y) for x in SPECIAL for y in SPECIAL]

# Where C leaves signs of zeros and infinities open, the two need not agree: beside a nan, and where
# the angle of the result turns forever.
OPEN_SIGNS = {
    "exp": {complex(-inf, inf), complex(-inf, -inf)},
    "tan": {complex(x, y) for x in (inf, -inf) for y in (inf, -inf)},
    "tanh": {complex(x, y) for x in (inf, -inf) for y in (inf, -inf)},
}

# Where C17 says nan + i nan and later corrections give the part that is known.
CORRECTED = {"tanh": "0+nanj", "tan": "nan+0j", "acosh": "0+nanj"}


def agree(got: float, want: float, scale: float) -> bool:
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if want == 0 or math.isinf(want) or got == want:
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= 1e-14 * scale


def shown_unsigned(z: complex) -> str:
    return f"{abs(z.real):g}+{abs(z.imag):g}j"


UNTOUCHED = ("neg", "conjugate", "abs", "arg", "re", "im", "add", "sub", "mul")


def check_against_python(op: str, point: Sequence[complex], parameter: int | None = None) -> None:
    program = single(op, "complex128", parameter)
    got, want = evaluated(program, *point), complex(interpret(program, point)[0])
    scale = max((abs(x) for x in (want.real, want.imag) if math.isfinite(x)), default=0.0)
    has_nan = any(cmath.isnan(z) for z in point)
    if has_nan and len(point) == 1 and shown_unsigned(point[0]) == CORRECTED.get(op):
        return
    if (has_nan and op not in UNTOUCHED) or point[0] in OPEN_SIGNS.get(op, ()):
        got, want = (complex(abs(v.real), abs(v.imag)) for v in (got, want))
    shown = f"{op}{tuple(point)} is {got}, not {want}"
    assert agree(got.real, want.real, scale), shown
    assert agree(got.imag, want.imag, scale), shown


@pytest.mark.parametrize("op", [*FUNCTIONS, "neg", "conjugate", "abs", "arg", "re", "im"])
def test_special_values_and_branch_cuts_of_functions(op: str) -> None:
    for z in PLANE:
        check_against_python(op, [z])


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "eq", "ne"])
def test_special_values_of_arithmetic(op: str) -> None:
    parts = (0.0, -0.0, 1.0, -2.0, inf, -inf, nan, 1e300)
    plane = [complex(x, y) for x in parts for y in parts]
    for z, w in itertools.product(plane, plane[:: 5 if op == "div" else 3]):
        check_against_python(op, [z, w])


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_special_values_of_small_powers(n: int) -> None:
    for z in PLANE:
        check_against_python("powi", [z], n)


def test_powers_of_zero_and_zeroth_powers() -> None:
    power = single("pow", "complex128")
    assert evaluated(power, 0j, 0j) == evaluated(power, complex(nan, 1), 0j) == 1
    assert evaluated(power, 0j, 2 + 0j) == evaluated(power, 0j, 0.5 + 1j) == 0
    assert cmath.isnan(evaluated(power, 0j, -1 + 0j))
    assert evaluated(single("powi", "complex128", -5), 0j).real == inf


# The shape of the result


def test_the_real_program_has_parts_for_complex_values_and_nothing_for_others() -> None:
    x, y = alkahest.symbols("x y")
    functions = alkahest.expr.functions
    program = lower([x * y, functions.re(x), alkahest.expr.functions.Eq(x, y)], [x, y], "complex64")
    found = split(program)
    assert found.program.dtype == "float32"
    assert found.program.inputs == ("re(x)", "im(x)", "re(y)", "im(y)")
    assert found.inputs == ((0, 1), (2, 3))
    assert found.outputs == ((0, 1), (2,), (3,))
    assert [found.program.kinds[o] for o in found.program.outputs] == [Kind.REAL] * 3 + [Kind.BOOL]


def test_constants_are_split() -> None:
    program = Program(
        dtype="complex128", inputs=(), constants=(complex(2, -0.0), 3.0), code=(), outputs=(0, 1)
    ).verify()
    found = split(program)
    assert found.outputs == ((0, 1), (2,))
    assert repr(interpret(found.program, [])) == "[2.0, -0.0, 3.0]"


def test_real_programs_are_their_own() -> None:
    program = single("add")
    found = split(program)
    assert found.program is program
    assert (found.inputs, found.outputs) == (((0,), (1,)), ((0,),))


def test_what_parts_share_is_computed_once() -> None:
    code = [Instruction(op, (0,)) for op in ("sin", "cos", "exp")]
    program = Program(
        dtype="complex128", inputs=("z",), constants=(), code=tuple(code), outputs=(1, 2, 3)
    ).verify()
    used = [instruction.op for instruction in split(program).program.code]
    assert used.count("sinh") <= 2
    assert used.count("sin") == used.count("cos") == 2


def test_every_operation_with_complex_operands_has_a_formula() -> None:
    for op in OPS:
        try:
            program = single(op, "complex128")
        except AlkahestError:
            assert op not in FORMULAE or op in ("complex", "select")
            continue  # no meaning for complex inputs alone
        assert op in FORMULAE or program.kinds[program.outputs[0]] is not Kind.COMPLEX
