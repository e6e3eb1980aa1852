"""Dask arrays in, Dask arrays out: the function is mapped over the blocks.

Shapes, dtypes and meta of the results are known at once and nothing is computed. The graph holds
the function as its program, and a worker compiles it once. Dask's scheduler does the rest: what is
lost with a worker is computed again by another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.conversion import check_dtype, read
from alkahest.errors import InputError
from alkahest.masking import check_condition
from alkahest.rules import batch_shape, check_count

if TYPE_CHECKING:
    from alkahest.compiled import CompiledFn
    from alkahest.derivative_outputs import Layout
    from alkahest.rules import Rules

# Untyped, and not among our requirements: whoever comes here has an array of it.
da: Any = import_module("dask.array")


def evaluate(
    function: CompiledFn,
    columns: Sequence[Any],
    *,
    rules: Rules,
    layout: Layout | None,
    single: bool,
    broadcast: bool,
    where: Any = True,
) -> Any:
    """The results as Dask arrays, in chunks of the columns' common refinement.

    Args:
        function: what is evaluated.
        columns: one per input, at least one of them (or ``where``) a Dask array.
        rules: the program's.
        layout: how the outputs form value and derivatives, or None.
        single: whether the one output is returned itself instead of a tuple.
        broadcast: True for ufunc broadcasting, False for a batch.
        where: as for a call.

    Raises:
        InputError: E-INPUT-001, 002, 005 for what does not fit, as for NumPy arrays.
        InputTypeError: E-INPUT-003, 004.
    """
    check_count(columns, rules)
    arrays = [_checked(value, position, rules) for position, value in enumerate(columns)]
    masked = where is not True
    condition = where if isinstance(where, da.Array) else np.asarray(where)
    shapes = [array.shape for array in arrays]
    # Chunks whose lengths are unknown, as those of a data frame, are compared by Dask.
    if not any(math.isnan(size) for shape in (*shapes, condition.shape) for size in shape):
        shape = batch_shape(shapes, rules, broadcast=broadcast, n=None, of_out=None)
        check_condition(condition, shape)
    if masked:
        arrays.append(condition)
    lazy = next(array for array in arrays if isinstance(array, da.Array))
    ndim = max(array.ndim for array in arrays)

    def meta(dtype: Any, axes: int = 0) -> Any:
        return da.utils.meta_from_array(lazy._meta, ndim=ndim + axes, dtype=dtype)

    def evaluated(dtype: Any, meta: Any) -> Any:
        return da.blockwise(
            _evaluate_block,
            _axes(ndim),
            *_with_axes(arrays),
            function=function,
            masked=masked,
            dtype=dtype,
            meta=meta,
            token="alkahest",
        )

    if single and layout is None:
        (dtype,) = rules.outputs
        return evaluated(dtype, meta(dtype))
    # Its blocks are tuples of arrays: one evaluation serves all results.
    blocks = evaluated(object, np.empty((0,) * ndim, dtype=object))
    results: list[tuple[tuple[int, ...], Any]]
    if layout is None:
        results = [((), dtype) for dtype in rules.outputs]
    else:
        like = layout.allocate(0, rules.outputs)
        results = [(head, a.dtype) for head, a in zip(layout.heads, like, strict=True)]
    return tuple(
        da.map_blocks(
            _pick,
            blocks,
            which=which,
            dtype=dtype,
            meta=meta(dtype, len(head)),
            new_axis=list(range(len(head))) or None,
            chunks=(*((size,) for size in head), *blocks.chunks),
        )
        for which, (head, dtype) in enumerate(results)
    )


def _axes(ndim: int) -> tuple[int, ...]:
    """Axes by number, counted from the last one: so they broadcast."""
    return tuple(range(ndim))[::-1]


def _with_axes(arrays: Sequence[Any]) -> list[Any]:
    """The arguments of ``blockwise``: each array and its axes; numbers go to every block."""
    pairs: list[Any] = []
    for array in arrays:
        if isinstance(array, da.Array):
            pairs += [array, _axes(array.ndim)]
        elif array.ndim:
            pairs += [da.from_array(array), _axes(array.ndim)]
        else:
            pairs += [array, None]
    return pairs


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options of a call that mean nothing where Dask's scheduler computes, and later.

    Raises:
        InputError: E-INPUT-009 for ``out``, E-INPUT-011 for any other that is not None.
    """
    for name, value in options.items():
        if name == "out" and value is not None:
            raise InputError(
                "E-INPUT-009",
                "out= has memory to be filled now, and Dask arrays are computed later",
                remediation="Leave out= out; dask.array.store(result, target) fills memory or files.",
            )
        if value is not None:
            raise InputError(
                "E-INPUT-011",
                f"{name}= has no meaning for Dask arrays, which Dask's scheduler computes",
                remediation=f"Leave {name}= out.",
            )


def _checked(value: Any, position: int, rules: Rules) -> Any:
    """A column as a Dask array, or as a NumPy array of the program's dtype."""
    label = rules.label(position)
    if isinstance(value, da.Array):
        check_dtype(value.dtype, label, rules.dtype, rules.casting)
        return value
    return read(value, label, rules.dtype, rules.casting).values


def _evaluate_block(*blocks: Any, function: CompiledFn, masked: bool) -> Any:
    """One block; on the host by one thread, since Dask has a thread for every processor."""
    function.settle()
    columns = blocks[:-1] if masked else blocks
    options: dict[str, Any] = {"where": blocks[-1]} if masked else {}
    on_host = all(isinstance(column, (np.ndarray, np.generic)) for column in columns)
    if on_host and function.runs_on_host:
        options["threads"] = 1
    return function(*columns, **options)


def _pick(results: tuple[Any, ...], *, which: int) -> Any:
    return results[which]


__all__ = ["check_options", "evaluate"]
