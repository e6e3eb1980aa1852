"""``alkahest cache``: the generated code that is kept on disk."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import Any

from alkahest import cache
from alkahest.cli import messages
from alkahest.cli.layout import aligned
from alkahest.plugin import Diagnostic

_REMEDY = "Repair the folder, or set ALKAHEST_CACHE_DIR to another one, or to off."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest cache``."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the entries, the last used first")
    what.add_argument("--clear", action="store_true", help="remove every entry")
    parser.add_argument("--json", action="store_true", help="print the same as JSON")


def run(options: argparse.Namespace) -> int:
    """Show, list or clear; that there is no cache is success, unless it should be cleared."""
    if options.clear:
        return _clear(options.json)
    if options.list:
        found = cache.entries()
        rows = [_row(entry) for entry in found]
        print(json.dumps([_facts(e) for e in found], indent=2) if options.json else aligned(rows))
        return messages.OK
    status = cache.status()
    print(json.dumps(describe(status), indent=2) if options.json else _shown(status))
    return messages.OK


def describe(status: cache.Status) -> dict[str, Any]:
    """A status as JSON data."""
    return {
        "path": None if status.path is None else str(status.path),
        "reason": status.reason,
        "entries": status.entries,
        "bytes": status.size,
        "limit": status.limit,
    }


def check() -> Diagnostic:
    """The row of ``alkahest doctor``; a cache that the user switched off is no fault."""
    status = cache.status()
    trouble = bool(status.reason) and status.wanted
    return Diagnostic(
        name="cache",
        ok=False if trouble else None if status.path is None else True,
        detail=_summary(status),
        remedy=_REMEDY if trouble else "",
    )


def _clear(as_json: bool) -> int:
    status = cache.status()
    if status.path is None and status.wanted:
        messages.show_error(f"there is no cache to clear: {status.reason}", hint=_REMEDY)
        return messages.FAILED
    removed, kept = cache.clear()
    if as_json:
        print(json.dumps({"removed": removed, "kept": kept}))
    else:
        print(f"{_entries(removed)} removed")
    if kept:
        messages.show_error(f"{_entries(kept)} could not be removed from {status.path}")
    return messages.FAILED if kept else messages.OK


def _shown(status: cache.Status) -> str:
    if status.path is None:
        return _summary(status)
    rows = [
        ("path", str(status.path)),
        ("entries", str(status.entries)),
        ("size", f"{_size(status.size)} of at most {_size(status.limit)}"),
    ]
    if status.reason:
        rows.append(("detail", f"nothing is stored: {status.reason}"))
    return f"cache of generated code\n{aligned(rows)}"


def _summary(status: cache.Status) -> str:
    if status.path is None:
        return f"no cache: {status.reason}"
    sizes = f"{_size(status.size)} of at most {_size(status.limit)}"
    text = f"{status.path}: {_entries(status.entries)}, {sizes}"
    return f"{text}; nothing is stored: {status.reason}" if status.reason else text


def _facts(entry: cache.Entry) -> dict[str, Any]:
    return {"key": entry.key, "bytes": entry.size, "used": entry.used, "label": entry.label}


def _row(entry: cache.Entry) -> tuple[str, str, str, str]:
    # Labels come from files, and control characters would reach the terminal.
    label = "".join(mark if mark.isprintable() else "?" for mark in entry.label)
    used = datetime.fromtimestamp(entry.used).isoformat(" ", "seconds")
    return entry.key[:12], used, _size(entry.size), label


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _size(size: float) -> str:
    units = iter(("bytes", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while size >= 1024 and unit != "TiB":
        size, unit = size / 1024, next(units)
    return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
