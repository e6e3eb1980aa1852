"""Residues of a result modulo more and more primes, as arrays or still where they were computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alkahest.groebner.engine.lift import Lift
    from alkahest.groebner.engine.reducers import KeptLanes, LiftingReducer, Reducer
    from alkahest.groebner.engine.trace import Images, KeptImages, KeptResidues


@attrs.define(eq=False)
class _Part:
    """Lucky lanes of one replay: an array with a column for each, or what a device keeps."""

    lanes: list[int]
    array: NDArray[np.uint32] | None = None
    kept: KeptResidues | None = None
    reducer: LiftingReducer | None = None

    def as_array(self) -> NDArray[np.uint32]:
        if self.array is None:
            assert self.kept is not None
            self.array = self.kept.columns(self.lanes)
            self.close()
        return self.array

    def close(self) -> None:
        if self.kept is not None:
            self.kept.close()
            self.kept = None


@attrs.define(eq=False)
class Columns:
    """A column of residues for each lucky prime.

    Attributes:
        primes: of the columns.
        dropped: those that were not lucky.
        lifted_by: the reducer that has settled everything, or None for the host.
    """

    primes: list[int] = attrs.field(init=False, factory=list)
    dropped: list[int] = attrs.field(init=False, factory=list)
    lifted_by: Reducer | None = attrs.field(init=False, default=None)
    _parts: list[_Part] = attrs.field(init=False, factory=list)

    def add(self, images: Images | KeptImages, reducer: Reducer) -> None:
        """Take the images that a reducer has made."""
        for p, good in zip(images.primes, images.lucky, strict=True):
            (self.primes if good else self.dropped).append(p)
        lanes = [lane for lane, good in enumerate(images.lucky) if good]
        kept = getattr(images, "kept", None)
        if kept is not None:
            self._parts.append(_Part(lanes, None, kept, cast("LiftingReducer", reducer)))
            return
        tails = cast("Images", images).tails
        self._parts.append(_Part(lanes, tails if all(images.lucky) else tails[:, lanes]))

    def first(self) -> NDArray[np.uint32]:
        """The residues modulo the first prime."""
        part = next(part for part in self._parts if part.lanes)
        if part.kept is not None:
            return part.kept.columns(part.lanes[:1])[:, 0]
        return part.as_array()[:, 0]

    def array(self) -> NDArray[np.uint32]:
        """Everything as one array, shape ``(terms, primes)``; devices keep nothing of it."""
        arrays = [part.as_array() for part in self._parts]
        merged = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
        self._parts = [_Part(list(range(merged.shape[1])), merged)]
        return merged

    def settle(self, lift: Lift, count: int, checkpoint: Callable[[], None]) -> None:
        """Find what the first ``count`` primes tell of the coefficients; the last one checks."""
        primes = tuple(self.primes[:count])
        reducer, kept = self._kept(count)
        if reducer is not None and reducer.settle(lift, kept, primes, checkpoint):
            self.lifted_by = reducer if lift.settled else None
            return
        known = [i for i, denominator in enumerate(lift.denominators) if denominator]
        residues = self.array()[:, :count]
        lift.settle(residues, primes, checkpoint)
        if lift.settled:
            lift.recheck(residues[:, -1:], primes[-1:], known)

    def close(self) -> None:
        """Give back what devices keep."""
        for part in self._parts:
            part.close()
        self._parts.clear()

    def _kept(self, count: int) -> tuple[LiftingReducer | None, list[KeptLanes]]:
        """The lanes of the first ``count`` primes, and the one reducer that keeps them all."""
        kept: list[KeptLanes] = []
        reducers = []
        for part in self._parts:
            lanes = part.lanes[:count]
            count -= len(lanes)
            if lanes:
                reducers.append(part.reducer if part.kept is not None else None)
                kept.append((cast("KeptResidues", part.kept), lanes))
        same = bool(reducers) and all(reducer is reducers[0] for reducer in reducers)
        return (reducers[0] if same else None), kept
