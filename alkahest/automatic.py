"""``backend="auto"``: which backend takes a call, decided per call and remembered.

Columns on a device go to a backend that reads them there. Columns in host memory go to the best
host backend, unless the estimates for this program and length say that another backend is quicker
by :data:`MARGIN`, transfers included. Backends generate code when they are first chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from alkahest import calibration, selection
from alkahest._plugins import calls
from alkahest._plugins.isolation import Failure, contained
from alkahest.errors import AlkahestError
from alkahest.selection import HOST

if TYPE_CHECKING:
    from alkahest.executable import Executable
    from alkahest.plugin import BackendInfo, Estimate
    from alkahest.program import Program

MARGIN = 1.1
"""How many times quicker another backend must be before host columns leave the host."""


class Choice(NamedTuple):
    """What takes a call.

    Attributes:
        executable: the program on the chosen backend.
        reason: why that one; for the report.
    """

    executable: Executable
    reason: str


def placement_of(columns: Iterable[Any]) -> str:
    """Where the columns of a call live: ``"host"``, or what the first one elsewhere says.

    A mixture is not refused here: the checks of the columns name both.
    """
    from alkahest.conversion import device_of

    for column in columns:
        place = device_of(column)
        if place is not None:
            return place.lower()
    return HOST


class Automatic:
    """Chooses for one program; safe to use from many threads and after a fork.

    Attributes:
        first: the program on the backend that takes host columns where nothing is predicted.
    """

    def __init__(
        self,
        program: Program,
        compile_for: Callable[[BackendInfo], Executable],
        device: int | str | None,
    ) -> None:
        """Choose and compile :attr:`first`.

        Args:
            program: what is compiled.
            compile_for: compiles it for a backend.
            device: the ordinal that calls ask for unless they say otherwise.

        Raises:
            CodegenError: E-JIT-004 when no backend fits.
            AlkahestError: what the chosen backend refuses.
        """
        self._program = program
        self._compile_for = compile_for
        self._choices: dict[tuple[str, int | str | None, int, int], Choice] = {}
        self._best: dict[tuple[str, int | str | None], BackendInfo] = {}
        self._executables: dict[str, Executable] = {}
        self._refusals: dict[str, str] = {}
        self.first = self._executable(self._best_for(HOST, device))

    def pick(self, n: int, placement: str, device: int | str | None) -> Choice:
        """The choice for a call, the same for all lengths within an eighth of a power of two.

        Args:
            n: number of points.
            placement: where the columns are.
            device: ordinal asked for, ``"all"`` or None.

        Raises:
            CodegenError: E-JIT-004 when no backend fits.
            AlkahestError: what the only fitting backend refuses.
        """
        size = n.bit_length()
        key = placement, device, size, n >> (size - 4 if size > 4 else 0)
        choice = self._choices.get(key)
        if choice is None:
            choice = self._choices[key] = self._decide(n, placement, device)
        return choice

    def reader(self, placement: str, device: int | str | None) -> Executable:
        """The program on the backend whose rules the columns of ``placement`` are read by."""
        return self._executable(self._best_for(placement, device))

    def _decide(self, n: int, placement: str, device: int | str | None) -> Choice:
        base = self._best_for(placement, device)
        reads = base.placement == placement
        if placement != HOST:
            reason = f"columns on {placement}" + ("" if reads else ", which no backend here reads")
        elif not reads:
            reason = "host columns, no backend for them here"
        else:
            return self._compared(base, n, device)
        return Choice(self._executable(base), reason)

    def _compared(self, base: BackendInfo, n: int, device: int | str | None) -> Choice:
        """The quickest of ``base`` and the backends of other placements, for host columns."""
        chosen = Choice(self._executable(base), "host columns, no other backend")
        others = [
            info
            for info in selection.evaluating()
            if info.placement != HOST and _lowers(info, self._program)
        ]
        if not others:
            return chosen
        own = self._estimate(base, n)
        if isinstance(own, str):
            return chosen._replace(reason=f"host columns, {own}")
        notes, best = [], own.seconds
        for info in others:
            estimate = self._estimate(info, n)
            if isinstance(estimate, str):
                notes.append(estimate)
                continue
            times = (estimate.seconds, info.name), (own.seconds, base.name)
            if not (estimate.seconds * MARGIN <= own.seconds and estimate.seconds < best):
                notes.append(_compare(*reversed(times)))
                continue
            obstacle = self._obstacle(info, device)
            if isinstance(obstacle, str):
                notes.append(f"{_compare(*times)}, but {info.name}: {obstacle}")
                continue
            chosen, best = Choice(obstacle, _compare(*times)), estimate.seconds
        if chosen.executable.backend != base.name:
            return chosen
        return chosen._replace(reason="host columns, " + "; ".join(dict.fromkeys(notes)))

    def _estimate(self, info: BackendInfo, n: int) -> Estimate | str:
        """Predicted cost for host columns, or why there is none."""
        answer = contained(
            f"alkahest_estimate for {info.name!r}",
            lambda: calibration.predict(info.name, self._program, n, HOST),
            may_ask=True,
        )
        if isinstance(answer, Failure):
            return f"the estimate of {info.name} failed: {answer.detail}"
        return answer or calibration.objection(info.name, self._program.dtype)

    def _obstacle(self, info: BackendInfo, device: int | str | None) -> Executable | str:
        """The program on a backend that was found to be quicker, or why it cannot be used.

        Only now is the backend asked for its devices, which may start a driver.
        """
        obstacle = (
            self._refusals.get(info.name)
            or selection.obstacle(info, self._program)
            or ("" if _has(info, device) else f"no device {device}")
            or calibration.devices_changed(info.name)
        )
        if obstacle:
            return obstacle
        try:
            return self._executable(info)
        except AlkahestError as error:
            return self._refusals.setdefault(info.name, f"[{error.code}] {error.message}")

    def _best_for(self, placement: str, device: int | str | None) -> BackendInfo:
        """The first fitting backend with such a device; the first fitting one if none has it."""
        key = placement, device
        known = self._best.get(key)
        if known is not None:
            return known
        found: BackendInfo | None = None
        for info in selection.fitting(self._program, placement):
            if _has(info, device):
                found = info
                break
            found = found or info
        assert found is not None  # fitting() raises where there is nothing
        return self._best.setdefault(key, found)

    def _executable(self, info: BackendInfo) -> Executable:
        known = self._executables.get(info.name)
        if known is None:
            # Not under a lock, since compiling may take long; of two threads, one result is kept.
            known = self._executables.setdefault(info.name, self._compile_for(info))
        return known


def _has(info: BackendInfo, device: int | str | None) -> bool:
    """Whether the backend has the device with this ordinal, or was asked for none in particular."""
    return not isinstance(device, int) or 0 <= device < len(calls.devices(info.name))


def _lowers(info: BackendInfo, program: Program) -> bool:
    answer = contained(
        f"the tables of {info.name!r}", lambda: selection.refusal(info, program), may_ask=True
    )
    return answer is None


def _compare(quicker: tuple[float, str], slower: tuple[float, str]) -> str:
    (seconds, name), (other_seconds, other_name) = quicker, slower
    return f"predicted {_shown(seconds)} on {name} against {_shown(other_seconds)} on {other_name}"


def _shown(seconds: float) -> str:
    factor, unit = next((row for row in _UNITS if seconds * row[0] >= 1), _UNITS[-1])
    return f"{seconds * factor:.3g} {unit}"


_UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))


__all__ = ["MARGIN", "Automatic", "Choice", "placement_of"]
