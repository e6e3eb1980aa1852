"""What every backend must do, as a class of pytest tests to subclass.

::

    from alkahest.testing import BackendConformance

    class TestMyBackend(BackendConformance):
        backend = "mine"
        plugin_module = "alkahest_mine.plugin"

The kit asks the backend's own tables what it lowers and checks every promise they make: values
against mpmath within the bounds of :data:`alkahest.ops.OPS`, the special values that users meet,
batches of every shape, refusals by name, threads and pickling. It needs pytest and mpmath.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.errors import CODES, AlkahestError, InputError
from alkahest.ops import DTYPES, OPS, Exactness, Op, Signature
from alkahest.plugin import Batch, DeviceInfo, Evaluator, Support
from alkahest.program import Instruction, Program, lower
from alkahest.testing import oracle, special
from alkahest.testing.complex_conformance import ComplexConformance
from alkahest.testing.programs import FORMULAE, POWERS, chain, single

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEAVY_MODULES = ("numpy", "scipy", "llvmlite", "numba", "cuda", "cupy", "torch", "jax")
SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 65537)
REAL_DTYPES = ("float64", "float32")


class BackendConformance(ComplexConformance):
    """Subclass it, name the backend, run pytest.

    Attributes:
        backend: name of a registered backend.
        plugin_module: the module that the entry point names, or None when there is none.
        samples: random points per operation and dtype.
        float32_ulp: bound for float32 results, in ulps of float32.
    """

    backend: ClassVar[str]
    plugin_module: ClassVar[str | None] = None
    samples: ClassVar[int] = 64
    float32_ulp: ClassVar[float] = 16.0

    # How a program runs; a subclass may replace these two

    def evaluator(self, program: Program) -> Evaluator:
        """An evaluator of ``program``, through the plugin's hooks."""
        artifact = calls.codegen(self.backend, program, None, {})
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

    # Registration

    def test_importing_the_plugin_loads_nothing_heavy(self) -> None:
        if self.plugin_module is None:
            assert self.backend in registry.snapshot().backends
            return
        code = (
            f"import sys, {self.plugin_module}\n"
            f"print(sorted({set(HEAVY_MODULES)} & {{m.split('.')[0] for m in sys.modules}}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == "[]"

    def test_the_description_is_complete(self) -> None:
        info = registry.snapshot().backends[self.backend]
        assert info.features, "a backend answers for at least one capability bit"
        assert info.summary
        assert info.refusal_code in CODES
        entry = alkahest.capabilities()["backends"][self.backend]
        assert entry["summary"] == info.summary

    def test_probes_give_the_same_answer_twice(self) -> None:
        for feature in registry.snapshot().backends[self.backend].features:
            first, second = feature.probe(), feature.probe()
            assert first.ok == second.ok
            assert first.ok or first.detail, "a probe that says no says why"

    def test_devices_are_numbered_from_zero_and_asking_never_raises(self) -> None:
        found = calls.devices(self.backend)
        assert all(isinstance(device, DeviceInfo) for device in found)
        assert [device.ordinal for device in found] == list(range(len(found)))

    # Operations

    def test_the_tables_name_operations_and_dtypes_that_exist(self) -> None:
        assert self.support.lowers.keys() <= OPS.keys()
        assert self.support.lowers.keys() | self.support.refuses.keys() == OPS.keys()
        assert all(dtypes <= set(DTYPES) for dtypes in self.support.lowers.values())

    @pytest.mark.parametrize("op", OPS)
    def test_an_operation_is_lowered_or_refused_by_name(self, op: str) -> None:
        for dtype in DTYPES:
            try:
                program = single(op, dtype)
            except AlkahestError:
                continue  # the operation has no meaning for inputs of this dtype
            if dtype in self.support.lowers.get(op, ()):
                assert calls.codegen(self.backend, program, None, {}).program == program
            else:
                refusal = self._refusal(program)
                code = registry.snapshot().backends[self.backend].refusal_code
                assert refusal.code == code
                assert op in refusal.message or dtype in refusal.message
                assert self.backend in refusal.message

    def _refusal(self, program: Program) -> AlkahestError:
        from alkahest.compiled import CompiledFn

        with pytest.raises(AlkahestError) as caught:
            CompiledFn.from_program(program, backend=self.backend)
        return caught.value

    @pytest.mark.parametrize("dtype", REAL_DTYPES)
    @pytest.mark.parametrize("op", OPS)
    def test_values_are_within_the_bound_of_the_operation(self, op: str, dtype: str) -> None:
        row = OPS[op]
        if dtype not in self.support.lowers.get(op, ()) or row.signature in _NOT_REAL:
            assert not self._is_claimed(row, dtype)
            return
        for parameter in POWERS if row.has_parameter else (None,):
            points = _points(row, parameter, self.samples, dtype)
            (got,) = self.run(single(op, dtype, parameter), *zip(*points, strict=True))
            for point, value in zip(points, got.tolist(), strict=True):
                self._check(row, dtype, point, parameter, value)

    def _is_claimed(self, row: Op, dtype: str) -> bool:
        return row.signature not in _NOT_REAL and dtype in self.support.lowers.get(row.name, ())

    def _check(
        self, row: Op, dtype: str, point: oracle.Point, parameter: int | None, value: Any
    ) -> None:
        operands = [x > 0 if i in _truths(row) else x for i, x in enumerate(point)]
        want = oracle.exact(row.name, operands, parameter)
        shown = f"{row.name}{point} with {parameter} is {value}, not {want}"
        if isinstance(value, bool):
            assert value == want, shown
            return
        allowed = oracle.bound(row)
        if dtype == "float32" and allowed > 0.5:
            allowed = self.float32_ulp
        error = oracle.error_in_ulps(value, want, dtype, oracle.scale(row))
        assert error <= allowed, f"{shown} ({error:.2f} ulp, {allowed} allowed)"

    @pytest.mark.parametrize("case", special.CASES, ids=str)
    def test_special_values_are_those_of_the_standard(self, case: special.Case) -> None:
        if "float64" not in self.support.lowers.get(case.op, ()):
            assert case.op in self.support.refuses
            return
        program = single(case.op, "float64", case.parameter)
        (got,) = self.run(program, *([x] for x in case.operands))
        value, row = float(got[0]), OPS[case.op]
        landmarks = (0.0,) if row.exactness is Exactness.SPECIAL else (0.0, 1.0, -1.0)
        if row.ulp and math.isfinite(case.value) and case.value not in landmarks:
            assert oracle.error_in_ulps(value, case.value) <= row.ulp, str(case)
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

    def test_a_program_of_twenty_thousand_instructions_runs(self) -> None:
        program = chain(10_000)
        if not program.ops_used <= self.support.lowers.keys():
            assert program.ops_used & self.support.refuses.keys()
            return
        (got,) = self.run(program, [0.0, 7.0])
        assert got.tolist() == [2.0, 2.0]

    def test_outputs_may_be_inputs_constants_repeated_or_truth_values(self) -> None:
        import numpy as np

        program = Program(
            dtype="float64",
            inputs=("x", "y"),
            constants=(2.5,),
            code=(Instruction("lt", (0, 1)),),
            outputs=(1, 2, 3, 1),
        ).verify()
        y, constant, smaller, again = self.run(program, [1.0, -0.0, math.nan], [2.0, -1.0, 3.0])
        assert y.tolist() == again.tolist() == [2.0, -1.0, 3.0]
        assert constant.tolist() == [2.5, 2.5, 2.5]
        assert smaller.dtype == np.bool_
        assert smaller.tolist() == [True, False, False]

    # Batches

    def test_every_length_is_computed_to_its_last_point_and_no_further(self) -> None:
        import numpy as np

        evaluator = self.evaluator(_increment())
        for n in SIZES:
            buffer = np.full(n + 16, -7.0)
            column = np.arange(n, dtype=np.float64)
            evaluator.evaluate(Batch(columns=(column,), n=n, out=(buffer[8 : n + 8],)))
            assert (buffer[8 : n + 8] == column + 1).all()
            assert (buffer[:8] == -7).all()
            assert (buffer[n + 8 :] == -7).all()

    def test_an_empty_batch_gives_empty_outputs(self) -> None:
        import numpy as np

        outcome = self.evaluator(_increment()).evaluate(Batch(columns=(np.empty(0),), n=0))
        assert [o.shape for o in outcome.outputs] == [(0,)]

    def test_strided_reversed_spread_and_read_only_columns_are_read_as_they_are(self) -> None:
        import numpy as np

        table = np.arange(12.0).reshape(6, 2)
        frozen = np.arange(6.0)
        frozen.flags.writeable = False
        for column in (table[:, 1], table[::-1, 0], np.broadcast_to(3.0, 6), frozen):
            out = np.empty((6, 2))[:, 0]
            outcome = self.evaluator(_increment()).evaluate(
                Batch(columns=(column,), n=6, out=(out,))
            )
            assert outcome.outputs[0].tolist() == (column + 1).tolist()
            assert out.tolist() == (column + 1).tolist()

    def test_bad_columns_are_refused_before_anything_runs(self) -> None:
        x, y = alkahest.symbols("x y")
        fn = alkahest.compile_expr(x + y, [x, y], backend=self.backend)
        for columns, code in (
            ([[1.0]], "E-INPUT-001"),
            ([[1.0], [1.0, 2.0]], "E-INPUT-002"),
            ([["one"], [1.0]], "E-INPUT-003"),
            ([[1j], [1.0]], "E-INPUT-004"),
        ):
            with pytest.raises(InputError) as caught:
                fn.call_batch(columns)
            assert caught.value.code == code

    # Threads and processes

    def test_eight_threads_compile_and_evaluate_at_once(self) -> None:
        def work(seed: int) -> bool:
            (got,) = self.run(_increment(), [float(seed)] * 1000)
            return bool((got == seed + 1).all())

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(32)))

    def test_a_compiled_function_survives_pickling(self) -> None:
        x, y = alkahest.symbols("x y")
        fn = alkahest.compile_expr(x - 2 * y, [y, x], backend=self.backend)
        copy = pickle.loads(pickle.dumps(fn))
        assert copy.backend == fn.backend
        assert copy.program == fn.program


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


def _increment() -> Program:
    return Program(
        dtype="float64",
        inputs=("x",),
        constants=(1.0,),
        code=(Instruction("add", (0, 1)),),
        outputs=(2,),
    ).verify()
