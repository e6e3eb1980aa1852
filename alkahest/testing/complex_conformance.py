"""The complex part of the kit: :class:`alkahest.testing.BackendConformance` contains it."""

from __future__ import annotations

import cmath
import math
import random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from alkahest.errors import AlkahestError
from alkahest.ops import OPS
from alkahest.program import Instruction, Program
from alkahest.testing import oracle, special
from alkahest.testing.programs import single

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.plugin import Support

DTYPES = {"complex128": "float64", "complex64": "float32"}
"""Complex dtypes and those of their parts."""

POWERS = (-5, -2, 3, 17)

INF, NAN = math.inf, math.nan

# C99 Annex G: operation, operands, value; the signs of zeros count, nan stands for any nan.
SPECIAL: tuple[tuple[str, tuple[complex, ...], complex], ...] = (
    ("mul", (complex(INF, NAN), 1 + 0j), complex(INF, NAN)),
    ("mul", (complex(INF, INF), 1 + 1j), complex(NAN, INF)),
    ("mul", (complex(NAN, INF), 1j), complex(-INF, NAN)),
    ("mul", (complex(INF, 0), 0j), complex(NAN, NAN)),
    ("div", (1 + 1j, 0j), complex(INF, INF)),
    ("div", (1 + 1j, complex(INF, -INF)), complex(0.0, 0.0)),
    ("div", (complex(INF, NAN), 2 + 0j), complex(INF, NAN)),
    ("div", (1e300 + 1e300j, 2e300 + 0j), 0.5 + 0.5j),
    ("neg", (complex(0.0, -0.0),), complex(-0.0, 0.0)),
    ("conjugate", (complex(-0.0, 0.0),), complex(-0.0, -0.0)),
    ("conjugate", (complex(NAN, INF),), complex(NAN, -INF)),
    ("sqrt", (complex(-4.0, 0.0),), 2j),
    ("sqrt", (complex(-4.0, -0.0),), complex(0.0, -2.0)),
    ("sqrt", (complex(NAN, -INF),), complex(INF, -INF)),
    ("sqrt", (complex(-0.0, -0.0),), complex(0.0, -0.0)),
    ("log", (complex(-1.0, 0.0),), complex(0.0, math.pi)),
    ("log", (complex(-1.0, -0.0),), complex(0.0, -math.pi)),
    ("log", (complex(-0.0, 0.0),), complex(-INF, math.pi)),
    ("exp", (complex(-INF, 1.0),), complex(0.0, 0.0)),
    ("exp", (complex(INF, 0.0),), complex(INF, 0.0)),
    ("exp", (complex(INF, NAN),), complex(INF, NAN)),
    ("sinh", (complex(INF, -0.0),), complex(INF, -0.0)),
    ("tanh", (complex(-INF, 1.0),), complex(-1.0, 0.0)),
    ("atanh", (complex(2.0, 0.0),), complex(math.log(3) / 2, math.pi / 2)),
    ("atanh", (complex(2.0, -0.0),), complex(math.log(3) / 2, -math.pi / 2)),
    ("asin", (complex(2.0, -0.0),), complex(math.pi / 2, -math.acosh(2.0))),
    ("acos", (complex(-2.0, 0.0),), complex(math.pi, -math.acosh(2.0))),
    ("acosh", (complex(-2.0, -0.0),), complex(math.acosh(2.0), -math.pi)),
    ("asinh", (complex(0.0, 2.0),), complex(math.acosh(2.0), math.pi / 2)),
    ("asinh", (complex(-0.0, 2.0),), complex(-math.acosh(2.0), math.pi / 2)),
    ("pow", (complex(NAN, 1.0), 0j), 1 + 0j),
)


class ComplexConformance:
    """Tests of complex programs; they ask the backend's tables what to test.

    Attributes:
        complex_ulp: bound for the distance from the exact value, in units in the last place of its
            magnitude. Powers with complex exponents may err more, in proportion to
            ``|w*log(z)|``.
    """

    complex_ulp: ClassVar[float] = 8.0

    if TYPE_CHECKING:

        @property
        def support(self) -> Support: ...

        def run(self, program: Program, *columns: Any) -> tuple[NDArray[Any], ...]: ...

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("op", OPS)
    def test_complex_values_are_within_the_bound_of_their_magnitude(
        self, op: str, dtype: str
    ) -> None:
        powers = POWERS if OPS[op].has_parameter else (None,)
        for parameter in powers:
            try:
                program = single(op, dtype, parameter)
            except AlkahestError:
                continue  # the operation has no meaning for complex columns
            if dtype not in self.support.lowers.get(op, ()):
                continue  # that it is refused by name, another test says
            points = [_rounded(p, dtype) for p in _points(op, 24)]
            (got,) = self.run(program, *zip(*points, strict=True))
            for point, value in zip(points, got.tolist(), strict=True):
                want = oracle.exact(op, point, parameter)
                shown = f"{op}{point} with {parameter} is {value}, not {want}"
                if isinstance(value, bool):
                    assert value == want, shown
                    continue
                allowed = self.complex_ulp
                if op == "pow":
                    allowed += 2 * abs(point[1] * cmath.log(point[0]))
                error = _distance(value, want)
                if not self.support.keeps_subnormals:
                    error -= 2 * oracle.LEAST_NORMAL[DTYPES[dtype]]
                error /= oracle.ulp(abs(want), DTYPES[dtype])
                assert error <= allowed, f"{shown} ({error:.2f} ulp, {allowed} allowed)"

    @pytest.mark.parametrize(("op", "operands", "value"), SPECIAL)
    def test_complex_special_values_are_those_of_annex_g(
        self, op: str, operands: tuple[complex, ...], value: complex
    ) -> None:
        if "complex128" not in self.support.lowers.get(op, ()):
            return
        (got,) = self.run(single(op, "complex128"), *([z] for z in operands))
        shown = f"{op}{operands} is {got[0]}, not {value}"
        for part, want in ((got[0].real, value.real), (got[0].imag, value.imag)):
            if want and math.isfinite(want):
                assert abs(part - want) <= 1e-15 * abs(want), shown
            else:
                assert special.same(float(part), want), shown

    def test_a_complex_program_gives_complex_real_and_truth_values(self) -> None:
        import numpy as np

        program = Program(
            dtype="complex128",
            inputs=("z", "w"),
            constants=(2 - 1j, 1.5),
            code=(
                Instruction("mul", (0, 2)),  # 4
                Instruction("re", (4,)),
                Instruction("gt", (5, 3)),
                Instruction("select", (6, 4, 1)),
                Instruction("complex", (5, 3)),
            ),
            outputs=(7, 5, 6, 8, 2, 0),
        ).verify()
        lowers = self.support.lowers
        if not all("complex128" in lowers.get(op, ()) for op in program.ops_used):
            return
        z = np.array([1 + 1j, 1j, -3 - 0.5j])
        w = np.array([5j, -1 + 0j, complex(INF, -0.0)])
        chosen, real, truth, built, constant, same = self.run(program, z, w)
        assert real.dtype == np.float64
        assert truth.tolist() == [True, False, False]
        assert real.tolist() == [3.0, 1.0, -6.5]
        assert chosen.tolist() == [3 + 1j, -1 + 0j, complex(INF, -0.0)]
        assert math.copysign(1, chosen[2].imag) == -1
        assert built.tolist() == [3 + 1.5j, 1 + 1.5j, -6.5 + 1.5j]
        assert constant.tolist() == [2 - 1j] * 3
        assert same.tolist() == z.tolist()


def _points(op: str, count: int) -> list[tuple[complex, ...]]:
    """Operands of every direction, from tiny to moderate, half of them near the unit circle."""
    generator = random.Random(op)

    def draw() -> complex:
        direction = cmath.exp(1j * generator.uniform(-math.pi, math.pi))
        if generator.random() < 0.5:
            return direction * (1 + generator.uniform(-1, 1) * 10 ** -generator.uniform(0, 12))
        return direction * 10 ** generator.uniform(-3, 1)

    return [tuple(draw() for _ in range(OPS[op].arity)) for _ in range(count)]


def _rounded(point: tuple[complex, ...], dtype: str) -> tuple[complex, ...]:
    if dtype == "complex128":
        return point
    return tuple(complex(oracle.to_float32(z.real), oracle.to_float32(z.imag)) for z in point)


def _distance(got: float | complex, want: Any) -> float:
    import mpmath

    with mpmath.workdps(oracle.DIGITS):
        return float(abs(mpmath.mpmathify(got) - want)) if cmath.isfinite(got) else INF
