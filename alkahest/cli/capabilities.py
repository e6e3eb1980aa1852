"""``alkahest capabilities``: what is reachable here, for people, as JSON or as a page."""

from __future__ import annotations

import argparse
import json
from typing import Any

import alkahest
from alkahest._plugins.registry import registry
from alkahest.capability_report import to_page
from alkahest.cli.layout import MARKS, aligned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of ``alkahest capabilities``."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print what alkahest.capabilities() returns"
    )
    form.add_argument("--html", action="store_true", help="print a page for a browser")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="also make the call that each bit promises, on a device where one is promised",
    )


def run(options: argparse.Namespace) -> int:
    """Print the capabilities."""
    facts = alkahest.capabilities(verify=options.verify)
    if options.html:
        print(to_page(facts, alkahest.__version__), end="")
    else:
        print(json.dumps(facts, indent=2) if options.json else describe(facts))
    return 0


def describe(facts: dict[str, Any]) -> str:
    """Capabilities as text.

    Args:
        facts: what :func:`alkahest.capabilities` returned.
    """
    reasons = {bit: e["detail"] for e in facts["backends"].values() for bit in e["features"]}
    features = [
        # Of a bit that no loaded backend answers for, only the registry knows the reason.
        (bit, MARKS[works], "" if works else reasons.get(bit) or registry.probe(bit).detail)
        for bit, works in facts["features"].items()
    ]
    backends = [
        (name, MARKS[entry["reachable"]], entry["distribution"], entry["detail"])
        for name, entry in facts["backends"].items()
    ]
    counts: dict[str, int] = {}
    for primitive in facts["primitives"]:
        for backend in primitive["backends"]:
            counts[backend] = counts.get(backend, 0) + 1
    operations = [(name, f"{count} operations") for name, count in sorted(counts.items())]
    return "\n".join(
        [
            f"alkahest {alkahest.__version__}, capabilities version {facts['contract_version']}",
            "features",
            aligned(features),
            "backends",
            aligned(backends),
            "operations",
            aligned(operations),
        ]
    )
