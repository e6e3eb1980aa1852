"""The results of a call on a device: checked where the caller gave arrays, made where not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from alkahest.array_libraries import dtype_name
from alkahest.columns import overlap
from alkahest.device_columns import as_host_array, describe_allocated, row
from alkahest.errors import InputError, InputTypeError
from alkahest.plugin import DeviceColumn
from alkahest.rules import repeats_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.array_libraries import Library
    from alkahest.derivative_outputs import Layout
    from alkahest.plugin import DeviceEvaluator
    from alkahest.rules import Rules


def as_tuple(out: Any) -> tuple[Any, ...] | None:
    """``out=`` as a tuple of arrays, or None."""
    if out is None:
        return None
    return tuple(out) if isinstance(out, (list, tuple)) else (out,)


@attrs.frozen(kw_only=True, eq=False)
class DeviceOutputs:
    """What the results of a program look like on a device.

    Attributes:
        rules: the program's.
        layout: how the outputs form value, gradient and Hessian, or None: one array each.
        library: whose arrays the results are.
    """

    rules: Rules
    layout: Layout | None
    library: Library

    @property
    def heads(self) -> tuple[tuple[int, ...], ...]:
        """The axes before those of the points, for each result."""
        return ((),) * len(self.rules.outputs) if self.layout is None else self.layout.heads

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Of each result."""
        if self.layout is None:
            return list(self.rules.outputs)
        found = dict[int, list[np.dtype[Any]]]()
        for (which, _), dtype in zip(self.layout.places, self.rules.outputs, strict=True):
            found.setdefault(which, []).append(dtype)
        # Without a variable there is no row to take a dtype from.
        return [np.result_type(*found.get(k, found[0])) for k in range(len(self.heads))]

    def points(self, targets: Sequence[DeviceColumn] | None) -> tuple[int, ...] | None:
        """Shape of the points in the first of the caller's arrays."""
        return targets[0].shape[len(self.heads[0]) :] if targets else None

    def allocate(
        self, shape: tuple[int, ...], device: int, stream: int, evaluator: DeviceEvaluator
    ) -> tuple[tuple[Any, ...], list[DeviceColumn]]:
        """New arrays, and what they are: the library's, or where it makes none the evaluator's.

        Raises:
            InputTypeError: E-INPUT-004 where the library would round what it is given.
            AlkahestError: there is no memory, in the evaluator's words.
        """
        library = self.library
        module = library.module
        arrays: list[Any] = []
        columns: list[DeviceColumn] = []
        for head, dtype in zip(self.heads, self.dtypes, strict=True):
            name = dtype_name(dtype)
            held = library.holds(module, name)
            if held != name:
                raise InputTypeError(
                    "E-INPUT-004",
                    f"results are {name}, and {library.name} would hold them as {held}",
                    remediation=f"Switch 64-bit types on in {library.name}, or compile for {held}.",
                )
            whole = (*head, *shape)
            if library.empty is not None and library.describe is not None:
                arrays.append(library.empty(module, whole, name, device))
                columns.append(library.describe(module, arrays[-1]))
            else:
                arrays.append(evaluator.allocate(whole, name, device, stream))
                columns.append(describe_allocated(arrays[-1], device))
        return tuple(arrays), columns

    def handed_over(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arrays from :meth:`allocate`, evaluated into, as arrays of the library."""
        if self.library.empty is not None:
            return arrays
        return tuple(self.library.adopt(self.library.module, array) for array in arrays)

    def check(
        self,
        targets: Sequence[DeviceColumn],
        shape: tuple[int, ...],
        columns: Sequence[DeviceColumn | NDArray[Any]],
    ) -> None:
        """Refuse arrays of the caller that the results cannot be written to.

        Raises:
            InputError: E-INPUT-009 for a wrong number, dtype or shape, for what is read-only,
                repeats its memory, or shares memory with another array or with a column that it
                is not.
        """
        heads = self.heads
        if len(targets) != len(heads):
            raise InputError(
                "E-INPUT-009", f"out has {len(targets)} arrays for {len(heads)} results"
            )
        for i, (target, head, dtype) in enumerate(zip(targets, heads, self.dtypes, strict=True)):
            fault = _fault(target, dtype, (*head, *shape))
            if fault is not None:
                raise InputError("E-INPUT-009", f"out array {i} {fault}")
        if 0 in shape:
            return
        for (i, a), (j, b) in combinations(enumerate(targets), 2):
            if overlap(as_host_array(a), as_host_array(b)):
                raise InputError("E-INPUT-009", f"out array {j} shares memory with out array {i}")
        for i, target in enumerate(targets):
            for j, column in enumerate(columns):
                if isinstance(column, DeviceColumn) and _clash(column, target):
                    raise InputError(
                        "E-INPUT-009",
                        f"out array {i} shares memory with {self.rules.label(j)} and is not it",
                        remediation="Pass another array, or a copy of the column.",
                    )

    def rows(
        self, targets: Sequence[DeviceColumn]
    ) -> tuple[tuple[DeviceColumn, ...], tuple[int, ...]]:
        """Everything that is written, and which output of the program goes there.

        A second derivative off the diagonal goes to both of its places.

        Raises:
            InputTypeError: E-INPUT-004 for an array that holds real and complex derivatives.
        """
        if self.layout is None:
            return tuple(targets), tuple(range(len(targets)))
        dtypes = self.dtypes
        found: list[tuple[DeviceColumn, int]] = []
        for source, (which, index) in enumerate(self.layout.places):
            if dtypes[which] != self.rules.outputs[source]:
                raise InputTypeError(
                    "E-INPUT-004",
                    "some derivatives are real and others of the same array are complex, which is "
                    "not written on a device",
                    remediation="Copy the columns to host memory, or compile the derivatives.",
                )
            found.append((row(targets[which], index), source))
            if which == 2 and index[-1] != index[-2]:
                mirrored = (*index[:-2], index[-1], index[-2])
                found.append((row(targets[which], mirrored), source))
        return tuple(r for r, _ in found), tuple(source for _, source in found)


def _fault(target: DeviceColumn, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
    if target.dtype != dtype_name(dtype):
        return f"has dtype {target.dtype}, the output is {dtype}"
    if target.shape != shape:
        return f"has shape {target.shape}, the result has {shape}"
    if target.readonly:
        return "is read-only"
    if any(step % dtype.alignment for step in (target.pointer, *target.strides)):
        return f"is not aligned to the {dtype.alignment} bytes of {dtype}"
    if repeats_memory(target.strides, shape, dtype.itemsize):
        return f"repeats its memory: its strides are {target.strides}"
    return None


def _clash(column: DeviceColumn, target: DeviceColumn) -> bool:
    """Whether writing ``target`` changes elements of ``column`` that are still to be read.

    The very same array may stay: every point is read before it is written, by one thread.
    """
    same = column.pointer == target.pointer and column.dtype == target.dtype
    if same and column.strides == target.strides and column.shape == target.shape:
        return False
    return overlap(as_host_array(column), as_host_array(target))


__all__ = ["DeviceOutputs", "as_tuple"]
