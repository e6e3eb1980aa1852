"""Compiled functions: columns in, columns out."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from alkahest import selection
from alkahest._plugins import calls
from alkahest.arguments import (
    check_casting,
    device_ordinal,
    dtype_name,
    expressions,
    input_symbols,
    type_name,
)
from alkahest.errors import CODES, CodegenError, InputError, InputTypeError, PluginError
from alkahest.program import dumps, loads, lower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.columns import Rules
    from alkahest.expr import Expr
    from alkahest.plugin import Artifact, BackendInfo, Batch, Evaluator
    from alkahest.program import Program

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_LOWERING_CODES = frozenset({"E-JIT-005", "E-JIT-006", "E-JIT-010"})

# One lock for every function: making an evaluator touches no device, and a single lock can be
# replaced in a forked child, where another thread may have held it at the moment of the fork.
_building = threading.RLock()


def _renew_lock() -> None:
    global _building
    _building = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def compile_expr(
    expr: Any,
    inputs: Sequence[Expr],
    *,
    backend: str | None = None,
    dtype: Any = "float64",
    device: int | None = None,
    casting: str = "safe",
    target: str | None = None,
    **options: Any,
) -> CompiledFn:
    """Compile one expression, or a flat list of them, to a function of columns.

    Args:
        expr: an expression or a number; or a list or tuple of them, for a function that returns
            a tuple of arrays in that order.
        inputs: list or tuple of distinct symbols of the same pool; their order is the order of
            the columns.
        backend: name of a backend or of a group of backends (``"cpu"``), or ``"auto"``; None
            means ``ALKAHEST_BACKEND``, else ``"auto"``.
        dtype: ``"float64"``, ``"float32"``, ``"complex128"`` or ``"complex64"``.
        device: ordinal of the device, or None for the backend's default.
        casting: ``"safe"``, or ``"same_kind"`` to accept wider columns too.
        target: processor or device to generate code for, in the backend's words.
        options: anything else that the backend understands.

    Raises:
        InputTypeError: E-INPUT-008 for an argument of the wrong type.
        InputError: E-INPUT-007 for inputs that are unordered, repeated or no symbols,
            E-INPUT-011 for an unknown dtype, casting or option.
        PoolError: E-POOL-001 for expressions and inputs of different pools.
        CodegenError: E-JIT-004, 005, 006, 009, 010 (see :mod:`alkahest.selection`); a backend
            asked for by name raises under its own code, E-CUDA-002 for ``"nvptx"``.
    """
    return CompiledFn.compile(
        expr,
        inputs,
        backend=backend,
        dtype=dtype,
        device=device,
        casting=casting,
        target=target,
        options=options,
    )


def numpy_eval(fn: CompiledFn, *arrays: Any) -> Any:
    """Evaluate ``fn`` over ``arrays`` with broadcasting; NumPy arrays come out, whatever goes in.

    Returns:
        One array of the broadcast shape, or a tuple of them for a compiled list.

    Raises:
        InputTypeError: E-INPUT-008 when ``fn`` is not a compiled function.
        InputError: as for calling ``fn``.
    """
    import numpy as np

    if not isinstance(fn, CompiledFn):
        raise InputTypeError(
            "E-INPUT-008",
            f"numpy_eval needs a compiled function, got {type_name(fn)}",
            remediation="Compile first: fn = alkahest.compile_expr(expr, inputs).",
        )
    result = fn(*arrays)
    if isinstance(result, tuple):
        return tuple(np.asarray(value) for value in result)
    return np.asarray(result)


class CompiledFn:
    """A program compiled for one backend; made by :func:`compile_expr`.

    Safe to call from many threads and after a fork. Pickles as its program and choices, and is
    compiled again on arrival. Two functions are equal only if they are the same object.

    Attributes:
        program: what was compiled.
        artifact: the code that the backend generated.
        backend: name of the backend.
        device: the ordinal asked for, or None.
    """

    def __init__(
        self,
        program: Program,
        info: BackendInfo,
        *,
        single: bool,
        device: int | None = None,
        casting: str = "safe",
        target: str | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
    ) -> None:
        from alkahest import columns

        self.program = program
        self.backend = info.name
        self.device = device
        self.artifact: Artifact = calls.codegen(info.name, program, target, options)
        self._single = single
        self._casting = casting
        self._requested_target = target
        self._options = dict(options)
        self._host = info.placement == "host"
        self._rules: Rules = columns.Rules.of(program, casting=casting, backend=info.name)
        self._prepare = columns.prepare
        self._fast_batch = columns.fast_batch
        self._evaluators: dict[int | None, Evaluator] = {}
        self._calls = threading.local()
        if self._host:
            self._make_evaluator(device)  # refuses an ordinal that does not exist

    @classmethod
    def compile(
        cls,
        expr: Any,
        inputs: Sequence[Expr],
        *,
        backend: str | None = None,
        dtype: Any = "float64",
        device: int | None = None,
        casting: str = "safe",
        target: str | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
    ) -> Self:
        """As :func:`compile_expr`, making an object of this class."""
        name = backend or os.environ.get(selection.ENVIRONMENT_VARIABLE) or selection.AUTO
        members = () if name == selection.AUTO else selection.find(name)
        symbols = input_symbols(inputs)
        exprs, single = expressions(expr, symbols)
        try:
            program = lower(exprs, symbols, dtype_name(dtype))
        except CodegenError as error:
            code = members[0].refusal_code if members else "E-JIT-001"
            if code == "E-JIT-001" or error.code not in _LOWERING_CODES:
                raise
            raise CODES[code].error(
                code, error.message, remediation=error.remediation, span=error.span
            ) from error
        return cls.from_program(
            program,
            backend=name,
            device=device,
            casting=casting,
            target=target,
            options=options,
            single=single,
        )

    @classmethod
    def from_program(
        cls,
        program: Program,
        *,
        backend: str = selection.AUTO,
        device: int | None = None,
        casting: str = "safe",
        target: str | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
        single: bool = False,
    ) -> Self:
        """Compile a program that exists already.

        Args:
            program: verified.
            backend: name of a backend or group, or ``"auto"``.
            single: whether calls give the one output itself instead of a tuple.
            device, casting, target, options: as for :func:`compile_expr`.

        Raises:
            InputError, InputTypeError, CodegenError: as :func:`compile_expr`.
        """
        check_casting(casting)
        ordinal = device_ordinal(device)
        info = selection.choose(program, backend)
        return cls(
            program,
            info,
            single=single,
            device=ordinal,
            casting=casting,
            target=target,
            options=options,
        )

    @property
    def dtype(self) -> str:
        """Dtype of the program; outputs that are conditions are bool all the same."""
        return self.program.dtype

    @property
    def target(self) -> str:
        """Processor or device that the code was generated for, or ``""``."""
        return self.artifact.target

    @property
    def n_inputs(self) -> int:
        """Number of columns that a call takes."""
        return len(self.program.inputs)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.program.outputs)

    @property
    def report(self) -> dict[str, Any]:
        """Facts about the calling thread's last call; empty before the first.

        Always ``backend``, ``device``, ``dtype``, ``n`` and ``seconds``; the rest is the
        backend's.
        """
        last = getattr(self._calls, "last", None)
        if last is None:
            return {}
        device, n, seconds, facts = last
        return {
            "backend": self.backend,
            "device": device,
            "dtype": self.dtype,
            "n": n,
            "seconds": seconds,
            **facts,
        }

    def __call__(
        self,
        *columns: Any,
        out: Any = None,
        n: int | None = None,
        stream: Any = None,
        threads: int | None = None,
    ) -> Any:
        """Evaluate with broadcasting, like a NumPy ufunc.

        Args:
            columns: one number or array per input, of shapes that broadcast.
            out: array (for a compiled list: a sequence of arrays) of exactly the broadcast shape
                and the output's dtype, writeable, which receives the result.
            n: length of the result when no column has a dimension.
            stream: the caller's stream, for device backends.
            threads: number of threads, or None for the backend's choice.

        Returns:
            An array of the broadcast shape (a NumPy scalar for shape ``()``), or a tuple of them
            for a compiled list. Arrays of another library that share memory through DLPack come
            back as arrays of that library.

        Raises:
            InputError, InputTypeError: see :func:`alkahest.columns.prepare`.
        """
        if out is None and n is None and stream is None and threads is None:
            batch = self._fast_batch(columns, self._rules)
            if batch is not None:
                outputs = self._run(batch, self.device)
                return outputs[0] if self._single else outputs
        return self._evaluate(columns, True, out, n, stream, threads, self.device)

    def call_batch(
        self,
        columns: Any,
        *,
        out: Any = None,
        n: int | None = None,
        stream: Any = None,
        threads: int | None = None,
        device: int | None = None,
    ) -> Any:
        """Evaluate over a batch of points, one column per input (structure of arrays).

        Args:
            columns: list or tuple with one column per input, each 1-D of the same length, or a
                scalar, which is spread; a 2-D array has its rows taken as columns.
            out: as in a call.
            n: number of points; needed when no column has a length.
            stream: the caller's stream, for device backends.
            threads: number of threads, or None for the backend's choice.
            device: ordinal to run on instead of the compiled function's.

        Returns:
            An array of shape ``(n,)``, or a tuple of them for a compiled list; lists of Python
            numbers if every column is a list or tuple.

        Raises:
            InputError, InputTypeError: see :func:`alkahest.columns.prepare`.
        """
        where = self.device if device is None else device_ordinal(device)
        if type(columns) is list or type(columns) is tuple:
            if out is None and n is None and stream is None and threads is None:
                batch = self._fast_batch(columns, self._rules)
                if batch is not None:
                    outputs = self._run(batch, where)
                    return outputs[0] if self._single else outputs
        elif getattr(columns, "ndim", 0) != 2 or not hasattr(columns, "__dlpack__"):
            raise InputTypeError(
                "E-INPUT-008",
                f"call_batch needs a list of columns, got {type_name(columns)}",
                remediation="Pass one column per input: call_batch([xs, ys]).",
            )
        return self._evaluate(tuple(columns), False, out, n, stream, threads, where)

    def _evaluate(
        self,
        columns: Sequence[Any],
        broadcast: bool,
        out: Any,
        n: int | None,
        stream: Any,
        threads: int | None,
        device: int | None,
    ) -> Any:
        if stream is not None and self._host:
            raise InputError(
                "E-INPUT-011",
                f"backend {self.backend!r} runs on the host and takes no stream=",
                remediation="Leave stream= out.",
            )
        prepared = self._prepare(
            columns,
            self._rules,
            broadcast=broadcast,
            out=out,
            n=n,
            stream=stream,
            threads=threads,
        )
        results = prepared.finish(self._run(prepared.batch, device))
        return results[0] if self._single else results

    def _run(self, batch: Batch, device: int | None) -> tuple[NDArray[Any], ...]:
        evaluator = self._evaluators.get(device)
        if evaluator is None:
            evaluator = self._make_evaluator(device)
        start = perf_counter()
        outcome = evaluator.evaluate(batch)
        seconds = perf_counter() - start
        outputs = outcome.outputs
        if len(outputs) != len(self._rules.outputs) or any(o.shape != (batch.n,) for o in outputs):
            shapes = ", ".join(str(o.shape) for o in outputs)
            raise PluginError(
                "E-PLUGIN-003",
                f"backend {self.backend!r} returned outputs of shapes {shapes or 'none'} "
                f"for {len(self._rules.outputs)} outputs of {batch.n} points",
                remediation="Report this to the plugin's authors.",
            )
        self._calls.last = (device, batch.n, seconds, outcome.report)
        return outputs

    def _make_evaluator(self, device: int | None) -> Evaluator:
        with _building:
            evaluator = self._evaluators.get(device)
            if evaluator is None:
                evaluator = calls.make_evaluator(self.backend, self.artifact, device)
                self._evaluators[device] = evaluator
            return evaluator

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} n_inputs={self.n_inputs} n_outputs={self.n_outputs} "
            f"dtype={self.dtype} backend={self.backend}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        choices = {
            "backend": self.backend,
            "device": self.device,
            "casting": self._casting,
            "target": self._requested_target,
            "options": self._options,
            "single": self._single,
        }
        return _rebuild, (type(self), dumps(self.program), choices)


def _rebuild(cls: type[CompiledFn], program: bytes, choices: Mapping[str, Any]) -> CompiledFn:
    return cls.from_program(loads(program), **choices)


__all__ = ["CompiledFn", "compile_expr", "numpy_eval"]
