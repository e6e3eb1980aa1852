"""``alkahest doctor``: everything that a bug report should say, and what to do about it.

Works on a broken installation: it asks for metadata instead of importing packages, and a plugin
that fails while it is asked only adds a row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import traceback
from importlib import metadata
from typing import Any

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.builtin import BUILTIN_FEATURES
from alkahest._plugins.records import Status
from alkahest._plugins.registry import registry
from alkahest.cli import cache
from alkahest.cli.layout import MARKS, aligned
from alkahest.cli.plugins import describe
from alkahest.errors import CODES

_VARIABLES = re.compile(r"ALKAHEST_\w+|CUDA_(HOME|PATH|VISIBLE_DEVICES)|LD_LIBRARY_PATH|PYTHONPATH")
_CORE_NEEDS = ("attrs", "numpy", "pluggy")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<rest>.*)", re.DOTALL)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest doctor``."""
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument(
        "--verbose", action="store_true", help="also show the tracebacks of failed plugins"
    )


def run(options: argparse.Namespace) -> int:
    """Examine the installation; finding something wrong is success."""
    facts = examine()
    print(json.dumps(facts, indent=2) if options.json else _shown(facts, options.verbose))
    return 0


def examine() -> dict[str, Any]:
    """What is known about this installation, as JSON data.

    Returns:
        ``installation``, ``packages`` and ``environment``: name -> text; ``plugins``: as
        ``alkahest plugins --json`` gives them, with a ``traceback``; ``checks``: rows of
        ``plugin``, ``name``, ``ok`` (true, false or null), ``detail`` and ``remedy``.
    """
    snapshot = registry.snapshot(strict=False)
    return {
        "installation": {
            "alkahest": alkahest.__version__,
            "imported from": ", ".join(alkahest.__path__),
            "python": f"{platform.python_version()} at {sys.executable}",
            "platform": platform.platform(),
        },
        "packages": _packages({record.distribution for record in snapshot.records} - {""}),
        "environment": {n: v for n, v in sorted(os.environ.items()) if _VARIABLES.fullmatch(n)},
        "plugins": [
            {
                **describe(record, snapshot.records),
                "traceback": _traceback(snapshot.errors.get(record)),
            }
            for record in snapshot.records
        ],
        "checks": [*_feature_checks(), cache.check(), *_plugin_checks()],
    }


def _packages(distributions: set[str]) -> dict[str, str]:
    """Versions of alkahest's distributions and of what they require."""
    found = {name: _version(name) for name in ("alkahest", *sorted(distributions), *_CORE_NEEDS)}
    for distribution in ("alkahest", *sorted(distributions)):
        try:
            requirements = metadata.requires(distribution) or []
        except metadata.PackageNotFoundError:
            continue  # a checkout on the path, or a frozen application
        for requirement in requirements:
            match = _REQUIREMENT.match(requirement)
            if match is None:
                continue
            version = _version(match["name"])
            # Extras that nobody asked for, and markers of other platforms, are no news.
            if version or ";" not in match["rest"]:
                found[match["name"]] = version
    return {name: version or "not installed" for name, version in found.items()}


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _traceback(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))


def _feature_checks() -> list[dict[str, Any]]:
    """One row per capability bit; that nobody here offers a bit is no fault."""
    snapshot = registry.snapshot(strict=False)
    rows = []
    for bit in sorted({*BUILTIN_FEATURES, *snapshot.features}):
        probe = registry.probe(bit)
        backend = snapshot.features.get(bit)
        code = CODES.get(probe.code)
        rows.append(
            {
                "plugin": snapshot.owner(backend).name if backend else "",
                "name": f"capability {bit}",
                "ok": probe.ok if backend else None,
                "detail": f"[{probe.code}] {probe.detail}" if probe.code else probe.detail,
                "remedy": code.remedy if code and not probe.ok else "",
            }
        )
    return rows


def _plugin_checks() -> list[dict[str, Any]]:
    return [
        {
            "plugin": record.name,
            "name": row.name,
            "ok": row.ok,
            "detail": row.detail,
            "remedy": row.remedy,
        }
        for record, row in calls.diagnostics()
    ]


def _shown(facts: dict[str, Any], verbose: bool) -> str:
    lines = []
    for title in ("installation", "packages", "environment"):
        lines += [title, aligned(list(facts[title].items()))]
    lines += ["plugins", aligned([_plugin_row(entry) for entry in facts["plugins"]])]
    if verbose:
        for entry in facts["plugins"]:
            if entry["traceback"]:
                lines += ["", f"traceback of {entry['name']}", entry["traceback"]]
    lines += ["checks", aligned([_check_row(row) for row in facts["checks"]])]
    wrong = sum(row["ok"] is False for row in facts["checks"])
    wrong += sum(Status(entry["status"]).is_trouble for entry in facts["plugins"])
    lines.append(f"{wrong} to look at" if wrong else "nothing wrong")
    return "\n".join(lines)


def _plugin_row(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    origin = f"{entry['distribution']} {entry['version']}".strip()
    detail = entry["detail"]
    if Status(entry["status"]).is_trouble:
        detail = f"{detail} ({entry['disable']} leaves it out)"
    return entry["name"], entry["status"], origin, detail


def _check_row(row: dict[str, Any]) -> tuple[str, str, str]:
    remedy = f" -> {row['remedy']}" if row["remedy"] and row["ok"] is not True else ""
    return MARKS[row["ok"]], row["name"], f"{row['detail']}{remedy}"
