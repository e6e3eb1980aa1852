"""Evaluates programs as machine code, or by the reference while that is quicker."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest import result_memory
from alkahest.backends.cpu.jit import call, engine, glue
from alkahest.backends.cpu.jit.compile import Compiler, Kernel
from alkahest.backends.cpu.jit.runtime import runtime
from alkahest.plugin import Batch, Outcome

if TYPE_CHECKING:
    from alkahest.backends.cpu.jit.options import Options
    from alkahest.backends.cpu.reference import ReferenceEvaluator
    from alkahest.program import Program

_BUILD, _BUILD_PER_OPERATION = 10e-3, 60e-6
"""Seconds that compiling takes, about."""

_REFERENCE_PER_OPERATION, _REFERENCE_PER_POINT = 1.5e-6, 8e-9
"""Seconds that the reference takes for an operation, about, and for one at a point."""

_NEEDS_SCIPY = frozenset("erf erfc erfinv gamma lgamma digamma j0 j1 y0 y1".split())


class JitEvaluator:
    """Evaluates one program; any thread may call.

    Until a kernel exists, calls are answered by the reference as long as all of them together take
    less time than compiling would: a function that is called a few times for a few points is never
    compiled at all. A kernel that is found in memory or on disk is used at once. ``tier`` in the
    report says which it was.

    Args:
        program: verified.
        options: checked.
    """

    def __init__(self, program: Program, options: Options) -> None:
        self._program = program
        self._options = options
        self._compiler = Compiler(program, options)
        self._dtypes = tuple(np.dtype(name) for name in program.output_dtypes)
        self._kernel: Kernel | None = None
        self._quick: Any = None
        self._quick_below = 0
        self._reference: ReferenceEvaluator | None = None
        self._credit = 0.0
        self._is_new = True
        self._reports: dict[int, Mapping[str, Any]] = {}

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point; the interpreter's lock is free meanwhile."""
        kernel = self._kernel
        if kernel is None:
            if self._reference_answers(batch.n):
                return self._evaluate_by_reference(batch)
            kernel = self.kernel()
        if self._quick is not None and batch.n < self._quick_below:
            found = (
                self._quick(*batch.columns)
                if batch.out is None
                else self._quick(*batch.columns, out=batch.out)
            )
            if found is not None:
                return Outcome(outputs=found, report=self._report(kernel, 1))
        outputs = batch.out or result_memory.outputs_for(batch.n, self._dtypes)
        threads = call.run(kernel, batch.columns, outputs, batch.n, batch.threads)
        return Outcome(outputs=outputs, report=self._report(kernel, threads))

    def kernel(self) -> Kernel:
        """The kernel, compiled now if it was not.

        Raises:
            CodegenError: E-JIT-001, E-JIT-002, E-JIT-004 where it cannot be made.
        """
        if self._kernel is None:
            with engine.making:
                if self._kernel is None:
                    self._use(self._compiler.kernel())
        assert self._kernel is not None
        return self._kernel

    def settle(self) -> None:
        """Compile now; see :class:`alkahest.plugin.Evaluator`."""
        self.kernel()

    def _use(self, kernel: Kernel) -> None:
        """Take all calls by the kernel from now on; short and plain ones by a built-in function."""
        self._quick = self._built_in(kernel, _not_plain, lambda _: call.ALONE, single=False)
        self._quick_below = call.shared_from(kernel)
        result_memory.let_the_library_reuse()
        self._kernel = kernel

    def make_fast_call(self, fallback: Callable[..., Any], *, single: bool) -> Any:
        """A built-in function for the plain case, see :mod:`alkahest.backends.cpu.jit.glue`; or None.

        Args:
            fallback: what takes all other calls, with the same arguments.
            single: whether the one output is returned itself instead of a tuple.
        """
        return self._built_in(self.kernel(), fallback, call.sharing, single=single)

    def _built_in(
        self,
        kernel: Kernel,
        fallback: Callable[..., Any],
        shared: Callable[[Kernel], call.Sharing],
        *,
        single: bool,
    ) -> Any:
        inputs = len(self._program.inputs)
        if not glue.fits() or not inputs or inputs + len(self._dtypes) > glue.MOST_COLUMNS:
            return None
        plan = shared(kernel)
        plain = glue.Plain(
            kernel=kernel.address,
            scratch=kernel.scratch,
            dtype=np.dtype(self._program.dtype),
            inputs=inputs,
            outputs=self._dtypes,
            single=single,
            pool=runtime().pool.address,
            record=ctypes.addressof(kernel.record),
            threads=plan.threads,
            chunk=plan.chunk,
            shared_from=plan.shared_from,
            released_from=call.released_from(kernel),
            fresh_limit=result_memory.ordinary(self._dtypes),
        )
        return glue.make(runtime().fast_call, plain, fallback, kernel, runtime())

    @property
    def llvm_ir(self) -> str:
        """The kernel as LLVM assembly."""
        return self._compiler.written().ir

    @property
    def assembly(self) -> str:
        """The kernel as the processor's assembly."""
        return self._compiler.assembly()

    def _reference_answers(self, n: int) -> bool:
        """Whether the reference takes this call; a kernel that exists already is loaded."""
        if self._is_new:
            self._is_new = False
            found = self._compiler.found()
            if found is not None:
                self._use(found)
                return False
        if not self._options.may_wait:
            return False
        if _NEEDS_SCIPY & self._program.ops_used and "scipy.special" not in sys.modules:
            return False  # importing it takes longer than compiling
        operations = len(self._program.code)
        self._credit += operations * (_REFERENCE_PER_OPERATION + n * _REFERENCE_PER_POINT)
        return self._credit < _BUILD + operations * _BUILD_PER_OPERATION

    def _evaluate_by_reference(self, batch: Batch) -> Outcome:
        if self._reference is None:
            from alkahest.backends.cpu.reference import ReferenceEvaluator

            self._reference = ReferenceEvaluator(self._program)
        outcome = self._reference.evaluate(batch)
        return Outcome(outputs=outcome.outputs, report={**outcome.report, "tier": "reference"})

    def _report(self, kernel: Kernel, threads: int) -> Mapping[str, Any]:
        report = self._reports.get(threads)
        if report is None:
            report = {"device": 0, "threads": threads, "tier": "compiled", **kernel.facts}
            self._reports[threads] = report
        return report


def _not_plain(*columns: Any, out: Any = None) -> None:
    """What a built-in function says of calls that are not for it."""


__all__ = ["JitEvaluator"]
