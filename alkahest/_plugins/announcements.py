"""Telling people about plugins that cannot be used."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from alkahest._plugins.records import PluginRecord, Snapshot, Status, switch_off
from alkahest.errors import PluginError, PluginLoadWarning


def warn_about(records: Sequence[PluginRecord]) -> None:
    """Tell of every plugin that cannot be used, or that its author should look at."""
    for record in records:
        if record.status.is_trouble:
            text = f"{record.label} is not used ({record.status}): {record.detail}"
            text += f" ({switch_off(record, records)} leaves it out)"
        elif record.status is Status.ACTIVE and record.detail:
            text = f"{record.label}: {record.detail}"
        else:
            continue
        warnings.warn(text, PluginLoadWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far up the stack the code outside of alkahest is that asked the question."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "alkahest":
        frame = frame.f_back
        level += 1
    return level


def strict_error(snapshot: Snapshot) -> PluginError:
    """What ``ALKAHEST_STRICT_PLUGINS=1`` raises: E-PLUGIN-001 naming every troubled plugin."""
    listed = "; ".join(f"{r.label} is {r.status}: {r.detail}" for r in snapshot.troubled)
    error = PluginError("E-PLUGIN-001", listed)
    causes = list(snapshot.errors.values())
    if causes:
        error.__cause__ = BaseExceptionGroup("what the plugins raised", causes)
    return error
