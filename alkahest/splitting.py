"""One batch over every device of a backend: ``device="all"``.

The points are cut into one run of neighbours per device, as even as they go, and each device works
on its own in a thread. Results land in the caller's arrays, so nothing is put together afterwards.
The devices share the processors of the host too: what copies for them does not wait for one another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from alkahest._plugins import calls
from alkahest.errors import AlkahestError
from alkahest.plugin import Artifact, Batch, Evaluator, Outcome

if TYPE_CHECKING:
    from alkahest.program import Program

ALL = "all"
"""Value of ``device=`` that means every device of the backend."""


@attrs.frozen(eq=False)
class SplitEvaluator:
    """Evaluates a batch on several devices at once; see :class:`alkahest.plugin.Evaluator`.

    Attributes:
        backend: name of the backend, for messages.
        program: what is evaluated.
        evaluators: one per device, the position being the ordinal; at least one.
    """

    backend: str
    program: Program
    evaluators: Sequence[Evaluator]

    @classmethod
    def of(cls, backend: str, artifact: Artifact) -> SplitEvaluator:
        """Over every device that ``backend`` has now.

        Without any it stands for device 0, whose evaluator says what is missing.

        Raises:
            AlkahestError: the backend refuses the artifact.
        """
        ordinals = range(max(1, len(calls.devices(backend))))
        made = [calls.make_evaluator(backend, artifact, ordinal) for ordinal in ordinals]
        return cls(backend, artifact.program, made)

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate every output at every point; returns when every device has finished.

        The report holds ``devices``: one entry per device that took part, with ``device``, ``n``,
        ``seconds`` and what the backend reports about its part.

        Raises:
            AlkahestError: the first failure by ordinal, naming the device; other exceptions carry
                a note that does. Outputs are then incomplete.
        """
        import numpy as np

        names = self.program.output_dtypes
        outputs = batch.out or tuple(np.empty(batch.n, name) for name in names)
        parts = shares(batch.n, len(self.evaluators))
        threads = batch.threads
        if threads is None and len(parts) > 1:
            threads = max(1, _processors() // len(parts))
        batches = [
            attrs.evolve(
                batch,
                threads=threads,
                columns=tuple(column[part] for column in batch.columns),
                n=part.stop - part.start,
                out=tuple(output[part] for output in outputs),
            )
            for part in parts
        ]

        def work(ordinal: int) -> Mapping[str, Any]:
            return self._evaluate_part(ordinal, batches[ordinal])

        reports = _together(work, len(parts))
        return Outcome(outputs=outputs, report={"device": ALL, "devices": reports})

    def _evaluate_part(self, ordinal: int, batch: Batch) -> Mapping[str, Any]:
        start = perf_counter()
        try:
            outcome = self.evaluators[ordinal].evaluate(batch)
        except AlkahestError as error:
            raise type(error)(
                error.code,
                f"device {ordinal} of backend {self.backend!r}: {error.message}",
                remediation=error.remediation,
                span=error.span,
            ) from error
        except Exception as error:
            error.add_note(f"while running on device {ordinal} of backend {self.backend!r}")
            raise
        seconds = perf_counter() - start
        for place, values in zip(batch.out or (), outcome.outputs, strict=True):
            if values is not place:
                place[...] = values
        return {"device": ordinal, "n": batch.n, "seconds": seconds, **outcome.report}


def shares(n: int, devices: int) -> list[slice]:
    """The points of each device: even to one point, in order, none of them empty.

    A batch shorter than the number of devices uses the first ones; an empty batch uses one, so
    that what can be refused is refused all the same.
    """
    used = max(1, min(n, devices))
    cuts = [n * k // used for k in range(used + 1)]
    return [slice(start, stop) for start, stop in pairwise(cuts)]


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _together(work: Callable[[int], Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """``work(0)`` here and the others in threads; raises only when all of them have ended.

    Threads live for one call: none is left over to be missing after a fork, and starting one is
    short beside a batch that is worth splitting.
    """
    if count == 1:
        return [work(0)]
    with ThreadPoolExecutor(count - 1, thread_name_prefix="alkahest-device") as pool:
        others: list[Future[Mapping[str, Any]]] = [pool.submit(work, k) for k in range(1, count)]
        first = work(0)
    return [first, *(future.result() for future in others)]


__all__ = ["ALL", "SplitEvaluator", "shares"]
