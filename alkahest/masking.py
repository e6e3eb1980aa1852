"""Calls with ``where=``: only some of the points are evaluated, the others are left as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.columns import prepare
from alkahest.errors import InputError, InputTypeError
from alkahest.plugin import Batch

if TYPE_CHECKING:
    from alkahest.derivative_outputs import Layout
    from alkahest.rules import Rules


def evaluate_where(
    columns: Sequence[Any],
    where: Any,
    *,
    rules: Rules,
    layout: Layout | None,
    out: Any,
    n: int | None,
    stream: Any,
    threads: int | None,
    run: Callable[[Batch], tuple[NDArray[Any], ...]],
) -> tuple[Any, ...]:
    """The results of a call, computed where a condition holds.

    Elsewhere ``out`` keeps its values; without ``out`` there is nan, and False in conditions.

    Args:
        columns: one per input, of shapes that broadcast.
        where: bool, of a shape that broadcasts to the result's.
        rules: the program's.
        layout: how the outputs form value and derivatives, or None.
        out, n, stream, threads: as for a call.
        run: gives the program's outputs for a batch.

    Raises:
        InputError: E-INPUT-002 for a ``where`` of another shape; see :func:`prepare`.
        InputTypeError: E-INPUT-003 for a ``where`` that is not bool; see :func:`prepare`.
    """
    arrays = rows = out
    if layout is not None and out is not None:
        arrays = layout.check(out)
        rows = layout.rows(arrays, rules.outputs)
    prepared = prepare(
        columns, rules, broadcast=True, out=rows, n=n, stream=stream, threads=threads
    )
    condition = np.asarray(where)
    check_condition(condition, prepared.shape)
    chosen = np.broadcast_to(condition, prepared.shape)
    flat = chosen.reshape(-1)
    batch = attrs.evolve(
        prepared.batch,
        columns=tuple(column[flat] for column in prepared.batch.columns),
        n=int(np.count_nonzero(flat)),
        out=None,
    )
    found = run(batch)
    if layout is not None:
        found = _laid_out(layout, found, batch.n, rules)
    if arrays is None:
        targets = tuple(_blank(values, prepared.shape) for values in found)
    else:
        targets = tuple(arrays) if isinstance(arrays, (list, tuple)) else (arrays,)
    for target, values in zip(targets, found, strict=True):
        target[..., chosen] = values
    if arrays is not None:
        return targets
    if prepared.back is not None:
        return tuple(map(prepared.back, targets))
    return tuple(target[()] for target in targets)


def check_condition(condition: Any, shape: tuple[int, ...]) -> None:
    """Refuse a ``where`` that is no condition for results of ``shape``.

    Args:
        condition: an array.
        shape: of the results.

    Raises:
        InputTypeError: E-INPUT-003 for another dtype than bool.
        InputError: E-INPUT-002 for a shape that does not broadcast to ``shape``.
    """
    if condition.dtype != bool:
        raise InputTypeError(
            "E-INPUT-003",
            f"where has dtype {condition.dtype}, not bool",
            remediation="Pass a condition, for instance where=x > 0.",
        )
    padded = (1,) * (len(shape) - condition.ndim) + condition.shape
    if condition.ndim > len(shape) or any(
        given not in (1, size) for given, size in zip(padded, shape, strict=True)
    ):
        raise InputError(
            "E-INPUT-002",
            f"where has shape {condition.shape}, the result has {shape}",
            remediation="Give where a shape that broadcasts to the result's.",
        )


def _laid_out(
    layout: Layout, outputs: Sequence[NDArray[Any]], n: int, rules: Rules
) -> tuple[NDArray[Any], ...]:
    arrays = layout.allocate(n, rules.outputs)
    for row, values in zip(layout.rows(arrays, rules.outputs), outputs, strict=True):
        row[...] = values
    layout.complete(arrays, rules.outputs)
    return arrays


def _blank(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """For points of ``shape``, an array like ``values``, whose last axis are the chosen points."""
    nothing = False if values.dtype == bool else np.nan
    return np.full((*values.shape[:-1], *shape), nothing, values.dtype)


__all__ = ["check_condition", "evaluate_where"]
