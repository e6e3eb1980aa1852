"""One batch in parts over the workers of an executor: ``executor=``.

An executor is anything with the interface of :class:`concurrent.futures.Executor`: threads,
processes, MPI, a Dask client's. Parts are runs of neighbouring points. A worker gets the function,
which in another process is compiled on arrival and kept (:mod:`alkahest.arrivals`), and its part
of the columns; results land in the caller's arrays, in order, as they come.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.arguments import type_name
from alkahest.errors import EvalError, InputError, InputTypeError
from alkahest.plugin import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from alkahest.compiled import CompiledFn

    Part = tuple[tuple[NDArray[Any], ...], Mapping[str, Any]]

MEANT_BYTES = 4 << 20
"""Of the columns of a part where ``chunk=`` does not say: well above what a message costs, and below
what schedulers warn about."""

FEWEST_POINTS = 1024

MEANT_IN_FLIGHT = 64
"""Parts handed out at a time where the executor does not say how many workers it has."""


@attrs.frozen(kw_only=True)
class Spread:
    """How a batch is spread.

    Attributes:
        function: what is evaluated.
        executor: its workers evaluate.
        chunk: points per part, or None for parts of :data:`MEANT_BYTES`.
        in_flight: most parts handed out and not yet back, or None for two per worker.
        progress: called with the points done and all points whenever parts have come back.
    """

    function: CompiledFn
    executor: Executor
    chunk: int | None
    in_flight: int | None
    progress: Callable[[int, int], object] | None

    @classmethod
    def of(
        cls,
        function: CompiledFn,
        executor: Any,
        chunk: Any,
        in_flight: Any,
        progress: Callable[[int, int], object] | None,
    ) -> Spread:
        """What the arguments of :meth:`alkahest.CompiledFn.call_batch` say; see there.

        Raises:
            InputTypeError: E-INPUT-008 for an executor that is none.
            InputError: E-INPUT-011 for numbers below 1, and for options without an executor.
        """
        if executor is None:
            raise InputError(
                "E-INPUT-011",
                "chunk=, in_flight= and progress= are about an executor, and there is none",
                remediation="Pass executor= too, or leave them out.",
            )
        if not callable(getattr(executor, "submit", None)):
            raise InputTypeError(
                "E-INPUT-008",
                f"executor must be a concurrent.futures.Executor, not {type_name(executor)}",
                remediation="Pass an Executor; of a Dask client, client.get_executor().",
            )
        for name, value in (("chunk", chunk), ("in_flight", in_flight)):
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (is_number and value >= 1):
                raise InputError(
                    "E-INPUT-011",
                    f"{name} must be an integer of at least 1, got {value!r}",
                    remediation=f"Pass {name}=1 or more, or leave it out.",
                )
        return cls(
            function=function,
            executor=executor,
            chunk=chunk,
            in_flight=in_flight,
            progress=progress,
        )

    def evaluate(
        self, batch: Batch, dtypes: Iterable[np.dtype[Any]], device: int | str | None
    ) -> tuple[tuple[NDArray[Any], ...], list[Mapping[str, Any]]]:
        """Outputs, and a report for each part in the order of the points.

        On an error and on Ctrl-C, parts that no worker has begun are cancelled.

        Args:
            batch: checked columns.
            dtypes: of the outputs.
            device: ordinal, ``"all"`` or None, for every worker.

        Raises:
            EvalError: E-EVAL-005 where the executor has lost a worker.
            Exception: what a worker raises, with a note that names the points.
        """
        import numpy as np

        outputs = batch.out or tuple(np.empty(batch.n, dtype) for dtype in dtypes)
        chunk = self.chunk or _meant_chunk(batch)
        limit = self.in_flight or _meant_in_flight(self.executor)
        reports: dict[int, Mapping[str, Any]] = {}
        waiting: dict[Future[Part], slice] = {}
        done = 0

        def collect() -> None:
            nonlocal done
            back, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in sorted(back, key=lambda f: waiting[f].start):
                part = waiting.pop(future)
                with _Noted(part):
                    values, reports[part.start] = future.result()
                for output, value in zip(outputs, values, strict=True):
                    output[part] = value
                done += part.stop - part.start
            if self.progress is not None:
                self.progress(done, batch.n)

        try:
            # An empty batch has one part all the same: what is to be refused is refused.
            for start in range(0, max(1, batch.n), chunk):
                if len(waiting) >= limit:
                    collect()
                part = slice(start, min(start + chunk, batch.n))
                with _Noted(part):
                    waiting[self._submit(batch, part, device)] = part
            while waiting:
                collect()
        finally:
            for future in waiting:
                future.cancel()
        return outputs, [reports[start] for start in sorted(reports)]

    def _submit(self, batch: Batch, part: slice, device: int | str | None) -> Future[Part]:
        n = part.stop - part.start
        # A number that is spread travels as one number.
        columns = tuple(
            c[part] if c.strides[0] or not n else c[0].reshape(()) for c in batch.columns
        )
        return self.executor.submit(evaluate_part, self.function, columns, n, batch.threads, device)


def evaluate_part(
    function: CompiledFn,
    columns: tuple[NDArray[Any], ...],
    n: int,
    threads: int | None,
    device: int | str | None,
) -> Part:
    """What a worker does: evaluates a part and reports on it.

    Args:
        function: what is evaluated.
        columns: one per input, of the program's dtype, shape ``(n,)``, or ``()`` for a number that
            is spread.
        n: number of points.
        threads: of the backend; None is one where it computes on the host, since the executor has
            a worker for every processor.
        device: ordinal, ``"all"`` or None.
    """
    import numpy as np

    start = perf_counter()
    function.settle(device)  # parts from different processes are to come out of the same code
    batch = Batch(
        columns=tuple(c if c.ndim else np.broadcast_to(c, n) for c in columns),
        n=n,
        threads=threads or (1 if function.runs_on_host else None),
    )
    outputs = function.evaluate_batch(batch, device)
    return outputs, {
        "n": n,
        "seconds": perf_counter() - start,
        "host": socket.gethostname(),
        "process": os.getpid(),
        "backend": function.report["backend"],
    }


def _meant_chunk(batch: Batch) -> int:
    per_point = sum(column.itemsize for column in batch.columns if column.strides[0])
    return max(FEWEST_POINTS, MEANT_BYTES // max(8, per_point))


def _meant_in_flight(executor: Executor) -> int:
    workers = getattr(executor, "_max_workers", None)
    return 2 * workers if isinstance(workers, int) else MEANT_IN_FLIGHT


class _Noted:
    """Context manager: what is raised inside says which points it is about."""

    def __init__(self, part: slice) -> None:
        self._where = f"points {part.start} to {part.stop - 1}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BrokenExecutor):
            raise EvalError(
                "E-EVAL-005", f"a worker was lost with {self._where} still to do: {error}"
            ) from error
        if isinstance(error, Exception):
            error.add_note(f"while evaluating {self._where} of the batch")


__all__ = ["Spread", "evaluate_part"]
