"""Capabilities for people: a table in notebooks, a page for browsers."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

_MARKS = {True: "yes", False: "no"}

_STYLE = (
    "body{font-family:sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}"
    "th,td{text-align:left;padding:.25rem .75rem;border-bottom:1px solid #ccc}"
)


class Capabilities(dict[str, Any]):
    """What :func:`alkahest.capabilities` returns: a dictionary that notebooks show as tables."""

    def _repr_html_(self) -> str:
        return to_html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": to_html(self)}


def to_html(facts: dict[str, Any]) -> str:
    """Tables of features, backends, plugins and operations, as a fragment of HTML."""
    backends = facts["backends"]
    primitives = facts["primitives"]
    names = [name for name in backends if any(name in p["backends"] for p in primitives)]
    return "\n".join(
        [
            *_table("Features", ("feature", "works"), facts["features"].items()),
            *_table(
                "Backends",
                ("backend", "reachable", "runs on", "distribution", "what was seen"),
                (
                    (name, e["reachable"], e["placement"], e["distribution"], e["detail"])
                    for name, e in backends.items()
                ),
            ),
            *_table(
                "Plugins",
                ("plugin", "distribution", "version", "status", "detail"),
                (
                    [p[key] for key in ("name", "distribution", "version", "status", "detail")]
                    for p in facts["plugins"]
                ),
            ),
            *_table(
                "Operations",
                ("operation", *names),
                (
                    (p["name"], *(", ".join(p["backends"].get(name, ())) for name in names))
                    for p in primitives
                ),
            ),
        ]
    )


def to_page(facts: dict[str, Any], version: str) -> str:
    """A complete HTML document that needs nothing else."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            f"<head><meta charset='utf-8'><title>alkahest {escape(version)}</title>",
            f"<style>{_STYLE}</style></head>",
            f"<body><h1>alkahest {escape(version)}: capabilities</h1>",
            to_html(facts),
            "</body></html>",
            "",
        ]
    )


def _table(title: str, head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    lines = [_row("td", row) for row in rows]
    if not lines:
        return [f"<h3>{title}</h3>", "<p>none</p>"]
    return [f"<h3>{title}</h3>", "<table>", _row("th", head), *lines, "</table>"]


def _row(tag: str, cells: Iterable[Any]) -> str:
    shown = (_MARKS[cell] if isinstance(cell, bool) else escape(str(cell or "")) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in shown)}</tr>"
