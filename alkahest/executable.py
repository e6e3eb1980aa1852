"""A program as one backend runs it: the generated code, and an evaluator per device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from alkahest._plugins import calls
from alkahest.errors import InputError, PluginError
from alkahest.forks import ForkSafeLock
from alkahest.splitting import ALL, SplitEvaluator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.device_calls import DeviceCall, Queued
    from alkahest.plugin import (
        ArrayEvaluator,
        Artifact,
        BackendInfo,
        Batch,
        DeviceEvaluator,
        Evaluator,
    )
    from alkahest.program import Program
    from alkahest.rules import Rules

# One lock for every executable, since making an evaluator touches no device.
_building = ForkSafeLock()


class Executable:
    """A program compiled by one backend; safe to use from many threads and after a fork.

    Attributes:
        backend: name of the backend.
        artifact: the code that it generated.
        rules: what the program and the backend ask of the columns.
        on_host: whether the backend reads columns in host memory without a copy.
        libraries: whose arrays the backend takes as they are.
    """

    def __init__(
        self,
        program: Program,
        info: BackendInfo,
        *,
        casting: str,
        target: str | None,
        options: Mapping[str, Any],
    ) -> None:
        """Generate code; no device is touched.

        Raises:
            AlkahestError: what the backend refuses, under its own code.
        """
        from alkahest.rules import Rules

        self.backend = info.name
        self.on_host = info.placement == "host"
        self.libraries = info.arrays
        self.artifact: Artifact = calls.codegen(info.name, program, target, options)
        self.rules: Rules = Rules.of(
            program, casting=casting, backend=info.name, placement=info.placement
        )
        self._evaluators: dict[int | str | None, Evaluator] = {}

    def run(
        self, batch: Batch, device: int | str | None
    ) -> tuple[tuple[NDArray[Any], ...], float, Mapping[str, Any]]:
        """Outputs, seconds and the backend's report of one call.

        Args:
            batch: checked columns.
            device: ordinal, ``"all"``, or None for the backend's default.

        Raises:
            InputError: E-INPUT-011 for a stream where the backend has none.
            PluginError: E-PLUGIN-003 where the outputs are not what was promised.
            AlkahestError: what the backend or the device refuses.
        """
        evaluator = self._evaluators.get(device)
        if evaluator is None:
            evaluator = self.prepare(device)
        if batch.stream is not None:
            self._check_stream(device)
        start = perf_counter()
        outcome = evaluator.evaluate(batch)
        seconds = perf_counter() - start
        outputs, expected = outcome.outputs, len(self.rules.outputs)
        if len(outputs) != expected or any(o.shape != (batch.n,) for o in outputs):
            shapes = ", ".join(str(o.shape) for o in outputs)
            raise PluginError(
                "E-PLUGIN-003",
                f"backend {self.backend!r} returned outputs of shapes {shapes or 'none'} "
                f"for {expected} outputs of {batch.n} points",
            )
        return outputs, seconds, outcome.report

    def queue(self, call: DeviceCall) -> tuple[Queued, float, Callable[..., Any] | None]:
        """A call whose columns are on a device, its host seconds, and the evaluator's fast call.

        Raises:
            PluginError: E-PLUGIN-003, the backend says that it reads such columns and does not.
            AlkahestError: see :func:`alkahest.device_calls.queue`.
        """
        from alkahest.device_calls import queue

        evaluator = self._evaluators.get(call.device) or self.prepare(call.device)
        if not hasattr(evaluator, "evaluate_on_device"):
            raise self._lacks("columns on a device")
        start = perf_counter()
        queued = queue(call, cast("DeviceEvaluator", evaluator))
        return queued, perf_counter() - start, getattr(evaluator, "fast_call", None)

    def evaluate_arrays(
        self, call: DeviceCall
    ) -> tuple[tuple[Any, ...], int, float, Mapping[str, Any]]:
        """A call with arrays of :attr:`libraries`: results, points, seconds, the report.

        Raises:
            PluginError: E-PLUGIN-003, the backend says that it takes such arrays and does not.
            AlkahestError: see :func:`alkahest.array_calls.prepare`.
        """
        from alkahest.array_calls import prepare

        start = perf_counter()
        prepared = prepare(call, self.libraries)
        evaluator = self._evaluators.get(call.device) or self.prepare(call.device)
        if not hasattr(evaluator, "evaluate_arrays"):
            raise self._lacks("arrays of a library")
        outcome = cast("ArrayEvaluator", evaluator).evaluate_arrays(prepared.batch)
        results = prepared.finish(outcome)
        return results, prepared.n, perf_counter() - start, outcome.report

    def fast_call(
        self, fallback: Callable[..., Any], single: bool, device: int | str | None
    ) -> Callable[..., Any]:
        """The evaluator's function for the plainest calls, or ``fallback`` where it has none.

        Args:
            fallback: takes the same arguments, and every call that is not plain.
            single: whether the one output is returned itself instead of a tuple.
            device: ordinal, ``"all"``, or None for the backend's default.

        Raises:
            AlkahestError: the code cannot be made.
        """
        make = getattr(self.prepare(device), "make_fast_call", None)
        found: Callable[..., Any] | None = make and make(fallback, single=single)
        return found or fallback

    def listing(self, name: str) -> str:
        """Generated code as text, under the evaluator's name for it.

        Raises:
            AttributeError: the backend has no such listing.
            AlkahestError: the code cannot be made.
        """
        listing = getattr(self.prepare(None), name, None)
        if not isinstance(listing, str):
            raise AttributeError(f"backend {self.backend!r} has no {name} to show", name=name)
        return listing

    def prepare(self, device: int | str | None) -> Evaluator:
        """The evaluator for ``device``, made at the first request.

        Raises:
            AlkahestError: the backend refuses the ordinal, or the program on it.
        """
        with _building:
            evaluator = self._evaluators.get(device)
            if evaluator is None:
                if isinstance(device, str):
                    evaluator = SplitEvaluator.of(self.backend, self.artifact)
                else:
                    evaluator = calls.make_evaluator(self.backend, self.artifact, device)
                self._evaluators[device] = evaluator
            return evaluator

    def settle(self, device: int | str | None) -> None:
        """Have the evaluator do now what it would put off, such as compiling.

        Raises:
            AlkahestError: the code cannot be made.
        """
        settle = getattr(self._evaluators.get(device) or self.prepare(device), "settle", None)
        if settle is not None:
            settle()

    def _lacks(self, what: str) -> PluginError:
        return PluginError("E-PLUGIN-003", f"backend {self.backend!r} has no evaluator for {what}")

    def _check_stream(self, device: int | str | None) -> None:
        if self.on_host:
            raise InputError(
                "E-INPUT-011",
                f"backend {self.backend!r} runs on the host and takes no stream=",
                remediation="Leave stream= out.",
            )
        if device == ALL:
            raise InputError(
                "E-INPUT-011",
                'a stream belongs to one device, and device="all" uses every one',
                remediation="Leave stream= out, or name the device.",
            )


__all__ = ["Executable"]
