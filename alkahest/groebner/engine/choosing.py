"""The processor or a device, whichever is expected to be quicker."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

from alkahest.groebner.engine.lanes import LANES
from alkahest.groebner.engine.reducers import Reducer, host_reducer, with_fallback
from alkahest.groebner.engine.work import Work, work_of

if TYPE_CHECKING:
    from alkahest.groebner.engine.trace import Trace

MARGIN = 1.1
"""How much longer the processor must be expected to take before a device is used."""

_SAMPLED_ROWS = 8


class PredictingReducer(Reducer, Protocol):
    """A device's reducer that can say how long replays take."""

    def predicted(self, work: Work, lanes: int, primes: int) -> tuple[float, float] | str:
        """Seconds for ``lanes`` primes on the device and for ``primes`` on the processor.

        A text instead says why nothing is known.
        """
        ...


class ChoosingReducer:
    """Replays go where they are expected to end first; matrices of one prime to the processor.

    How many more primes are needed is not known before they have been lifted from. As many as
    there have been are expected, and eight at the start.

    Attributes:
        name: of what was chosen last.
        choice: why.
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
        self.choice = obstacle or "matrices of one prime are the processor's"
        self.echelon = self._host.echelon
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
        if self._device is None or self._reducer is None:
            return self._host
        work = self._works.get(trace)
        if work is None:
            work = self._works[trace] = work_of(trace, _SAMPLED_ROWS)
        return self._chosen(self._device, self._reducer, work, done)

    def for_follow(self, work: Work, done: int) -> Reducer | None:
        """What follows a change of order next, when ``done`` primes have been; None for the host."""
        if self._device is None or self._reducer is None or not hasattr(self._reducer, "follow"):
            return None
        chosen = self._chosen(self._device, self._reducer, work, done)
        return None if chosen is self._host else chosen

    def _chosen(
        self, device: PredictingReducer, reducer: Reducer, work: Work, done: int
    ) -> Reducer:
        """The host, or ``reducer``, which computes on ``device``."""
        primes = max(LANES, done)
        found = device.predicted(work, device.lanes, primes)
        chosen = self._host
        if isinstance(found, str):
            self.choice = found
        else:
            seconds, host = found
            self.choice = (
                f"expected: {seconds:.2g} s for {device.lanes} primes on {device.name}, "
                f"{host:.2g} s for {primes} on the processor"
            )
            if host > MARGIN * seconds:
                chosen = reducer
        self.name = chosen.name
        return chosen


__all__ = ["MARGIN", "ChoosingReducer", "PredictingReducer"]
