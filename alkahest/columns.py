"""The columns of one call: checked before anything runs, by the same rules for every backend.

Order of the checks: number of columns, where they live, each column's type and dtype, their
lengths or shapes, the batch length, the output arrays. Messages name the column by position and
input name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.conversion import FromDLPack, device_of, read
from alkahest.errors import InputError, InputTypeError
from alkahest.plugin import Batch
from alkahest.rules import Rules, batch_shape, check_count, check_integers, repeats_memory

_OVERLAP_WORK = 10_000
"""Effort for the exact overlap test of two strided arrays; beyond it they count as overlapping."""


@attrs.frozen
class Prepared:
    """A checked call.

    Attributes:
        batch: what the backend gets.
        shape: shape of the results.
        out: the caller's output arrays, or None.
        listed: whether results are given back as lists.
        back: turns a NumPy array into the caller's kind of array, or None.
    """

    batch: Batch
    shape: tuple[int, ...]
    out: tuple[NDArray[Any], ...] | None
    listed: bool
    back: FromDLPack | None

    def finish(self, outputs: tuple[NDArray[Any], ...]) -> tuple[Any, ...]:
        """The results in the caller's shape and kind; ``out`` filled where it was given."""
        if self.out is not None:
            for given, flat in zip(self.out, outputs, strict=True):
                if not np.may_share_memory(given, flat):
                    given[...] = flat.reshape(self.shape)
            return self.out
        return tuple(self._wrap(flat) for flat in outputs)

    def _wrap(self, flat: NDArray[Any]) -> Any:
        if self.listed:
            return flat.tolist()
        if self.back is not None:
            return self.back(flat.reshape(self.shape))
        return flat.reshape(self.shape) if self.shape else flat[0]


def fast_batch(columns: Sequence[Any], rules: Rules, out: Any = None) -> Batch | None:
    """The batch when columns and outputs are plain 1-D arrays that need no work, else None."""
    if len(columns) != len(rules.names) or not columns:
        return None
    first = columns[0]
    if type(first) is not np.ndarray or first.ndim != 1:
        return None
    shape = first.shape
    for column in columns:
        if (
            type(column) is not np.ndarray
            or column.dtype is not rules.dtype
            or column.shape != shape
            or not column.flags.aligned
        ):
            return None
    if out is None:
        return Batch(columns=tuple(columns), n=shape[0])
    targets = tuple(out) if type(out) in (list, tuple) else (out,)
    if not _are_plain(targets, columns, rules, shape):
        return None
    return Batch(columns=tuple(columns), n=shape[0], out=targets)


def _are_plain(
    targets: Sequence[Any], columns: Sequence[Any], rules: Rules, shape: tuple[int, ...]
) -> bool:
    """Whether outputs are contiguous, and apart from each other and from the columns."""
    if len(targets) != len(rules.outputs):
        return False
    for target, dtype in zip(targets, rules.outputs, strict=True):
        if type(target) is not np.ndarray or target.dtype is not dtype or target.shape != shape:
            return False
        flags = target.flags
        if not (flags.writeable and flags.aligned and flags.c_contiguous):
            return False
    return _are_apart(targets, columns)


_FEW = 8
"""Targets that are compared with everything sooner than all addresses are sorted."""


def _are_apart(targets: Sequence[NDArray[Any]], columns: Sequence[NDArray[Any]]) -> bool:
    """Whether no target's bounds in memory meet those of another target or of a column."""
    if len(targets) <= _FEW:
        others = [*columns, *targets]
        return not any(
            np.may_share_memory(target, other)
            for i, target in enumerate(targets)
            for other in others[: len(columns) + i]
        )
    bounds = [(*_bounds(array), k < len(targets)) for k, array in enumerate((*targets, *columns))]
    bounds.sort()
    end_of_any = end_of_targets = 0
    for start, end, is_target in bounds:
        if start < (end_of_any if is_target else end_of_targets):
            return False
        end_of_any = max(end_of_any, end)
        if is_target:
            end_of_targets = end
    return True


def _bounds(array: NDArray[Any]) -> tuple[int, int]:
    """Addresses of the first byte of an array, and of the one after its last."""
    start = _address(array)
    if array.flags.c_contiguous:
        return start, start + array.nbytes
    low = high = 0
    for length, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min(0, (length - 1) * stride), high + max(0, (length - 1) * stride)
    return start + low, start + high + array.itemsize


def prepare(
    columns: Sequence[Any],
    rules: Rules,
    *,
    broadcast: bool,
    out: Any = None,
    n: int | None = None,
    stream: Any = None,
    threads: int | None = None,
) -> Prepared:
    """Check and convert the columns of one call.

    Args:
        columns: one per input.
        rules: the program's.
        broadcast: True for a call with ufunc broadcasting; False for a batch, where columns are
            1-D of one length or scalars.
        out: array or sequence of arrays for the outputs, or None.
        n: batch length, or None where the columns tell it.
        stream: passed on.
        threads: passed on; None or at least 1.

    Raises:
        InputError: E-INPUT-001 wrong number of columns, E-INPUT-002 lengths or shapes that do not
            fit, E-INPUT-005 a batch column that is not 1-D, E-INPUT-006 batch length missing or
            contradicted, E-INPUT-009 unusable ``out``, E-INPUT-011 bad ``n`` or ``threads``.
        InputTypeError: E-INPUT-003, 004 columns that do not convert, E-INPUT-010 columns on a
            device.
    """
    check_count(columns, rules)
    _check_devices(columns, rules)
    check_integers(n, threads)
    read_columns = [
        read(value, rules.label(i), rules.dtype, rules.casting) for i, value in enumerate(columns)
    ]
    shapes = [column.values.shape for column in read_columns]
    first = out[0] if isinstance(out, (list, tuple)) and out else out
    of_out = first.shape if isinstance(first, np.ndarray) else None
    shape = batch_shape(shapes, rules, broadcast=broadcast, n=n, of_out=of_out)
    flat = tuple(_spread(column.values, shape) for column in read_columns)
    size = math.prod(shape)
    given = None if out is None else _check_out(out, rules, shape)
    targets = None
    if given is not None:
        targets = tuple(_flat_target(array, size) for array in given)
        if not _are_apart(targets, flat):
            flat = tuple(_apart(column, targets) for column in flat)
    return Prepared(
        Batch(columns=flat, n=size, out=targets, stream=stream, threads=threads),
        shape,
        given,
        listed=not broadcast and bool(read_columns) and all(c.listed for c in read_columns),
        back=next((c.back for c in read_columns if c.back is not None), None),
    )


def _check_devices(columns: Sequence[Any], rules: Rules) -> None:
    places = [device_of(value) for value in columns]
    on_device = [i for i, place in enumerate(places) if place is not None]
    if not on_device:
        return
    position = on_device[0]
    kind = type(columns[position]).__name__
    message = f"{rules.label(position)} is a {kind} on a device ({places[position]})"
    on_host = [i for i, place in enumerate(places) if place is None]
    if on_host:
        message += f" while {rules.label(on_host[0])} is in host memory"
    here = "host memory" if rules.placement == "host" else f"host memory or on {rules.placement}"
    raise InputTypeError(
        "E-INPUT-010",
        f"{message}; backend {rules.backend!r} takes columns in {here}",
        remediation="Copy it to host memory first: column.get() of CuPy, column.cpu() of PyTorch.",
    )


def _spread(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """``values`` as a 1-D column; a scalar gets stride 0 instead of memory."""
    if values.shape == shape:
        return values if len(shape) == 1 else values.reshape(-1)
    if values.ndim == 0:
        return np.broadcast_to(values, (math.prod(shape),))
    return np.broadcast_to(values, shape).reshape(-1)


def _check_out(out: Any, rules: Rules, shape: tuple[int, ...]) -> tuple[NDArray[Any], ...]:
    arrays = tuple(out) if isinstance(out, (list, tuple)) else (out,)
    if len(arrays) != len(rules.outputs):
        raise InputError(
            "E-INPUT-009",
            f"out has {len(arrays)} arrays for {len(rules.outputs)} outputs",
            remediation="Pass one array per output.",
        )
    for i, (array, dtype) in enumerate(zip(arrays, rules.outputs, strict=True)):
        fault = _fault(array, dtype, shape)
        if fault is not None:
            fresh = f"np.empty({shape}, {dtype.name!r})"
            raise InputError(
                "E-INPUT-009",
                f"out array {i} {fault}",
                remediation=f"Pass a writeable array like {fresh}.",
            )
    if not _are_apart(arrays, ()):
        for i, j in itertools.combinations(range(len(arrays)), 2):
            if overlap(arrays[i], arrays[j]):
                raise InputError(
                    "E-INPUT-009",
                    f"out array {j} shares memory with out array {i}",
                    remediation="Pass arrays that do not overlap.",
                )
    return arrays


def _fault(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        return f"is a {type(array).__name__}, not a NumPy array"
    if array.dtype != dtype:
        return f"has dtype {array.dtype}, the output is {dtype}"
    if array.shape != shape:
        return f"has shape {array.shape}, the result has {shape}"
    if not array.flags.writeable:
        return "is read-only"
    if repeats_memory(array.strides, shape, dtype.itemsize):
        return f"repeats its memory: its strides are {array.strides}"
    return None


def _flat_target(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A 1-D view of ``array``, or a fresh array that :meth:`Prepared.finish` copies back."""
    if array.ndim == 1 and array.flags.aligned:
        return array
    flat = array.reshape(-1)
    if array.flags.aligned and np.may_share_memory(flat, array):
        return flat
    return np.empty(size, dtype=array.dtype)


def _apart(column: NDArray[Any], targets: tuple[NDArray[Any], ...]) -> NDArray[Any]:
    """``column``, copied if writing a target would change values still to be read.

    The very same array may stay: every backend reads a point before it writes that point.
    """
    for target in targets:
        if not np.may_share_memory(column, target):
            continue
        same = column.strides == target.strides and column.dtype == target.dtype
        if same and _address(column) == _address(target):
            continue
        if overlap(column, target):
            return column.copy()
    return column


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def overlap(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether the arrays share an element, or cannot cheaply be shown not to."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]  # stubs
    except np.exceptions.TooHardError:
        return True


__all__ = ["Prepared", "Rules", "fast_batch", "overlap", "prepare"]
