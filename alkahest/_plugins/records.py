"""What became of each plugin, and the immutable picture of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from alkahest.plugin import BackendInfo


class Status(StrEnum):
    """What became of one plugin."""

    ACTIVE = "active"
    DISABLED = "disabled"
    """Switched off by an environment variable, and not imported."""
    FAILED = "failed"
    """Its import raised."""
    INCOMPATIBLE = "incompatible"
    """Written for another version of the plugin interface; nothing of it was called."""
    INVALID = "invalid"
    """Its hooks or descriptors break a rule, or its registration raised."""
    CONFLICT = "conflict"
    """It claims a name that belongs to another."""

    @property
    def is_trouble(self) -> bool:
        """Whether somebody should hear of it."""
        return self not in (Status.ACTIVE, Status.DISABLED)


@attrs.frozen(kw_only=True)
class PluginRecord:
    """What became of one plugin.

    Attributes:
        name: name of the plugin: its entry point's, or the one it was registered under.
        distribution: what ships it; "" for one that the application registered.
        version: version of the distribution, or "".
        status: see :class:`Status`.
        detail: why it is not active, or what its author should know.
        hooks: names of the hooks that it implements.
        backends: names of the backends that it offers.
    """

    name: str
    distribution: str
    version: str
    status: Status
    detail: str = ""
    hooks: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Distribution and version for messages."""
        return f"{self.distribution} {self.version}".strip() or "registered by the application"

    @property
    def label(self) -> str:
        """The plugin in messages."""
        return f"plugin {self.name!r} ({self.origin})"


def switch_off(record: PluginRecord, records: Iterable[PluginRecord]) -> str:
    """The environment setting that leaves out the plugin of ``record``, and no other of its name.

    Args:
        record: the plugin to leave out.
        records: all plugins; where several share the name, the setting names the distribution.
    """
    shared = any(r.name == record.name and r.distribution != record.distribution for r in records)
    name = record.distribution if shared and record.distribution else record.name
    return f"ALKAHEST_DISABLE_PLUGINS={name}"


@attrs.frozen
class ActivePlugin:
    """A plugin in use.

    Attributes:
        record: what is known about it.
        plugin: the plugin object itself.
        hook: pluggy's relay of hooks, holding this plugin and no other.
    """

    record: PluginRecord
    plugin: object
    hook: Any


@attrs.frozen(kw_only=True)
class Snapshot:
    """Every plugin at one moment. Never changes; a later moment has another snapshot.

    Attributes:
        records: one per plugin, active or not, in the order of registration.
        errors: what was raised, for the records where something was.
        active: the plugins in use, in the order of registration.
        backends: name -> descriptor.
        owners: name of a backend -> the plugin that registered it.
        features: capability bit -> name of the backend that answers for it.
        exports: name on ``alkahest`` -> name of the backend that provides it.
    """

    records: tuple[PluginRecord, ...]
    errors: Mapping[PluginRecord, BaseException]
    active: tuple[ActivePlugin, ...]
    backends: Mapping[str, BackendInfo]
    owners: Mapping[str, ActivePlugin]
    features: Mapping[str, str]
    exports: Mapping[str, str]

    def owner(self, backend: str) -> PluginRecord:
        """Record of the plugin that registered ``backend``.

        Raises:
            KeyError: no backend of that name is loaded.
        """
        return self.owners[backend].record

    @property
    def troubled(self) -> tuple[PluginRecord, ...]:
        """Records of the plugins that somebody should hear of."""
        return tuple(record for record in self.records if record.status.is_trouble)
