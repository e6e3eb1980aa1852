"""Complex operations against exact values, and the special values of C99 Annex G."""

import cmath
import math
import random

import pytest

from alkahest.expr.complex_math import COMPLEX
from alkahest.ops import OPS, Kind, result_kind

INF, NAN = math.inf, math.nan


def same(got: complex | float, want: complex | float) -> bool:
    def part(a: float, b: float) -> bool:
        if math.isnan(b):
            return math.isnan(a)
        return a == b and (a != 0 or math.copysign(1, a) == math.copysign(1, b))

    got, want = complex(got), complex(want)
    return part(got.real, want.real) and part(got.imag, want.imag)


def test_every_operation_with_a_complex_meaning_is_there():
    def has_meaning(name: str) -> bool:
        op = OPS[name]
        kinds = (Kind.COMPLEX,) * op.arity
        return name == "select" or result_kind(op, kinds) is not None

    assert COMPLEX.keys() == {name for name in OPS if has_meaning(name)}


@pytest.mark.parametrize(
    "name",
    "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh arg abs".split(),
)
def test_values_are_close_to_the_exact_ones(name):
    import mpmath

    exact = {"abs": abs}.get(name) or getattr(mpmath, {"log": "ln"}.get(name, name))
    draw = random.Random(name)
    with mpmath.workdps(40):
        for _ in range(60):
            z = complex(draw.uniform(-5, 5), draw.uniform(-5, 5)) * 10 ** draw.uniform(-3, 0)
            want = exact(mpmath.mpmathify(z))
            assert abs(COMPLEX[name](z) - want) <= 8 * math.ulp(abs(complex(want))), z


def test_products_quotients_and_powers_are_close_to_the_exact_ones():
    import mpmath

    draw = random.Random(2)
    exact = {"mul": lambda z, w: z * w, "div": lambda z, w: z / w, "pow": lambda z, w: z**w}
    with mpmath.workdps(40):
        for name, n in [("mul", 0), ("div", 0), ("pow", 0), ("powi", 3), ("powi", -4), ("powi", 9)]:
            for _ in range(40):
                z, w = (complex(draw.gauss(0, 2), draw.gauss(0, 2)) for _ in range(2))
                want = (
                    mpmath.mpmathify(z) ** n if n else exact[name](*map(mpmath.mpmathify, (z, w)))
                )
                got = COMPLEX[name](z, n or w)
                assert abs(got - want) <= 24 * math.ulp(abs(complex(want))), (name, z, w, n)


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("mul", (complex(INF, INF), 1 + 0j), complex(INF, INF)),
        ("mul", (complex(INF, 0), 1j), complex(NAN, INF)),
        ("mul", (complex(INF, NAN), 2 + 0j), complex(INF, NAN)),
        ("mul", (complex(NAN, INF), complex(2, 2)), complex(-INF, INF)),
        ("mul", (complex(INF, INF), complex(NAN, 1)), complex(-INF, INF)),
        ("mul", (complex(1e200, 1e200), complex(1e200, -1e200)), complex(INF, NAN)),
        ("mul", (complex(NAN, NAN), 1 + 1j), complex(NAN, NAN)),
        ("div", (1 + 1j, 0j), complex(INF, INF)),
        ("div", (1 + 0j, complex(-0.0, 0.0)), complex(-INF, NAN)),
        ("div", (0j, 0j), complex(NAN, NAN)),
        ("div", (1 + 1j, complex(INF, INF)), 0j),
        ("div", (complex(INF, 1), 1 + 1j), complex(INF, -INF)),
        ("div", (complex(1e300, 1e300), complex(1e300, 1e300)), 1 + 0j),
        ("div", (complex(1e-320, 0), complex(1e-320, 0)), 1 + 0j),
        ("div", (complex(1e300, 0), complex(1e-300, 0)), complex(INF, 0)),
        ("powi", (2j, 3), -8j),
        ("powi", (2j, -2), complex(-0.25, -0.0)),
        ("powi", (complex(NAN, NAN), 0), 1 + 0j),
        ("pow", (0j, 0j), 1 + 0j),
        ("pow", (0j, 2 + 0j), 0j),
        ("exp", (complex(1000, 0),), complex(INF, 0)),
        ("exp", (complex(1000, math.pi / 2),), complex(INF, INF)),
        ("exp", (complex(1, INF),), complex(NAN, NAN)),
        ("exp", (complex(INF, INF),), complex(INF, NAN)),
        ("exp", (complex(-INF, INF),), 0j),
        ("log", (0j,), complex(-INF, 0)),
        ("log", (complex(-0.0, -0.0),), complex(-INF, -math.pi)),
        ("log", (-1 + 0j,), complex(0, math.pi)),
        ("log", (complex(-1, -0.0),), complex(0, -math.pi)),
        ("sqrt", (complex(-4, 0.0),), 2j),
        ("sqrt", (complex(-4, -0.0),), complex(0, -2)),
        ("sinh", (complex(1000, 1),), complex(INF, INF)),
        ("sinh", (complex(-1000, 1),), complex(-INF, INF)),
        ("sinh", (complex(0, INF),), complex(0, NAN)),
        ("sinh", (complex(INF, INF),), complex(INF, NAN)),
        ("cosh", (complex(-1000, 1),), complex(INF, -INF)),
        ("cosh", (complex(0, INF),), complex(NAN, 0)),
        ("cosh", (complex(1, INF),), complex(NAN, NAN)),
        ("tanh", (complex(1, INF),), complex(NAN, NAN)),
        ("tanh", (complex(1000, 1),), complex(1, 0)),
        ("sin", (complex(1, 1000),), complex(INF, INF)),
        ("cos", (complex(1, 1000),), complex(INF, -INF)),
        ("atanh", (1 + 0j,), complex(INF, 0)),
        ("atanh", (-1 + 0j,), complex(-INF, 0)),
        ("atan", (1j,), complex(0, INF)),
        ("atan", (complex(0, -1),), complex(0, -INF)),
        ("abs", (complex(0, 1e300),), 1e300),
        ("abs", (complex(INF, NAN),), INF),
        ("arg", (complex(-1, -0.0),), -math.pi),
        ("eq", (1j, 1j), True),
        ("ne", (complex(NAN, 0), complex(NAN, 0)), True),
    ],
)
def test_special_values(name, args, want):
    got = COMPLEX[name](*args)
    assert same(got, want), got


def test_overflow_is_not_early():
    assert COMPLEX["sinh"](complex(710, 1)) == pytest.approx(cmath.sinh(710 + 1j), rel=1e-12)
    assert COMPLEX["exp"](complex(709.9, 1.5)).real == pytest.approx(
        math.exp(709) * (math.exp(0.9) * math.cos(1.5)), rel=1e-12
    )
