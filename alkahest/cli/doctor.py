"""``alkahest doctor``: everything that a bug report should say, and what to do about it.

Works on a broken installation: it asks for metadata instead of importing packages, and a plugin
that fails while it is asked only adds a row. Rows about compilers, drivers and devices come from
the plugins that use them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import traceback
from typing import Any

import attrs

import alkahest
from alkahest._plugins import calls
from alkahest._plugins.registry import registry
from alkahest.cli import cache, installation, messages, plugin_checks
from alkahest.cli.layout import MARKS, aligned
from alkahest.cli.plugins import describe
from alkahest.plugin import Diagnostic

_VARIABLES = re.compile(r"ALKAHEST_\w+|CUDA_(HOME|PATH|VISIBLE_DEVICES)|LD_LIBRARY_PATH|PYTHONPATH")
_CORE_NEEDS = ("attrs", "numpy", "pluggy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest doctor``."""
    parser.description = (
        "Check this installation and say what to do. The exit code is 1 where something is wrong."
    )
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument(
        "--verbose", action="store_true", help="also show the tracebacks of failed plugins"
    )


def run(options: argparse.Namespace) -> int:
    """Examine the installation; the exit code is 1 where something is wrong."""
    facts = examine()
    print(json.dumps(facts, indent=2) if options.json else _shown(facts, options.verbose))
    return messages.FAILED if facts["wrong"] else messages.OK


def examine() -> dict[str, Any]:
    """What is known about this installation, as JSON data.

    Returns:
        ``installation``, ``packages`` and ``environment``: name -> text; ``plugins``: as
        ``alkahest plugins --json`` gives them, with a ``traceback``; ``checks``: rows of
        ``plugin``, ``name``, ``ok`` (true, false or null), ``detail`` and ``remedy``; ``wrong``:
        how many of the rows are false.
    """
    snapshot = registry.snapshot(strict=False)
    checks = [
        *(_row("", found) for found in installation.checks()),
        *(_row(plugin, found) for plugin, found in plugin_checks.checks(snapshot)),
        _row("", cache.check()),
        *(_row(record.name, found) for record, found in calls.diagnostics()),
    ]
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
        "checks": checks,
        "wrong": sum(check["ok"] is False for check in checks),
    }


def _row(plugin: str, found: Diagnostic) -> dict[str, Any]:
    return {"plugin": plugin, **attrs.asdict(found)}


def _packages(distributions: set[str]) -> dict[str, str]:
    """Versions of alkahest's distributions and of what they require."""
    owners = ("alkahest", *sorted(distributions))
    found = {name: installation.version(name) for name in (*owners, *_CORE_NEEDS)}
    for requirement in (r for owner in owners for r in installation.requirements(owner)):
        version = installation.version(requirement.name)
        # Extras that nobody asked for, and markers of other platforms, are no news.
        if version or not requirement.marker:
            found[requirement.name] = version
    return {name: version or "not installed" for name, version in found.items()}


def _traceback(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))


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
    lines.append(f"{facts['wrong']} to look at" if facts["wrong"] else "nothing wrong")
    return "\n".join(lines)


def _plugin_row(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    origin = f"{entry['distribution']} {entry['version']}".strip()
    return entry["name"], entry["status"], origin, entry["detail"]


def _check_row(row: dict[str, Any]) -> tuple[str, str, str]:
    remedy = f" -> {row['remedy']}" if row["remedy"] and row["ok"] is not True else ""
    return MARKS[row["ok"]], row["name"], f"{row['detail']}{remedy}"
