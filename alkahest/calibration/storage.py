"""Where a machine's calibration is kept, and whether it still holds.

One JSON file per kind of machine, so that machines which share a home folder do not overwrite each
other's: ``calibration-XXXXXXXX.json`` beside the cache of generated code, or the file that
``ALKAHEST_CALIBRATION`` names. Nothing in it is executed: a wrong file costs speed, never results.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.cache import settings
from alkahest.calibration.model import (
    BackendModel,
    Calibration,
    Cost,
    Figures,
    Model,
    coefficients,
)
from alkahest.errors import IoError
from alkahest.plugin import Tuned

VARIABLE = "ALKAHEST_CALIBRATION"
OFF = "off"
VERSION = 2

_PROCESSOR_KEYS = ("model name", "Hardware", "cpu model", "CPU part")


class Stored(NamedTuple):
    """What was found on disk.

    Attributes:
        calibration: what counts, or None.
        reason: why there is none, in words that fit behind "host columns, ".
    """

    calibration: Calibration | None
    reason: str = ""


def path() -> Path | None:
    """The file, whether it exists or not; None where calibrations are switched off.

    Without ``ALKAHEST_CALIBRATION`` it is in the cache's folder, hence also None without a cache.
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen.lower() == OFF:
        return None
    if chosen:
        return Path(chosen).expanduser()
    folder = settings.current().path
    return None if folder is None else folder / f"calibration-{_digest(hardware())}.json"


def current() -> Stored:
    """The calibration of this machine as it is on disk now; read again only when it changed."""
    place = path()
    if place is None:
        return Stored(None, "calibration is switched off")
    try:
        status = place.stat()
    except OSError:
        return Stored(None, "no calibration")
    return _read(place, status.st_mtime_ns, status.st_size)


@cache
def _read(place: Path, changed: int, size: int) -> Stored:
    try:
        calibration = from_data(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Stored(None, "the calibration file cannot be read; run `alkahest calibrate`")
    difference = _difference(calibration.machine, machine())
    if difference:
        return Stored(None, f"the calibration is of another machine: {difference}")
    return Stored(calibration)


def store(calibration: Calibration) -> Path:
    """Write the calibration in place of the old one; readers see one or the other, whole.

    Returns:
        The file.

    Raises:
        IoError: E-IO-002 where it cannot be written, or calibrations are switched off.
    """
    place = path()
    if place is None:
        raise IoError(
            "E-IO-002",
            "the calibration cannot be stored: it is switched off",
            remediation=f"Set {VARIABLE} to a file, or unset it and ALKAHEST_CACHE_DIR.",
        )
    text = json.dumps(as_data(calibration), indent=1)
    temporary = ""
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=place.parent, prefix=".calibration-", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
        os.replace(temporary, place)
    except OSError as error:
        raise IoError(
            "E-IO-002",
            f"{str(place)!r} cannot be written: {error.strerror or error}",
            remediation=f"Set {VARIABLE} to a file that can be written.",
        ) from error
    finally:
        # Gone where it has taken the place of the old one; left over by an error or Ctrl-C.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return place


def as_data(calibration: Calibration) -> dict[str, Any]:
    """``calibration`` as JSON data; the layout is that of :data:`VERSION`."""
    return {
        "version": VERSION,
        "measured": calibration.measured,
        "machine": dict(calibration.machine),
        "backends": {
            name: {
                "plugin": entry.plugin,
                "devices": list(entry.devices),
                "placement": entry.placement,
                "models": {dtype: _model_data(m) for dtype, m in entry.models.items()},
                "tuned": [attrs.asdict(found) for found in entry.tuned],
            }
            for name, entry in calibration.backends.items()
        },
        "figures": {
            name: {
                "plugin": entry.plugin,
                "devices": list(entry.devices),
                "values": dict(entry.values),
            }
            for name, entry in calibration.figures.items()
        },
    }


def from_data(data: Any) -> Calibration:
    """The reverse of :func:`as_data`.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: ``data`` is no calibration of
            :data:`VERSION`.
    """
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']!r} instead of {VERSION}")
    return Calibration(
        machine={str(k): str(v) for k, v in data["machine"].items()},
        measured=str(data["measured"]),
        backends={
            str(name): BackendModel(
                plugin=str(entry["plugin"]),
                devices=tuple(map(str, entry["devices"])),
                placement=str(entry["placement"]),
                models={str(dtype): _model(m) for dtype, m in entry["models"].items()},
                tuned=tuple(map(_tuned, entry.get("tuned", ()))),
            )
            for name, entry in data["backends"].items()
        },
        figures={
            str(name): Figures(
                plugin=str(entry["plugin"]),
                devices=tuple(map(str, entry["devices"])),
                values={str(key): _positive(value) for key, value in entry["values"].items()},
            )
            for name, entry in data.get("figures", {}).items()
        },
    )


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError("a figure that is no positive number")
    return number


def _model_data(model: Model) -> dict[str, Any]:
    return {
        "call": model.call,
        "read": [model.read.call, model.read.unit],
        "write": [model.write.call, model.write.unit],
        "filling": model.filling,
        "fresh": model.fresh,
        "ops": {name: [cost.call, cost.unit] for name, cost in model.ops.items()},
    }


def _model(data: Any) -> Model:
    model = Model(
        call=float(data["call"]),
        read=_cost(data["read"]),
        write=_cost(data["write"]),
        filling=float(data["filling"]),
        fresh=float(data["fresh"]),
        ops={str(name): _cost(pair) for name, pair in data["ops"].items()},
    )
    if not all(math.isfinite(value) and value >= 0 for value in coefficients(model)):
        raise ValueError("a cost that is negative or not finite")
    return model


def _tuned(data: Any) -> Tuned:
    gain = float(data["gain"])
    if not math.isfinite(gain):
        raise ValueError("a gain that is not finite")
    return Tuned(
        device=str(data["device"]),
        case=str(data["case"]),
        settings={str(name): int(value) for name, value in data["settings"].items()},
        gain=gain,
    )


def _cost(pair: Any) -> Cost:
    call, unit = pair
    return Cost(float(call), float(unit))


# What a calibration depends on


@cache
def hardware() -> Mapping[str, str]:
    """Facts about this machine that no installation changes."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def machine() -> Mapping[str, str]:
    """Facts that every time measured on this machine depends on."""
    from alkahest import __version__

    return {**hardware(), "alkahest": __version__}


def plugin_of(backend: str) -> str:
    """Distribution and version of what brings ``backend``.

    Raises:
        KeyError: no backend of that name is loaded.
    """
    return registry.snapshot().owner(backend).origin


def device_names(backend: str) -> tuple[str, ...]:
    """Names of the devices of ``backend``; may start its driver."""
    return tuple(device.name for device in calls.devices(backend))


def _processor() -> str:
    """The processor's marketing name on Linux, else what the platform calls it."""
    facts: dict[str, str] = {}
    with (
        contextlib.suppress(OSError),
        Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines,
    ):
        for line in lines:  # all processors take long to describe themselves where there are many
            key, _, value = (part.strip() for part in line.partition(":"))
            facts[key] = value
            if value and key == _PROCESSOR_KEYS[0]:
                break
    named = next((facts[key] for key in _PROCESSOR_KEYS if facts.get(key)), "")
    return named or platform.processor() or platform.machine()


def _difference(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The first fact that changed, in words, or ""."""
    for key, value in now.items():
        if then.get(key) != value:
            return f"{key} was {then.get(key, 'not noted')}, is {value}"
    return ""


def _digest(facts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(facts), sort_keys=True).encode()).hexdigest()[:8]


__all__ = [
    "OFF",
    "VARIABLE",
    "Stored",
    "as_data",
    "current",
    "device_names",
    "from_data",
    "hardware",
    "machine",
    "path",
    "plugin_of",
    "store",
]
