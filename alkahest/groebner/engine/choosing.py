"""The processor or a device, whichever is expected to be quicker."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Protocol

from alkahest.groebner.engine.lanes import LANES
from alkahest.groebner.engine.reducers import Reducer, host_reducer, with_fallback
from alkahest.groebner.engine.work import Work, work_of, work_of_matrix

if TYPE_CHECKING:
    from alkahest.groebner.engine.symbolic import SymbolicMatrix
    from alkahest.groebner.engine.trace import Trace

MARGIN = 1.1
"""How much longer the processor must be expected to take before a device is used."""

_SAMPLED_ROWS = 8

_COMBINED = 0.25
"""Part of a matrix's rows that the processor reduces: combinations, little more than the rank."""


class PredictingReducer(Reducer, Protocol):
    """A device's reducer that can say how long replays take."""

    def predicted(self, work: Work, lanes: int, primes: int) -> tuple[float, float] | str:
        """Seconds for ``lanes`` primes on the device and for ``primes`` on the processor.

        A text instead says why nothing is known.
        """
        ...


class ChoosingReducer:
    """Replays, and matrices of one prime, go where they are expected to end first.

    How many more primes are needed is not known before they have been lifted from. As many as
    there have been are expected, and eight at the start.

    Attributes:
        name: of the device when anything was given to it, else of the processor.
        choice: why, for the last replay or else for the largest matrix.
        first_error: what the device said when it failed first, or "".
        failures: how often the processor did what the device failed at.
        failed_liftings: how often the device failed at residues that it kept.
    """

    on_gpu = False
    lanes = LANES

    def __init__(self, device: PredictingReducer | None, obstacle: str, *, fallback: bool) -> None:
        """Choose between the processor and ``device``, which may be missing for a reason."""
        self._device = device
        self._host = host_reducer()
        self._reducer: Reducer | None = device
        if device is not None and fallback:
            self._reducer = with_fallback(device)
        self._works: weakref.WeakKeyDictionary[Trace, Work] = weakref.WeakKeyDictionary()
        self.name = self._host.name
        self.choice = obstacle
        self._largest = 0.0
        self.echelon = self._host.echelon
        self.echelon_with_rows = self._host.echelon_with_rows
        self.normal_forms = self._host.normal_forms
        self.replay = self._host.replay

    @property
    def first_error(self) -> str:
        """See the class."""
        return getattr(self._reducer, "first_error", "")

    @property
    def failures(self) -> int:
        """See the class."""
        return getattr(self._reducer, "failures", 0)

    @property
    def failed_liftings(self) -> int:
        """See the class."""
        return getattr(self._reducer, "failed_liftings", 0)

    def for_replay(self, trace: Trace, done: int) -> Reducer:
        """See :class:`~alkahest.groebner.engine.reducers.Chooser`."""
        if self._device is None:
            return self._host
        work = self._works.get(trace)
        if work is None:
            work = self._works[trace] = work_of(trace, _SAMPLED_ROWS)
        self._largest = math.inf
        return self._chosen(self._device, work, done)

    def for_follow(self, work: Work, done: int) -> Reducer | None:
        """What follows a change of order next, when ``done`` primes have been; None for the host."""
        if self._device is None or self._reducer is None or not hasattr(self._reducer, "follow"):
            return None
        chosen = self._chosen(self._device, work, done)
        return None if chosen is self._host else chosen

    def for_matrix(self, matrix: SymbolicMatrix) -> Reducer:
        """See :class:`~alkahest.groebner.engine.reducers.Chooser`."""
        if self._device is None:
            return self._host
        work = work_of_matrix(matrix)
        found = self._device.predicted(work, 1, 1)
        if isinstance(found, str):
            self.choice = found
            return self._host
        device, host = found[0], _COMBINED * found[1]
        if work.products >= self._largest:
            self._largest = work.products
            self.choice = (
                f"expected for the largest matrix: {device:.2g} s on {self._device.name}, "
                f"{host:.2g} s on the processor"
            )
        return self._quicker(device, host)

    def _chosen(self, device: PredictingReducer, work: Work, done: int) -> Reducer:
        """The host or the device, for as many primes as are expected."""
        primes = max(LANES, done)
        found = device.predicted(work, device.lanes, primes)
        if isinstance(found, str):
            self.choice = found
            return self._host
        seconds, host = found
        self.choice = (
            f"expected: {seconds:.2g} s for {device.lanes} primes on {device.name}, "
            f"{host:.2g} s for {primes} on the processor"
        )
        return self._quicker(seconds, host)

    def _quicker(self, device: float, host: float) -> Reducer:
        """What is chosen where so many seconds are expected."""
        if self._reducer is None or host <= MARGIN * device:
            return self._host
        self.name = self._reducer.name
        return self._reducer


__all__ = ["MARGIN", "ChoosingReducer", "PredictingReducer"]
