"""Rows of ``alkahest doctor`` about the plugins: which are in use, and what works with them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from alkahest._plugins.builtin import BUILTIN_FEATURES, SELECTION_WORDS
from alkahest._plugins.discovery import canonical
from alkahest._plugins.records import PluginRecord, Snapshot, Status, switch_off
from alkahest._plugins.registry import registry
from alkahest.cli import installation
from alkahest.cli.devices import devices_of
from alkahest.errors import CODES, install
from alkahest.plugin import Diagnostic


def checks(snapshot: Snapshot) -> Iterator[tuple[str, Diagnostic]]:
    """(name of the plugin or "", row) for plugins, the variables about them, and capability bits."""
    for record in snapshot.records:
        if record.status is not Status.ACTIVE:
            yield record.name, _out_of_use(record, snapshot.records)
    for row in _settings(snapshot):
        yield "", row
    yield "", _evaluation(snapshot)
    for bit in sorted({*BUILTIN_FEATURES, *snapshot.features}):
        backend = snapshot.features.get(bit)
        yield snapshot.owner(backend).name if backend else "", _capability(bit, backend)


def _out_of_use(record: PluginRecord, records: Iterable[PluginRecord]) -> Diagnostic:
    """A plugin that is not in use; switching it off is no fault."""
    name = f"plugin {record.name}"
    if record.status is Status.DISABLED:
        variable = record.detail.removeprefix("by ")
        return Diagnostic(
            name=name,
            ok=None,
            detail=f"disabled by {variable}={os.environ.get(variable, '')}",
            remedy=f"Change {variable} to have it back.",
        )
    return Diagnostic(
        name=name,
        ok=False,
        detail=f"{record.status.value}: {record.detail}",
        remedy=f"Install {record.origin} again, or update it; {switch_off(record, records)} "
        "leaves it out.",
    )


def _settings(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Variables that name a plugin or a backend which is not there, most often a slip."""
    plugins = {canonical(n) for r in snapshot.records for n in (r.name, r.distribution) if n}
    for variable in ("ALKAHEST_PLUGINS", "ALKAHEST_DISABLE_PLUGINS"):
        for name in map(str.strip, os.environ.get(variable, "").split(",")):
            if name and canonical(name) not in plugins:
                yield _unknown(variable, name, plugins)
    backend = os.environ.get("ALKAHEST_BACKEND", "")
    backends = {*snapshot.backends, *SELECTION_WORDS}
    if backend and backend not in backends:
        yield _unknown("ALKAHEST_BACKEND", backend, backends)


def _unknown(variable: str, name: str, known: Collection[str]) -> Diagnostic:
    return Diagnostic(
        name=variable,
        ok=False,
        detail=f"names {name!r}; there are: {', '.join(sorted(known)) or 'none'}",
        remedy=f"Correct {variable}, or unset it.",
    )


def _evaluation(snapshot: Snapshot) -> Diagnostic:
    """Whether anything here evaluates expressions; code may be all that somebody wants."""
    name = "evaluation"
    here = [
        backend
        for backend, info in sorted(snapshot.backends.items())
        if info.support and registry.reachable(backend).ok and devices_of(backend)["devices"]
    ]
    if here:
        return Diagnostic(name=name, ok=True, detail=f"by {', '.join(here)}")
    detail = "no backend here has a device: expressions can be built, but not evaluated"
    return Diagnostic(name=name, ok=None, detail=detail, remedy=install("cpu"))


def _capability(bit: str, backend: str | None) -> Diagnostic:
    """A capability bit; that nobody here offers it, or that an extra was left out, is no fault."""
    probe = registry.probe(bit)
    code = CODES.get(probe.code)
    ok = probe.ok if backend else None
    remedy = code.remedy if code and not probe.ok else ""
    builtin = BUILTIN_FEATURES.get(bit)
    if builtin and not ok and installation.extra_is_absent(builtin.distribution, builtin.extra):
        ok, remedy = None, builtin.remedy
    detail = f"[{probe.code}] {probe.detail}" if probe.code else probe.detail
    return Diagnostic(name=f"capability {bit}", ok=ok, detail=detail, remedy=remedy)
