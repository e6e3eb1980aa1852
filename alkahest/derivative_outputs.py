"""Value, gradient and Hessian as the outputs of one program, and as arrays of the results.

A program's outputs are the values, then the first derivatives, then the second ones on and above
the diagonal; what they have in common is computed once. The results are one array each:

    one expression      m expressions
    value    (*S,)      (m, *S)
    gradient (k, *S)    (m, k, *S)
    Hessian  (k, k, *S) (m, k, k, *S)

for k variables and points of shape S. The program writes straight into rows of these arrays; only
the half of a Hessian below the diagonal is copied from the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

import attrs

from alkahest.errors import InputError
from alkahest.expr import gradient, jacobian

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from alkahest.columns import Prepared
    from alkahest.expr import Expr
    from alkahest.plugin import Batch

    Index = tuple[int, ...]

_NAMES = ("value", "gradient", "Hessian")


def with_derivatives(
    exprs: Sequence[Expr], variables: Sequence[Expr], order: int
) -> tuple[Expr, ...]:
    """``exprs`` and their derivatives up to ``order``, 1 or 2, in the order of the outputs.

    Raises:
        DiffError: E-DIFF-001 for a condition, or an operation that has no derivative.
    """
    first = jacobian(exprs, variables)
    found = [*exprs, *(entry for row in first for entry in row)]
    if order == 2:
        for row in first:
            for i, entry in enumerate(row):
                found += gradient(entry, variables[i:])
    return tuple(found)


@attrs.frozen(slots=False)
class Layout:
    """Where each output of a program with derivatives goes.

    Attributes:
        order: 1 or 2, the highest derivative.
        size: number of variables.
        count: number of expressions, or None for one that was not in a list.
    """

    order: int
    size: int
    count: int | None = None

    @property
    def heads(self) -> tuple[tuple[int, ...], ...]:
        """The axes before those of the points, for each of the arrays."""
        first = () if self.count is None else (self.count,)
        return tuple(first + (self.size,) * k for k in range(self.order + 1))

    @cached_property
    def places(self) -> list[tuple[int, Index]]:
        """For each output of the program: which array, and which row of it."""
        found: list[tuple[int, Index]] = []
        for k in range(self.order + 1):
            ranks = combinations_with_replacement(range(self.size), k)
            found += [(k, e + rank) for e, rank in product(self._expressions(), list(ranks))]
        return found

    def allocate(self, n: int, dtypes: Sequence[np.dtype[Any]]) -> tuple[NDArray[Any], ...]:
        """New arrays for ``n`` points; the points are the last axis.

        Args:
            n: number of points.
            dtypes: of the program's outputs. Rows of one array may differ: a derivative of a
                complex expression can be a real constant.
        """
        import numpy as np

        kinds: list[list[np.dtype[Any]]] = [[] for _ in self.heads]
        for (which, _), dtype in zip(self.places, dtypes, strict=True):
            kinds[which].append(dtype)
        # Without a variable there is no row to take a dtype from.
        common = [np.result_type(*(found or kinds[0])) for found in kinds]
        return tuple(
            np.empty((*head, n), dtype) for head, dtype in zip(self.heads, common, strict=True)
        )

    def rows(
        self, arrays: Sequence[NDArray[Any]], dtypes: Sequence[np.dtype[Any]]
    ) -> tuple[NDArray[Any], ...]:
        """A view for each output of the program: of the real part, for a real one among complex."""
        import numpy as np

        return tuple(
            np.real(row) if _is_partial(row, dtype) else row
            for row, dtype in self._rows(arrays, dtypes)
        )

    def complete(self, arrays: Sequence[NDArray[Any]], dtypes: Sequence[np.dtype[Any]]) -> None:
        """Fill in what the program does not write, once the rows are written."""
        import numpy as np

        for row, dtype in self._rows(arrays, dtypes):
            if _is_partial(row, dtype):
                np.imag(row)[...] = 0
        if self.order == 2:
            for e, (i, j) in product(self._expressions(), list(combinations(range(self.size), 2))):
                arrays[2][(*e, j, i)] = arrays[2][(*e, i, j)]

    def check(self, out: Any) -> tuple[NDArray[Any], ...]:
        """The caller's arrays, if they are as many as there are results and have their axes.

        Shapes of the points and dtypes are left to :func:`alkahest.columns.prepare`.

        Raises:
            InputError: E-INPUT-009.
        """
        import numpy as np

        arrays = tuple(out) if isinstance(out, (list, tuple)) else (out,)
        names = _NAMES[: self.order + 1]
        if len(arrays) != len(names):
            raise InputError("E-INPUT-009", f"out has {len(arrays)} arrays for {', '.join(names)}")
        for array, head, name in zip(arrays, self.heads, names, strict=True):
            if not isinstance(array, np.ndarray):
                kind = type(array).__name__
                raise InputError("E-INPUT-009", f"out for the {name} is a {kind}, not an array")
            if array.shape[: len(head)] != head:
                shown = ", ".join(map(str, head))
                raise InputError(
                    "E-INPUT-009",
                    f"out for the {name} has shape {array.shape}; its first axes are ({shown})",
                )
        return arrays

    def _expressions(self) -> list[Index]:
        return [()] if self.count is None else [(e,) for e in range(self.count)]

    def _rows(
        self, arrays: Sequence[NDArray[Any]], dtypes: Sequence[np.dtype[Any]]
    ) -> Iterator[tuple[NDArray[Any], np.dtype[Any]]]:
        for (which, index), dtype in zip(self.places, dtypes, strict=True):
            # The dots keep a view where no axis is left, for a single number.
            where: tuple[Any, ...] = (*index, ...)
            yield arrays[which][where], dtype


def _is_partial(row: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    return row.dtype.kind == "c" and dtype.kind != "c"


def evaluated(
    layout: Layout,
    prepared: Prepared,
    dtypes: Sequence[np.dtype[Any]],
    run: Callable[[Batch], tuple[NDArray[Any], ...]],
) -> tuple[Any, ...]:
    """Value and derivatives in new arrays, which ``run`` writes row by row.

    Args:
        layout: of the program.
        prepared: the call.
        dtypes: of the program's outputs.
        run: evaluates a batch.
    """
    arrays = layout.allocate(prepared.batch.n, dtypes)
    rows = layout.rows(arrays, dtypes)
    outputs = run(attrs.evolve(prepared.batch, out=rows))
    for row, values in zip(rows, outputs, strict=True):
        if values is not row:
            row[...] = values
    layout.complete(arrays, dtypes)
    return tuple(_finished(array, prepared) for array in arrays)


def _finished(array: NDArray[Any], prepared: Prepared) -> Any:
    """A result in the caller's shape and kind; the last axis of ``array`` are the points."""
    shaped = array.reshape((*array.shape[:-1], *prepared.shape))
    if prepared.listed:
        return shaped.tolist()
    return shaped[()] if prepared.back is None else prepared.back(shaped)


__all__ = ["Layout", "evaluated", "with_derivatives"]
