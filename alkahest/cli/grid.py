"""Points of a grid instead of a data file: ``--grid x=0:1:1000 --grid y=-1:1:50``.

Several axes make their product, the last one varying fastest. Points are computed chunk by chunk,
so the grid may be larger than memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.cli.tables import Chunk
from alkahest.errors import AlkahestError, InputError
from alkahest.expr import ExprPool, eval_expr, parse

MOST_POINTS = 2**63 - 1


@attrs.frozen(kw_only=True)
class Axis:
    """``count`` evenly spaced values from ``start`` to ``stop``, both included."""

    name: str
    start: float
    stop: float
    count: int

    def values(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values at ``indices``, bit for bit those of :func:`numpy.linspace`."""
        step = (self.stop - self.start) / (self.count - 1) if self.count > 1 else 0.0
        values = indices.astype(np.float64) * step + self.start
        if self.count > 1:
            values[indices == self.count - 1] = self.stop
        return values


def parse_axis(text: str) -> Axis:
    """Read ``NAME=START:STOP:COUNT``; START and STOP may be constant expressions like ``2*pi``.

    Raises:
        InputError: E-INPUT-011 naming the part that is wrong.
    """
    name, equals, rest = text.partition("=")
    parts = rest.split(":")
    if not equals or not name.strip() or len(parts) != 3:
        raise _refusal(text, "it is not of the form NAME=START:STOP:COUNT")
    count = parts[2].strip()
    if not (count.isascii() and count.isdigit()) or int(count) < 1:
        raise _refusal(text, f"the count {count!r} is not a whole number from 1 on")
    start, stop = (_bound(text, part.strip()) for part in parts[:2])
    if not math.isfinite(stop - start):
        raise _refusal(text, "the axis is longer than the largest float64")
    return Axis(name=name.strip(), start=start, stop=stop, count=int(count))


def _bound(text: str, part: str) -> float:
    try:
        value = eval_expr(parse(part, ExprPool()), {})
    except AlkahestError as error:
        raise _refusal(text, f"{part!r} is not a number: {error.message}") from None
    if isinstance(value, (bool, complex)) or not math.isfinite(value):
        raise _refusal(text, f"{part!r} is {value}, not a finite real number")
    return float(value)


def _refusal(text: str, reason: str) -> InputError:
    return InputError(
        "E-INPUT-011",
        f"--grid {text}: {reason}",
        remediation="For instance: --grid x=0:1:1001",
    )


class GridSource:
    """The product of axes as a table of float64 columns."""

    container = "grid"
    unit = "rows"

    def __init__(self, axes: Sequence[Axis]) -> None:
        names = [axis.name for axis in axes]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    "E-INPUT-011",
                    f"--grid names the axis {name!r} more than once",
                    remediation="Give every axis its own name.",
                )
        self.total = math.prod(axis.count for axis in axes)
        if self.total > MOST_POINTS:
            raise InputError(
                "E-INPUT-011",
                f"--grid asks for {self.total} points, more than {MOST_POINTS}",
                remediation="Use fewer points.",
            )
        self.columns = tuple(names)
        self._axes = {axis.name: axis for axis in axes}

    def number_type(self, name: str) -> np.dtype[Any]:
        """float64."""
        return np.dtype(np.float64)

    def carried_type(self, name: str) -> None:
        """Grids carry nothing: no file has their container."""

    def chunks(self, numbers: Sequence[str], carried: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See :meth:`alkahest.cli.tables.Source.chunks`."""
        repeats = {}
        repeat = 1
        for name in reversed(self.columns):
            repeats[name] = repeat
            repeat *= self._axes[name].count
        for start in range(0, self.total, rows):
            stop = min(start + rows, self.total)
            points = np.arange(start, stop, dtype=np.int64)
            yield Chunk(
                rows=stop - start,
                numbers={
                    name: self._axes[name].values(points // repeats[name] % self._axes[name].count)
                    for name in numbers
                },
                carried={},
                position=stop,
            )

    def close(self) -> None:
        """Nothing to let go of."""
