"""How the calls of a compiled function are carried out.

A call whose columns are just as the backend wants them takes a short way; any other is checked and
prepared by the rules (:mod:`alkahest.columns`, :mod:`alkahest.device_calls`), and evaluated by the
backend that was named or that is chosen for this call (:mod:`alkahest.automatic`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from alkahest import selection
from alkahest.automatic import Automatic, placement_of
from alkahest.derivative_outputs import evaluated
from alkahest.errors import InputError, InputTypeError
from alkahest.executable import Executable
from alkahest.selection import HOST
from alkahest.splitting import ALL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.compiled import CompiledFn
    from alkahest.derivative_outputs import Layout
    from alkahest.device_calls import DeviceCall
    from alkahest.executors import Spread
    from alkahest.plugin import BackendInfo, Batch
    from alkahest.program import Program
    from alkahest.rules import Rules

_BY_NAME = "asked for by name"


class Evaluation:
    """Evaluates one program; safe to use from many threads and after a fork.

    Attributes:
        first: the program on the backend that was named; under ``"auto"`` on the one that takes
            host columns where nothing is predicted.
        is_automatic: whether the backend is chosen for every call.
        take_over: :func:`alkahest.overrides.call`.
    """

    def __init__(
        self,
        program: Program,
        backend: str,
        *,
        single: bool,
        layout: Layout | None,
        device: int | str | None,
        casting: str,
        target: str | None,
        options: Mapping[str, Any],
    ) -> None:
        """Compile for the backend of that name, or for the first choice.

        Args:
            program: verified.
            backend: name of a backend or group, or ``"auto"``.
            single: whether calls give the one output itself instead of a tuple.
            layout: how the outputs form value, gradient and Hessian; None where they do not.
            device: the one that calls ask for unless they say otherwise.
            casting, target, options: as for :func:`alkahest.compile_expr`.

        Raises:
            CodegenError: E-JIT-004, E-JIT-009 when no backend fits.
            AlkahestError: what the backend refuses, under its own code.
        """
        from alkahest import array_calls, columns, overrides
        from alkahest.device_calls import DeviceCall

        def compile_for(info: BackendInfo) -> Executable:
            return Executable(program, info, casting=casting, target=target, options=options)

        self._automatic: Automatic | None = None
        if backend == selection.AUTO:
            self._automatic = Automatic(program, compile_for, device)
            self.first = self._automatic.first
        else:
            self.first = compile_for(selection.choose(program, backend))
        self.is_automatic = self._automatic is not None
        self._dtype = program.dtype
        self._single = single
        self._layout = layout
        self._rules = self.first.rules
        self._prepare = columns.prepare
        self._fast_batch = columns.fast_batch
        self._device_call = DeviceCall
        self.take_over = overrides.call
        self._first_array = array_calls.first_of
        # Under "auto" arrays of a library are read where they are, by whichever backend can.
        self._libraries = () if self.is_automatic else self.first.libraries
        self._calls = threading.local()
        self._fast: dict[int | str | None, tuple[Callable[..., Any], str, str]] = {}
        if self.first.on_host:
            self.first.prepare(device)  # refuses an ordinal that does not exist

    def report(self) -> dict[str, Any]:
        """Facts about the calling thread's last call, see :attr:`alkahest.CompiledFn.report`."""
        last = getattr(self._calls, "last", None)
        if last is None:
            return {}
        backend, reason, device, n, seconds, facts = last
        return {
            "backend": backend,
            "reason": reason,
            "device": device,
            "dtype": self._dtype,
            "n": n,
            "seconds": seconds,
            **facts,
        }

    def fast(self, columns: Sequence[Any], out: Any, stream: Any, device: int | str | None) -> Any:
        """The result where the columns are just as the backend wants them, or NotImplemented."""
        on_device = self._fast.get(device)
        if on_device is not None:
            fast, backend, reason = on_device
            start = perf_counter()
            found = fast(*columns, out=out, stream=stream)
            if found is not NotImplemented:
                results, n, facts = found
                self._calls.last = backend, reason, device, n, perf_counter() - start, facts
                return results[0] if self._single else results
        if stream is not None or self._layout is not None:
            return NotImplemented
        batch = self._fast_batch(columns, self._rules, out)
        if batch is None:
            return NotImplemented
        outputs = self.run(batch, device)
        if batch.out is not None:
            for target, values in zip(batch.out, outputs, strict=True):
                if values is not target:
                    target[...] = values
            outputs = batch.out
        return outputs[0] if self._single else outputs

    def evaluate(
        self,
        columns: Sequence[Any],
        broadcast: bool,
        out: Any,
        n: int | None,
        stream: Any,
        threads: int | None,
        device: int | str | None,
        spread: Spread | None = None,
    ) -> Any:
        """One call, checked in every way.

        Args:
            columns: one per input.
            broadcast: True for ufunc broadcasting, False for a batch.
            out, n, stream, threads: as for a call.
            device: ordinal, ``"all"`` or None for the backend's default.
            spread: how the batch is spread over an executor, or None to evaluate it here.

        Raises:
            InputError, InputTypeError: see :func:`alkahest.columns.prepare`.
            AlkahestError: what the backend or the device refuses.
        """
        placement, rules, layout = HOST, self._rules, self._layout
        if (
            self._libraries
            and spread is None
            and self._first_array(columns, self._libraries) is not None
        ):
            call = self._device_call(
                columns, rules, layout, broadcast, out, n, stream, threads, device
            )
            return self._evaluate_arrays(call)
        if self._automatic is not None or device == ALL or rules.placement != HOST or spread:
            placement = placement_of(
                [*columns, *(out if isinstance(out, (list, tuple)) else [out])]
            )
            if placement != HOST:
                if spread is not None:
                    raise on_device("executor=", placement)
                rules = self._rules_for(placement, device)
            if rules.placement == placement != HOST:
                call = self._device_call(
                    columns, rules, layout, broadcast, out, n, stream, threads, device
                )
                return self._queue(call, placement)
        arrays = None
        if layout is not None and out is not None:
            arrays = layout.check(out)
            out = layout.rows(arrays, rules.outputs)
        prepared = self._prepare(
            columns, rules, broadcast=broadcast, out=out, n=n, stream=stream, threads=threads
        )

        def run(batch: Batch) -> tuple[NDArray[Any], ...]:
            if spread is not None:
                return self._run_spread(batch, device, spread)
            return self.run(batch, device, placement)

        if layout is None:
            results = prepared.finish(run(prepared.batch))
            return results[0] if self._single else results
        if arrays is None:
            return evaluated(layout, prepared, rules.outputs, run)
        prepared.finish(run(prepared.batch))
        layout.complete(arrays, rules.outputs)
        return arrays

    def evaluate_dask(
        self,
        function: CompiledFn,
        columns: Sequence[Any],
        broadcast: bool,
        where: Any,
        options: Mapping[str, Any],
    ) -> Any:
        """A call on Dask arrays; see :func:`alkahest.dask_arrays.evaluate`."""
        from alkahest import dask_arrays

        dask_arrays.check_options(options)
        return dask_arrays.evaluate(
            function,
            columns,
            rules=self._rules,
            layout=self._layout,
            single=self._single,
            broadcast=broadcast,
            where=where,
        )

    def evaluate_where(
        self,
        columns: Sequence[Any],
        where: Any,
        out: Any,
        n: int | None,
        stream: Any,
        threads: int | None,
        device: int | str | None,
    ) -> Any:
        """A call with ``where=``; see :func:`alkahest.masking.evaluate_where`."""
        from alkahest.masking import evaluate_where

        placement = placement_of([*columns, where])
        if placement != HOST:
            raise on_device("where=", placement)
        results = evaluate_where(
            columns,
            where,
            rules=self._rules,
            layout=self._layout,
            out=out,
            n=n,
            stream=stream,
            threads=threads,
            run=lambda batch: self.run(batch, device),
        )
        return results[0] if self._single and self._layout is None else results

    def _rules_for(self, placement: str, device: int | str | None) -> Rules:
        """What is asked of columns that are on a device."""
        if device == ALL:
            raise InputTypeError(
                "E-INPUT-010",
                f'device="all" splits columns in host memory; these are on {placement}',
                remediation="Copy them to host memory, or leave device= out.",
            )
        if self._automatic is None:
            return self._rules
        return self._automatic.reader(placement, device).rules

    def _queue(self, call: DeviceCall, placement: str) -> Any:
        """Evaluate where the columns are; the work may still be queued on return."""
        device, layout = call.device, self._layout
        executable, reason = self._pick(0, placement, device)
        queued, seconds, fast = executable.queue(call)
        facts = queued.report
        self._calls.last = executable.backend, reason, queued.device, queued.n, seconds, facts
        if fast is not None and layout is None:
            self._fast[device] = fast, executable.backend, reason
        return queued.results[0] if self._single and layout is None else queued.results

    def _evaluate_arrays(self, call: DeviceCall) -> Any:
        """Evaluate with arrays of a library that the backend takes as they are."""
        first, device = self.first, call.device
        results, n, seconds, facts = first.evaluate_arrays(call)
        self._calls.last = first.backend, _BY_NAME, device, n, seconds, facts
        return results[0] if self._single and self._layout is None else results

    def run(
        self, batch: Batch, device: int | str | None, placement: str = HOST
    ) -> tuple[NDArray[Any], ...]:
        """Outputs of the program, one array each, for checked columns."""
        executable, reason = self._pick(batch.n, placement, device)
        outputs, seconds, facts = executable.run(batch, device)
        self._calls.last = (executable.backend, reason, device, batch.n, seconds, facts)
        return outputs

    def _run_spread(
        self, batch: Batch, device: int | str | None, spread: Spread
    ) -> tuple[NDArray[Any], ...]:
        if batch.stream is not None:
            raise InputError(
                "E-INPUT-011",
                "a stream belongs to this process, and executor= hands the batch to others",
                remediation="Leave stream= out.",
            )
        start = perf_counter()
        outputs, parts = spread.evaluate(batch, self._rules.outputs, device)
        seconds = perf_counter() - start
        reason = f"in parts by {type(spread.executor).__name__}"
        backend = parts[0]["backend"]
        self._calls.last = backend, reason, device, batch.n, seconds, {"parts": parts}
        return outputs

    def _pick(self, n: int, placement: str, device: int | str | None) -> tuple[Executable, str]:
        if self._automatic is None:
            return self.first, _BY_NAME
        return self._automatic.pick(n, placement, device)


def on_device(option: str, placement: str) -> InputTypeError:
    """The error of an option that takes columns in host memory alone."""
    return InputTypeError(
        "E-INPUT-010",
        f"{option} takes columns in host memory; these are on {placement}",
        remediation=f"Copy them to host memory, or leave {option} out.",
    )


__all__ = ["Evaluation"]
