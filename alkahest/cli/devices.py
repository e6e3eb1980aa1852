"""``alkahest devices``: what every backend can run on."""

from __future__ import annotations

import argparse
import json
from typing import Any

from alkahest._plugins import calls
from alkahest._plugins.isolation import Failure, contained
from alkahest._plugins.registry import registry
from alkahest.cli.layout import aligned
from alkahest.errors import install


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest devices``."""
    parser.add_argument(
        "--json", action="store_true", help="print backend -> devices, and why there are none"
    )


def run(options: argparse.Namespace) -> int:
    """Print the devices of every loaded backend."""
    found = {name: devices_of(name) for name in sorted(registry.snapshot().backends)}
    if options.json:
        print(json.dumps(found, indent=2))
    elif not found:
        print(f"no backend is loaded; for one: {install('cpu')}")
    else:
        print("\n".join(f"{name}\n{_shown(entry)}" for name, entry in found.items()))
    return 0


def devices_of(backend: str) -> dict[str, Any]:
    """``devices`` and ``detail`` of one backend as JSON data; never raises for a plugin's fault."""
    probe = registry.reachable(backend)
    devices = contained(f"alkahest_devices for {backend!r}", lambda: calls.devices(backend))
    if isinstance(devices, Failure):
        return {"devices": [], "detail": devices.detail}
    return {
        "devices": [
            {
                "ordinal": device.ordinal,
                "name": device.name,
                "memory": device.memory,
                "target": device.target,
                "facts": dict(device.facts),
            }
            for device in devices
        ],
        "detail": "" if probe.ok else probe.detail,
    }


def _shown(entry: dict[str, Any]) -> str:
    rows = [
        (str(device["ordinal"]), device["name"], device["target"], _memory(device["memory"]))
        for device in entry["devices"]
    ]
    lines = [aligned(rows) if rows else "  no devices"]
    if entry["detail"]:
        lines.append(aligned([("detail", entry["detail"])]))
    return "\n".join(lines)


def _memory(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size else ""
