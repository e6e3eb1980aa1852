"""What a program asks of the columns of a call, and the checks that need no column's elements.

They are the same for columns in host memory and on a device. Messages name a column by position and
input name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.errors import InputError

if TYPE_CHECKING:
    from alkahest.program import Program


@attrs.frozen
class Rules:
    """What a program asks of its columns.

    Attributes:
        names: name of every input.
        dtype: dtype of every column.
        outputs: dtype of every output.
        casting: ``"safe"`` or ``"same_kind"``.
        backend: name of the backend, for messages.
        placement: where the backend reads columns without a copy.
    """

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    outputs: tuple[np.dtype[Any], ...]
    casting: str
    backend: str
    placement: str = "host"

    @classmethod
    def of(cls, program: Program, *, casting: str, backend: str, placement: str = "host") -> Rules:
        """The rules of ``program``."""
        return cls(
            names=program.inputs,
            dtype=np.dtype(program.dtype),
            outputs=tuple(np.dtype(name) for name in program.output_dtypes),
            casting=casting,
            backend=backend,
            placement=placement,
        )

    @property
    def types(self) -> str:
        """Columns and outputs by NumPy's letters, as in a ufunc's ``types``: ``"dd->d"``."""
        return f"{self.dtype.char * len(self.names)}->{''.join(d.char for d in self.outputs)}"

    def label(self, position: int) -> str:
        """How messages name a column."""
        return f"column {position} ({self.names[position]!r})"


def check_count(columns: Sequence[Any], rules: Rules) -> None:
    """Refuse a wrong number of columns, with E-INPUT-001."""
    expected, got = len(rules.names), len(columns)
    if got == expected:
        return
    names = ", ".join(rules.names) or "none"
    first = columns[0] if got else None
    packed = got == 1 and isinstance(first, (list, tuple, np.ndarray)) and len(first) == expected
    raise InputError(
        "E-INPUT-001",
        f"expected {expected} columns ({names}), got {got}",
        remediation=(
            "Unpack the columns: fn(*columns), or use fn.call_batch(columns)." if packed else None
        ),
    )


def check_integers(n: Any, threads: Any) -> None:
    """Refuse an ``n`` or ``threads`` that is no such number, with E-INPUT-011."""
    for name, value, least in (("n", n, 0), ("threads", threads, 1)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(
                "E-INPUT-011",
                f"{name} must be an integer of at least {least}, got {value!r}",
                remediation=f"Pass {name}={least} or more, or leave it out.",
            )


def batch_shape(
    shapes: Sequence[tuple[int, ...]],
    rules: Rules,
    *,
    broadcast: bool,
    n: int | None,
    of_out: tuple[int, ...] | None,
) -> tuple[int, ...]:
    """The shape of the points of a call.

    Args:
        shapes: of the columns.
        rules: name the columns.
        broadcast: as for :func:`prepare`.
        n: the number of points, where it was given.
        of_out: shape of the first output array, where one was given.

    Raises:
        InputError: E-INPUT-002, 005, 006; see :func:`prepare`.
    """
    if broadcast:
        return _broadcast_shape(shapes, rules, n)
    return (_batch_length(shapes, rules, n, of_out),)


def _batch_length(
    shapes: Sequence[tuple[int, ...]],
    rules: Rules,
    n: int | None,
    of_out: tuple[int, ...] | None,
) -> int:
    """The one length of 1-D columns; scalars have none."""
    length: int | None = None
    source = ""
    for position, shape in enumerate(shapes):
        if len(shape) > 1:
            raise InputError("E-INPUT-005", f"{rules.label(position)} has shape {shape}, not 1-D")
        if not shape:
            continue
        if length is None:
            (length,), source = shape, rules.label(position)
        elif shape[0] != length:
            raise InputError(
                "E-INPUT-002",
                f"{rules.label(position)} has {shape[0]} rows, {source} has {length}",
            )
    if length is None:
        return _length_without_columns(n, of_out)
    if n is not None and length != n:
        raise InputError(
            "E-INPUT-006",
            f"{source} has {length} rows, n={n} was given",
            remediation=_LEAVE_OUT_N,
        )
    return length


def _length_without_columns(n: int | None, of_out: tuple[int, ...] | None) -> int:
    if n is not None:
        return int(n)
    if of_out is not None and len(of_out) == 1:
        return of_out[0]
    raise InputError("E-INPUT-006", "no column tells the number of points of this batch")


def _broadcast_shape(
    shapes: Sequence[tuple[int, ...]], rules: Rules, n: int | None
) -> tuple[int, ...]:
    try:
        shape = shapes[0] if len(set(shapes)) == 1 else np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(f"{rules.label(i)} {s}" for i, s in enumerate(shapes))
        raise InputError(
            "E-INPUT-002",
            f"shapes do not broadcast: {shown}",
            remediation="Give the columns shapes that broadcast as NumPy's do.",
        ) from None
    if n is None:
        return shape
    if shape not in ((), (n,)):
        raise InputError(
            "E-INPUT-006",
            f"the columns have shape {shape}, n={n} was given",
            remediation=_LEAVE_OUT_N,
        )
    return (int(n),)


def repeats_memory(strides: Sequence[int], shape: Sequence[int], size: int) -> bool:
    """Whether two elements of one array share memory, or its strides do not show that none do.

    Args:
        strides: bytes per dimension, of any sign.
        shape: number of elements per dimension.
        size: bytes of an element.
    """
    if 0 in shape:
        return False
    steps = sorted((abs(s), length) for s, length in zip(strides, shape, strict=True) if length > 1)
    for step, length in steps:
        if step < size:
            return True
        size += step * (length - 1)
    return False


_LEAVE_OUT_N = "Leave out n=: the columns tell the length. Or pass columns of that length."

__all__ = ["Rules", "batch_shape", "check_count", "check_integers", "repeats_memory"]
