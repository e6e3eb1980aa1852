"""What a call would cost, for automatic selection and for whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from alkahest._plugins import calls
from alkahest.calibration import storage
from alkahest.calibration.model import BackendModel, Work
from alkahest.plugin import Estimate, Tuned

if TYPE_CHECKING:
    from alkahest.program import Program

HOST = "host"


def predict(backend: str, program: Program, n: int, placement: str = HOST) -> Estimate | None:
    """Predicted cost of one call, compiling aside; None where nothing is known.

    The backend's own estimate goes first, then the calibration of this machine, unless it is of
    another version of the plugin. No device is touched.

    Args:
        backend: name of a loaded backend.
        program: what would run.
        n: number of points.
        placement: where the columns are, ``"host"`` or ``"cuda"``.

    Raises:
        KeyError: no backend of that name is loaded.
        PluginError: E-PLUGIN-003 when the plugin's estimate is none.
    """
    own = calls.estimate(backend, program, n, placement)
    if own is not None:
        return own
    entry = _entry(backend)
    model = None if isinstance(entry, str) else entry.models.get(program.dtype)
    if isinstance(entry, str) or model is None or placement not in (HOST, entry.placement):
        return None
    seconds = model.seconds(Work.of(program), n, moves=placement == HOST)
    return Estimate(seconds=seconds, reason="calibration")


def tuned(backend: str) -> tuple[Tuned, ...]:
    """What ``backend`` has measured about its own settings on this machine; empty where it has not.

    Nothing counts that another version of its plugin has measured. No device is touched.
    """
    try:
        entry = _entry(backend)
    except KeyError:  # it runs without being registered
        return ()
    return () if isinstance(entry, str) else entry.tuned


def objection(backend: str, dtype: str) -> str:
    """Why the calibration says nothing about ``backend`` at ``dtype``; "" where it does.

    Raises:
        KeyError: no backend of that name is loaded.
    """
    entry = _entry(backend)
    if isinstance(entry, str):
        return entry
    return "" if dtype in entry.models else f"the calibration lacks {dtype} on {backend}"


def devices_changed(backend: str) -> str:
    """How the devices of ``backend`` differ from the measured ones; "" where they do not.

    Asked apart from the rest because listing devices may start a driver.
    """
    entry = _entry(backend)
    if isinstance(entry, str):
        return ""
    now = storage.device_names(backend)
    if now == entry.devices:
        return ""
    then = ", ".join(entry.devices) or "none"
    return f"the calibration is of other devices of {backend}: {then}"


def figures(backend: str) -> tuple[Mapping[str, float], str]:
    """What was measured for a model of the backend's own, or nothing and the reason.

    Raises:
        KeyError: no backend of that name is loaded.
    """
    stored = storage.current()
    if stored.calibration is None:
        return {}, stored.reason
    entry = stored.calibration.figures.get(backend)
    if entry is None:
        return {}, f"the calibration lacks {backend}"
    plugin = storage.plugin_of(backend)
    if entry.plugin != plugin:
        return {}, f"the calibration of {backend} is of {entry.plugin}, here is {plugin}"
    if entry.devices != storage.device_names(backend):
        return {}, f"the calibration is of other devices of {backend}"
    return entry.values, ""


def _entry(backend: str) -> BackendModel | str:
    """What the calibration holds about a backend, or why it does not count."""
    stored = storage.current()
    if stored.calibration is None:
        return stored.reason
    entry = stored.calibration.backends.get(backend)
    if entry is None:
        return f"the calibration lacks {backend}"
    plugin = storage.plugin_of(backend)
    if entry.plugin != plugin:
        return f"the calibration of {backend} is of {entry.plugin}, here is {plugin}"
    return entry


__all__ = ["devices_changed", "figures", "objection", "predict", "tuned"]
