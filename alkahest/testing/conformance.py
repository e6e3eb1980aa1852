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

import pytest

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.compiled import CompiledFn
from alkahest.errors import CODES, AlkahestError, InputError
from alkahest.ops import DTYPES, OPS
from alkahest.plugin import DeviceInfo
from alkahest.program import Program
from alkahest.testing.accuracy_conformance import AccuracyConformance
from alkahest.testing.batch_conformance import BatchConformance
from alkahest.testing.process_conformance import ProcessConformance
from alkahest.testing.programs import chain, single


class BackendConformance(AccuracyConformance, BatchConformance, ProcessConformance):
    """Subclass it, name the backend, run pytest."""

    # Registration

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
