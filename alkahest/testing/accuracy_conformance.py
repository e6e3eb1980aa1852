"""The part of the kit about numbers: :class:`alkahest.testing.BackendConformance` contains it.

A backend with accuracy modes runs all of the kit in its default mode, and this part once more in
each of the others::

    from alkahest.testing import AccuracyConformance

    class TestMyBackendWhenFast(AccuracyConformance):
        backend = "mine"
        options = {"accuracy": "fast"}

        def allowed(self, row, dtype, point, parameter):
            return my_bound_when_fast(row.name, dtype), 0.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.ops import OPS, Exactness, Op, Signature
from alkahest.plugin import Batch, Evaluator, Support
from alkahest.program import Program, lower
from alkahest.testing import extremes, oracle, special
from alkahest.testing.complex_conformance import ComplexConformance
from alkahest.testing.programs import FORMULAE, POWERS, single

if TYPE_CHECKING:
    from numpy.typing import NDArray

REAL_DTYPES = ("float64", "float32")


class AccuracyConformance(ComplexConformance):
    """Values and special values; subclass it, name the backend and the options, run pytest.

    Attributes:
        backend: name of a registered backend.
        options: of ``compile_expr``, for every program.
        samples: random points per operation and dtype.
        float32_ulp: bound for float32 results, in ulps of float32.
    """

    backend: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    samples: ClassVar[int] = 64
    float32_ulp: ClassVar[float] = 16.0

    # How a program runs; a subclass may replace these two

    def evaluator(self, program: Program) -> Evaluator:
        """An evaluator of ``program``, through the plugin's hooks."""
        artifact = calls.codegen(self.backend, program, None, dict(self.options))
        return calls.make_evaluator(self.backend, artifact, None)

    def run(self, program: Program, *columns: Any) -> tuple[NDArray[Any], ...]:
        """Outputs of ``program`` over ``columns``, which are converted to its dtype."""
        import numpy as np

        arrays = tuple(np.asarray(column, dtype=program.dtype) for column in columns)
        n = len(arrays[0]) if arrays else 1
        return self.evaluator(program).evaluate(Batch(columns=arrays, n=n)).outputs

    @property
    def support(self) -> Support:
        """The backend's tables, with automatic refusals."""
        return registry.support(self.backend)

    # What is promised; a subclass may replace these two

    def allowed(
        self, row: Op, dtype: str, point: oracle.Point, parameter: int | None
    ) -> tuple[float, float]:
        """The largest error of an operation at a point: ulps, and the scale that they have.

        Args:
            row: the operation.
            dtype: ``"float64"`` or ``"float32"``.
            point: its operands.
            parameter: its exponent, where it has one.

        Returns:
            The number of units in the last place of ``max(|value|, scale)``, and ``scale``;
            an infinite number where nothing is promised.
        """
        ulps = oracle.bound(row)
        if dtype == "float32" and ulps > 0.5:
            ulps = self.float32_ulp
        return ulps, oracle.scale(row)

    def keeps(self, case: special.Case) -> bool:
        """Whether a special value is promised; a fast mode may give some up."""
        return True

    # Operations

    @pytest.mark.parametrize("dtype", REAL_DTYPES)
    @pytest.mark.parametrize("op", OPS)
    def test_values_are_within_the_bound_of_the_operation(self, op: str, dtype: str) -> None:
        row = OPS[op]
        if dtype not in self.support.lowers.get(op, ()) or row.signature in _NOT_REAL:
            return  # that it is refused by name, another test says
        for parameter in POWERS if row.has_parameter else (None,):
            points = _points(row, parameter, self.samples, dtype) + extremes.points(op, dtype)
            (got,) = self.run(single(op, dtype, parameter), *zip(*points, strict=True))
            for point, value in zip(points, got.tolist(), strict=True):
                self._check(row, dtype, point, parameter, value)

    def _check(
        self, row: Op, dtype: str, point: oracle.Point, parameter: int | None, value: Any
    ) -> None:
        operands = [x > 0 if i in _truths(row) else x for i, x in enumerate(point)]
        want = oracle.exact(row.name, operands, parameter)
        shown = f"{row.name}{point} with {parameter} is {value}, not {want}"
        if isinstance(value, bool):
            assert value == want, shown
            return
        if not self.support.keeps_subnormals and _is_flushed(value, want, point, dtype):
            return
        allowed, scale = self.allowed(row, dtype, point, parameter)
        error = oracle.error_in_ulps(value, want, dtype, scale)
        assert error <= allowed, f"{shown} ({error:.2f} ulp, {allowed} allowed)"

    @pytest.mark.parametrize("dtype", REAL_DTYPES)
    @pytest.mark.parametrize("op", dict.fromkeys(case.op for case in special.CASES))
    def test_special_values_are_those_of_the_standard(self, op: str, dtype: str) -> None:
        if dtype not in self.support.lowers.get(op, ()):
            return  # that it is refused by name, another test says
        cases = [case for case in special.cases(op, dtype) if self.keeps(case)]
        for parameter in dict.fromkeys(case.parameter for case in cases):
            group = [case for case in cases if case.parameter == parameter]
            program = single(op, dtype, parameter)
            (got,) = self.run(program, *zip(*(case.operands for case in group), strict=True))
            for case, value in zip(group, got.tolist(), strict=True):
                self._check_special(case, program, float(value))

    def _check_special(self, case: special.Case, program: Program, value: float) -> None:
        dtype, row = program.dtype, OPS[case.op]
        small = [oracle.is_subnormal(x, dtype) for x in case.operands]
        if not self.support.keeps_subnormals and (
            any(small) or oracle.is_subnormal(case.value, dtype)
        ):
            zeros = [
                math.copysign(0, x) if s else x for x, s in zip(case.operands, small, strict=True)
            ]
            (of_zeros,) = self.run(program, *([x] for x in zeros))
            accepted = case.value, math.copysign(0, case.value), float(of_zeros[0])
            assert any(special.same(value, x) for x in accepted), f"{case} gave {value}"
            return
        landmarks = (0.0,) if row.exactness is Exactness.SPECIAL else (0.0, 1.0, -1.0)
        allowed, _ = self.allowed(row, dtype, case.operands, case.parameter)
        if allowed > 0.5 and math.isfinite(case.value) and case.value not in landmarks:
            assert oracle.error_in_ulps(value, case.value, dtype) <= allowed, f"{case} gave {value}"
        else:
            assert special.same(value, case.value), f"{case} gave {value}"

    # Whole programs

    @pytest.mark.parametrize("name", FORMULAE)
    def test_formulae_agree_with_arbitrary_precision(self, name: str) -> None:
        import numpy as np

        x, y = alkahest.symbols("x y")
        pool = x.pool
        program = lower([alkahest.parse(FORMULAE[name], pool)], [x, y])
        if not program.ops_used <= {o for o, d in self.support.lowers.items() if "float64" in d}:
            assert program.ops_used & self.support.refuses.keys()
            return
        generator = np.random.default_rng(7)
        points = generator.uniform(-5, 5, (2, 257))
        (got,) = self.run(program, *points)
        for row in range(points.shape[1]):
            want = oracle.evaluate(program, points[:, row].tolist())[0]
            assert abs(got[row] - want) <= 1e-13 * max(1, abs(want)), points[:, row]


def _is_flushed(value: float, want: Any, point: oracle.Point, dtype: str) -> bool:
    """Whether a subnormal result became zero, or an operand is subnormal and counts as zero."""
    if any(oracle.is_subnormal(x, dtype) for x in point):
        return True
    return value == 0 and oracle.is_subnormal(want, dtype)


_NOT_REAL = frozenset({Signature.BUILD})


def _truths(row: Op) -> frozenset[int]:
    if row.signature is Signature.LOGIC:
        return frozenset(range(row.arity))
    return frozenset({0}) if row.signature is Signature.SELECT else frozenset()


def _points(row: Op, parameter: int | None, count: int, dtype: str) -> list[oracle.Point]:
    points = oracle.samples(row.name, count, dtype=dtype)
    if parameter is not None and abs(parameter) > 30:
        # Bases whose power neither overflows nor vanishes, so that digits are compared.
        reach = 30.0 / abs(parameter)
        points = [(math.copysign(math.exp(p[0] / 30 * reach), p[0]),) for p in points]
        if dtype == "float32":
            points = [(oracle.to_float32(p[0]),) for p in points]
    return points
