"""The part of the kit about batches: :class:`alkahest.testing.BackendConformance` contains it.

What a batch may look like is said by :class:`alkahest.plugin.Batch`, what comes back by
:class:`alkahest.plugin.Outcome`. Most tests here have a fault of some backend behind them: a result
that was a view of a column, a tail computed by other code than the rest, a constant that lost its
sign on the way through a text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from alkahest.compiled import CompiledFn
from alkahest.errors import AlkahestError
from alkahest.ops import DTYPES
from alkahest.plugin import Batch, Evaluator
from alkahest.program import Instruction, Program
from alkahest.testing.programs import constants, increment, products, several

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.plugin import Support

SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 65537)


class BatchConformance:
    """Tests of batches; programs use what the backend lowers."""

    if TYPE_CHECKING:
        backend: ClassVar[str]
        options: ClassVar[Mapping[str, Any]]

        @property
        def support(self) -> Support: ...

        def evaluator(self, program: Program) -> Evaluator: ...

        def run(self, program: Program, *columns: Any) -> tuple[NDArray[Any], ...]: ...

    def lowers(self, program: Program) -> bool:
        """Whether the backend lowers every operation of ``program``; that it refuses, others test."""
        lowers = self.support.lowers
        if not any(program.dtype in dtypes for dtypes in lowers.values()):
            return False
        return all(program.dtype in lowers.get(op, ()) for op in program.ops_used)

    def compiled(self, program: Program) -> CompiledFn:
        """A compiled function of ``program``, whose calls :meth:`evaluator` carries out."""
        fn = CompiledFn.from_program(
            program, backend=self.backend, options=self.options, single=len(program.outputs) == 1
        )
        fn._evaluation.first._evaluators[None] = self.evaluator(program)
        return fn

    # Lengths and strides

    def test_every_length_is_computed_to_its_last_point_and_no_further(self) -> None:
        import numpy as np

        evaluator = self.evaluator(increment())
        for n in SIZES:
            start = 8 + n % 4  # aligned to a vector, and not
            buffer, source = np.full(n + 24, -7.0), np.arange(n + 24, dtype=np.float64)
            column, out = source[start : start + n], buffer[start : start + n]
            evaluator.evaluate(Batch(columns=(column,), n=n, out=(out,)))
            assert (out == column + 1).all()
            assert (buffer[:start] == -7).all()
            assert (buffer[start + n :] == -7).all()

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_an_empty_batch_gives_empty_outputs(self, dtype: str) -> None:
        import numpy as np

        program = several(dtype)
        if not self.lowers(program):
            return
        evaluator, nothing = self.evaluator(program), np.empty(0, dtype)
        for out in (None, tuple(np.empty(0, name) for name in program.output_dtypes)):
            outcome = evaluator.evaluate(Batch(columns=(nothing, nothing), n=0, out=out))
            assert [(o.shape, o.dtype.name) for o in outcome.outputs] == [
                ((0,), name) for name in program.output_dtypes
            ]

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_strided_reversed_spread_and_read_only_columns_are_read_as_they_are(
        self, dtype: str
    ) -> None:
        import numpy as np

        program = products(dtype)
        if not self.lowers(program):
            return
        evaluator = self.evaluator(program)
        table = np.arange(74.0).astype(dtype).reshape(37, 2)
        frozen = np.arange(37.0).astype(dtype)
        frozen.flags.writeable = False
        views = (
            table[:, 1],
            table[::-1, 0],
            np.broadcast_to(table[3, 0], 37),
            frozen,
            frozen[::-1],
        )
        for x in views:
            for y in views:
                outs = (np.empty((37, 3), dtype)[:, 1], np.empty(37, dtype)[::-1])
                evaluator.evaluate(Batch(columns=(x, y), n=37, out=outs))
                assert outs[0].tolist() == (x * y).tolist()
                assert outs[1].tolist() == (x + y).tolist()

    def test_parts_of_complex_columns_and_of_records_are_columns(self) -> None:
        import numpy as np

        numbers = np.arange(9.0) + 1j * np.arange(9.0, 18.0)
        records = np.zeros(9, [("name", "S8"), ("x", "f8")])
        records["x"] = np.arange(9.0)
        for column in (numbers.real, numbers.imag, records["x"]):
            outcome = self.evaluator(increment()).evaluate(Batch(columns=(column,), n=9))
            assert outcome.outputs[0].tolist() == (column + 1).tolist()

    def test_one_array_may_be_several_columns(self) -> None:
        import numpy as np

        column = np.arange(1.0, 40.0)
        product, total = self.run(products("float64"), column, column)
        assert product.tolist() == (column * column).tolist()
        assert total.tolist() == (column + column).tolist()

    def test_a_value_does_not_depend_on_its_place_in_the_batch(self) -> None:
        import numpy as np

        program = several("float64")
        if not self.lowers(program):
            return
        evaluator = self.evaluator(program)
        x, y = np.random.default_rng(5).uniform(-3, 3, (2, 1025))

        def outputs(start: int, stop: int, step: int = 1) -> list[Any]:
            part = x[start:stop:step], y[start:stop:step]
            return [
                o.tolist() for o in evaluator.evaluate(Batch(columns=part, n=len(part[0]))).outputs
            ]

        whole = outputs(0, 1025)
        for start, stop, step in (
            (0, 1, 1),
            (1, 32, 1),
            (3, 260, 1),
            (1000, 1025, 1),
            (7, 1025, 9),
        ):
            assert outputs(start, stop, step) == [o[start:stop:step] for o in whole]

    # Memory

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_columns_are_never_written_to(self, dtype: str) -> None:
        import numpy as np

        program = several(dtype)
        if not self.lowers(program):
            return
        x, y = np.random.default_rng(3).uniform(-3, 3, (2, 600)).astype(dtype)
        before = x.tobytes(), y.tobytes()
        self.evaluator(program).evaluate(Batch(columns=(x, y), n=600))
        assert (x.tobytes(), y.tobytes()) == before

    def test_new_outputs_are_writeable_and_share_memory_with_nothing(self) -> None:
        import numpy as np

        program = several("float64")
        if not self.lowers(program):
            return
        evaluator = self.evaluator(program)
        x, y = np.random.default_rng(4).uniform(-3, 3, (2, 600))
        first = evaluator.evaluate(Batch(columns=(x, y), n=600)).outputs
        kept = [o.tobytes() for o in first]
        second = evaluator.evaluate(Batch(columns=(y, x), n=600)).outputs
        arrays = [x, y, *first, *second]
        for i, a in enumerate(arrays):
            assert a.flags.writeable
            assert not any(np.shares_memory(a, b) for b in arrays[:i])
        assert [o.tobytes() for o in first] == kept

    def test_given_outputs_are_filled_again_by_every_call(self) -> None:
        import numpy as np

        evaluator, out = self.evaluator(increment()), np.empty(300)
        for start in (0.0, 5.0):
            column = np.arange(start, start + 300)
            outcome = evaluator.evaluate(Batch(columns=(column,), n=300, out=(out,)))
            assert out.tolist() == (column + 1).tolist()
            assert outcome.outputs[0].tolist() == out.tolist()

    @pytest.mark.parametrize("step", [1, -1, 3])
    def test_an_output_may_take_the_place_of_a_column(self, step: int) -> None:
        import numpy as np

        program = products("float64")
        if not self.lowers(program):
            return
        for n in (1, 50, 4000):
            x, y = (np.random.default_rng(k).uniform(-3, 3, 3 * n)[::step][:n] for k in (1, 2))
            product, total = x * y, x + y
            self.evaluator(program).evaluate(Batch(columns=(x, y), n=n, out=(y, x)))
            assert y.tolist() == product.tolist()
            assert x.tolist() == total.tolist()

    # Programs

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

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_a_program_without_inputs_gives_its_constants_bit_by_bit(self, dtype: str) -> None:
        import numpy as np

        program = constants(dtype)
        if not self.lowers(program):
            return
        evaluator = self.evaluator(program)
        for n in (0, 1, 40):
            outputs = evaluator.evaluate(Batch(columns=(), n=n)).outputs
            for value, name, output in zip(
                program.constants, program.output_dtypes, outputs, strict=True
            ):
                assert output.dtype == name
                assert output.tobytes() == np.full(n, value, name).tobytes(), value

    def test_a_number_passed_on_keeps_its_bits(self) -> None:
        import numpy as np

        program = Program(
            dtype="float64",
            inputs=("x", "y", "c"),
            constants=(1.0,),
            code=(Instruction("lt", (2, 3)), Instruction("select", (4, 0, 1))),
            outputs=(0, 5),
        ).verify()
        if not self.lowers(program):
            return
        # nans of both signs and with a payload, zeros, the smallest numbers, infinities
        patterns = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8DEADBEEF0001, 1 << 63, 0, 1]
        patterns += [(1 << 63) + 1, 0x7FF0000000000000, 0xFFF0000000000000]
        x = np.array(patterns, np.uint64).view(np.float64)
        y, c = np.arange(9.0), np.array([0.0, 1.0, math.nan] * 3)
        for first, second in ((x, y), (y, x)):
            same, chosen = self.run(program, first, second, c)
            assert same.tobytes() == first.tobytes()
            assert chosen.tobytes() == np.where(c < 1, first, second).tobytes()

    def test_hundreds_of_columns_and_outputs_are_told_apart(self) -> None:
        import numpy as np

        count = 120
        code = [Instruction("add", (k, (k + 1) % count)) for k in range(count)]
        code += [Instruction("mul", (k, count + k)) for k in range(count)]
        program = Program(
            dtype="float64",
            inputs=tuple(f"x{k}" for k in range(count)),
            constants=(),
            code=tuple(code),
            outputs=tuple(range(count, 3 * count)),
        ).verify()
        x = np.arange(5.0) + 7 * np.arange(count)[:, None]
        outputs = self.run(program, *x)
        sums = x + np.roll(x, -1, axis=0)
        assert [o.tolist() for o in outputs] == [*sums.tolist(), *(x * sums).tolist()]

    def test_inputs_may_have_any_names(self) -> None:
        program = Program(
            dtype="float64",
            inputs=("for", "1", "a b", "ξ", '"\\', "f", "x", "int", "main"),
            constants=(),
            code=(Instruction("sub", (0, 8)),),
            outputs=(9,),
        ).verify()
        (got,) = self.run(program, *([float(k)] for k in range(9)))
        assert got.tolist() == [-8.0]

    # Compiled functions

    def test_integers_truth_values_and_narrow_numbers_widen(self) -> None:
        import numpy as np

        fn = self.compiled(increment())
        for column in (
            np.arange(40, dtype=np.int8),
            np.array([2**53 + 1, -3], np.int64),  # rounded, as documented
            np.array([2**64 - 1, 0], np.uint64),
            np.array([True, False]),
            np.array([0.1, -2.5], np.float32),
            np.arange(4.0).astype(">f8"),
        ):
            assert fn(column).tolist() == (column.astype(np.float64) + 1).tolist()

    def test_numbers_broadcast_and_lists_come_back_as_lists(self) -> None:
        import numpy as np

        fn = self.compiled(products("float64"))
        x, y = np.arange(3.0)[:, None], np.arange(4.0)
        product, total = fn(x, y)
        assert product.tolist() == (x * y).tolist()
        assert total.tolist() == (x + y).tolist()
        assert [float(value) for value in fn(2, 0.5)] == [1.0, 2.5]
        assert fn.call_batch([[2, 3], [4, 5]]) == ([8.0, 15.0], [6.0, 8.0])
        assert [o.tolist() for o in fn.call_batch([y, 2.0])] == [(2 * y).tolist(), (y + 2).tolist()]
        assert fn.call_batch([[], []]) == ([], [])

    def test_a_fast_call_gives_what_a_call_gives(self) -> None:
        import numpy as np

        fn = self.compiled(products("float64"))
        table = np.random.default_rng(6).uniform(-3, 3, (2, 700))
        for columns in (table, table[:, ::-2], table.astype(np.float32), ([1.0], 2.0)):
            for fast, plain in zip(fn.fast_call(*columns), fn(*columns), strict=True):
                assert np.asarray(fast).tolist() == np.asarray(plain).tolist()

    def test_reports_can_be_written_down(self) -> None:
        import numpy as np

        outcome = self.evaluator(increment()).evaluate(Batch(columns=(np.ones(3),), n=3))
        assert json.loads(json.dumps(dict(outcome.report))) == dict(outcome.report)

    def test_an_option_or_a_device_that_does_not_exist_is_refused_by_name(self) -> None:
        program = increment()
        with pytest.raises(AlkahestError, match="no_such_option"):
            CompiledFn.from_program(program, backend=self.backend, options={"no_such_option": 1})
        with pytest.raises(AlkahestError, match="1000"):
            CompiledFn.from_program(program, backend=self.backend, device=1000)([1.0])
