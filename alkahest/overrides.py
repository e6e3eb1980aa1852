"""Columns of other libraries that take calls over, as they do with NumPy's ufuncs.

A call on a Dask array becomes a Dask array (:mod:`alkahest.dask_arrays`). Any other object whose
type has ``__array_ufunc__``, such as a pandas Series or an xarray DataArray, is handed the function
in place of a ufunc: it unpacks its numbers, calls the function on them and wraps the result up
(NumPy's NEP 13). Arrays that share their memory through DLPack need none of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alkahest.arguments import type_name
from alkahest.errors import InputTypeError

if TYPE_CHECKING:
    from alkahest.compiled import CompiledFn

_PLAIN = (np.ndarray, np.generic, int, float, complex, list, tuple)


def call(
    function: CompiledFn,
    columns: Sequence[Any],
    out: Any,
    where: Any,
    n: int | None,
    stream: Any,
    threads: int | None,
) -> Any:
    """The result of the first column that takes the call over, NotImplemented where none does.

    Args:
        function: what is called.
        columns: one per input.
        out, where, n, stream, threads: as for the call.

    Raises:
        InputTypeError: E-INPUT-003 where columns want to take it over, and all decline.
        Exception: what the column's library raises.
    """
    takers = [value for value in columns if type(value) not in _PLAIN and _takes_over(value)]
    if not takers:
        return NotImplemented
    options = {"n": n, "stream": stream, "threads": threads, "out": out}
    given = {name: value for name, value in options.items() if value is not None}
    if out is not None:
        given["out"] = tuple(out) if isinstance(out, (list, tuple)) else (out,)
    if where is not True:
        given["where"] = where
    for taker in takers:
        result = taker.__array_ufunc__(function, "__call__", *columns, **given)
        if result is not NotImplemented:
            return result
    kinds = ", ".join(dict.fromkeys(map(type_name, takers)))
    raise InputTypeError(
        "E-INPUT-003",
        f"{kinds} has a ufunc protocol of its own, which declines this function",
        remediation="Pass the numbers in it as NumPy arrays.",
    )


def _takes_over(value: Any) -> bool:
    method = getattr(type(value), "__array_ufunc__", None)
    if method is None or method is np.ndarray.__array_ufunc__:
        return False
    return isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__")


__all__ = ["call"]
