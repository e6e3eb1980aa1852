"""``alkahest plugins``: the installed plugins and what became of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from alkahest._plugins.records import PluginRecord, switch_off
from alkahest._plugins.registry import registry
from alkahest.cli.layout import aligned
from alkahest.errors import install


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest plugins``."""
    parser.add_argument("--json", action="store_true", help="print a list of records")


def run(options: argparse.Namespace) -> int:
    """Print one record per plugin."""
    records = registry.snapshot(strict=False).records
    if options.json:
        print(json.dumps([describe(record, records) for record in records], indent=2))
    else:
        print("\n".join(_shown(record, records) for record in records) or _NONE)
    return 0


_NONE = f"no plugins are installed; for a backend: {install('cpu')}"


def describe(record: PluginRecord, records: Sequence[PluginRecord]) -> dict[str, Any]:
    """A record as JSON data; ``disable`` is the environment setting that leaves the plugin out.

    Args:
        record: the plugin.
        records: all plugins, of which another may have the same name.
    """
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "status": record.status.value,
        "detail": record.detail,
        "hooks": list(record.hooks),
        "backends": list(record.backends),
        "disable": switch_off(record, records),
    }


def _shown(record: PluginRecord, records: Sequence[PluginRecord]) -> str:
    rows = [("from", record.origin)]
    if record.backends:
        rows.append(("backends", ", ".join(record.backends)))
    if record.detail:
        rows.append(("detail", record.detail))
    if record.status.is_trouble:
        rows.append(("remedy", f"fix or uninstall it; {switch_off(record, records)} leaves it out"))
    return f"{record.name}: {record.status.value}\n{aligned(rows)}"
