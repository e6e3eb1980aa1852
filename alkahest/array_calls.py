"""One call with arrays of a library that the backend has named: they stay what and where they are.

The rules are those of columns in host memory (:mod:`alkahest.columns`), with the same codes. What
differs: nothing looks at elements, so the arrays may be those of a function that is being traced,
and the results are new arrays of the library. Conversion, broadcasting and the arrays of derivatives
are made by the functions that the array API standard gives every library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.arguments import type_name
from alkahest.array_libraries import library_of
from alkahest.conversion import device_of, dtype_on_device, read
from alkahest.errors import InputError, InputTypeError, PluginError
from alkahest.plugin import ArrayBatch
from alkahest.rules import batch_shape, check_count, check_integers

if TYPE_CHECKING:
    from alkahest.derivative_outputs import Layout
    from alkahest.device_calls import DeviceCall
    from alkahest.plugin import Outcome
    from alkahest.rules import Rules


@attrs.frozen(kw_only=True, eq=False)
class Prepared:
    """The columns of a call, converted and broadcast, and what is to be made of the outputs.

    Attributes:
        batch: what the backend evaluates.
        rules: the program's.
        layout: how the outputs form value, gradient and Hessian, or None.
        library: the functions of the array API standard.
    """

    batch: ArrayBatch
    rules: Rules
    layout: Layout | None
    library: Any

    @property
    def n(self) -> int:
        """Number of points."""
        return math.prod(self.batch.shape)

    def finish(self, outcome: Outcome) -> tuple[Any, ...]:
        """One array per result.

        Raises:
            PluginError: E-PLUGIN-003 where the outputs are not what was promised.
        """
        shapes = [tuple(output.shape) for output in outcome.outputs]
        expected = len(self.rules.outputs)
        if shapes != [self.batch.shape] * expected:
            raise PluginError(
                "E-PLUGIN-003",
                f"backend {self.rules.backend!r} returned outputs of shapes {shapes} for "
                f"{expected} outputs of shape {self.batch.shape}",
            )
        if self.layout is None:
            return outcome.outputs
        return _with_derivatives(outcome.outputs, self.layout, self.library, self.batch.shape)


def first_of(columns: Sequence[Any], libraries: tuple[str, ...]) -> Any:
    """The first of ``columns`` whose class comes from one of ``libraries``, or None."""
    return next((value for value in columns if _is_of(value, libraries)), None)


def prepare(call: DeviceCall, libraries: tuple[str, ...]) -> Prepared:
    """Check everything about a call, and convert its columns.

    Args:
        call: what the caller passed; one of its columns is an array of ``libraries``.
        libraries: :attr:`alkahest.plugin.BackendInfo.arrays`.

    Raises:
        InputError: E-INPUT-001, 002, 005, 006, 011 as :func:`alkahest.columns.prepare`; E-INPUT-009
            and 011 for ``out=`` and ``stream=``, which such calls do not have.
        InputTypeError: E-INPUT-003, 004 for columns that do not convert, and results that the
            library would round; E-INPUT-010 for a column that is elsewhere.
    """
    rules = call.rules
    check_count(call.columns, rules)
    check_integers(call.n, call.threads)
    first = first_of(call.columns, libraries)
    _refuse_targets(call, first)
    _check_precision(first, rules)
    columns = [
        value if _is_of(value, libraries) else _host_values(value, rules.label(i), rules)
        for i, value in enumerate(call.columns)
    ]
    for i, column in enumerate(columns):
        dtype_on_device(column.dtype, rules.label(i), rules.dtype, rules.casting)
    shapes = [tuple(column.shape) for column in columns]
    shape = batch_shape(shapes, rules, broadcast=call.broadcast, n=call.n, of_out=None)
    library = first.__array_namespace__()
    dtype = getattr(library, rules.dtype.name)
    arrays = [
        library.broadcast_to(library.asarray(column, dtype=dtype), shape) for column in columns
    ]
    batch = ArrayBatch(columns=tuple(arrays), shape=shape)
    return Prepared(batch=batch, rules=rules, layout=call.layout, library=library)


def _is_of(value: object, libraries: tuple[str, ...]) -> bool:
    return any(base.__module__.partition(".")[0] in libraries for base in type(value).__mro__)


def _refuse_targets(call: DeviceCall, first: Any) -> None:
    name = type_name(first)
    if call.out is not None:
        raise InputError(
            "E-INPUT-009",
            f"the results for a {name} are new arrays, and out= was given",
            remediation="Leave out= out, or pass NumPy arrays.",
        )
    if call.stream is not None or call.device == "all":
        option = "stream=" if call.stream is not None else 'device="all"'
        raise InputError(
            "E-INPUT-011",
            f"a {name} is worked on where and when its library decides, and {option} was given",
            remediation=f"Leave {option} out.",
        )


def _check_precision(first: Any, rules: Rules) -> None:
    library = library_of(first)
    for dtype in (rules.dtype, *rules.outputs):
        held = library.holds(library.module, dtype.name)
        if held != dtype.name:
            raise InputTypeError(
                "E-INPUT-004",
                f"the program is of {dtype}, and {library.name} would hold that as {held}",
                remediation=f"Switch 64-bit types on in {library.name}, or compile for {held}.",
            )


def _host_values(value: Any, label: str, rules: Rules) -> Any:
    place = device_of(value)
    if place is not None:
        raise InputTypeError(
            "E-INPUT-010",
            f"{label} is a {type(value).__name__} on a device ({place}), another column is not",
            remediation="Pass arrays of one library.",
        )
    return read(value, label, rules.dtype, rules.casting).values


def _with_derivatives(
    outputs: Sequence[Any], layout: Layout, library: Any, shape: tuple[int, ...]
) -> tuple[Any, ...]:
    """Value, gradient and Hessian, each stacked from its rows."""
    rows: list[dict[tuple[int, ...], Any]] = [{} for _ in layout.heads]
    for (which, index), output in zip(layout.places, outputs, strict=True):
        rows[which][index] = output
        if which == 2:
            rows[which][(*index[:-2], index[-1], index[-2])] = output
    results = []
    for head, found in zip(layout.heads, rows, strict=True):
        ordered = [found[index] for index in sorted(found)]
        whole = library.stack(ordered) if ordered else library.zeros((0,))
        results.append(library.reshape(whole, (*head, *shape)))
    return tuple(results)


__all__ = ["Prepared", "first_of", "prepare"]
