"""The linear algebra of one computation: what is reduced where, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

from alkahest.groebner.engine.reducers import (
    Checkpoint,
    Learner,
    Reducer,
    Whereabouts,
    failed_so_far,
    host_reducer,
    reducing,
    where_done,
)
from alkahest.groebner.engine.threads import threads_beside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.reduction import ReducedRows
    from alkahest.groebner.engine.symbolic import SymbolicMatrix


@attrs.define(eq=False)
class LinearAlgebra:
    """A reducer at work: every matrix goes where it is best reduced, and is counted.

    Attributes:
        reducer: what does it, apart from what it leaves to the host.
        planned: matrices left to the host by plan.
        on_gpu: of the others, and of replays: whether a GPU did them.
    """

    reducer: Reducer
    planned: int = attrs.field(init=False, default=0)
    on_gpu: list[bool] = attrs.field(init=False, factory=list)
    _failed_before: tuple[int, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # The reducer may have served earlier attempts and phases of the computation.
        self._failed_before = failed_so_far(self.reducer)

    @property
    def threads(self) -> int:
        """See :func:`~alkahest.groebner.engine.threads.threads_beside`."""
        return threads_beside(self.reducer)

    def echelon(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Checkpoint,
    ) -> ReducedRows:
        """See :class:`~alkahest.groebner.engine.reducers.Reducer`."""
        chosen = reducing(self.reducer, matrix)
        return self._done(chosen, chosen.echelon(matrix, coefficients, prime, seed, checkpoint))

    def echelon_with_rows(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        seed: int,
        checkpoint: Checkpoint,
    ) -> tuple[ReducedRows, NDArray[np.int64]]:
        """See :class:`~alkahest.groebner.engine.reducers.Learner`."""
        chosen = self._learner(matrix)
        reduced, rows = chosen.echelon_with_rows(matrix, coefficients, prime, seed, checkpoint)
        return self._done(chosen, reduced), rows

    def normal_forms(
        self,
        matrix: SymbolicMatrix,
        coefficients: NDArray[np.uint32],
        prime: int,
        checkpoint: Checkpoint,
        *,
        learning: bool,
    ) -> ReducedRows:
        """See :class:`~alkahest.groebner.engine.reducers.Reducer`.

        A run that is not recorded ends with this. It is then the reducer's own whatever its size,
        so that a device asked for by name is always tried.
        """
        if learning:
            chosen: Reducer = self._learner(matrix)
        else:
            chosen = self.reducer if self.reducer.on_gpu else reducing(self.reducer, matrix)
        return self._done(chosen, chosen.normal_forms(matrix, coefficients, prime, checkpoint))

    def done(self, on_gpu: bool) -> None:
        """Count a replay or a lifting."""
        self.on_gpu.append(on_gpu)

    def where(self) -> Whereabouts:
        """Fields of a report."""
        found = where_done(self.reducer, self.on_gpu, self._failed_before)
        found["planned_on_cpu"] += self.planned
        return found

    def _learner(self, matrix: SymbolicMatrix) -> Learner:
        """What takes the matrix of a run that is recorded."""
        chosen = reducing(self.reducer, matrix)
        return cast(Learner, chosen if hasattr(chosen, "echelon_with_rows") else host_reducer())

    def _done(self, chosen: Reducer, reduced: ReducedRows) -> ReducedRows:
        if self.reducer.on_gpu and not chosen.on_gpu:
            self.planned += 1
        else:
            self.on_gpu.append(reduced.on_gpu)
        return reduced
