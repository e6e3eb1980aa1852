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
from typing import ClassVar

import pytest

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.errors import CODES, AlkahestError, InputError
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import Batch, DeviceInfo
from alkahest.program import Instruction, Program
from alkahest.testing.accuracy_conformance import AccuracyConformance
from alkahest.testing.programs import chain, single

HEAVY_MODULES = ("numpy", "scipy", "llvmlite", "numba", "cuda", "cupy", "torch", "jax")
SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 65537)


class BackendConformance(AccuracyConformance):
    """Subclass it, name the backend, run pytest.

    Attributes:
        plugin_module: the module that the entry point names, or None when there is none.
    """

    plugin_module: ClassVar[str | None] = None

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


def _increment() -> Program:
    return Program(
        dtype="float64",
        inputs=("x",),
        constants=(1.0,),
        code=(Instruction("add", (0, 1)),),
        outputs=(2,),
    ).verify()
