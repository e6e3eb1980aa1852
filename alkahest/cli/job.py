"""An evaluation over a table: what was decided before the first row is read, and the loop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

import attrs
import numpy as np

from alkahest.cli.pending import PendingFile, unwritable
from alkahest.cli.progress import Progress
from alkahest.cli.tables import Field, Sink, Source, open_sink
from alkahest.compiled import CompiledFn

TERMINATED = 143


@attrs.frozen(kw_only=True)
class Job:
    """Everything that :func:`run` needs, already checked.

    Attributes:
        source: the table to read.
        function: compiled for the columns ``inputs``, with one output per expression.
        inputs: names of the columns that the function reads, in its order.
        kept: fields of the input columns that are copied to the output.
        carries: whether kept columns are copied as they are, not as numbers.
        names: names of the output columns.
        target: path of the output, or ``"-"``.
        format: format of the output.
        rows: rows per chunk.
    """

    source: Source
    function: CompiledFn
    inputs: Sequence[str]
    kept: Sequence[Field]
    carries: bool
    names: Sequence[str]
    target: str
    format: str
    rows: int


def run(job: Job) -> int:
    """Evaluate every row; returns their number. On any failure the target stays as it was.

    Raises:
        IoError: what reading and writing raise.
        AlkahestError: what the backend raises.
    """
    fields = [*job.kept, *_output_fields(job)]
    with contextlib.ExitStack() as opened:
        path = job.target
        if job.target != "-":
            opened.enter_context(_termination_as_exit())
            path = opened.enter_context(PendingFile(job.target)).path
        with _writing(job.target):
            sink = open_sink(path, job.format, fields)
        opened.callback(sink.close)
        rows = _evaluate(job, sink)
        with _writing(job.target):
            sink.finish()
            sink.close()
    return rows


def _evaluate(job: Job, sink: Sink) -> int:
    kept = [field.name for field in job.kept]
    numbers = list(job.inputs) if job.carries else list(dict.fromkeys([*job.inputs, *kept]))
    done = 0
    progress = Progress(job.source.total, job.source.unit)
    try:
        for chunk in job.source.chunks(numbers, kept if job.carries else (), job.rows):
            columns = [chunk.numbers[name] for name in job.inputs]
            outputs = job.function.call_batch(columns, n=None if columns else chunk.rows)
            copied = chunk.carried if job.carries else chunk.numbers
            with _writing(job.target):
                sink.write([*(copied[name] for name in kept), *outputs], chunk.rows)
            done += chunk.rows
            progress.reached(chunk.position)
    finally:
        progress.close()
    return done


def _output_fields(job: Job) -> list[Field]:
    dtypes = job.function.program.output_dtypes
    return [Field(name=n, dtype=np.dtype(t)) for n, t in zip(job.names, dtypes, strict=True)]


@contextlib.contextmanager
def _writing(target: str) -> Iterator[None]:
    """Name the output file in what the system raises; standard output is the caller's."""
    try:
        yield
    except OSError as error:
        if target == "-":
            raise
        raise unwritable(target, error) from None


@contextlib.contextmanager
def _termination_as_exit() -> Iterator[None]:
    """Let SIGTERM unwind, so that the temporary file goes; only the main thread may ask for it."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
