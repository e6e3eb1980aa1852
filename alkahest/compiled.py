"""Compiled functions: columns in, columns out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from alkahest import selection
from alkahest.arguments import (
    Request,
    check_casting,
    check_columns,
    check_result_dtype,
    device_choice,
    dtype_name,
    has_dask,
    type_name,
)
from alkahest.arrivals import rebuild
from alkahest.automatic import placement_of
from alkahest.errors import CODES, CodegenError, InputTypeError
from alkahest.evaluation import Evaluation
from alkahest.program import dumps, lower
from alkahest.selection import HOST

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from alkahest.derivative_outputs import Layout
    from alkahest.expr import Expr
    from alkahest.plugin import Artifact, Batch
    from alkahest.program import Program

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_LOWERING_CODES = frozenset({"E-JIT-005", "E-JIT-006", "E-JIT-010"})


def compile_expr(
    expr: Any,
    inputs: Sequence[Expr],
    *,
    backend: str | None = None,
    dtype: Any = "float64",
    device: int | str | None = None,
    casting: str = "safe",
    target: str | None = None,
    derivatives: int = 0,
    wrt: Sequence[Expr] | None = None,
    **options: Any,
) -> CompiledFn:
    """Compile one expression, or a flat list of them, to a function of columns.

    Args:
        expr: an expression or a number; or a list or tuple of them, for a function that returns
            a tuple of arrays in that order.
        inputs: list or tuple of distinct symbols of the same pool; their order is the order of
            the columns.
        backend: name of a backend or of a group of backends (``"cpu"``), or ``"auto"``; None
            means ``ALKAHEST_BACKEND``, else ``"auto"``, which chooses for every call.
        dtype: ``"float64"``, ``"float32"``, ``"complex128"`` or ``"complex64"``.
        device: ordinal of the device, ``"all"`` to split batches over every device of the
            backend, or None for the backend's default.
        casting: ``"safe"``, or ``"same_kind"`` to accept wider columns too.
        target: processor or device to generate code for, in the backend's words.
        derivatives: 1 for a function that returns (value, gradient), 2 for (value, gradient,
            Hessian); see :mod:`alkahest.derivative_outputs` for their shapes.
        wrt: the inputs to differentiate with respect to, in the order of the gradient; all of
            them by default.
        options: anything else that the backend understands. Under ``"auto"`` it is the backend
            for host columns that has to.

    Raises:
        InputTypeError: E-INPUT-008 for an argument of the wrong type.
        InputError: E-INPUT-007 for inputs that are unordered, repeated or no symbols, or ``wrt``
            that is none of them, E-INPUT-011 for an unknown value of an option.
        PoolError: E-POOL-001 for expressions and inputs of different pools.
        DiffError: E-DIFF-001 for a condition, or an operation that has no derivative.
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
        derivatives=derivatives,
        wrt=wrt,
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
    if placement_of(arrays) != HOST:
        raise InputTypeError(
            "E-INPUT-010",
            "numpy_eval gives NumPy arrays, and a column is on a device",
            remediation="Call the function itself for results there, or copy the columns first.",
        )
    result = fn(*arrays)
    if isinstance(result, tuple):
        return tuple(np.asarray(value) for value in result)
    return np.asarray(result)


class CompiledFn:
    """A program compiled for one backend, or for the one that suits each call.

    Made by :func:`compile_expr`. Safe to call from many threads and after a fork. Pickles as its
    program and choices (``"auto"`` as ``"auto"``); on arrival it is compiled again, once in a
    process. Two functions are equal only if they are the same object. Has a ufunc's attributes
    (``nin``, ``nout``, ``types``, ...), by which libraries of arrays call it as they call ufuncs.

    Attributes:
        program: what was compiled.
        artifact: the code that the backend generated.
        backend: name of the backend; under ``"auto"`` the one that takes host columns where
            nothing is predicted. :attr:`report` says which one took a call.
        device: the ordinal asked for, ``"all"`` or None.
    """

    def __init__(
        self,
        program: Program,
        backend: str,
        *,
        single: bool,
        layout: Layout | None = None,
        device: int | str | None = None,
        casting: str = "safe",
        target: str | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
    ) -> None:
        options = dict(options)
        self._evaluation = Evaluation(
            program,
            backend,
            single=single,
            layout=layout,
            device=device,
            casting=casting,
            target=target,
            options=options,
        )
        self.program = program
        self.artifact: Artifact = self._evaluation.first.artifact
        self.backend = self._evaluation.first.backend
        self.device = device
        self._single = single
        self._layout = layout
        self._casting = casting
        self._requested_target = target
        self._options = options
        self._fast_call: Callable[..., Any] | None = None

    @classmethod
    def compile(
        cls,
        expr: Any,
        inputs: Sequence[Expr],
        *,
        backend: str | None = None,
        dtype: Any = "float64",
        device: int | str | None = None,
        casting: str = "safe",
        target: str | None = None,
        derivatives: int = 0,
        wrt: Sequence[Expr] | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
    ) -> Self:
        """As :func:`compile_expr`, making an object of this class."""
        name = backend or os.environ.get(selection.ENVIRONMENT_VARIABLE) or selection.AUTO
        members = () if name == selection.AUTO else selection.find(name)
        request = Request.of(expr, inputs, derivatives, wrt)
        try:
            program = lower(request.exprs, request.symbols, dtype_name(dtype))
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
            single=request.single,
            layout=request.layout,
        )

    @classmethod
    def from_program(
        cls,
        program: Program,
        *,
        backend: str = selection.AUTO,
        device: int | str | None = None,
        casting: str = "safe",
        target: str | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
        single: bool = False,
        layout: Layout | None = None,
    ) -> Self:
        """Compile a program that exists already.

        Args:
            program: verified.
            backend: name of a backend or group, or ``"auto"``.
            single: whether calls give the one output itself instead of a tuple.
            layout: how the outputs form value, gradient and Hessian; None where they do not.
            device, casting, target, options: as for :func:`compile_expr`.

        Raises:
            InputError, InputTypeError, CodegenError: as :func:`compile_expr`.
        """
        check_casting(casting)
        return cls(
            program,
            backend,
            single=single,
            layout=layout,
            device=device_choice(device),
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
        """Number of outputs of the program; every derivative counts as one."""
        return len(self.program.outputs)

    @property
    def derivatives(self) -> int:
        """Order of the highest derivative that calls return."""
        return 0 if self._layout is None else self._layout.order

    def settle(self, device: int | str | None = None) -> None:
        """Do now what the backend would put off until a later call, such as compiling."""
        self._evaluation.first.settle(self.device if device is None else device)

    @property
    def runs_on_host(self) -> bool:
        """Whether host columns are evaluated there, where no other backend is predicted better."""
        return self._evaluation.first.on_host

    __name__ = "compiled_function"
    signature = None

    @property
    def nin(self) -> int:
        """Number of columns that a call takes, as of a ufunc."""
        return self.n_inputs

    @property
    def nout(self) -> int:
        """Number of arrays that a call gives, as of a ufunc."""
        return self.n_outputs if self._layout is None else self._layout.order + 1

    @property
    def types(self) -> list[str]:
        """The one loop, as of a ufunc: ``["dd->d"]`` for two inputs of float64."""
        return [self._evaluation.first.rules.types]

    @property
    def fast_call(self) -> Callable[..., Any]:
        """``fast_call(*columns, out=None)``: as a call, with the least work around it.

        On ``cpu-jit`` a built-in function, made and compiled when it is first asked for; keep it
        where it is called often. One-dimensional contiguous arrays of the function's dtype take
        a fraction of a microsecond, whatever else there is goes the usual way. :attr:`report`
        says nothing about these calls.
        """
        if self._fast_call is None:
            call: Callable[..., Any] = self.__call__
            if self._layout is None:
                call = self._evaluation.first.fast_call(call, self._single, self.device)
            self._fast_call = call
        return self._fast_call

    @property
    def llvm_ir(self) -> str:
        """The generated code as LLVM assembly; AttributeError where the backend has none."""
        return self._evaluation.first.listing("llvm_ir")

    @property
    def assembly(self) -> str:
        """The generated code as the processor's assembly; AttributeError where there is none."""
        return self._evaluation.first.listing("assembly")

    @property
    def report(self) -> dict[str, Any]:
        """Facts about the calling thread's last call; empty before the first.

        Always ``backend``, ``reason`` (why that one), ``device``, ``dtype``, ``n``, ``seconds``;
        the rest is the backend's. ``device="all"`` gives ``devices``, a report for each.
        """
        return self._evaluation.report()

    def __call__(
        self,
        *columns: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        n: int | None = None,
        stream: Any = None,
        threads: int | None = None,
    ) -> Any:
        """Evaluate with broadcasting, like a NumPy ufunc.

        Args:
            columns: one number or array per input, of shapes that broadcast.
            out: array (for a compiled list or derivatives: a sequence of arrays) of exactly the
                result's shape and dtype, writeable, which receives the result.
            where: bool, of a shape that broadcasts to the result's: only there anything is
                evaluated. Elsewhere ``out`` keeps its values, and a result without ``out`` has
                nan, or False in conditions.
            dtype: what libraries pass to a ufunc: the dtype of the result, or None.
            n: length of the result when no column has a dimension.
            stream: the caller's stream, for device backends.
            threads: number of threads, or None for the backend's choice.

        Returns:
            An array of the broadcast shape (a NumPy scalar for shape ``()``), or a tuple of them
            for a compiled list. With derivatives, a tuple (value, gradient) or (value, gradient,
            Hessian), whose last axes are the broadcast shape. Arrays of another library that
            share memory through DLPack come back as arrays of that library, Dask arrays as Dask
            arrays, of which nothing has been computed. Other objects with NumPy's ufunc protocol,
            such as a pandas Series, come back as it says.

        Raises:
            InputError, InputTypeError: see :func:`alkahest.columns.prepare`; E-INPUT-002,
                E-INPUT-003 for ``where`` that does not fit, E-INPUT-011 for another ``dtype``.
        """
        evaluation = self._evaluation
        if dtype is not None:
            check_result_dtype(dtype, self.program.output_dtypes)
        if n is None and threads is None and where is True:
            result = evaluation.fast(columns, out, stream, self.device)
            if result is not NotImplemented:
                return result
        if has_dask((*columns, where)):
            options = {"out": out, "n": n, "stream": stream, "threads": threads}
            return evaluation.evaluate_dask(self, columns, True, where, options)
        if self._is_like_a_ufunc:
            result = evaluation.take_over(self, columns, out, where, n, stream, threads)
            if result is not NotImplemented:
                return result
        if where is not True:
            return evaluation.evaluate_where(columns, where, out, n, stream, threads, self.device)
        return evaluation.evaluate(columns, True, out, n, stream, threads, self.device)

    def call_batch(
        self,
        columns: Any,
        *,
        out: Any = None,
        n: int | None = None,
        stream: Any = None,
        threads: int | None = None,
        device: int | str | None = None,
        executor: Executor | None = None,
        chunk: int | None = None,
        in_flight: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Any:
        """Evaluate over a batch of points, one column per input (structure of arrays).

        Args:
            columns: list or tuple with one column per input, each 1-D of the same length, or a
                scalar, which is spread; a 2-D array has its rows taken as columns.
            out: as in a call.
            n: number of points; needed when no column has a length.
            stream: the caller's stream, for device backends.
            threads: number of threads, or None for the backend's choice.
            device: ordinal to run on instead of the compiled function's, or ``"all"`` to cut
                the batch into a part for every device of the backend.
            executor: any :class:`concurrent.futures.Executor`, whose workers evaluate the batch
                in parts; see :mod:`alkahest.executors`.
            chunk: points per part; None for parts of some megabytes.
            in_flight: most parts handed out at a time; None for two per worker.
            progress: called with the numbers of points done and of all, whenever parts come back.

        Returns:
            An array of shape ``(n,)``, or a tuple of them for a compiled list; with derivatives
            as in a call. Lists of Python numbers, nested for derivatives, if every column is a
            list or tuple. Dask arrays if a column is one, of which nothing has been computed.

        Raises:
            InputError, InputTypeError: see :func:`alkahest.columns.prepare`; E-INPUT-008,
                E-INPUT-011 for an ``executor`` that is none, and for options that need one.
            EvalError: E-EVAL-005 where the executor has lost a worker.
        """
        where = self.device if device is None else device_choice(device)
        if executor is None and chunk is None and in_flight is None and progress is None:
            spread = None
            is_plain = n is None and threads is None
            if is_plain and (type(columns) is list or type(columns) is tuple):
                result = self._evaluation.fast(columns, out, stream, where)
                if result is not NotImplemented:
                    return result
        else:
            from alkahest.executors import Spread

            spread = Spread.of(self, executor, chunk, in_flight, progress)
        check_columns(columns)
        columns = tuple(columns)
        if has_dask(columns):
            options = {"out": out, "n": n, "stream": stream, "threads": threads}
            options |= {"device": device, "executor": executor}
            return self._evaluation.evaluate_dask(self, columns, False, True, options)
        return self._evaluation.evaluate(columns, False, out, n, stream, threads, where, spread)

    def evaluate_batch(
        self, batch: Batch, device: int | str | None = None
    ) -> tuple[NDArray[Any], ...]:
        """One array for each output of the program, for columns that are checked already.

        Args:
            batch: columns of the program's dtype, shape ``(n,)``; results have that shape.
            device: ordinal, ``"all"`` or None for the compiled function's.
        """
        return self._evaluation.run(batch, self.device if device is None else device)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} n_inputs={self.n_inputs} n_outputs={self.n_outputs} "
            f"dtype={self.dtype} backend={self.backend}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        choices = {
            "backend": selection.AUTO if self._evaluation.is_automatic else self.backend,
            "device": self.device,
            "casting": self._casting,
            "target": self._requested_target,
            "options": self._options,
            "single": self._single,
            "layout": self._layout,
        }
        return rebuild, (type(self), self._serialised, choices)

    @cached_property
    def _serialised(self) -> bytes:
        return dumps(self.program)

    @property
    def _is_like_a_ufunc(self) -> bool:
        """Whether calls give arrays of the columns' shape: one itself, or several in a tuple."""
        return self._layout is None and (self._single or self.n_outputs > 1)


__all__ = ["CompiledFn", "compile_expr", "numpy_eval"]
