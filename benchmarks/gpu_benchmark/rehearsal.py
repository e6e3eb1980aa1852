"""Compiling in another process first, for a compiler that no deadline in this one can stop.

The process is killed when it takes too long. What it compiled is in JAX's cache on disk, where this
process finds it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

from gpu_benchmark.timing import OutOfTime

STARTING = 120.0
"""Seconds that the process may take to import what it needs."""


class Rehearsal:
    """Calls a function in a process of its own, with a time limit for each call.

    Args:
        function: of a module's top level; called with the arguments of :meth:`within`, and once
            without any, to import what it needs.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._opened = ExitStack()
        self._connection: Connection | None = None

    def within(self, seconds: float, *arguments: Any) -> None:
        """Call the function.

        Raises:
            OutOfTime: it took longer; the process is gone, and the next call starts another.
            RuntimeError: it raised; with its message.
        """
        if self._connection is None:
            self._connection = self._started()
            self._answer(self._connection, STARTING)
        self._connection.send(arguments)
        self._answer(self._connection, seconds)

    def close(self) -> None:
        """End the process."""
        self._connection = None
        self._opened.close()

    def _started(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._function), daemon=True)
        process.start()
        theirs.close()
        self._opened.callback(process.join)
        self._opened.callback(process.kill)
        self._opened.callback(ours.close)
        return ours

    def _answer(self, connection: Connection, seconds: float) -> None:
        if not connection.poll(seconds):
            self.close()
            raise OutOfTime
        try:
            problem = connection.recv()
        except EOFError:
            self.close()
            raise RuntimeError("the compiling process died") from None
        if problem:
            raise RuntimeError(problem)


def _serve(connection: Connection, function: Callable[..., None]) -> None:
    """The process: one answer for every call, "" or what went wrong."""
    arguments: tuple[Any, ...] = ()
    while True:
        try:
            function(*arguments)
            connection.send("")
        except Exception as error:  # noqa: BLE001 - it is reported in the other process
            connection.send(f"{type(error).__name__}: {error}")
        try:
            arguments = connection.recv()
        except EOFError:
            return


def jax_compiled(row: str = "", points: int = 0, folder: str = "") -> None:
    """Compile a row for JAX into the cache in ``folder``; without a row, only import JAX."""
    import jax

    from gpu_benchmark import contenders, formulae

    contenders.use_jax_cache(folder)
    if not row:
        return
    (chosen,) = formulae.select([row])
    column = jax.ShapeDtypeStruct((points,), "float64")
    columns = [column] * len(chosen.program.inputs)
    contenders.jax_function(chosen.program).lower(*columns).compile()
